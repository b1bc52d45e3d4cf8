// SPDX-License-Identifier: BSD-3-Clause
// Newton steps where the Hessian is small: so short that their calls one by one would cost more than they
// do. Rows come as `Data`, of which `visit` shows the kind.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include "linear/newton.hpp"

namespace maxmargin {

// A point with what follows from its margins: the arrays of newton_step.py's Iterate.
struct SmallIterate {
  std::span<const double> labels, regulariser;
  std::span<double> v, margins, multipliers, combined, curvatures;
  std::span<double> lower, counted;  // the Hessian, and the curvatures that it is of
  std::span<double> peaks;           // of its diagonal, since it was last added up anew
  Refreshed sums;                    // at the multipliers

  Integer size() const { return static_cast<Integer>(v.size()); }
  // Prepares for curvatures that are all so many times the last ones.
  void scale_hessian(double factor) {
    for (double& h : counted) h *= factor;
    for (double& h : lower) h *= factor;
    for (double& h : peaks) h *= factor;
  }
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

// Whether what rounding leaves of rows that count no more could be seen beside the rows that do.
inline bool is_worn(SmallIterate& at) {
  constexpr double kMuch = 1e6;
  bool worn = false;
  for (std::size_t j = 0; j < at.v.size(); ++j) {
    const double diagonal = at.lower[j * at.v.size() + j];
    at.peaks[j] = std::max(at.peaks[j], diagonal);
    worn = worn || at.peaks[j] > kMuch * (diagonal + at.regulariser[j]);
  }
  return worn;
}

// Brings the Hessian up to date with the curvatures: by the rows that changed, or anew.
template <class Data>
void update_hessian(const Data& data, SmallIterate& at, std::span<double> changes, const Budget& budget) {
  constexpr double kRounding = 1e-14;  // of curvatures that were multiplied by a factor
  std::size_t free = 0, changed = 0;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const double h = at.curvatures[i];
    changes[i] = std::abs(h - at.counted[i]) > kRounding * h ? h - at.counted[i] : 0.0;
    free += h != 0;
    changed += changes[i] != 0;
  }
  const auto add_changes = [&] {
    for (std::size_t i = 0; i < changes.size(); ++i) at.counted[i] += changes[i];
    data.visit(
        [&](const auto& rows) { add_outer_products(rows, changes.data(), at.lower, at.size(), budget); });
  };
  bool anew = free <= changed;
  if (!anew) {
    add_changes();
    anew = is_worn(at);
  }
  if (!anew) return;
  std::fill(at.lower.begin(), at.lower.end(), 0.0);
  std::fill(at.counted.begin(), at.counted.end(), 0.0);
  std::fill(at.peaks.begin(), at.peaks.end(), 0.0);
  std::copy(at.curvatures.begin(), at.curvatures.end(), changes.begin());
  add_changes();
  is_worn(at);
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
