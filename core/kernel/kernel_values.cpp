// SPDX-License-Identifier: BSD-3-Clause
// Values k(x_i, x_j) that are asked for once: blocks of them, and sums over them.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "kernel/any_kernel_matrix.hpp"
#include "kernel/encoded.hpp"
#include "machine/threads.hpp"

namespace maxmargin {
namespace {

constexpr Integer kTargetTiles = 4;            // of targets that are held at once
constexpr Integer kSparseTargets = 1 << 15;    // and of those with few values
constexpr Integer kValues = Integer{1} << 27;  // of a kernel, between two calls of who wants to know
constexpr Integer kMostRows = 32 * kTile;      // of the support, too
constexpr Integer kChunkAmong = 8 * kTile;     // rows whose values among themselves are computed twice
constexpr Integer kHeld = Integer{1} << 24;    // values of rows that are not sparse, held at once
constexpr Integer kSharesAmong = 4;            // of these, for each thread

// What a chunk of the support adds to some tiles of the targets, before it is added to what others did: so
// that a product goes through few additions, whose rounding the certificate has to allow for
// (docs/certificate.md).
class ChunkSums {
 public:
  ChunkSums(Integer sums, Integer tiles)
      : length_(tiles * kTile), values_(static_cast<std::size_t>(sums * length_)) {}

  double* tile(Integer sum, Integer number) { return values_.data() + sum * length_ + number * kTile; }
  // Adds one of the sums to those of the targets, of which there may be fewer.
  void add_to(Integer sum, double* targets, Integer count) const {
    const double* const values = values_.data() + sum * length_;
    for (Integer i = 0; i < std::min(count, length_); ++i) targets[i] += values[i];
  }

 private:
  Integer length_;
  std::vector<double> values_;
};

// to += the products of the queries from `first` to `last` with their coefficients, first among themselves.
template <class T>
void add_products(const double* coefficients, const TileSums<T>& values, int first, int last, double* to) {
  double sum[kTile] = {};
  for (int q = first; q < last; ++q) {
    const double coefficient = coefficients[q];
    if (coefficient == 0) continue;
    for (int lane = 0; lane < kTile; ++lane)
      sum[lane] += coefficient * static_cast<double>(values[q][lane]);
  }
  for (int lane = 0; lane < kTile; ++lane) to[lane] += sum[lane];
}

// All sums are in double; the values of the kernel are computed in T.
template <class T>
void expansions_in(const KernelSum& kernel, const Encoding& encoding, SomeRows support,
                   const Coefficients& coefficients, SomeRows targets, double* out, const Budget& budget,
                   const std::function<void()>& between) {
  const bool sparse = encoding.holding == Holding::sparse;
  const Integer n = static_cast<Integer>(targets.which.size());
  const Integer chunk =
      std::clamp<Integer>(kValues / std::max<Integer>(n, 1) / kTile * kTile, 4 * kTile, kMostRows);
  const KeptColumns columns = all_columns(support.rows);
  const Integer s = static_cast<Integer>(support.which.size());
  const std::span<const Integer> segments = coefficients.segments;
  const Integer parts = static_cast<Integer>(segments.size()) - 1;
  std::fill(out, out + n * parts * coefficients.rows, 0.0);
  std::vector<Integer> numbers(static_cast<std::size_t>(chunk));
  std::iota(numbers.begin(), numbers.end(), Integer{0});
  std::vector<typename Encoded<T>::Queries> batches;
  const auto part_of = [&](Integer place) {
    return std::upper_bound(segments.begin(), segments.end(), place) - segments.begin() - 1;
  };
  // Adds the values of a chunk of the support, which begins there, to tiles of the targets from `first` on.
  const auto add = [&](Integer begin, Integer count, Integer batch, const Encoded<T>& these, Integer first,
                       Integer tile, Integer last_tile) {
    const Integer first_part = part_of(begin), parts_here = part_of(begin + count - 1) + 1 - first_part;
    ChunkSums sums(parts_here * coefficients.rows, last_tile - tile);
    for (std::size_t number = 0; number < batches.size(); ++number) {
      const auto add_values = [&](int query, Integer now, const TileSums<T>& values) {
        const Integer place = begin + static_cast<Integer>(number) * batch + query;
        const int some = static_cast<int>(std::min<Integer>(kQueries, begin + count - place));
        for (int q = 0, next; q < some; q = next) {
          const Integer part = part_of(place + q);
          next = static_cast<int>(std::min<Integer>(some, segments[part + 1] - place));
          for (Integer r = 0; r < coefficients.rows; ++r) {
            double* const to = sums.tile((part - first_part) * coefficients.rows + r, now - tile);
            add_products(coefficients.values + r * s + place, values, q, next, to);
          }
        }
      };
      these.for_each_tile(kernel, batches[number], tile, last_tile, add_values);
    }
    for (Integer sum = 0; sum < parts_here * coefficients.rows; ++sum) {
      sums.add_to(sum, out + (first_part * coefficients.rows + sum) * n + first + tile * kTile,
                  these.count() - tile * kTile);
    }
  };
  const auto encoded = [&](Integer first, Integer last) {
    return Encoded<T>(targets.rows, targets.which.subspan(first, last - first), kernel, encoding, columns);
  };
  // Of sparse rows as many as possible are held at once, else a few that stay in the cache.
  const Integer piece = sparse ? kSparseTargets : std::max<Integer>(n, 1);
  for (Integer piece_begin = 0; piece_begin < n; piece_begin += piece) {
    const Integer piece_end = std::min(piece_begin + piece, n);
    std::optional<Encoded<T>> whole;
    if (sparse) whole.emplace(encoded(piece_begin, piece_end));
    for (Integer begin = 0; begin < s; begin += chunk) {
      const Integer count = std::min(chunk, s - begin);
      const Encoded<T> held(support.rows, support.which.subspan(begin, count), kernel, encoding, columns);
      const Integer batch = held.queries_at_once();
      batches.resize(static_cast<std::size_t>((count + batch - 1) / batch));
      for (Integer q = 0; q < count; q += batch) {
        const Integer size = std::min(batch, count - q);
        if (size < batch) batches[q / batch] = {};  // lest rows of the last chunk fill its places
        batches[q / batch].read(held, std::span(numbers).subspan(q, size));
      }
      const Integer threads = budget.threads_for((piece_end - piece_begin) * count * held.work());
      const Integer step = sparse ? whole->tiles_at_once(threads) : kTargetTiles;
      const Integer tiles = tiles_of(static_cast<std::size_t>(piece_end - piece_begin));
      share_out(threads, (tiles + step - 1) / step, [&](Integer item) {
        const Integer first = item * step, last = std::min(first + step, tiles);
        if (sparse) return add(begin, count, batch, *whole, piece_begin, first, last);
        const Encoded<T> few = encoded(first * kTile, std::min(last * kTile, n));
        for (Integer tile = 0; tile < few.tiles(); ++tile)
          add(begin, count, batch, few, first * kTile, tile, tile + 1);
      });
      if (begin + chunk < s) between();
    }
  }
}

// The same where the first targets are the support, and all rows can be held at once: a value between two
// of the support is computed once, and added to the sums of both. There is one segment.
template <class T>
void expansions_among(const KernelSum& kernel, const Encoding& encoding, SomeRows targets,
                      const Coefficients& coefficients, Integer s, double* out, const Budget& budget,
                      const std::function<void()>& between) {
  const Integer n = static_cast<Integer>(targets.which.size()), sums = coefficients.rows;
  const Encoded<T> all(targets.rows, targets.which, kernel, encoding, all_columns(targets.rows));
  const Integer batch = all.queries_at_once(), tiles = all.tiles();
  const bool sparse = encoding.holding == Holding::sparse;
  std::fill(out, out + n * sums, 0.0);
  std::vector<typename Encoded<T>::Queries> batches;
  std::vector<Integer> numbers;
  std::vector<double> back;           // what later rows add to those of the chunk: [item][sum][row]
  Integer since = 0, rows_since = 0;  // values and rows of the support, since the last call of `between`
  for (Integer begin = 0; begin < s; begin += kChunkAmong) {
    const Integer end = std::min(begin + kChunkAmong, s), count = end - begin;
    batches.resize(static_cast<std::size_t>((count + batch - 1) / batch));
    for (Integer q = 0; q < count; q += batch) {
      numbers.resize(static_cast<std::size_t>(std::min(batch, count - q)));
      std::iota(numbers.begin(), numbers.end(), begin + q);
      batches[q / batch] = {};  // lest rows of the last chunk fill its places
      batches[q / batch].read(all, numbers);
    }
    const Integer first_tile = begin / kTile, left = tiles - first_tile;
    const Integer threads = budget.threads_for(left * kTile * count * all.work());
    const Integer shares = threads == 1 ? 1 : kSharesAmong * threads;
    const Integer step = sparse ? all.tiles_at_once(threads) : (left + shares - 1) / shares;
    const Integer start = sparse ? first_tile / step * step : first_tile;  // sparse rows come in blocks
    const Integer items = (tiles - start + step - 1) / step;
    back.assign(static_cast<std::size_t>(items * sums * count), 0.0);
    share_out(threads, items, [&](Integer item) {
      const Integer begin_tile = start + item * step, last = std::min(begin_tile + step, tiles);
      const Integer first = std::max(begin_tile, first_tile);
      double* const own_back = back.data() + item * sums * count;
      const auto add_batch = [&](std::size_t number, Integer from, Integer to, ChunkSums& forward) {
        const auto add = [&](int query, Integer tile, const TileSums<T>& values) {
          const Integer start = tile * kTile, lanes = std::min<Integer>(kTile, n - start);
          // Rows of the chunk among themselves, and those behind the support, add to one sum only.
          const Integer shared = start < end ? 0 : std::clamp<Integer>(s - start, 0, lanes);
          const Integer place = static_cast<Integer>(number) * batch + query;
          const int some = static_cast<int>(std::min<Integer>(kQueries, count - place));
          for (Integer r = 0; r < sums; ++r) {
            const double* const own = coefficients.values + r * s;
            add_products(own + begin + place, values, 0, some, forward.tile(r, tile - from));
            for (int q = 0; q < some && shared > 0; ++q) {
              double sum = 0;
#pragma omp simd reduction(+ : sum)
              for (Integer lane = 0; lane < shared; ++lane)
                sum += own[start + lane] * static_cast<double>(values[q][lane]);
              own_back[r * count + place + q] += sum;
            }
          }
        };
        all.for_each_tile(kernel, batches[number], from, to, add);
      };
      // A block of sparse rows is for all of a batch, another tile stays in the cache for all of the chunk.
      const Integer together = sparse ? last - first : 1;
      for (Integer tile = first; tile < last; tile += together) {
        ChunkSums forward(sums, together);
        for (std::size_t number = 0; number < batches.size(); ++number)
          add_batch(number, tile, tile + together, forward);
        for (Integer r = 0; r < sums; ++r) forward.add_to(r, out + r * n + tile * kTile, n - tile * kTile);
      }
    });
    for (Integer item = 0; item < items; ++item) {
      for (Integer r = 0; r < sums; ++r) {
        for (Integer k = 0; k < count; ++k) out[r * n + begin + k] += back[(item * sums + r) * count + k];
      }
    }
    since += left * kTile * count;
    rows_since += count;
    if (end < s && (since >= kValues || rows_since >= kMostRows)) {
      since = rows_since = 0;
      between();
    }
  }
}

template <class Rows>
void diagonal_of(const KernelSum& kernel, const Rows& rows, Integer i, Integer last, double* out) {
  const bool given = kernel.uses(Common::given);
  for (; i < last; ++i) {
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

void kernel_diagonal(const KernelSum& kernel, const StoredRows& rows, std::span<double> out,
                     const Budget& budget) {
  std::visit(
      [&](const auto& kind) {
        in_parallel(budget.threads_for(kind.stored()), kind.count, [&](Integer, Integer i, Integer last) {
          diagonal_of(kernel, kind, i, last, out.data());
        });
      },
      rows);
}

void kernel_block(const KernelSum& kernel, const Encoding& encoding, SomeRows first, SomeRows second,
                  double* out, const Budget& budget, Watch& watch) {
  const KeptColumns all = all_columns(first.rows);
  const Encoded<double> columns(second.rows, second.which, kernel, encoding, all);
  // Values that are given may differ from those across the diagonal.
  const bool symmetric = &first.rows == &second.rows && std::ranges::equal(first.which, second.which) &&
                         !kernel.uses(Common::given);
  std::optional<Encoded<double>> others;
  if (!symmetric) others.emplace(first.rows, first.which, kernel, encoding, all);
  const Integer m = columns.count();
  for_each_pair(
      kernel, symmetric ? columns : *others, columns, symmetric, budget,
      [=](Integer a, Integer b, double value) { out[a * m + b] = value; },
      [&](Integer work) { return watch.spend(work); });
}

void expansions(const KernelSum& kernel, const Encoding& encoding, SomeRows support,
                const Coefficients& coefficients, SomeRows targets, double* out, bool single,
                const Budget& budget, const std::function<void()>& between) {
  const std::size_t s = support.which.size();
  // Values that are given may differ from those across the diagonal.
  const Integer values = static_cast<Integer>(targets.which.size()) * columns_of(targets.rows);
  const bool held =
      encoding.holding == Holding::sparse || (encoding.holding != Holding::given && values <= kHeld);
  const bool among = held && coefficients.segments.size() == 2 && &support.rows == &targets.rows &&
                     s <= targets.which.size() && std::ranges::equal(support.which, targets.which.first(s));
  if (among) {
    const auto run = single ? expansions_among<float> : expansions_among<double>;
    return run(kernel, encoding, targets, coefficients, static_cast<Integer>(s), out, budget, between);
  }
  const auto run = single ? expansions_in<float> : expansions_in<double>;
  run(kernel, encoding, support, coefficients, targets, out, budget, between);
}

}  // namespace maxmargin
