// SPDX-License-Identifier: BSD-3-Clause
// Sums whose rounding is bounded, in whatever order and with whatever registers they are computed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>

#include "twofold/arithmetic.hpp"

namespace maxmargin {

inline constexpr std::size_t kSumBlock = 1024;  // terms that are summed up before their sum is added

// sum of term(i) for i = 0 .. count - 1, block by block: n additions in a row round n times, these about
// kSumBlock + n / kSumBlock times.
template <class Term>
MAXMARGIN_INLINE double sum_in_blocks(std::size_t count, const Term& term) {
  double sum = 0;
  for (std::size_t first = 0; first < count; first += kSumBlock) {
    const std::size_t last = std::min(count, first + kSumBlock);
    double block = 0;
#pragma omp simd reduction(+ : block)
    for (std::size_t i = first; i < last; ++i) block += term(i);
    sum += block;
  }
  return sum;
}

// How far such a sum can be from the exact one, as a share of the sum of the magnitudes. It covers terms
// that are themselves off by up to 16 roundings.
inline double sum_rounding(std::size_t count) {
  const std::size_t roundings = std::min(count, kSumBlock) + count / kSumBlock + 18;
  return static_cast<double>(roundings) * kUnit;
}

// What terms that are too small to be normal numbers can be off by, all together.
inline double smallest_normal(std::size_t count) {
  return static_cast<double>(count + 1) * std::numeric_limits<double>::min();
}

// sum_i values_i signs_i to twice the precision, for signs of 1 and -1, block by block.
class SignedSum {
 public:
  MAXMARGIN_INLINE void add(const double* values, const double* signs, std::size_t count) {
    std::size_t i = 0;
    for (; i + kSums <= count; i += kSums) {
#pragma omp simd
      for (std::size_t k = 0; k < kSums; ++k) {
        const double value = values[i + k] * signs[i + k], sum = high_[k] + value, part = sum - high_[k];
        low_[k] += (high_[k] - (sum - part)) + (value - part);
        high_[k] = sum;
      }
    }
    for (; i < count; ++i) rest_.add(values[i] * signs[i]);
  }
  Twofold sum() const {
    Twofold all = rest_;
    for (std::size_t k = 0; k < kSums; ++k) all.add(Twofold{high_[k], low_[k]});
    return all;
  }

 private:
  static constexpr std::size_t kSums = 16;  // side by side, since each addition waits for the one before
  double high_[kSums] = {}, low_[kSums] = {};
  Twofold rest_;
};

}  // namespace maxmargin
