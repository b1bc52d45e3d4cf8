// SPDX-License-Identifier: BSD-3-Clause
// The columns of the data as rows, for methods that visit one column after the other; and some of them with
// every value times a number of its row.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "data/columns.hpp"
#include "data/rows.hpp"
#include "data/zeros.hpp"
#include "machine/budget.hpp"
#include "machine/large_array.hpp"
#include "machine/threads.hpp"

namespace maxmargin {

// Dense columns, one after the other. In tiles, so that neither side reads or writes far apart.
template <class Value>
LargeArray<Value> transposed(const DenseRows<Value>& rows, const Budget& budget) {
  constexpr Integer kTile = 32;
  const Integer n = rows.count, d = rows.columns;
  auto values = large_array<Value>(static_cast<std::size_t>(n * d));
  Value* const out = values.get();
  in_parallel(budget.threads_for(n * d), d, [&](Integer, Integer begin, Integer end) {
    for (Integer first = begin; first < end; first += kTile) {
      for (Integer row = 0; row < n; row += kTile) {
        for (Integer j = first; j < std::min(first + kTile, end); ++j) {
          for (Integer i = row; i < std::min(row + kTile, n); ++i) out[j * n + i] = rows[i].values[j];
        }
      }
    }
  });
  return values;
}

// Sparse columns, each with its rows in order. Every thread has a share of the rows, and knows from a count
// beforehand where in each column its values go.
template <class Value>
SparseCopy<Value> transposed(const SparseRows<Value>& rows, const Budget& budget) {
  const auto d = static_cast<std::size_t>(rows.columns), stored = static_cast<std::size_t>(rows.stored());
  const Integer threads = rows.columns < rows.stored() ? budget.threads_for(rows.stored()) : 1;
  std::vector<std::vector<Integer>> next(static_cast<std::size_t>(threads), std::vector<Integer>(d));
  in_parallel(threads, rows.count, [&](Integer thread, Integer first, Integer last) {
    Integer* const count = next[static_cast<std::size_t>(thread)].data();
    for (Integer k = rows.offsets[first]; k < rows.offsets[last]; ++k) ++count[rows.indices[k]];
  });
  SparseCopy<Value> copy;
  copy.offsets.resize(d + 1);
  Integer place = 0;
  for (std::size_t j = 0; j < d; ++j) {
    copy.offsets[j] = place;
    for (std::vector<Integer>& own : next) {
      const Integer count = own[j];
      own[j] = place;
      place += count;
    }
  }
  copy.offsets[d] = place;
  copy.values = large_array<Value>(stored);
  copy.indices = large_array<std::int32_t>(stored);
  in_parallel(threads, rows.count, [&](Integer thread, Integer first, Integer last) {
    Integer* const to = next[static_cast<std::size_t>(thread)].data();
    for (Integer i = first; i < last; ++i) {
      for (Integer k = rows.offsets[i]; k < rows.offsets[i + 1]; ++k) {
        const Integer at = to[rows.indices[k]]++;
        copy.values.get()[at] = rows.values[k];
        copy.indices.get()[at] = static_cast<std::int32_t>(i);
      }
    }
  });
  return copy;
}

// The rows order_0, order_1, ..., every value times the factor of its column; what becomes 0 is left out.
template <class Rows>
SparseCopy<double> take_scaled(const Rows& rows, std::span<const Integer> order, const double* factors) {
  SparseCopy<double> copy;
  copy.offsets.reserve(order.size() + 1);
  copy.offsets.push_back(0);
  std::size_t stored = 0;
  for (const Integer i : order) stored += static_cast<std::size_t>(rows[i].size());
  copy.values = large_array<double>(stored);
  copy.indices = large_array<std::int32_t>(stored);
  Integer at = 0;
  for (const Integer i : order) {
    for_each_value(rows[i], [&](Integer column, auto value) {
      copy.values.get()[at] = static_cast<double>(value) * factors[column];
      copy.indices.get()[at] = static_cast<std::int32_t>(column);
      at += copy.values.get()[at] != 0 ? 1 : 0;
    });
    copy.offsets.push_back(at);
  }
  return copy;
}

}  // namespace maxmargin
