// SPDX-License-Identifier: BSD-3-Clause
// Rows and their monomials on the way to the result: what core/features/monomials.hpp works with.
#pragma once

#include <algorithm>
#include <numeric>
#include <type_traits>
#include <vector>

#include "data/rows.hpp"

namespace maxmargin {

inline constexpr Integer kRun = 16;  // products made at once

// The monomials of one degree of a row, without the degree's scale; `first` is the number that `columns`
// have for the first of all of them. Up to kRun - 1 places behind them may be read.
template <class Value, class Index>
struct MonomialBlock {
  const Value* values;
  const Index* columns;
  Integer count;
  Integer first;
};

// What one thread needs to expand rows of up to `longest` stored values.
template <class Value, class Index>
struct MonomialSpace {
  // `largest` bounds the monomials of a degree that are not part of the result as they are.
  MonomialSpace(Integer longest, Integer degree, Integer largest)
      : row_values(static_cast<std::size_t>(longest + kRun)),
        row_columns(row_values.size()),
        begins(static_cast<std::size_t>(degree + 2), std::vector<Integer>(row_values.size())) {
    std::iota(row_columns.begin(), row_columns.end(), Index{0});
    std::iota(begins[1].begin(), begins[1].end(), Integer{0});
    for (int k = 0; k < 2; ++k) {
      values[k].resize(static_cast<std::size_t>(largest + kRun));
      columns[k].resize(values[k].size());
    }
  }

  // Row i as its monomials of degree 1: where it lies if what is behind it may be read, else as a copy.
  // A dense row has the columns that this began with.
  MonomialBlock<Value, Index> read(const DenseRows<Value>& rows, Integer i) {
    const DenseRow<Value> row = rows[i];
    const Value* values = row.values;
    if ((rows.count - 1 - i) * rows.stride < kRun) {
      std::copy(values, values + row.columns, row_values.begin());
      values = row_values.data();
    }
    return {values, row_columns.data(), row.columns, 0};
  }
  MonomialBlock<Value, Index> read(const SparseRows<Value>& rows, Integer i) {
    const auto row = rows[i];
    if constexpr (std::is_same_v<Index, std::int32_t>) {
      const Integer behind = rows.stored() - rows.offsets[i + 1];
      if (behind >= kRun) return {row.values, row.columns, row.count, 0};
    }
    for (Integer place = 0; place < row.count; ++place) {
      row_values[place] = row.values[place];
      row_columns[place] = static_cast<Index>(row.columns[place]);
    }
    return {row_values.data(), row_columns.data(), row.count, 0};
  }

  std::vector<Value> row_values;
  std::vector<Index> row_columns;
  std::vector<std::vector<Integer>> begins;  // of a degree: where those that begin at a stored value begin
  std::vector<Value> values[2];              // of two degrees in turn
  std::vector<Index> columns[2];
};

}  // namespace maxmargin
