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
//
// Where the targets have a shift that is sought (passes/proof.hpp), the multipliers add up to a total. With
// rows of one sign and no intercept that is sum beta_i = total. With an exact intercept, those of each sign
// add up to half of it: beta_i is the sum of two parts, `above` 0 and `below`, that of sign 1 and minus
// that of sign -1, and a pair moves parts of one side. Parts are both other than 0 only for twins.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "machine/budget.hpp"
#include "passes/best_length.hpp"
#include "passes/proof.hpp"

namespace maxmargin {

// The extremes of the slopes on one side, all rows if there is only one.
struct Ends {
  double least = -1;    // f of the rows that may grow
  double greatest = 1;  // f of those that may fall

  double violation() const { return greatest - least; }
  double middle() const {
    if (std::isinf(least)) return std::isinf(greatest) ? 0.0 : greatest;
    return std::isinf(greatest) ? least : 0.5 * (least + greatest);
  }
};

// Where a kernel dual stands, as its gradient tells, which may have lost digits.
struct DualState {
  Ends ends[2];                                             // of the sides; one may be the only one
  double primal = std::numeric_limits<double>::infinity();  // with the intercept in the middle of the ends
  double dual = 0;

  // How much the worst pair gains per unit moved; at most 0 at an optimum.
  double violation() const { return std::max(ends[0].violation(), ends[1].violation()); }
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
  std::vector<double> above, below;                        // of beta; none where there is one side only
  double total = -1;                                       // of the multipliers; below 0 where free
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

  // From here on, multipliers of each sign have half of the total.
  void take_sides() {
    above.resize(beta.size());
    below.resize(beta.size());
    for (std::size_t i = 0; i < beta.size(); ++i) {
      above[i] = std::max(beta[i], 0.0);
      below[i] = std::min(beta[i], 0.0);
    }
  }
  // Gives beta to its sides, of rows that have only one of them.
  void settle(std::span<const Integer> rows) {
    if (sides() == 1) return;
    for (const Integer i : rows) {
      above[i] = std::max(beta[i], 0.0);
      below[i] = std::min(beta[i], 0.0);
    }
  }

  Integer count() const { return static_cast<Integer>(beta.size()); }
  int sides() const { return above.empty() ? 1 : 2; }
  bool may_grow(Integer i, int side = 0) const {
    return side ? below[i] < 0 : (sides() == 1 ? beta[i] : above[i]) < high[i];
  }
  bool may_fall(Integer i, int side = 0) const {
    return side ? below[i] > low[i] : sides() == 1 ? beta[i] > low[i] : above[i] > 0;
  }
  // Neither at a wall nor at the kink of e |beta|.
  bool is_free(Integer i) const {
    if (sides() == 1) return may_grow(i) && may_fall(i) && (beta[i] != 0 || !(widths[i] > 0));
    return above[i] == 0 ? below[i] < 0 && below[i] > low[i] : below[i] == 0 && above[i] < high[i];
  }
  // How many are free.
  Integer free() const {
    Integer found = 0;
    for (Integer i = 0; i < count(); ++i) found += is_free(i);
    return found;
  }
  // The side that a row is free on.
  int side_of(Integer i) const { return sides() == 2 && below[i] < 0 ? 1 : 0; }
  // The slope towards larger beta, and that from smaller ones; the same but for the kink.
  double slope_up(Integer i) const { return f[i] + (beta[i] < 0 ? -widths[i] : widths[i]); }
  double slope_down(Integer i) const { return f[i] + (beta[i] > 0 ? widths[i] : -widths[i]); }
  // How far one step may take beta: to its wall or to the kink.
  static double ceiling(double beta, double high, double width) {
    return width > 0 && beta < 0 ? 0.0 : high;
  }
  static double floor(double beta, double low, double width) { return width > 0 && beta > 0 ? 0.0 : low; }
  double ceiling(Integer i) const { return side_of(i) ? 0.0 : ceiling(beta[i], high[i], widths[i]); }
  double floor(Integer i) const {
    return sides() == 2 && !side_of(i) ? 0.0 : floor(beta[i], low[i], widths[i]);
  }

  // Some of the rows, with their multipliers and their gradient as they are.
  KernelDual subset(std::span<const Integer> rows) const {
    KernelDual part({}, {});
    part.total = total;
    for (auto array : {&KernelDual::low, &KernelDual::high, &KernelDual::wanted, &KernelDual::widths,
                       &KernelDual::beta, &KernelDual::f, &KernelDual::above, &KernelDual::below}) {
      if ((this->*array).empty()) continue;
      (part.*array).reserve(rows.size());
      for (const Integer i : rows) (part.*array).push_back((this->*array)[i]);
    }
    return part;
  }

  // Rows that violate the conditions, or whose multiplier is free.
  std::vector<Integer> may_move() const {
    std::vector<Integer> rows;
    for (Integer i = 0; i < count(); ++i) {
      bool moves = is_free(i);
      for (int side = 0; side < sides(); ++side) {
        moves |= may_grow(i, side) && slope_up(i) < state.ends[side].greatest;
        moves |= may_fall(i, side) && slope_down(i) > state.ends[side].least;
      }
      if (moves) rows.push_back(i);
    }
    return rows;
  }

  // Takes over the multipliers of some of the rows from their subset.
  template <class Matrix>
  void take_over(Matrix& matrix, std::span<const Integer> rows, const KernelDual& part,
                 const Budget& budget) {
    move(matrix, rows, part.beta, budget);
    put(rows, part);
  }
  // The same without the gradient.
  void put(std::span<const Integer> rows, const KernelDual& part) {
    for (std::size_t k = 0; k < rows.size(); ++k) {
      beta[rows[k]] = part.beta[k];
      if (sides() == 1) continue;
      above[rows[k]] = part.above[k];
      below[rows[k]] = part.below[k];
    }
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
    for (Ends& ends : state.ends) ends = {infinity, -infinity};
    for (int side = 0; side < sides(); ++side) {
      double least = infinity, greatest = -infinity;
      for (Integer i = 0; i < n; ++i) {
        if (may_grow(i, side)) least = std::min(least, slope_up(i));
        if (may_fall(i, side)) greatest = std::max(greatest, slope_down(i));
      }
      state.ends[side] = {least, greatest};
    }
    const double b = -state.ends[0].middle(), b_below = sides() == 1 ? b : -state.ends[1].middle();
    double squared_length = 0, gain = 0, loss = 0;
    const double *beta_ = beta.data(), *f_ = f.data(), *y = wanted.data(), *e = widths.data();
    const double *low_ = low.data(), *high_ = high.data();
#pragma omp simd reduction(+ : squared_length, gain, loss)
    for (Integer i = 0; i < n; ++i) {
      squared_length += beta_[i] * (f_[i] + y[i]);
      gain += y[i] * beta_[i] - e[i] * std::abs(beta_[i]);
      const double lacking = -(f_[i] + b) - e[i], too_much = f_[i] + b_below - e[i];
      loss += high_[i] * (lacking > 0 ? lacking : 0.0) - low_[i] * (too_much > 0 ? too_much : 0.0);
    }
    const double pull = total < 0 ? 0.0 : sides() == 1 ? total * b : 0.5 * total * (b - b_below);
    state.primal = 0.5 * squared_length + loss + pull;
    state.dual = gain - 0.5 * squared_length;
  }

  // The values as a certificate has them: with the best intercept for the gradient and, where the losses
  // are trifles, with the best length of w.
  void take_best_point() {
    std::vector<double> scores, alpha, costs, signs, targets;
    bool plain = total < 0;  // whether margins grow with the length of w
    double squared = 0;      // the length of w
    for (std::size_t i = 0; i < beta.size(); ++i) squared += beta[i] * (f[i] + wanted[i]);
    for (std::size_t i = 0; i < beta.size(); ++i) {
      for (const double sign : {1.0, -1.0}) {
        const double cost = sign > 0 ? high[i] : -low[i];
        if (!(cost > 0)) continue;
        scores.push_back(f[i] + wanted[i]);
        const double part = sides() == 1 ? beta[i] : sign > 0 ? above[i] : below[i];
        alpha.push_back(std::max(0.0, sign * part));
        costs.push_back(cost);
        signs.push_back(sign);
        targets.push_back(sign * wanted[i] - widths[i]);
        plain = plain && targets.back() == 1;
      }
    }
    if (scores.empty()) return;
    // An estimate, which is not to know of rounding.
    const std::vector<double> nothing(scores.size(), 0.0);
    const auto intercept = total >= 0 && sides() == 1 ? Intercept::fixed : Intercept::exact;
    const Objective objective{Hinge{}, signs, costs, intercept, 0.0, targets, 1, total};
    Proof proof = prove(objective, alpha, scores, nothing, 0.0);
    if (plain) {  // scores are margins now
      const double length = best_length(scores, costs, squared);
      double losses = 0;
      for (std::size_t i = 0; i < scores.size(); ++i)
        losses += costs[i] * std::max(0.0, 1 - length * scores[i]);
      proof.primal = std::min(proof.primal, 0.5 * length * length * squared + losses);
    }
    if (proof.primal >= state.primal) return;
    state.primal = proof.primal;
    state.dual = proof.dual;
  }
};

}  // namespace maxmargin
