// SPDX-License-Identifier: BSD-3-Clause
// exp and log for loops over rows: without branches and calls, so that a compiler puts several rows side by
// side. Each is off by less than 4 roundings of its value, where it is in the range that is told; the sums
// of proofs allow their terms 16 (passes/sums.hpp).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace maxmargin {

inline constexpr double kLeastExponent = -708;  // of which exp is still a normal number

// exp(x) for x <= 0; for less than kLeastExponent what that has.
inline double exp_of_negative(double x) {
  constexpr double kShift = 0x1.8p52;  // whole numbers that are added to it are its last bits
  x = x < kLeastExponent ? kLeastExponent : x;
  const double shifted = x * 0x1.71547652b82fep+0 + kShift, k = shifted - kShift;
  // ln 2 in two parts, of which the first has so few digits that k times it is exact.
  const double r = (x - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33;
  // Taylor's series: |r| <= 0.347, so that what is left out is below 1e-17.
  double sum = 1.0 / 6227020800;
  sum = sum * r + 1.0 / 479001600;
  sum = sum * r + 1.0 / 39916800;
  sum = sum * r + 1.0 / 3628800;
  sum = sum * r + 1.0 / 362880;
  sum = sum * r + 1.0 / 40320;
  sum = sum * r + 1.0 / 5040;
  sum = sum * r + 1.0 / 720;
  sum = sum * r + 1.0 / 120;
  sum = sum * r + 1.0 / 24;
  sum = sum * r + 1.0 / 6;
  sum = sum * r + 0.5;
  sum = sum * r + 1;
  sum = sum * r + 1;
  // 2^k, by its exponent: the last bits of `shifted` are those of k.
  return sum * std::bit_cast<double>((std::bit_cast<std::uint64_t>(shifted) + 1023) << 52);
}

// log((1 + s) / (1 - s)) for |s| <= 0.1716: 2 s (1 + s^2 / 3 + s^4 / 5 + ...), what is left out below
// 1e-17.
inline double log_of_ratio(double s) {
  const double t = s * s;
  double sum = 1.0 / 21;
  sum = sum * t + 1.0 / 19;
  sum = sum * t + 1.0 / 17;
  sum = sum * t + 1.0 / 15;
  sum = sum * t + 1.0 / 13;
  sum = sum * t + 1.0 / 11;
  sum = sum * t + 1.0 / 9;
  sum = sum * t + 1.0 / 7;
  sum = sum * t + 1.0 / 5;
  sum = sum * t + 1.0 / 3;
  return 2 * s + 2 * s * (t * sum);
}

// log(1 + e) for 0 <= e <= 1.
inline double log_of_1_plus(double e) {
  constexpr double kRoot = 0x1.6a09e667f3bcdp+0, kRootLess1 = 0x1.a827999fcef32p-2;  // of 2
  constexpr double kLogRoot = 0x1.62e42fefa39efp-2;
  const bool large = e > kRootLess1;
  const double s = (e - (large ? kRootLess1 : 0.0)) / ((1 + e) + (large ? kRoot : 1.0));
  return (large ? kLogRoot : 0.0) + log_of_ratio(s);
}

// log(1 - p) for 0 <= p <= 0.5.
inline double log_of_1_minus(double p) {
  constexpr double kLess = 0x1.2bec333018867p-2;  // 1 - sqrt(1/2)
  const bool large = p > kLess;
  const double s = (large ? 0.5 - p : -p) / ((1 - p) + (large ? 0.5 : 1.0));
  return (large ? -0x1.62e42fefa39efp-1 : 0.0) + log_of_ratio(s);
}

// log(p) for 1e-300 <= p <= 0.5; for less what 1e-300 has.
inline double log_of_share(double p) {
  p = p < 1e-300 ? 1e-300 : p;
  // p = 2^k m with sqrt(1/2) <= m < sqrt(2): the bits of sqrt(1/2) are where one k ends.
  constexpr std::uint64_t kHalfRoot = 0x3fe6a09e667f3bcd;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(p),
                      whole = (bits - kHalfRoot + (1023ULL << 52)) >> 52;
  const double m = std::bit_cast<double>(bits - ((whole - 1023) << 52));
  // A whole number as the last bits of 2^52: exact, and without a conversion that few registers know.
  const double k = std::bit_cast<double>(whole | 0x4330000000000000ULL) - (0x1p52 + 1023);
  return k * 0x1.62e42fefa39efp-1 + log_of_ratio((m - 1) / (m + 1));
}

}  // namespace maxmargin
