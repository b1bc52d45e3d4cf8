// SPDX-License-Identifier: BSD-3-Clause
// The dual of the kernel problem, as the solvers that keep sum beta_i = 0 see it.
//
//   minimise over beta   1/2 beta' K beta - y' beta + e' |beta|,   low_i <= beta_i <= high_i,   sum beta_i
//   = 0
//
// Of a row, beta_i = alpha_i s_i, the box is [0, C_i] or [-C_i, 0], y_i = s_i p_i is the score that it
// wants, which is its label in classification, and e_i = 0. Of twins, rows of both signs on the same data,
// it is the difference of their multipliers, y_i the middle of what they want and e_i the distance from
// there.
//
// f = K beta - y is the gradient without the last term, whose slope is -e_i below 0 and e_i above. A pair
// (i, j) with f_i < f_j, each with that slope, where beta_i may grow and beta_j may fall, gains by moving t
// from j to i; neither goes past 0 in one step where e_i > 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "machine/budget.hpp"
#include "passes/proof.hpp"

namespace maxmargin {

// Where a kernel dual stands, as its gradient tells, which may have lost digits.
struct DualState {
  double least = -1;                                        // f of the rows that may grow
  double greatest = 1;                                      // f of those that may fall
  double primal = std::numeric_limits<double>::infinity();  // with the intercept in the middle of the two
  double dual = 0;

  // How much the worst pair gains per unit moved; at most 0 at an optimum.
  double violation() const { return greatest - least; }
};

// One pair of sequential minimal optimisation (004): t goes from beta_j to beta_i, which makes the dual
// value grow by slope t - eta t^2 / 2, with slope = f_j - f_i and eta = K_ii + K_jj - 2 K_ij.
struct PairStep {
  // Two rows with the same image have an eta of 0, and their step goes to a wall.
  static constexpr double kLeastCurvature = 1e-12;
  static double curvature(double K_ii, double K_jj, double K_ij) {
    return std::max(K_ii + K_jj - 2 * K_ij, kLeastCurvature);
  }

  // The best t that leaves both inside their walls; multipliers that reach theirs are exactly there.
  static double take(double slope, double eta, double& beta_i, double high_i, double& beta_j,
                     double low_j) {
    const double room_i = high_i - beta_i, room_j = beta_j - low_j;
    const double t = std::min(slope / eta, std::min(room_i, room_j));
    beta_i = t == room_i ? high_i : beta_i + t;
    beta_j = t == room_j ? low_j : beta_j - t;
    return t;
  }
};

class KernelDual {
 public:
  std::vector<double> low, high, wanted, widths, beta, f;  // y and e are `wanted` and `widths`
  DualState state;

  KernelDual(std::span<const double> labels, std::span<const double> costs)
      : low(labels.size()),
        high(labels.size()),
        wanted(labels.begin(), labels.end()),
        widths(labels.size()),
        beta(labels.size()),
        f(labels.size()) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      low[i] = std::min(0.0, labels[i] * costs[i]);
      high[i] = std::max(0.0, labels[i] * costs[i]);
      f[i] = -labels[i];
    }
  }
  KernelDual(std::span<const double> low, std::span<const double> high, std::span<const double> wanted,
             std::span<const double> widths)
      : low(low.begin(), low.end()),
        high(high.begin(), high.end()),
        wanted(wanted.begin(), wanted.end()),
        widths(widths.begin(), widths.end()),
        beta(low.size()),
        f(low.size()) {
    std::transform(wanted.begin(), wanted.end(), f.begin(), std::negate<>());
  }

  Integer count() const { return static_cast<Integer>(beta.size()); }
  bool may_grow(Integer i) const { return beta[i] < high[i]; }
  bool may_fall(Integer i) const { return beta[i] > low[i]; }
  // Neither at a wall nor at the kink of e |beta|.
  bool is_free(Integer i) const { return may_grow(i) && may_fall(i) && (beta[i] != 0 || !(widths[i] > 0)); }
  // The slope towards larger beta, and that from smaller ones; the same but for the kink.
  double slope_up(Integer i) const { return f[i] + (beta[i] < 0 ? -widths[i] : widths[i]); }
  double slope_down(Integer i) const { return f[i] + (beta[i] > 0 ? widths[i] : -widths[i]); }
  // How far one step may take beta: to its wall or to the kink.
  static double ceiling(double beta, double high, double width) {
    return width > 0 && beta < 0 ? 0.0 : high;
  }
  static double floor(double beta, double low, double width) { return width > 0 && beta > 0 ? 0.0 : low; }
  double ceiling(Integer i) const { return ceiling(beta[i], high[i], widths[i]); }
  double floor(Integer i) const { return floor(beta[i], low[i], widths[i]); }

  // Some of the rows, with their multipliers and their gradient as they are.
  KernelDual subset(std::span<const Integer> rows) const {
    KernelDual part({}, {});
    for (auto array : {&KernelDual::low, &KernelDual::high, &KernelDual::wanted, &KernelDual::widths,
                       &KernelDual::beta, &KernelDual::f}) {
      (part.*array).reserve(rows.size());
      for (const Integer i : rows) (part.*array).push_back((this->*array)[i]);
    }
    return part;
  }

  // Rows that violate the conditions, or whose multiplier is free.
  std::vector<Integer> may_move() const {
    std::vector<Integer> rows;
    for (Integer i = 0; i < count(); ++i) {
      const bool grows = may_grow(i) && slope_up(i) < state.greatest;
      const bool falls = may_fall(i) && slope_down(i) > state.least;
      if (grows || falls || is_free(i)) rows.push_back(i);
    }
    return rows;
  }

  // Moves the multipliers of some rows, in ascending order, and brings the gradient of all up to date.
  template <class Matrix>
  void move(Matrix& matrix, std::span<const Integer> rows, std::span<const double> targets,
            const Budget& budget) {
    std::vector<Integer> moved;
    std::vector<double> changes;
    for (std::size_t k = 0; k < rows.size(); ++k) {
      double& now = beta[rows[k]];
      if (now == targets[k]) continue;
      moved.push_back(rows[k]);
      changes.push_back(targets[k] - now);
      now = targets[k];
    }
    matrix.add(moved, changes, f.data(), budget);
  }

  // Computes the gradient afresh.
  template <class Matrix>
  void restore_gradient(Matrix& matrix, const Budget& budget) {
    std::vector<Integer> all(beta.size());
    std::iota(all.begin(), all.end(), Integer{0});
    const std::vector<double> targets = beta;
    std::fill(beta.begin(), beta.end(), 0.0);  // in place: Python may look at it
    std::transform(wanted.begin(), wanted.end(), f.begin(), std::negate<>());
    move(matrix, all, targets, budget);
  }

  // Sees in one pass where it stands.
  void look() {
    const Integer n = count();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    double least = infinity, greatest = -infinity;
    for (Integer i = 0; i < n; ++i) {
      if (may_grow(i)) least = std::min(least, slope_up(i));
      if (may_fall(i)) greatest = std::max(greatest, slope_down(i));
    }
    const double b = -0.5 * (least + greatest);
    double squared_length = 0, gain = 0, loss = 0;
    const double *beta_ = beta.data(), *f_ = f.data(), *y = wanted.data(), *e = widths.data();
    const double *low_ = low.data(), *high_ = high.data();
#pragma omp simd reduction(+ : squared_length, gain, loss)
    for (Integer i = 0; i < n; ++i) {
      squared_length += beta_[i] * (f_[i] + y[i]);
      gain += y[i] * beta_[i] - e[i] * std::abs(beta_[i]);
      const double below = -(f_[i] + b) - e[i], above = f_[i] + b - e[i];
      loss += high_[i] * (below > 0 ? below : 0.0) - low_[i] * (above > 0 ? above : 0.0);
    }
    state = {least, greatest, 0.5 * squared_length + loss, gain - 0.5 * squared_length};
  }

  // The values with the best intercept for the gradient, as a certificate has them.
  void take_best_intercept() {
    std::vector<double> scores, alpha, costs, signs, targets;
    for (std::size_t i = 0; i < beta.size(); ++i) {
      for (const double sign : {1.0, -1.0}) {
        const double cost = sign > 0 ? high[i] : -low[i];
        if (!(cost > 0)) continue;
        scores.push_back(f[i] + wanted[i]);
        alpha.push_back(std::max(0.0, sign * beta[i]));
        costs.push_back(cost);
        signs.push_back(sign);
        targets.push_back(sign * wanted[i] - widths[i]);
      }
    }
    if (scores.empty()) return;
    // An estimate, which is not to know of rounding.
    const std::vector<double> nothing(scores.size(), 0.0);
    const Objective objective{Hinge{}, signs, costs, Intercept::exact, 0.0, targets};
    const Proof proof = prove(objective, alpha, scores, nothing, 0.0);
    if (proof.primal >= state.primal) return;
    state.primal = proof.primal;
    state.dual = proof.dual;
  }
};

}  // namespace maxmargin
