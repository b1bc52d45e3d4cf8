// SPDX-License-Identifier: BSD-3-Clause
// A smaller copy of wide sparse rows for dual methods. A column that only row i holds is felt by
// alpha_i alone: it adds x_ij^2 alpha_i to the margin of row i and nothing elsewhere. So such columns
// leave the data and become one number per row, exactly. N-gram data have them by the million.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "rows.hpp"

namespace maxmargin {

struct CompactRows {
  std::vector<float> values;
  std::vector<std::int32_t> indices;
  std::vector<std::int32_t> offsets;
  std::vector<double> diagonal;  // sum of x_ij^2 over the private columns j of row i
  Integer columns = 0;
};

// Nothing, where the copy would not pay: w already fits the cache, or few values would go.
template <class Value, class Index>
std::optional<CompactRows> without_private_columns(const SparseRows<Value, Index>& rows) {
  constexpr Integer kColumnsInCache = Integer{1} << 16;
  constexpr Integer kSmallestShare = 32;  // one value in 32
  const Integer stored = rows.stored();
  if (rows.columns < kColumnsInCache || rows.columns > std::numeric_limits<std::int32_t>::max() ||
      stored > std::numeric_limits<std::int32_t>::max()) {
    return std::nullopt;
  }
  std::vector<std::int32_t> held(static_cast<std::size_t>(rows.columns));  // rows that hold column j
  for (Integer k = 0; k < stored; ++k) ++held[rows.indices[k]];
  std::vector<std::int32_t> columns_held(static_cast<std::size_t>(rows.count) + 1);
  for (const std::int32_t rows_of_column : held) ++columns_held[rows_of_column];
  const Integer columns_private = columns_held[1];
  if (columns_private * kSmallestShare < stored) return std::nullopt;

  // Columns are numbered anew, the most used first, so that the hot part of w is contiguous.
  std::vector<std::int32_t> first(columns_held.size());
  std::int32_t next = 0;
  for (std::size_t f = columns_held.size() - 1; f > 1; --f) {
    first[f] = next;
    next += columns_held[f];
  }
  constexpr std::int32_t kPrivate = -1;
  for (std::int32_t& column : held) column = column < 2 ? kPrivate : first[column]++;

  CompactRows compact;
  compact.columns = next;
  compact.values.resize(static_cast<std::size_t>(stored - columns_private));
  compact.indices.resize(compact.values.size());
  compact.offsets.resize(static_cast<std::size_t>(rows.count) + 1);
  compact.diagonal.resize(static_cast<std::size_t>(rows.count));
  std::size_t target = 0;
  for (Integer i = 0; i < rows.count; ++i) {
    const auto row = rows[i];
    for (Integer k = 0; k < row.count; ++k) {
      const std::int32_t column = held[row.columns[k]];
      if (column == kPrivate) {
        compact.diagonal[i] +=
            static_cast<double>(row.values[k]) * static_cast<double>(row.values[k]);
      } else {
        compact.values[target] = static_cast<float>(row.values[k]);
        compact.indices[target++] = column;
      }
    }
    compact.offsets[i + 1] = static_cast<std::int32_t>(target);
  }
  return compact;
}

// Dense rows have no private columns worth the name.
template <class Value>
std::optional<CompactRows> without_private_columns(const DenseRows<Value>&) {
  return std::nullopt;
}

}  // namespace maxmargin
