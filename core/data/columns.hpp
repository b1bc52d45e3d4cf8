// SPDX-License-Identifier: BSD-3-Clause
// Columns of some of the rows: how far their values reach, and the values themselves.
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "kernel/encodings.hpp"

namespace maxmargin {

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
