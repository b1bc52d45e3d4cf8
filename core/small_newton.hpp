// SPDX-License-Identifier: BSD-3-Clause
// Newton steps where the Hessian is small: so short that their calls one by one would cost more than they
// do. Rows come as `Data`, of which `visit` shows the kind.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "newton.hpp"

namespace maxmargin {

// A point with what follows from its margins: the arrays of newton_step.py's Iterate.
struct SmallIterate {
  std::span<const double> labels, regulariser;
  std::span<double> v, margins, multipliers, combined, curvatures;
  std::span<double> lower, counted;  // the Hessian, and the curvatures that it is of
  Refreshed sums;                    // at the multipliers

  Integer size() const { return static_cast<Integer>(v.size()); }
  void gradient(std::span<double> out) const {
    for (std::size_t j = 0; j < v.size(); ++j) out[j] = regulariser[j] * v[j] - combined[j];
  }
  // 1/2 v'Rv + sum_i C_i loss(m_i)
  double primal() const {
    double squares = 0;
    for (std::size_t j = 0; j < v.size(); ++j) squares += regulariser[j] * v[j] * v[j];
    return 0.5 * squares + sums.loss;
  }
  // 1/2 g'R^-1 g, with 1 where nothing holds the intercept.
  double residual() const {
    double squares = 0;
    for (std::size_t j = 0; j < v.size(); ++j) {
      const double g = regulariser[j] * v[j] - combined[j];
      squares += g * g / (regulariser[j] > 0 ? regulariser[j] : 1.0);
    }
    return 0.5 * squares;
  }
};

// sum_i c_i z_i into `out`.
template <class Data>
void combine_with_bias(const Data& data, std::span<const double> coefficients, std::span<double> out,
                       const Budget& budget) {
  const std::size_t d = static_cast<std::size_t>(data.columns());
  data.visit([&](const auto& rows) { combine(rows, coefficients.data(), out.first(d), budget); });
  if (out.size() == d) return;
  double sum = 0;
  for (const double c : coefficients) sum += c;
  out[d] = sum;
}

// Brings the Hessian up to date with the curvatures.
template <class Data>
void update_hessian(const Data& data, SmallIterate& at, std::span<double> changes, const Budget& budget) {
  std::size_t free = 0, changed = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    free += at.curvatures[i] != 0;
    changed += at.curvatures[i] != at.counted[i];
  }
  // Few rows are added up anew: what rounding leaves of the others could outweigh them.
  const bool anew = free <= std::max(changed, 2 * at.v.size());
  if (anew) std::fill(at.lower.begin(), at.lower.end(), 0.0);
  for (std::size_t i = 0; i < changes.size(); ++i) {
    changes[i] = anew ? at.curvatures[i] : at.curvatures[i] - at.counted[i];
    at.counted[i] = at.curvatures[i];
  }
  data.visit(
      [&](const auto& rows) { add_outer_products(rows, changes.data(), at.lower, at.size(), budget); });
}

// One step for the gradient: the direction, how far, and what follows. Returns how much of the step was
// taken; NaN where there is no direction.
template <class Data, class Piece>
double small_step(const Data& data, const Piece& piece, SmallIterate& at, std::span<const double> gradient,
                  const Budget& budget) {
  const std::size_t n = at.margins.size(), size = at.v.size(), d = static_cast<std::size_t>(data.columns());
  std::vector<double> changes(n), p(gradient.begin(), gradient.end());
  update_hessian(data, at, changes, budget);
  if (!newton_direction(at.lower, at.regulariser, p)) return std::nan("");
  data.visit([&](const auto& rows) { scores(rows, p.data(), changes, budget); });
  const double bias = size > d ? p[d] : 0.0;
  for (std::size_t i = 0; i < n; ++i) changes[i] = at.labels[i] * (changes[i] + bias);
  double slope = 0, curvature = 0;
  for (std::size_t j = 0; j < size; ++j) {
    slope += at.regulariser[j] * p[j] * at.v[j];
    curvature += at.regulariser[j] * p[j] * p[j];
  }
  const double length = line_search(piece, at.margins, changes.data(), slope, curvature, budget);
  for (std::size_t j = 0; j < size; ++j) at.v[j] += length * p[j];
  for (std::size_t i = 0; i < n; ++i) at.margins[i] += length * changes[i];
  at.sums = refresh(piece, at.margins, at.labels.data(), at.multipliers.data(), changes.data(),
                    at.curvatures.data(), budget);
  combine_with_bias(data, changes, p, budget);
  for (std::size_t j = 0; j < size; ++j) at.combined[j] += p[j];
  return length;
}

// Steps of Newton's method on one sum of pieces, until the gap |g|^2 / 2 is at most so much of the primal
// value, nothing is gained, or `most` have been taken. Returns how many were, and how much of the last one.
template <class Data, class Piece>
std::pair<Integer, double> small_steps(const Data& data, const Piece& piece, SmallIterate& at, Integer most,
                                       double until, const Budget& budget) {
  std::vector<double> gradient(at.v.size());
  double length = 0;
  Integer taken = 0;
  while (taken < most) {
    at.gradient(gradient);
    length = small_step(data, piece, at, gradient, budget);
    ++taken;
    if (length == 0 || std::isnan(length) || at.residual() <= until * std::abs(at.primal())) break;
    if (budget.spent()) break;
  }
  return {taken, length};
}

}  // namespace maxmargin
