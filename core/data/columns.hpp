// SPDX-License-Identifier: BSD-3-Clause
// Columns of some of the rows: how far their values reach, and the values themselves.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "data/rows.hpp"

namespace maxmargin {

// Calls visit(column, value) for the stored values of a row.
template <class Value, class Visit>
void for_each_value(const DenseRow<Value>& row, const Visit& visit) {
  for (Integer k = 0; k < row.columns; ++k) visit(k, row.values[k]);
}
template <class Value, class Index, class Visit>
void for_each_value(const SparseRow<Value, Index>& row, const Visit& visit) {
  for (Integer k = 0; k < row.count; ++k) visit(static_cast<Integer>(row.columns[k]), row.values[k]);
}

// Where each column goes, or -1 for columns that are left out because they are the same in all rows.
using Places = std::vector<Integer>;

// low[k] and high[k]: the least and the greatest value of column k; zeros that are not stored count.
template <class Rows>
void column_ranges(const Rows& rows, std::span<const Integer> which, double* low, double* high) {
  std::fill(low, low + rows.columns, std::numeric_limits<double>::infinity());
  std::fill(high, high + rows.columns, -std::numeric_limits<double>::infinity());
  std::vector<Integer> seen(static_cast<std::size_t>(rows.columns), 0);
  for (const Integer i : which) {
    for_each_value(rows[i], [&](Integer column, auto value) {
      const double v = static_cast<double>(value);
      low[column] = std::min(low[column], v);
      high[column] = std::max(high[column], v);
      ++seen[column];
    });
  }
  for (Integer column = 0; column < rows.columns; ++column) {
    if (seen[column] == static_cast<Integer>(which.size())) continue;
    low[column] = std::min(low[column], 0.0);
    high[column] = std::max(high[column], 0.0);
  }
}

// out[c][i] = the value of row which[i] in columns[c]; `out` holds zeros before.
template <class Rows>
void read_columns(const Rows& rows, std::span<const Integer> which, std::span<const Integer> columns,
                  double* out) {
  Places places(static_cast<std::size_t>(rows.columns), -1);
  for (std::size_t c = 0; c < columns.size(); ++c) places[columns[c]] = static_cast<Integer>(c);
  const Integer count = static_cast<Integer>(which.size());
  for (Integer i = 0; i < count; ++i) {
    for_each_value(rows[which[i]], [&](Integer column, auto value) {
      if (places[column] >= 0) out[places[column] * count + i] = static_cast<double>(value);
    });
  }
}

}  // namespace maxmargin
