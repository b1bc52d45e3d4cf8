// SPDX-License-Identifier: BSD-3-Clause
// Sparse rows in less memory than they are given in: sweeps that read them again and again wait for memory.
#pragma once

#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

#include "data/rows.hpp"
#include "machine/budget.hpp"
#include "machine/large_array.hpp"
#include "machine/threads.hpp"

namespace maxmargin {

struct ShortRows {
  LargeArray<float> values;
  std::variant<LargeArray<std::int32_t>, LargeArray<std::uint16_t>> indices;  // short where they can be
  std::vector<Integer> offsets;
  Integer columns = 0;

  // Room for so many values, once the number of columns is known.
  void reserve(std::size_t stored) {
    values = large_array<float>(stored);
    if (columns <= std::numeric_limits<std::uint16_t>::max())
      indices = large_array<std::uint16_t>(stored);
    else
      indices = large_array<std::int32_t>(stored);
  }
};

// The values in single precision, for rows that go on sharing their columns.
inline LargeArray<float> in_single_precision(const SparseRows<double>& rows, const Budget& budget) {
  const Integer stored = rows.stored();
  auto values = large_array<float>(static_cast<std::size_t>(stored));
  in_parallel(budget.threads_for(stored), stored, [&](Integer, Integer begin, Integer end) {
    for (Integer k = begin; k < end; ++k) values[k] = static_cast<float>(rows.values[k]);
  });
  return values;
}

}  // namespace maxmargin
