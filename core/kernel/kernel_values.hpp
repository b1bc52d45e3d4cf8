// SPDX-License-Identifier: BSD-3-Clause
// Values k(x_i, x_j) that are asked for once: blocks of them, and sums over them.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>

#include "kernel/encoded.hpp"
#include "passes/passes.hpp"

namespace maxmargin {

inline Places all_places(Integer columns) {
  Places places(static_cast<std::size_t>(columns));
  for (std::size_t k = 0; k < places.size(); ++k) places[k] = static_cast<Integer>(k);
  return places;
}

// Calls work(thread, item) for 0 .. count - 1 on several threads; whoever is free takes the next.
template <class Work>
void share_out(Integer threads, Integer count, const Work& work) {
  std::atomic<Integer> next{0};
  in_parallel(std::max<Integer>(1, std::min(threads, count)), count, [&](Integer thread, Integer, Integer) {
    for (Integer item; (item = next.fetch_add(1, std::memory_order_relaxed)) < count;) work(thread, item);
  });
}

constexpr Integer kValues = Integer{1} << 27;  // of a kernel, between two calls of who wants to know

// out[segment][r][target] = sum over the rows s of a segment of coefficients[r][s] k(s, target)
//
// Segments are consecutive shares of `support`; the certificate has one, one-vs-one has one per class. All
// sums are in double; the values of the kernel are computed in T. `between` is called now and then; how
// often changes nothing in the sums.
template <class T>
void expansions(const KernelSum& kernel, const Encoding& encoding, const KernelRows& support,
                std::span<const Integer> support_which, const double* coefficients,
                Integer coefficient_rows, std::span<const Integer> segments, const KernelRows& targets,
                std::span<const Integer> target_which, double* out, const Budget& budget,
                const std::function<void()>& between) {
  constexpr Integer target_chunk = 4 * kTile;
  const Integer n = static_cast<Integer>(target_which.size());
  Integer chunk =
      std::clamp<Integer>(kValues / std::max<Integer>(n, 1) / kTile * kTile, 4 * kTile, 32 * kTile);
  const Integer columns = columns_of(support);
  if (encoding.holding == Holding::sparse) chunk = std::min(chunk, sparse_queries(columns));
  const Integer s = static_cast<Integer>(support_which.size());
  const Integer parts = static_cast<Integer>(segments.size()) - 1;
  std::fill(out, out + n * parts * coefficient_rows, 0.0);
  const Places places = all_places(columns);
  std::vector<Integer> numbers(static_cast<std::size_t>(chunk));
  for (Integer k = 0; k < chunk; ++k) numbers[k] = k;
  std::vector<Encoded::Queries> batches;
  for (Integer begin = 0; begin < s; begin += chunk) {
    const Integer count = std::min(chunk, s - begin);
    const auto held =
        Encoded::of<T>(support, support_which.subspan(begin, count), kernel, encoding, places, columns);
    batches.resize(static_cast<std::size_t>((count + kQueries - 1) / kQueries));
    for (Integer q = 0; q < count; q += kQueries) {
      const Integer size = std::min<Integer>(kQueries, count - q);
      if (size < kQueries) batches[q / kQueries] = {};  // lest rows of the last chunk fill its places
      batches[q / kQueries].template read<T>(held, std::span(numbers).subspan(q, size));
    }
    const Integer items = (n + target_chunk - 1) / target_chunk;
    const Integer threads = budget.threads_for(n * count * held.work());
    share_out(threads, items, [&](Integer, Integer item) {
      const Integer first = item * target_chunk, last = std::min(first + target_chunk, n);
      const auto these = Encoded::of<T>(targets, target_which.subspan(first, last - first), kernel,
                                        encoding, places, columns);
      alignas(64) TileSums<T> values;
      for (Integer tile = 0; tile < these.tiles(); ++tile) {
        const Integer lanes = std::min<Integer>(kTile, last - first - tile * kTile);
        for (std::size_t batch = 0; batch < batches.size(); ++batch) {
          these.template values<T>(kernel, batches[batch], tile, values);
          for (int q = 0; q < kQueries; ++q) {
            const Integer place = begin + static_cast<Integer>(batch) * kQueries + q;
            if (place >= begin + count) break;
            const Integer part =
                std::upper_bound(segments.begin(), segments.end(), place) - segments.begin() - 1;
            for (Integer r = 0; r < coefficient_rows; ++r) {
              const double coefficient = coefficients[r * s + place];
              if (coefficient == 0) continue;
              double* target = out + (part * coefficient_rows + r) * n + first + tile * kTile;
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

// out_i = k(x_i, x_i)
template <class Rows>
void kernel_diagonal(const KernelSum& kernel, const Rows& rows, std::span<double> out) {
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

// out[a][b] = k(row which_a of the first, row which_b of the second), in T
//
// Of rows with themselves only one of k(x, z) and k(z, x) is computed, unless the values are given, and may
// differ.
template <class T>
void kernel_block(const KernelSum& kernel, const Encoding& encoding, const KernelRows& first,
                  std::span<const Integer> first_which, const KernelRows& second,
                  std::span<const Integer> second_which, T* out, const Budget& budget) {
  const Integer n = static_cast<Integer>(first_which.size()), m = static_cast<Integer>(second_which.size());
  const Integer width = columns_of(first);
  const auto places = all_places(width);
  const auto columns = Encoded::of<T>(second, second_which, kernel, encoding, places, width);
  const bool symmetric =
      &first == &second && std::ranges::equal(first_which, second_which) && !kernel.uses(Common::given);
  std::optional<Encoded> others;
  if (!symmetric) others.emplace(Encoded::of<T>(first, first_which, kernel, encoding, places, width));
  const Encoded& rows = symmetric ? columns : *others;
  share_out(budget.threads_for(n * m * rows.work()), (n + kQueries - 1) / kQueries,
            [&](Integer, Integer item) {
              Integer numbers[kQueries];
              const Integer begin = item * kQueries, size = std::min<Integer>(kQueries, n - begin);
              for (Integer q = 0; q < size; ++q) numbers[q] = begin + q;
              Encoded::Queries queries;
              queries.template read<T>(rows, std::span(numbers, static_cast<std::size_t>(size)));
              alignas(64) TileSums<T> values;
              const Integer own = begin / kTile;  // the tile that these rows are in themselves
              for (Integer tile = symmetric ? own : 0; tile < columns.tiles(); ++tile) {
                columns.template values<T>(kernel, queries, tile, values);
                const Integer lanes = std::min<Integer>(kTile, m - tile * kTile);
                for (Integer q = 0; q < size; ++q) {
                  std::copy(values[q], values[q] + lanes, out + (begin + q) * m + tile * kTile);
                }
                if (!symmetric || tile == own) continue;
                for (Integer lane = 0; lane < lanes; ++lane) {
                  T* mirrored = out + (tile * kTile + lane) * m + begin;
                  for (Integer q = 0; q < size; ++q) mirrored[q] = values[q][lane];
                }
              }
            });
}

}  // namespace maxmargin
