// SPDX-License-Identifier: BSD-3-Clause
// Dense rows that are mostly zeros, as sparse rows: a pass then reads the few values that count.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#if defined(__AVX512VL__)
#include <immintrin.h>
#endif

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

// The nonzeros of one row, and their columns, are packed a register at a time where the processor can.
#if defined(__AVX512VL__)
inline __mmask16 nonzeros_of(const float* values, __mmask16 there) {
  return _mm512_cmp_ps_mask(_mm512_maskz_loadu_ps(there, values), _mm512_setzero_ps(), _CMP_NEQ_UQ);
}
inline __mmask8 nonzeros_of(const double* values, __mmask8 there) {
  return _mm512_cmp_pd_mask(_mm512_maskz_loadu_pd(there, values), _mm512_setzero_pd(), _CMP_NEQ_UQ);
}
inline void pack(const float* values, __mmask16 which, __mmask16 room, std::int32_t first, float* target,
                 std::int32_t* columns) {
  const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m512i numbers = _mm512_add_epi32(lanes, _mm512_set1_epi32(first));
  const __m512 kept = _mm512_maskz_compress_ps(which, _mm512_maskz_loadu_ps(which, values));
  _mm512_mask_storeu_ps(target, room, kept);
  _mm512_mask_storeu_epi32(columns, room, _mm512_maskz_compress_epi32(which, numbers));
}
inline void pack(const double* values, __mmask8 which, __mmask8 room, std::int32_t first, double* target,
                 std::int32_t* columns) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i numbers = _mm256_add_epi32(lanes, _mm256_set1_epi32(first));
  const __m512d kept = _mm512_maskz_compress_pd(which, _mm512_maskz_loadu_pd(which, values));
  _mm512_mask_storeu_pd(target, room, kept);
  _mm256_mask_storeu_epi32(columns, room, _mm256_maskz_compress_epi32(which, numbers));
}

template <class Value>
void pack_nonzeros(const Value* values, std::int32_t size, std::int32_t nonzeros, Value* kept,
                   std::int32_t* columns) {
  using Mask = std::conditional_t<sizeof(Value) == 4, __mmask16, __mmask8>;
  constexpr std::int32_t kWidth = 64 / sizeof(Value);
  const auto first_lanes = [](int count) { return static_cast<Mask>((1U << count) - 1); };
  for (std::int32_t j = 0; nonzeros > 0; j += kWidth) {
    const Mask which = nonzeros_of(values + j, first_lanes(std::min(size - j, kWidth)));
    const int count = std::popcount(static_cast<unsigned>(which));
    pack(values + j, which, first_lanes(count), j, kept, columns);
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
        pack_nonzeros(rows[first + i].values, static_cast<std::int32_t>(rows.columns),
                      static_cast<std::int32_t>(offsets[first + i + 1] - begin), &copy.values[begin],
                      &copy.indices[begin]);
      }
    });
  }
  return copy;
}

}  // namespace maxmargin
