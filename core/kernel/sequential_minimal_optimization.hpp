// SPDX-License-Identifier: BSD-3-Clause
// Sequential minimal optimisation (004). The numbers 1 to 6 are those of the algorithm's statement in
// src/maxmargin/solvers/sequential_minimal_optimization.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "kernel/any_kernel_matrix.hpp"
#include "kernel/kernel_dual.hpp"
#include "machine/budget.hpp"

namespace maxmargin {

template <class Matrix>
class SequentialMinimalOptimization final : public AnySequentialMinimalOptimization {
 public:
  SequentialMinimalOptimization(Matrix& matrix, std::span<const double> diagonal, bool second_order,
                                bool shrinking)
      : matrix_(matrix),
        diagonal_(diagonal.begin(), diagonal.end()),
        second_order_(second_order),
        shrinking_(shrinking) {
    activate_all();
  }

  PairReport run(KernelDual& dual, Integer most, double tolerance, const Budget& budget,
                 Watch& watch) override {
    PairReport report;
    Ends ends = find_ends(dual);
    const double enough = std::max(tolerance, rounding_of_f(dual));
    while (report.pairs < most) {
      if (!all_active() && ends.violation() <= std::max(enough, kLookAgain * violation_of_all_)) {
        rebuild(dual, budget);
        ends = find_ends(dual);
        violation_of_all_ = ends.violation();
        continue;
      }
      report.done = ends.violation() <= enough;
      if (report.done) break;
      const double gain = move_pair(dual, ends, budget);
      report.done = gain == 0 && all_active();
      if (report.done) break;
      if (gain == 0) violation_of_all_ = kInfinity;  // nothing moves here: look at all rows again
      report.ascent += gain;
      ++report.pairs;
      ends = find_ends(dual);
      if (shrinking_ && ++pairs_since_shrinking_ >= std::min(matrix_.count(), kShrinkEvery)) {
        shrink(dual, ends);
      }
      if (watch.spend(2 * matrix_.count() + 3 * static_cast<Integer>(active_.size()))) break;
    }
    report.active = static_cast<Integer>(active_.size());
    report.violation = ends.violation();
    report.gap = gap(dual, ends);
    return report;
  }

 private:
  using T = typename Matrix::Value;
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr double kRounding = 4e-15;
  static constexpr double kLookAgain = 0.1;  // all rows are looked at again after a tenfold gain
  static constexpr Integer kShrinkEvery = 1000;

  struct Ends {
    double least = kInfinity, greatest = -kInfinity;
    Integer where_least = -1, where_greatest = -1;

    double violation() const { return greatest - least; }
  };

  Ends find_ends(const KernelDual& dual) const {
    Ends ends;
    for (const Integer k : active_) {
      const double f = dual.f[k];
      if (f < ends.least && dual.may_grow(k)) {
        ends.least = f;
        ends.where_least = k;
      }
      if (f > ends.greatest && dual.may_fall(k)) {
        ends.greatest = f;
        ends.where_greatest = k;
      }
    }
    return ends;
  }

  // One step; returns its gain, 0 if rounding leaves nothing to move.
  double move_pair(KernelDual& dual, const Ends& ends, const Budget& budget) {
    const Integer i = ends.where_least;  // 1
    const std::span<const T> row_i = matrix_.row(i, budget);
    const Integer j = second_order_ ? partner(dual, i, row_i) : ends.where_greatest;  // 2
    if (j < 0) return 0;
    const double eta = curvature(i, j, value(i, row_i, j));
    const double slope = dual.f[j] - dual.f[i];
    const double old_i = dual.beta[i], old_j = dual.beta[j];
    double beta_i = old_i, beta_j = old_j;
    const double step = PairStep::take(slope, eta, beta_i, dual.high[i], beta_j, dual.low[j]);  // 3, 4, 5
    // One that goes a trifle to its wall may leave the other as it is: its last digit is more than that.
    if (beta_j == old_j && beta_i == old_i) return 0;
    dual.beta[i] = beta_i;
    dual.beta[j] = beta_j;
    add_row(dual.f, i, row_i, beta_i - old_i);  // 6
    add_row(dual.f, j, matrix_.row(j, budget), beta_j - old_j);
    return step * (slope - 0.5 * eta * step);
  }

  // The j whose pair with i gains most: the largest (f_j - f_i)^2 / eta.
  Integer partner(const KernelDual& dual, Integer i, std::span<const T> row) const {
    double most = 0;
    Integer best = -1;
    const auto look = [&](Integer j, double value) {
      const double slope = dual.f[j] - dual.f[i];
      if (!(slope > 0) || !dual.may_fall(j)) return;
      const double gain = slope * slope / curvature(i, j, value);
      if (gain > most) {
        most = gain;
        best = j;
      }
    };
    const auto [begin, end] = active_in_block(i, row);
    const Integer first = matrix_.first(i);
    for (std::size_t k = 0; k < begin; ++k) look(active_[k], 0);
    for (std::size_t k = begin; k < end; ++k) look(active_[k], row[active_[k] - first]);
    for (std::size_t k = end; k < active_.size(); ++k) look(active_[k], 0);
    return best;
  }

  double curvature(Integer i, Integer j, double value) const {
    return PairStep::curvature(diagonal_[i], diagonal_[j], value);
  }
  // K_ij, which is 0 for rows of different blocks.
  double value(Integer i, std::span<const T> row, Integer j) const {
    const Integer place = j - matrix_.first(i);
    return place >= 0 && place < static_cast<Integer>(row.size()) ? static_cast<double>(row[place]) : 0.0;
  }

  // f += change K_i on the active rows.
  void add_row(std::span<double> f, Integer i, std::span<const T> row, double change) const {
    const Integer first = matrix_.first(i);
    const auto [begin, end] = active_in_block(i, row);
    if (end - begin == row.size()) {
      double* out = f.data() + first;
      for (std::size_t k = 0; k < row.size(); ++k) out[k] += change * static_cast<double>(row[k]);
      return;
    }
    for (std::size_t k = begin; k < end; ++k) {
      f[active_[k]] += change * static_cast<double>(row[active_[k] - first]);
    }
  }
  std::pair<std::size_t, std::size_t> active_in_block(Integer i, std::span<const T> row) const {
    const Integer first = matrix_.first(i), last = first + static_cast<Integer>(row.size());
    const auto begin = std::lower_bound(active_.begin(), active_.end(), first);
    const auto end = std::lower_bound(begin, active_.end(), last);
    return {static_cast<std::size_t>(begin - active_.begin()),
            static_cast<std::size_t>(end - active_.begin())};
  }

  // A beta at its upper wall can only fall, and does so in a pair with a smaller f; so one whose f is below
  // all that may grow stays where it is, for now. The same for the lower wall.
  void shrink(const KernelDual& dual, const Ends& ends) {
    pairs_since_shrinking_ = 0;
    if (all_active()) violation_of_all_ = ends.violation();
    std::erase_if(active_, [&](Integer k) {
      return (!dual.may_grow(k) && dual.f[k] < ends.least) ||
             (!dual.may_fall(k) && dual.f[k] > ends.greatest);
    });
  }

  // What the largest term of K beta leaves behind in f.
  double rounding_of_f(const KernelDual& dual) const {
    double largest = 1;
    for (Integer k = 0; k < matrix_.count(); ++k) {
      largest = std::max(largest, std::abs(dual.beta[k]) * diagonal_[k]);
    }
    return kRounding * largest;
  }

  // All rows are active again, with f = K beta - y computed afresh.
  void rebuild(KernelDual& dual, const Budget& budget) {
    dual.restore_gradient(matrix_, budget);
    activate_all();
  }
  void activate_all() {
    active_.resize(static_cast<std::size_t>(matrix_.count()));
    for (Integer k = 0; k < matrix_.count(); ++k) active_[k] = k;
  }
  bool all_active() const { return static_cast<Integer>(active_.size()) == matrix_.count(); }

  // sum_k C_k loss(m_k) - alpha_k (1 - m_k), with the intercept in the middle of the two ends.
  double gap(const KernelDual& dual, const Ends& ends) const {
    double b = -0.5 * (ends.least + ends.greatest);
    if (ends.where_least < 0 || ends.where_greatest < 0) {  // one class only, or nothing that counts
      b = ends.where_least < 0 ? (ends.where_greatest < 0 ? 0.0 : -ends.greatest) : -ends.least;
    }
    double sum = 0;
    for (const Integer k : active_) {
      const double off = dual.f[k] + b;
      sum += dual.high[k] * std::max(-off, 0.0) - dual.low[k] * std::max(off, 0.0) + dual.beta[k] * off;
    }
    return sum;
  }

  Matrix& matrix_;
  std::vector<double> diagonal_;
  bool second_order_, shrinking_;
  std::vector<Integer> active_;  // in ascending order
  Integer pairs_since_shrinking_ = 0;
  double violation_of_all_ = kInfinity;  // when all rows were last looked at
};

}  // namespace maxmargin
