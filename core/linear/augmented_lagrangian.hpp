// SPDX-License-Identifier: BSD-3-Clause
// What a run of the augmented Lagrangian remembers from step to step, and its steps where the Hessian is
// small. The numbers 2 to 6 are those of the algorithm's statement in
// src/maxmargin/solvers/augmented_lagrangian.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "linear/newton.hpp"
#include "linear/small_newton.hpp"

namespace maxmargin {

// The values of a point and of its multipliers: those of newton_step.py's Iterate.
struct Values {
  double primal = INFINITY, dual = -INFINITY;
  double imbalance = 0;  // sum_i a_i y_i where it should be 0
};

// What the dual value loses, about, when the balance of the multipliers is restored. Free rows do it for
// next to nothing: their margins are within 1 / stiffness of 1, where the dual value is flat. The others'
// are about 1 away.
inline double cost_of_balancing(double imbalance, double stiffness, std::span<const double> multipliers,
                                const double* costs) {
  constexpr double kSmallShare = 0.1;  // of the free multipliers' sum: up to here they can make up for it
  const double missing = std::abs(imbalance);
  if (missing == 0) return 0;
  double free = 0;
#pragma omp simd reduction(+ : free)
  for (std::size_t i = 0; i < multipliers.size(); ++i) {
    free += multipliers[i] < costs[i] ? multipliers[i] : 0.0;
  }
  return missing < kSmallShare * free ? missing / stiffness : missing;
}

// The best point and the best multipliers so far, in arrays that whoever calls keeps.
struct Standing {
  double primal = INFINITY;
  double dual = -INFINITY;    // of the best multipliers, as far as the b of the best point can tell
  double best_imbalance = 0;  // of the best multipliers
  double relative_gap = INFINITY;
  Integer idle = 0;  // steps in a row that brought neither value closer, beyond rounding
  bool finished = false;

  void remember(const Values& now, double balancing, std::span<const double> v,
                std::span<const double> multipliers, std::span<double> best_v,
                std::span<double> best_multipliers) {
    const double before = primal - dual;
    remember_point(now, v, best_v);
    remember_multipliers(now, balancing, v, multipliers, best_v, best_multipliers);
    const double gap = primal - dual;
    relative_gap = primal != 0 ? gap / std::abs(primal) : 0.0;
    // Before, steps may well bring the smooth problem closer to its end and neither value to the other.
    constexpr double kNearRounding = 1e-8;
    const bool stands = relative_gap <= kNearRounding && before - gap <= kRounding * std::abs(primal);
    idle = stands ? idle + 1 : 0;
    finished = finished || idle >= (relative_gap <= kAtRounding ? 2 : 10);
  }

 private:
  static constexpr double kRounding = 1e-14, kAtRounding = 1e-11;

  void remember_point(const Values& now, std::span<const double> v, std::span<double> best_v) {
    if (now.primal < primal) {
      // A better b tells more about multipliers that are out of balance.
      dual -= best_imbalance * (v.back() - best_v.back());
      primal = now.primal;
      std::copy(v.begin(), v.end(), best_v.begin());
    }
    if (is_false(dual, best_imbalance)) dual = -INFINITY;
  }
  void remember_multipliers(const Values& now, double balancing, std::span<const double> v,
                            std::span<const double> multipliers, std::span<const double> best_v,
                            std::span<double> best_multipliers) {
    const double moved = now.imbalance * (best_v.back() - v.back());
    double value = now.dual - moved - balancing;
    if (is_false(value, now.imbalance)) value = -INFINITY;
    if (!(value > dual || dual == -INFINITY)) return;
    dual = value;
    best_imbalance = now.imbalance;
    std::copy(multipliers.begin(), multipliers.end(), best_multipliers.begin());
  }
  // Whether b is too far off to tell what multipliers out of balance are worth: above the primal value.
  bool is_false(double value, double imbalance) const {
    const double scale = std::abs(primal);
    return value - primal > kAtRounding * scale && std::abs(imbalance) > kRounding * scale;
  }
};

// The smooth problem of line 2, and when the next one follows.
struct Smoothing {
  const double* costs;
  std::span<double> alpha;
  double stiffness;  // k
  bool begun;        // whether the first step of this alpha has been taken
  double raise_by, small_part;

  AugmentedHinge piece() const { return {costs, alpha.data(), stiffness}; }
};

inline constexpr double kStiffest = 1e7;  // beyond, free multipliers show nothing but the margins' rounding

inline Values values_of(const SmallIterate& at, bool exact, std::size_t columns) {
  double squares = 0;
  for (std::size_t j = 0; j < columns; ++j) squares += at.combined[j] * at.combined[j];
  Values values{at.primal(), at.sums.multipliers - 0.5 * squares, 0.0};
  if (exact) {
    values.dual -= at.sums.balance * at.v.back();  // Lagrange's term
    values.imbalance = at.sums.balance;
  } else if (at.v.size() > columns) {
    values.dual -= 0.5 * at.sums.balance * at.sums.balance / at.regulariser[columns];
  }
  return values;
}

// Steps until the relative gap is at most `until`, nothing is left to gain, or `most` have been taken.
// Returns how many were; 0 where the data cannot be squared.
template <class Data>
Integer small_augmented_lagrangian(const Data& data, Smoothing& smoothing, SmallIterate& at,
                                   Standing& standing, Values& values, std::span<double> best_v,
                                   std::span<double> best_multipliers, bool exact, Integer most,
                                   double until, const Budget& budget) {
  const std::size_t n = at.margins.size(), d = static_cast<std::size_t>(data.columns());
  std::vector<double> gradient(at.v.size()), unclipped(n), sums(at.v.size());
  Integer taken = 0;
  while (taken < most) {
    at.gradient(gradient);  // 3
    const bool first = !smoothing.begun;
    if (first) {
      const double k = smoothing.stiffness;
      for (std::size_t i = 0; i < n; ++i) {
        const double c = at.curvatures[i] > 0 ? k * smoothing.costs[i] : 0.0;
        unclipped[i] = c * at.labels[i] * (1 - at.margins[i]);
      }
      combine_with_bias(data, unclipped, sums, budget);
      for (std::size_t j = 0; j < sums.size(); ++j) gradient[j] -= sums[j];
      smoothing.begun = true;
    }
    const double length = small_step(data, smoothing.piece(), at, gradient, budget);  // 5, 6, 2
    if (std::isnan(length)) return 0;
    ++taken;
    values = values_of(at, exact, d);
    const double balancing =
        cost_of_balancing(values.imbalance, smoothing.stiffness, at.multipliers, smoothing.costs);
    standing.remember(values, balancing, at.v, at.multipliers, best_v, best_multipliers);
    standing.finished = standing.finished || (length == 0 && !first);
    if (at.residual() + balancing <= smoothing.small_part * (values.primal - values.dual)) {  // 4
      standing.finished = standing.finished || smoothing.stiffness > kStiffest;
      std::copy(at.multipliers.begin(), at.multipliers.end(), smoothing.alpha.begin());
      smoothing.stiffness *= smoothing.raise_by;
      smoothing.begun = false;
      for (double& h : at.curvatures) h *= smoothing.raise_by;
      at.scale_hessian(smoothing.raise_by);
    }
    if (standing.finished || standing.relative_gap <= until || budget.spent()) break;
  }
  return taken;
}

}  // namespace maxmargin
