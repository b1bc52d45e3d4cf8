// SPDX-License-Identifier: BSD-3-Clause
// Some rows of the data, copied: a sample that a solver can sweep as if it were all there is.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "data/rows.hpp"
#include "data/zeros.hpp"
#include "machine/large_array.hpp"

namespace maxmargin {

// The rows order_0, order_1, ... of dense data, one after the other.
template <class Value>
LargeArray<Value> take_rows(const DenseRows<Value>& rows, std::span<const Integer> order) {
  auto values = large_array<Value>(order.size() * static_cast<std::size_t>(rows.columns));
  Value* target = values.get();
  for (const Integer i : order) target = std::copy_n(rows[i].values, rows.columns, target);
  return values;
}

template <class Value>
SparseCopy<Value> take_rows(const SparseRows<Value>& rows, std::span<const Integer> order) {
  SparseCopy<Value> copy;
  copy.offsets.reserve(order.size() + 1);
  copy.offsets.push_back(0);
  for (const Integer i : order) copy.offsets.push_back(copy.offsets.back() + rows[i].count);
  const auto stored = static_cast<std::size_t>(copy.offsets.back());
  copy.values = large_array<Value>(stored);
  copy.indices = large_array<std::int32_t>(stored);
  Value* values = copy.values.get();
  std::int32_t* indices = copy.indices.get();
  for (const Integer i : order) {
    const auto row = rows[i];
    values = std::copy_n(row.values, row.count, values);
    indices = std::copy_n(row.columns, row.count, indices);
  }
  return copy;
}

}  // namespace maxmargin
