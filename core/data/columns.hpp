// SPDX-License-Identifier: BSD-3-Clause
// Columns of some of the rows: how far their values reach, and the values themselves.
#pragma once

#include <algorithm>
#include <limits>
#include <span>
#include <vector>

#include "data/rows.hpp"
#include "machine/budget.hpp"
#include "machine/threads.hpp"

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

// The column of the k-th stored value of a row.
template <class Value>
Integer column_of(const DenseRow<Value>&, Integer k) {
  return k;
}
template <class Value, class Index>
Integer column_of(const SparseRow<Value, Index>& row, Integer k) {
  return static_cast<Integer>(row.columns[k]);
}

// Where each column goes, or -1 for columns that are left out because they are the same in all rows.
using Places = std::vector<Integer>;

constexpr Integer kVisitsPerColumn =
    8;  // of stored values, that beginning and joining a column is to be small beside

// The least and the greatest stored value of each column, and how many there are.
struct ColumnRanges {
  explicit ColumnRanges(Integer columns)
      : low(static_cast<std::size_t>(columns), std::numeric_limits<double>::infinity()),
        high(static_cast<std::size_t>(columns), -std::numeric_limits<double>::infinity()),
        seen(static_cast<std::size_t>(columns), 0) {}
  template <class Row>
  void take(const Row& row) {
    for_each_value(row, [&](Integer column, auto value) {
      const double v = static_cast<double>(value);
      low[column] = std::min(low[column], v);
      high[column] = std::max(high[column], v);
      ++seen[column];
    });
  }
  void join(const ColumnRanges& other) {
    for (std::size_t column = 0; column < low.size(); ++column) {
      low[column] = std::min(low[column], other.low[column]);
      high[column] = std::max(high[column], other.high[column]);
      seen[column] += other.seen[column];
    }
  }
  std::vector<double> low, high;
  std::vector<Integer> seen;
};

// low[k] and high[k]: the least and the greatest value of column k; zeros that are not stored count.
template <class Rows>
void column_ranges(const Rows& rows, std::span<const Integer> which, double* low, double* high,
                   const Budget& budget) {
  const Integer count = static_cast<Integer>(which.size());
  // Each thread has numbers of its own for all columns, which are joined in the end.
  const Integer worth = rows.stored() / (1 + kVisitsPerColumn * rows.columns);
  const Integer threads = std::min(budget.threads_for(rows.stored()), std::max<Integer>(1, worth));
  std::vector<ColumnRanges> parts(static_cast<std::size_t>(threads), ColumnRanges(rows.columns));
  in_parallel(threads, count, [&](Integer share, Integer i, Integer last) {
    for (; i < last; ++i) parts[share].take(rows[which[i]]);
  });
  for (Integer share = 1; share < threads; ++share) parts[0].join(parts[share]);
  for (Integer column = 0; column < rows.columns; ++column) {
    const bool has_zeros = parts[0].seen[column] < count;
    low[column] = has_zeros ? std::min(parts[0].low[column], 0.0) : parts[0].low[column];
    high[column] = has_zeros ? std::max(parts[0].high[column], 0.0) : parts[0].high[column];
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
