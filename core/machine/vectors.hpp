// SPDX-License-Identifier: BSD-3-Clause
// As many numbers as one register of the instruction set holds, by the compilers' vector types.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace maxmargin {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
inline constexpr int kVectorsAtOnce = 4;  // accumulators per row of a register tile
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
inline constexpr int kVectorsAtOnce = 2;
#else
inline constexpr int kVectorBytes = 16;
inline constexpr int kVectorsAtOnce = 2;
#endif

template <class T>
struct VectorOf {
  using Bits = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  typedef T type __attribute__((vector_size(kVectorBytes)));
  typedef Bits bits __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Lanes = typename VectorOf<T>::type;
template <class T>
using LaneBits = typename VectorOf<T>::bits;
template <class T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <class T>
inline Lanes<T> load(const T* from) {
  Lanes<T> value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}
template <class T>
inline void store(T* to, Lanes<T> value) {
  std::memcpy(to, &value, sizeof(value));
}
template <class T>
inline Lanes<T> all(T value) {
  return value - Lanes<T>{};
}
template <class T>
inline Lanes<T> smaller(Lanes<T> a, Lanes<T> b) {
  return a < b ? a : b;
}
template <class T>
inline Lanes<T> larger(Lanes<T> a, Lanes<T> b) {
  return a > b ? a : b;
}

constexpr double factorial(int n) { return n < 2 ? 1.0 : n * factorial(n - 1); }

// e^x in place of each x, to the last bit or two, for x of at most 709 (88 in single precision); arguments
// below the range of normal numbers are taken to its end.
//
// x = n ln 2 + r with |r| <= ln 2 / 2: Taylor's series for e^r, and n goes straight into the exponent. Each
// step of the series waits for the one before: several registers side by side fill the time. Inlined, or
// the compiler would keep them in memory.
template <class T, int kRegisters>
[[gnu::always_inline]] inline void exponentials(Lanes<T> (&x)[kRegisters]) {
  constexpr bool single = sizeof(T) == 4;
  constexpr int digits = single ? 23 : 52;
  constexpr int degree = single ? 7 : 13;
  constexpr T log2_e = static_cast<T>(1.44269504088896340736);
  // ln 2 in two parts; the first has so few digits that n times it is exact.
  constexpr T ln2_high = static_cast<T>(single ? 0.693359375 : 6.93147180369123816490e-01);
  constexpr T ln2_low = static_cast<T>(single ? -2.12194440054690583e-4 : 1.90821492927058770002e-10);
  constexpr T rounder = static_cast<T>(single ? 12582912.0 : 6755399441055744.0);  // 1.5 * 2^digits
  Lanes<T> shifted[kRegisters], sum[kRegisters];
  for (int v = 0; v < kRegisters; ++v) {
    x[v] = larger<T>(x[v], all<T>(static_cast<T>(single ? -87.0 : -708.0)));
    shifted[v] = x[v] * log2_e + rounder;
    const Lanes<T> n = shifted[v] - rounder;
    x[v] = (x[v] - n * ln2_high) - n * ln2_low;  // r
    sum[v] = all<T>(static_cast<T>(1.0 / factorial(degree)));
  }
  const auto add = [&](T coefficient) {
    for (int v = 0; v < kRegisters; ++v) sum[v] = sum[v] * x[v] + coefficient;
  };
  [&]<int... k>(std::integer_sequence<int, k...>) {
    (add(static_cast<T>(1.0 / factorial(degree - 1 - k))), ...);
  }(std::make_integer_sequence<int, degree>{});
  for (int v = 0; v < kRegisters; ++v) {
    const LaneBits<T> bits = std::bit_cast<LaneBits<T>>(sum[v]);
    x[v] = std::bit_cast<Lanes<T>>(bits + (std::bit_cast<LaneBits<T>>(shifted[v]) << digits));
  }
}

}  // namespace maxmargin
