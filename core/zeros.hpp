// SPDX-License-Identifier: BSD-3-Clause
// Dense rows that are mostly zeros, as sparse rows: a pass then reads the few values that count.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "large_array.hpp"
#include "passes.hpp"
#include "rows.hpp"

namespace maxmargin {

template <class Value>
struct SparseCopy {
  LargeArray<Value> values;
  LargeArray<std::int32_t> indices;
  std::vector<std::int32_t> offsets;
};

// Nothing, where the copy would not pay: the data are small, or more than one value in four is not zero.
template <class Value>
std::optional<SparseCopy<Value>> without_zeros(const DenseRows<Value>& rows, const Budget& budget) {
  constexpr Integer kSmall = Integer{1} << 17;
  constexpr Integer kLargest = std::numeric_limits<std::int32_t>::max();
  constexpr Integer kSample = 64;
  constexpr Integer kShare = 4;
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

  SparseCopy<Value> copy;
  std::vector<std::int32_t>& offsets = copy.offsets;
  offsets.resize(static_cast<std::size_t>(rows.count) + 1);
  const Integer threads = budget.threads_for(stored);
  in_parallel(threads, rows.count, [&](Integer, Integer i, Integer last) {
    for (; i < last; ++i) offsets[i + 1] = static_cast<std::int32_t>(nonzeros(i));
  });
  Integer total = 0;
  for (Integer i = 0; i < rows.count; ++i) {
    total += offsets[i + 1];
    if (total > kLargest) return std::nullopt;
    offsets[i + 1] = static_cast<std::int32_t>(total);
  }
  if (total * kShare > stored) return std::nullopt;
  copy.values = large_array<Value>(static_cast<std::size_t>(total));
  copy.indices = large_array<std::int32_t>(static_cast<std::size_t>(total));
  in_parallel(threads, rows.count, [&](Integer, Integer i, Integer last) {
    const std::int32_t end = offsets[last];
    for (; i < last; ++i) {
      const Value* values = rows[i].values;
      std::int32_t target = offsets[i];
      const bool more_to_come = offsets[i + 1] < end;
      for (std::int32_t j = 0; j < static_cast<std::int32_t>(rows.columns); ++j) {
        // Zeros are written too, without a branch that would be mispredicted, and overwritten by what
        // comes; but not into another thread's share.
        if (!more_to_come && values[j] == 0) continue;
        copy.values[target] = values[j];
        copy.indices[target] = j;
        target += values[j] != 0;
      }
    }
  });
  return copy;
}

}  // namespace maxmargin
