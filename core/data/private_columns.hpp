// SPDX-License-Identifier: BSD-3-Clause
// A smaller copy of wide sparse rows for dual methods. A column that only row i holds is felt by
// alpha_i alone: it adds x_ij^2 alpha_i to the margin of row i and nothing elsewhere. So such
// columns leave the data and become one number per row, exactly. N-gram data have them by the
// million.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "data/rows.hpp"
#include "data/short_rows.hpp"
#include "machine/large_array.hpp"
#include "passes/passes.hpp"

namespace maxmargin {

struct CompactRows : ShortRows {
  std::vector<double> diagonal;  // sum of x_ij^2 over the private columns j of row i
};

// Nothing, where the copy would not pay: w already fits the cache, or few values would go.
template <class Value>
std::optional<CompactRows> without_private_columns(const SparseRows<Value>& rows, const Budget& budget) {
  constexpr Integer kColumnsInCache = Integer{1} << 16;
  constexpr Integer kSmallestShare = 32;  // one value in 32
  constexpr Integer kLargest = std::numeric_limits<std::int32_t>::max();
  const Integer stored = rows.stored();
  if (rows.columns < kColumnsInCache || stored > kLargest) return std::nullopt;
  const Integer threads = budget.threads_for(stored);
  using Numbers = std::vector<std::int32_t>;
  // Large arrays go back to the system when they are freed; a vector's memory may stay with the heap.
  std::vector<LargeArray<std::int32_t>> counts;
  for (Integer t = 0; t < threads; ++t) {
    counts.push_back(large_array<std::int32_t>(static_cast<std::size_t>(rows.columns)));
  }
  in_parallel(threads, rows.count, [&](Integer thread, Integer first, Integer last) {
    const std::span own(counts[thread].get(), static_cast<std::size_t>(rows.columns));
    std::fill(own.begin(), own.end(), 0);
    for (Integer k = rows.offsets[first]; k < rows.offsets[last]; ++k) ++own[rows.indices[k]];
  });
  const std::span held(counts[0].get(), static_cast<std::size_t>(rows.columns));  // rows per column
  for (Integer t = 1; t < threads; ++t) {
    for (std::size_t j = 0; j < held.size(); ++j) held[j] += counts[t][j];
    counts[t].reset();
  }
  Numbers columns_held(static_cast<std::size_t>(rows.count) + 1);  // columns that so many rows hold
  for (const std::int32_t rows_of_column : held) ++columns_held[rows_of_column];
  const Integer columns_private = columns_held[1];
  if (columns_private * kSmallestShare < stored) return std::nullopt;

  // Columns are numbered anew, the most used first, so that the hot part of w is contiguous.
  Numbers first_of(columns_held.size());
  std::int32_t next = 0;
  for (std::size_t f = columns_held.size() - 1; f > 1; --f) {
    first_of[f] = next;
    next += columns_held[f];
  }
  constexpr std::int32_t kPrivate = -1;
  for (std::int32_t& column : held) column = column < 2 ? kPrivate : first_of[column]++;

  CompactRows compact;
  compact.columns = next;
  compact.offsets.resize(static_cast<std::size_t>(rows.count) + 1);
  compact.diagonal.resize(static_cast<std::size_t>(rows.count));
  in_parallel(threads, rows.count, [&](Integer, Integer i, Integer last) {
    for (; i < last; ++i) {
      const auto row = rows[i];
      for (Integer k = 0; k < row.count; ++k) {
        compact.offsets[i + 1] += held[row.columns[k]] != kPrivate;
      }
    }
  });
  for (Integer i = 0; i < rows.count; ++i) compact.offsets[i + 1] += compact.offsets[i];
  const std::size_t kept = static_cast<std::size_t>(compact.offsets[rows.count]);
  compact.reserve(kept);
  std::visit(
      [&]<class Short>(LargeArray<Short>& indices) {
        in_parallel(threads, rows.count, [&](Integer, Integer i, Integer last) {
          for (; i < last; ++i) {
            const auto row = rows[i];
            Integer target = compact.offsets[i];
            for (Integer k = 0; k < row.count; ++k) {
              const std::int32_t column = held[row.columns[k]];
              if (column == kPrivate) {
                const double value = static_cast<double>(row.values[k]);
                compact.diagonal[i] += value * value;
              } else {
                compact.values[target] = static_cast<float>(row.values[k]);
                indices[target++] = static_cast<Short>(column);
              }
            }
          }
        });
      },
      compact.indices);
  return compact;
}

// Dense rows have no private columns worth the name.
template <class Value>
std::optional<CompactRows> without_private_columns(const DenseRows<Value>&, const Budget&) {
  return std::nullopt;
}

}  // namespace maxmargin
