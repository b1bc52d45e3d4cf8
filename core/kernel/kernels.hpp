// SPDX-License-Identifier: BSD-3-Clause
// Kernels as functions of what two rows have in common.
//
// Every kernel offered needs, of two rows x and z, only one sum over the columns and one number of
// each row alone:
//
//   common      sum over the columns of            own number of a row     kernel
//   product     x z                                |x|^2                   (gamma c + r)^p,
//                                                                          tanh(gamma c + r),
//                                                                          exp(-gamma (s_x + s_z - 2 c))
//   minimum     min(|x|, |z|) where signs agree    |x|_1                   Laplacian: exp(-gamma |x - z|_1)
//   harmonic    2 x z / (x + z)                    sum of x                chi-squared
//
// The last two take the form of the third one: |x - z|_1 = s_x + s_z - 2 c, and so for
// (x - z)^2 / (x + z). All three are 0 where x or z is 0, so sparse rows stay sparse; and of two zeros and
// ones all three are 1 if both are, so packed bits serve all kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "data/rows.hpp"
#include "machine/vectors.hpp"

namespace maxmargin {

enum class Common { product, minimum, harmonic, given };  // given: the rows are those of a kernel matrix
inline constexpr int kCommons = 4;

enum class Shape { power, tanh, exponential };

// One kernel of the table: a shape of one common sum.
struct Factor {
  Common common;
  Shape shape;
  double gamma;
  double shift;  // r
  int degree;    // p
};

// coefficient * factor * factor * ...
struct Term {
  double coefficient;
  std::vector<Factor> factors;
};

// A sum of products: what sums, products and positive multiples of kernels come to.
struct KernelSum {
  std::vector<Term> terms;

  // Whether there is a factor for which the predicate holds.
  template <class Predicate>
  bool any(const Predicate& holds) const {
    return std::ranges::any_of(terms, [&](const Term& t) { return std::ranges::any_of(t.factors, holds); });
  }
  bool uses(Common common) const {
    return any([=](const Factor& factor) { return factor.common == common; });
  }
  bool only_products() const { return !uses(Common::minimum) && !uses(Common::harmonic); }
  bool any_distances() const {
    return any([](const Factor& factor) { return factor.shape == Shape::exponential; });
  }
  // Whether only distances of one kind of common sum matter, so that they may be summed up directly.
  bool only_distances() const {
    return !any([](const Factor& factor) { return factor.shape != Shape::exponential; });
  }
};

inline constexpr int kTile = 64;    // rows whose values are computed side by side
inline constexpr int kQueries = 8;  // against so many others at once

// The share of one value of x and one of z in a common sum; V may be a register of values.
template <Common common, class V>
inline V share(V x, V z) {
  const V zero{};
  if constexpr (common == Common::product) {
    return x * z;
  } else if constexpr (common == Common::harmonic) {
    const V sum = x + z;
    return sum > zero ? (x + x) * z / sum : zero;
  } else {
    const V least = x < z ? x : z, most = x > z ? x : z;
    return least > zero ? least : (most < zero ? -most : zero);
  }
}
inline double own_share(Common common, double x) {
  if (common == Common::product) return x * x;
  return common == Common::minimum ? std::abs(x) : x;
}

// The factor in place of common sums, given the sums of the rows' own numbers; in registers side by side.
template <class T, int kRegisters>
MAXMARGIN_INLINE void shape(const Factor& factor, Lanes<T> (&values)[kRegisters],
                            const Lanes<T> (&own)[kRegisters]) {
  constexpr T kLargest = sizeof(T) == 4 ? 88 : 709;  // of the arguments of an exponential
  const T gamma = static_cast<T>(factor.gamma), shift = static_cast<T>(factor.shift);
  if (factor.shape == Shape::exponential) {
    for (int v = 0; v < kRegisters; ++v) {
      values[v] = -gamma * larger<T>(own[v] - T{2} * values[v], Lanes<T>{});
    }
    return exponentials<T>(values);
  }
  for (Lanes<T>& value : values) value = gamma * value + shift;
  if (factor.shape == Shape::tanh) {
    for (Lanes<T>& value : values) value = smaller<T>(T{2} * value, all<T>(kLargest));
    exponentials<T>(values);
    for (Lanes<T>& value : values) value = T{1} - T{2} / (value + T{1});
    return;
  }
  Lanes<T> power[kRegisters];
  for (Lanes<T>& value : power) value = all<T>(T{1});
  for (int left = factor.degree; left > 0; left >>= 1) {
    if (left & 1) {
      for (int v = 0; v < kRegisters; ++v) power[v] *= values[v];
    }
    for (Lanes<T>& value : values) value *= value;
  }
  for (int v = 0; v < kRegisters; ++v) values[v] = power[v];
}

}  // namespace maxmargin
