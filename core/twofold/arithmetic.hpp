// SPDX-License-Identifier: BSD-3-Clause
// Numbers of twice the precision: the unevaluated sum of two doubles.
//
// The error of a sum or of a product of two doubles is itself a double (Knuth, Dekker), so nothing need be
// lost. Products must not be contracted with the sums that follow them: whoever uses them is compiled with
// -ffp-contract=off, and `products_are_rounded` in twofold/proof.hpp tells whether it was. The bounds of
// all proofs rest on sums that are computed as they are written, which the lines below look after.
#pragma once

#include <cfloat>
#include <cmath>

#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || \
    (defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__)
#error "maxmargin proves its values, rounding included: compile it without -ffast-math and the like."
#endif
static_assert(FLT_EVAL_METHOD == 0, "maxmargin needs every double to be rounded to 53 bits.");

#include "data/rows.hpp"

namespace maxmargin {

inline constexpr double kUnit = 0x1p-53;  // the largest relative error of one rounding

struct Twofold {
  double high = 0, low = 0;

  double rounded() const { return high + low; }

  // Adds a double. After k additions, high + low differs from the exact sum by at most k^2 kUnit^2 times
  // the sum of the magnitudes (Ogita, Rump and Oishi 2005).
  MAXMARGIN_INLINE void add(double value) {
    const double sum = high + value, part = sum - high;
    low += (high - (sum - part)) + (value - part);
    high = sum;
  }
  MAXMARGIN_INLINE void add(Twofold value) {
    add(value.high);
    low += value.low;
  }
};

// a b = high + low, exactly, unless low is too small to be a double.
MAXMARGIN_INLINE Twofold two_product(double a, double b) {
  const double product = a * b;
  return {product, std::fma(a, b, -product)};
}

// The rest is good to a relative error of 16 kUnit^2.

MAXMARGIN_INLINE Twofold operator*(Twofold a, Twofold b) {
  Twofold product = two_product(a.high, b.high);
  product.low += a.high * b.low + a.low * b.high;
  const double sum = product.high + product.low;
  return {sum, product.low - (sum - product.high)};
}

MAXMARGIN_INLINE Twofold divided(Twofold a, double by) {
  const double quotient = a.high / by;
  return {quotient, (std::fma(-quotient, by, a.high) + a.low) / by};
}

}  // namespace maxmargin
