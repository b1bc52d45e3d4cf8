// SPDX-License-Identifier: BSD-3-Clause
// Values k(x_i, x_j) that are asked for once: blocks of them, and sums over them.
#include <algorithm>
#include <cmath>
#include <optional>

#include "kernel/any_kernel_matrix.hpp"
#include "kernel/encoded.hpp"
#include "machine/threads.hpp"

namespace maxmargin {
namespace {

constexpr Integer kValues = Integer{1} << 27;  // of a kernel, between two calls of who wants to know

// All sums are in double; the values of the kernel are computed in T.
template <class T>
void expansions_in(const KernelSum& kernel, const Encoding& encoding, SomeRows support,
                   const Coefficients& coefficients, SomeRows targets, double* out, const Budget& budget,
                   const std::function<void()>& between) {
  constexpr Integer target_chunk = 4 * kTile;
  const Integer n = static_cast<Integer>(targets.which.size());
  Integer chunk =
      std::clamp<Integer>(kValues / std::max<Integer>(n, 1) / kTile * kTile, 4 * kTile, 32 * kTile);
  const KeptColumns columns = all_columns(support.rows);
  if (encoding.holding == Holding::sparse) chunk = std::min(chunk, sparse_queries(columns.count));
  const Integer s = static_cast<Integer>(support.which.size());
  const std::span<const Integer> segments = coefficients.segments;
  const Integer parts = static_cast<Integer>(segments.size()) - 1;
  std::fill(out, out + n * parts * coefficients.rows, 0.0);
  std::vector<Integer> numbers(static_cast<std::size_t>(chunk));
  std::iota(numbers.begin(), numbers.end(), Integer{0});
  std::vector<typename Encoded<T>::Queries> batches;
  for (Integer begin = 0; begin < s; begin += chunk) {
    const Integer count = std::min(chunk, s - begin);
    const Encoded<T> held(support.rows, support.which.subspan(begin, count), kernel, encoding, columns);
    batches.resize(static_cast<std::size_t>((count + kQueries - 1) / kQueries));
    for (Integer q = 0; q < count; q += kQueries) {
      const Integer size = std::min<Integer>(kQueries, count - q);
      if (size < kQueries) batches[q / kQueries] = {};  // lest rows of the last chunk fill its places
      batches[q / kQueries].read(held, std::span(numbers).subspan(q, size));
    }
    const Integer items = (n + target_chunk - 1) / target_chunk;
    share_out(budget.threads_for(n * count * held.work()), items, [&](Integer item) {
      const Integer first = item * target_chunk, last = std::min(first + target_chunk, n);
      const Encoded<T> these(targets.rows, targets.which.subspan(first, last - first), kernel, encoding,
                             columns);
      alignas(64) TileSums<T> values;
      for (Integer tile = 0; tile < these.tiles(); ++tile) {
        const Integer lanes = std::min<Integer>(kTile, last - first - tile * kTile);
        for (std::size_t batch = 0; batch < batches.size(); ++batch) {
          these.values(kernel, batches[batch], tile, values);
          for (int q = 0; q < kQueries; ++q) {
            const Integer place = begin + static_cast<Integer>(batch) * kQueries + q;
            if (place >= begin + count) break;
            const Integer part =
                std::upper_bound(segments.begin(), segments.end(), place) - segments.begin() - 1;
            for (Integer r = 0; r < coefficients.rows; ++r) {
              const double coefficient = coefficients.values[r * s + place];
              if (coefficient == 0) continue;
              double* target = out + (part * coefficients.rows + r) * n + first + tile * kTile;
              for (Integer lane = 0; lane < lanes; ++lane) {
                target[lane] += coefficient * static_cast<double>(values[q][lane]);
              }
            }
          }
        }
      }
    });
    if (begin + chunk < s) between();
  }
}

template <class Rows>
void diagonal_of(const KernelSum& kernel, const Rows& rows, std::span<double> out) {
  const bool given = kernel.uses(Common::given);
  for (Integer i = 0; i < rows.count; ++i) {
    double own[kCommons] = {};
    // A row is at no distance from itself, whatever its values are.
    if (!kernel.only_distances()) {
      for_each_value(rows[i], [&](Integer column, auto value) {
        const double x = static_cast<double>(value);
        if (given && column == i) own[3] = x;
        for (int common = 0; !given && common < 3; ++common)
          own[common] += own_share(static_cast<Common>(common), x);
      });
    }
    out[i] = 0;
    for (const Term& term : kernel.terms) {
      double product = term.coefficient;
      for (const Factor& factor : term.factors) {
        const double inner = factor.gamma * own[static_cast<int>(factor.common)] + factor.shift;
        if (factor.shape == Shape::tanh) product *= std::tanh(inner);
        if (factor.shape == Shape::power) product *= std::pow(inner, factor.degree);
      }
      out[i] += product;
    }
  }
}

}  // namespace

void kernel_diagonal(const KernelSum& kernel, const StoredRows& rows, std::span<double> out) {
  std::visit([&](const auto& kind) { diagonal_of(kernel, kind, out); }, rows);
}

void kernel_block(const KernelSum& kernel, const Encoding& encoding, SomeRows first, SomeRows second,
                  double* out, const Budget& budget) {
  const KeptColumns all = all_columns(first.rows);
  const Encoded<double> columns(second.rows, second.which, kernel, encoding, all);
  // Values that are given may differ from those across the diagonal.
  const bool symmetric = &first.rows == &second.rows && std::ranges::equal(first.which, second.which) &&
                         !kernel.uses(Common::given);
  std::optional<Encoded<double>> others;
  if (!symmetric) others.emplace(first.rows, first.which, kernel, encoding, all);
  const Integer m = columns.count();
  for_each_pair(kernel, symmetric ? columns : *others, columns, symmetric, budget,
                [=](Integer a, Integer b, double value) { out[a * m + b] = value; });
}

void expansions(const KernelSum& kernel, const Encoding& encoding, SomeRows support,
                const Coefficients& coefficients, SomeRows targets, double* out, bool single,
                const Budget& budget, const std::function<void()>& between) {
  const auto run = single ? expansions_in<float> : expansions_in<double>;
  run(kernel, encoding, support, coefficients, targets, out, budget, between);
}

}  // namespace maxmargin
