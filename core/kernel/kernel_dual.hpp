// SPDX-License-Identifier: BSD-3-Clause
// The dual of the kernel problem, as the solvers that keep sum beta_i = 0 see it.
//
//   minimise over beta   1/2 beta' K beta - y' beta,     low_i <= beta_i <= high_i,   sum beta_i = 0
//
// with beta_i = alpha_i y_i, so the box is [0, C_i] or [-C_i, 0]. f = K beta - y is its gradient. A pair
// (i, j) with f_i < f_j, where beta_i may grow and beta_j may fall, gains by moving t from j to i.
#pragma once

#include <algorithm>
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
  std::vector<double> low, high, labels, beta, f;
  DualState state;

  KernelDual(std::span<const double> labels, std::span<const double> costs)
      : low(labels.size()),
        high(labels.size()),
        labels(labels.begin(), labels.end()),
        beta(labels.size()),
        f(labels.size()) {
    for (std::size_t i = 0; i < labels.size(); ++i) {
      low[i] = std::min(0.0, labels[i] * costs[i]);
      high[i] = std::max(0.0, labels[i] * costs[i]);
      f[i] = -labels[i];
    }
  }

  Integer count() const { return static_cast<Integer>(beta.size()); }
  bool may_grow(Integer i) const { return beta[i] < high[i]; }
  bool may_fall(Integer i) const { return beta[i] > low[i]; }

  // Some of the rows, with their multipliers and their gradient as they are.
  KernelDual subset(std::span<const Integer> rows) const {
    KernelDual part({}, {});
    for (auto array :
         {&KernelDual::low, &KernelDual::high, &KernelDual::labels, &KernelDual::beta, &KernelDual::f}) {
      (part.*array).reserve(rows.size());
      for (const Integer i : rows) (part.*array).push_back((this->*array)[i]);
    }
    return part;
  }

  // Rows that violate the conditions, or whose multiplier is free.
  std::vector<Integer> may_move() const {
    std::vector<Integer> rows;
    for (Integer i = 0; i < count(); ++i) {
      const bool grows = may_grow(i), falls = may_fall(i);
      if ((grows && (falls || f[i] < state.greatest)) || (falls && f[i] > state.least)) rows.push_back(i);
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
    std::transform(labels.begin(), labels.end(), f.begin(), std::negate<>());
    move(matrix, all, targets, budget);
  }

  // Sees in one pass where it stands.
  void look() {
    const Integer n = count();
    constexpr double infinity = std::numeric_limits<double>::infinity();
    double least = infinity, greatest = -infinity;
    for (Integer i = 0; i < n; ++i) {
      if (may_grow(i)) least = std::min(least, f[i]);
      if (may_fall(i)) greatest = std::max(greatest, f[i]);
    }
    const double b = -0.5 * (least + greatest);
    double squared_length = 0, gain = 0, loss = 0;
    const double *beta_ = beta.data(), *f_ = f.data(), *y = labels.data();
    const double *low_ = low.data(), *high_ = high.data();
#pragma omp simd reduction(+ : squared_length, gain, loss)
    for (Integer i = 0; i < n; ++i) {
      squared_length += beta_[i] * (f_[i] + y[i]);
      gain += y[i] * beta_[i];
      const double slack = -y[i] * (f_[i] + b);
      loss += (high_[i] - low_[i]) * (slack > 0 ? slack : 0.0);
    }
    state = {least, greatest, 0.5 * squared_length + loss, gain - 0.5 * squared_length};
  }

  // The values with the best intercept for the gradient, as a certificate has them.
  void take_best_intercept() {
    std::vector<double> scores(beta.size()), alpha(beta.size()), costs(beta.size());
    for (std::size_t i = 0; i < beta.size(); ++i) {
      scores[i] = f[i] + labels[i];
      alpha[i] = beta[i] * labels[i];
      costs[i] = high[i] - low[i];
    }
    // An estimate, which is not to know of rounding.
    const std::vector<double> nothing(beta.size(), 0.0);
    const Proof proof = prove({Hinge{}, labels, costs}, alpha, scores, nothing, 0.0);
    if (proof.primal >= state.primal) return;
    state.primal = proof.primal;
    state.dual = proof.dual;
  }
};

}  // namespace maxmargin
