// SPDX-License-Identifier: BSD-3-Clause
// Dense rows that are mostly zeros, as sparse rows: a pass then reads the few values that count.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "data/rows.hpp"
#include "machine/large_array.hpp"
#include "passes/passes.hpp"

namespace maxmargin {

template <class Value>
struct SparseCopy {
  LargeArray<Value> values;
  LargeArray<std::int32_t> indices;
  std::vector<Integer> offsets;
};

// The nonzeros of one row, and their columns.
template <class Value>
void pack_nonzeros(const Value* values, Integer nonzeros, Value* kept, std::int32_t* columns) {
  for (std::int32_t j = 0, filled = 0; filled < nonzeros; ++j) {
    // Zeros are written too, without a branch that would be mispredicted, and overwritten by what comes.
    kept[filled] = values[j];
    columns[filled] = j;
    filled += values[j] != 0;
  }
}

// Nothing, where the copy would not pay: the data are small, or more than one value in four is not zero.
template <class Value>
std::optional<SparseCopy<Value>> without_zeros(const DenseRows<Value>& rows, const Budget& budget) {
  constexpr Integer kSmall = Integer{1} << 17;
  constexpr Integer kLargest = std::numeric_limits<std::int32_t>::max();
  constexpr Integer kSample = 64;
  constexpr Integer kShare = 4;
  constexpr Integer kPieceBytes = Integer{1} << 18;
  const Integer stored = rows.stored();
  if (stored < kSmall || rows.columns > kLargest) return std::nullopt;
  const auto nonzeros = [&](Integer i) {
    const Value* values = rows[i].values;
    std::int32_t count = 0;  // as wide as a float: the comparison is then counted in registers
#pragma omp simd reduction(+ : count)
    for (Integer j = 0; j < rows.columns; ++j) count += values[j] != 0;
    return static_cast<Integer>(count);
  };
  // A look at a few rows spares full data the pass.
  const Integer step = std::max<Integer>(1, rows.count / kSample);
  Integer seen = 0, found = 0;
  for (Integer i = 0; i < rows.count; i += step) {
    seen += rows.columns;
    found += nonzeros(i);
  }
  if (found * kShare > seen) return std::nullopt;

  // Rows are counted and copied piece by piece, so that a piece is still in the cache when it is copied;
  // by several threads all at once, because to start them takes longer than to read a piece again.
  const Integer threads = budget.threads_for(stored);
  const Integer row_bytes = std::max<Integer>(1, rows.columns * sizeof(Value));
  const Integer piece = threads > 1 ? rows.count : std::max<Integer>(1, kPieceBytes / row_bytes);
  const Integer most = std::min(stored / kShare, kLargest);
  SparseCopy<Value> copy;
  std::vector<Integer>& offsets = copy.offsets;
  offsets.resize(static_cast<std::size_t>(rows.count) + 1);
  copy.values = large_array<Value>(static_cast<std::size_t>(most));  // what is not used takes no memory
  copy.indices = large_array<std::int32_t>(static_cast<std::size_t>(most));
  for (Integer first = 0; first < rows.count; first += piece) {
    const Integer size = std::min(piece, rows.count - first);
    in_parallel(threads, size, [&](Integer, Integer i, Integer last) {
      for (; i < last; ++i) offsets[first + i + 1] = nonzeros(first + i);
    });
    Integer total = offsets[first];
    for (Integer i = first; i < first + size; ++i) {
      total += offsets[i + 1];
      if (total > most) return std::nullopt;
      offsets[i + 1] = total;
    }
    in_parallel(threads, size, [&](Integer, Integer i, Integer last) {
      for (; i < last; ++i) {
        const Integer begin = offsets[first + i];
        pack_nonzeros(rows[first + i].values, offsets[first + i + 1] - begin, &copy.values[begin],
                      &copy.indices[begin]);
      }
    });
  }
  return copy;
}

}  // namespace maxmargin
