// SPDX-License-Identifier: BSD-3-Clause
// The columns of the data as rows, for methods that visit one column after the other; and some of them with
// every value times a number of its row.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
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
// `squares` and `mixed` are their squared lengths and their products with the factors.
struct ScaledRows {
  std::span<const Integer> order;
  const double* factors;
  std::span<double> squares, mixed;

  // Room that is enough for all of them; not all of it is needed where some factors are 0.
  template <class Rows>
  std::size_t room(const Rows& rows) const {
    std::size_t stored = 0;
    for (const Integer i : order) stored += static_cast<std::size_t>(rows[i].size());
    return stored;
  }

  // Fills the arrays, which have the room; whether no length is beyond the range of single precision, or
  // near its end. Threads have to know where rows begin, which takes a count where some factors are 0.
  template <class Rows, class Value, class Index>
  bool fill(const Rows& rows, std::vector<Integer>& offsets, Value* values, Index* indices,
            const Budget& budget) const {
    const Integer count = static_cast<Integer>(order.size()), pieces = (count + kPiece - 1) / kPiece;
    const Integer threads = budget.threads_for(static_cast<Integer>(room(rows)));
    std::atomic<bool> inside{true};
    const auto each = [&](Integer piece, const auto& work) {
      for (Integer k = piece * kPiece; k < std::min(count, (piece + 1) * kPiece); ++k) work(k);
    };
    offsets.assign(order.size() + 1, 0);
    if (threads > 1) {
      const bool all = kSparse<Rows> && std::count(factors, factors + rows.columns, 0.0) == 0;
      share_out(threads, pieces, [&](Integer piece) {
        each(piece, [&](Integer k) {
          const auto row = rows[order[k]];
          Integer kept = all ? row.size() : 0;
          for (Integer l = 0; !all && l < row.size(); ++l)
            kept += is_kept<Rows>(column_of(row, l), row.values[l]);
          offsets[k + 1] = kept;
        });
      });
      for (std::size_t k = 1; k < offsets.size(); ++k) offsets[k] += offsets[k - 1];
    }
    share_out(threads, pieces, [&](Integer piece) {
      each(piece, [&](Integer k) {
        const auto row = rows[order[k]];
        // Beyond the end are values of another thread.
        const Integer begin = offsets[k], end = threads > 1 ? offsets[k + 1] : begin + row.size();
        Integer at = begin;
        // What is left out is written, too, and overwritten by what comes: a branch would be mispredicted.
        for (Integer l = 0; l < row.size() && at < end; ++l) {
          const Integer j = column_of(row, l);
          values[at] = static_cast<Value>(static_cast<double>(row.values[l]) * factors[j]);
          indices[at] = static_cast<Index>(j);
          at += is_kept<Rows>(j, row.values[l]) ? 1 : 0;
        }
        if (threads == 1) offsets[k + 1] = at;
        const SparseRow<Value, Index> scaled{values + begin, indices + begin, at - begin};
        squares[k] = scaled.squared_norm();
        mixed[k] = scaled.dot(factors);
        if (begin < at && !(squares[k] > kLeast && squares[k] < kMost)) inside = false;
      });
    });
    return inside;
  }

 private:
  static constexpr Integer kPiece = 16;                  // rows that a thread takes at a time
  static constexpr double kLeast = 1e-50, kMost = 1e50;  // of a squared length

  template <class Value>
  static Integer column_of(const DenseRow<Value>&, Integer l) {
    return l;
  }
  template <class Value, class Index>
  static Integer column_of(const SparseRow<Value, Index>& row, Integer l) {
    return static_cast<Integer>(row.columns[l]);
  }
  template <class Rows, class Value>
  bool is_kept(Integer j, Value given) const {
    return factors[j] != 0 && (kSparse<Rows> || given != 0);
  }
};

}  // namespace maxmargin
