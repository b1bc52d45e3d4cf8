// SPDX-License-Identifier: BSD-3-Clause
// The dual of the kernel problem, as the solvers that keep sum beta_i = 0 see it.
//
//   minimise over beta   1/2 beta' K beta - y' beta,     low_i <= beta_i <= high_i,   sum beta_i = 0
//
// with beta_i = alpha_i y_i, so the box is [0, C_i] or [-C_i, 0]. f = K beta - y is its gradient. A pair
// (i, j) with f_i < f_j, where beta_i may grow and beta_j may fall, gains by moving t from j to i.
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "data/rows.hpp"

namespace maxmargin {

struct KernelDual {
  std::span<const double> low, high;
  std::span<const double> labels;
  std::span<double> beta, f;

  bool may_grow(Integer i) const { return beta[i] < high[i]; }
  bool may_fall(Integer i) const { return beta[i] > low[i]; }
};

// Where a kernel dual stands, seen in one pass.
struct DualState {
  double least;     // f of the rows that may grow
  double greatest;  // f of the rows that may fall; at an optimum not above `least`
  double primal;    // with the intercept in the middle of the two
  double dual;
};

inline DualState look(const KernelDual& dual) {
  const Integer n = static_cast<Integer>(dual.f.size());
  constexpr double infinity = std::numeric_limits<double>::infinity();
  DualState state{infinity, -infinity, 0, 0};
  for (Integer i = 0; i < n; ++i) {
    if (dual.may_grow(i)) state.least = std::min(state.least, dual.f[i]);
    if (dual.may_fall(i)) state.greatest = std::max(state.greatest, dual.f[i]);
  }
  const double b = -0.5 * (state.least + state.greatest);
  double squared_norm = 0, gain = 0, loss = 0;
#pragma omp simd reduction(+ : squared_norm, gain, loss)
  for (Integer i = 0; i < n; ++i) {
    squared_norm += dual.beta[i] * (dual.f[i] + dual.labels[i]);
    gain += dual.labels[i] * dual.beta[i];
    const double slack = -dual.labels[i] * (dual.f[i] + b);
    loss += (dual.high[i] - dual.low[i]) * (slack > 0 ? slack : 0.0);
  }
  state.primal = 0.5 * squared_norm + loss;
  state.dual = gain - 0.5 * squared_norm;
  return state;
}

}  // namespace maxmargin
