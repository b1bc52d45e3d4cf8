// SPDX-License-Identifier: BSD-3-Clause
// Dense rows that are mostly zeros, as sparse rows: a pass then reads the few values that count.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#if defined(__AVX512VL__)
#include <immintrin.h>
#endif

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

// The nonzeros of one row, and their columns, are packed eight at a time where a register can do that.
#if defined(__AVX512VL__)
inline __mmask8 nonzeros_of(const float* values, __mmask8 there) {
  const __m256 lanes = _mm256_maskz_loadu_ps(there, values);
  return _mm256_cmp_ps_mask(lanes, _mm256_setzero_ps(), _CMP_NEQ_UQ);
}
inline __mmask8 nonzeros_of(const double* values, __mmask8 there) {
  const __m512d lanes = _mm512_maskz_loadu_pd(there, values);
  return _mm512_cmp_pd_mask(lanes, _mm512_setzero_pd(), _CMP_NEQ_UQ);
}
inline void pack(const float* values, __mmask8 which, __mmask8 room, float* target) {
  const __m256 lanes = _mm256_maskz_loadu_ps(which, values);
  _mm256_mask_storeu_ps(target, room, _mm256_maskz_compress_ps(which, lanes));
}
inline void pack(const double* values, __mmask8 which, __mmask8 room, double* target) {
  const __m512d lanes = _mm512_maskz_loadu_pd(which, values);
  _mm512_mask_storeu_pd(target, room, _mm512_maskz_compress_pd(which, lanes));
}

template <class Value>
void pack_nonzeros(const Value* values, std::int32_t size, std::int32_t nonzeros, Value* kept,
                   std::int32_t* columns) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  for (std::int32_t j = 0; nonzeros > 0; j += 8) {
    const auto there = static_cast<__mmask8>(size - j < 8 ? (1 << (size - j)) - 1 : 0xff);
    const __mmask8 which = nonzeros_of(values + j, there);
    const int count = std::popcount(static_cast<unsigned>(which));
    const auto room = static_cast<__mmask8>((1 << count) - 1);
    pack(values + j, which, room, kept);
    const __m256i numbers = _mm256_add_epi32(lanes, _mm256_set1_epi32(j));
    _mm256_mask_storeu_epi32(columns, room, _mm256_maskz_compress_epi32(which, numbers));
    kept += count;
    columns += count;
    nonzeros -= count;
  }
}
#else
template <class Value>
void pack_nonzeros(const Value* values, std::int32_t, std::int32_t nonzeros, Value* kept,
                   std::int32_t* columns) {
  for (std::int32_t j = 0, filled = 0; filled < nonzeros; ++j) {
    // Zeros are written too, without a branch that would be mispredicted, and overwritten by what comes.
    kept[filled] = values[j];
    columns[filled] = j;
    filled += values[j] != 0;
  }
}
#endif

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
    for (; i < last; ++i) {
      const std::int32_t first = offsets[i];
      pack_nonzeros(rows[i].values, static_cast<std::int32_t>(rows.columns), offsets[i + 1] - first,
                    &copy.values[first], &copy.indices[first]);
    }
  });
  return copy;
}

}  // namespace maxmargin
