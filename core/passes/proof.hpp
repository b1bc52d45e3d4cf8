// SPDX-License-Identifier: BSD-3-Clause
// What a point is worth: the only place where primal and dual values of a proof are computed. Both are
// bounds of the exact values, rounding included: P from above, D from below.
//
//   P(w, b)  = 1/2 |w|^2 + sum_i C_i loss(m_i) + r(b),      m_i = y_i (<w, x_i> + b) + 1 - p_i (+ e)
//   D(alpha) = sum_i dual_gain(alpha_i, C_i) + (p_i - 1) alpha_i - 1/2 |w(alpha)|^2 - q(sum_i alpha_i y_i)
//
// with w(alpha) = sum_i alpha_i y_i x_i and targets p_i, which are 1 in classification: the hinge is max(0,
// p_i - y_i (<w, x_i> + b)). For a b that is sought r = 0, and alpha is balanced, so that q is
// applied to 0; for a regularised one r(b) = b^2 / (2 s^2) and q(t) = s^2 t^2 / 2; for a fixed one r = 0
// and q(t) = b t. Rows come in only through scores <w, x_i> and squared lengths: they may be of any kind.
//
// With the l1 penalty, |w|_1 stands in the place of 1/2 |w|^2 and |b| / s in that of b^2 / (2 s^2). The
// dual then has no term of w(alpha): it asks that no entry of w(alpha) is beyond 1, nor s times the sum of
// alpha_i y_i where b is regularised. Gains are concave in alpha, and 0 at 0, so that alpha divided by the
// largest of these numbers is worth at least the gains of alpha divided by it.
//
// With the hinge and without an intercept, rows may come in groups of several in turn that share one loss,
// that of the smallest margin; all of a group have the same C_i, and the sum of their alpha is at most
// that.
//
// Where a total T is given, all targets are lowered by a shift e that is sought, too: P has T e more, and
// the multipliers add up to T.
#pragma once

#include <array>
#include <cmath>
#include <span>
#include <utility>

#include "passes/any_loss.hpp"

namespace maxmargin {

enum class Intercept { fixed, regularised, exact };
enum class Penalty { l2, l1 };

// The best intercepts for some w: any b between `low` and `high` is as good as `b`.
struct BestIntercept {
  double b, low, high;
  double shift = 0;  // of the targets, where it is sought
};

// (primal - dual) / |primal|, and 0 where no gap is left. The primal value is infinite where a hard margin
// was asked for and (w, b) does not have one.
inline double relative_gap(double primal, double dual) {
  if (primal == INFINITY) return INFINITY;
  const double gap = primal - dual;
  if (gap <= 0) return 0;
  return primal != 0 ? gap / std::abs(primal) : INFINITY;
}

// How far computed scores can be from the exact ones: |error_i| <= per_length length_i + constant.
struct ScoreError {
  double per_length = 0;
  std::span<const double> lengths;  // |x_i|
  double constant = 0;

  double of(std::size_t i) const { return (per_length > 0 ? per_length * lengths[i] : 0.0) + constant; }
};

// sum_i |values_i| lengths_i, and how many values are not 0.
struct Lengths {
  double sum, count;
};
Lengths all_lengths(std::span<const double> values, std::span<const double> lengths);

struct Proof {
  BestIntercept intercept;
  double primal, dual;
  double length = 1;  // w is so many times w(alpha)
};

// Some gains from below, and the multipliers that they are of, added up.
struct Gains {
  double gain, total;
};

// What a problem asks of margins and multipliers, whatever its rows are.
struct Objective {
  AnyLoss loss;
  std::span<const double> labels, costs;
  Intercept intercept = Intercept::exact;
  double number = 0;  // b itself where it is fixed; s, the value of the constant feature, if regularised
  std::span<const double> targets{};  // p_i; none where all of them are 1
  Integer group = 1;                  // how many rows in turn share one loss
  double total = -1;                  // T; below 0 where no shift is sought
  Penalty penalty = Penalty::l2;
  std::span<const double> targets_rest{};  // what rounding took from the targets; none where that is 0

  // p_i in full.
  Twofold target(std::size_t i) const {
    return {targets.empty() ? 1.0 : targets[i], targets_rest.empty() ? 0.0 : targets_rest[i]};
  }
  bool has_shift() const { return total >= 0; }
  double loss_sum(std::span<const double> margins) const;
  void multipliers(std::span<const double> margins, double* out) const;
  // Those of the models of a smooth loss; see core/passes/losses.hpp.
  void curvatures(std::span<const double> margins, bool lifted, double* out) const;

  // An upper bound of P, where the size of w is at most what is given: its squared length, or with the l1
  // penalty the sum of its magnitudes. No loss rises with its margin, so each is taken where the margin may
  // be smallest. Infinite where that is not a finite number.
  double primal(std::span<const double> margins, double b, double size, const ScoreError& error,
                double shift = 0) const;
  // A lower bound of the best value: of D(alpha), for an alpha in its box, where the size of w(alpha) is at
  // most what is given: its squared length, or with the l1 penalty the largest of its magnitudes. With an
  // exact intercept, alpha need be balanced up to rounding only, since some optimum has an intercept of at
  // most `reach`; so it is with the total and the shift.
  double dual(std::span<const double> alpha, double size, double reach) const;
  // The gains of the rows with label 1, and of those with label -1, without what w and b take from D. Only
  // where all targets are 1.
  std::array<Gains, 2> gains_of_sides(std::span<const double> alpha) const;
  // What w and b cost, given the size of w.
  double held(double size, double b) const;
  // What the excess t = sum_i alpha_i y_i takes from D, at most.
  double worth_of_excess(std::span<const double> alpha, double reach) const;
  // With the l1 penalty, what alpha has to be divided by to be feasible: 1, or the largest number that is
  // not to be beyond 1.
  double divisor(std::span<const double> alpha, double size) const;
  // A bound of |b| at some optimum with an exact intercept, of a problem whose best value is at most
  // `upper` and whose rows are at most `largest` long. That b is between the kinks of its rows' losses, and
  // |w| is at most the root of 2 `upper`, or with the l1 penalty `upper`. (The logistic loss has no kink,
  // but its slopes add up to 0 only there.) Where the multipliers have a total, w is at most that long
  // times the longest row, and both b and the shift are bounded.
  double reach(double upper, double largest) const;
  void make_feasible(std::span<double> alpha) const;

  // All b that minimise P for some w, and the one in their middle.
  // Multipliers of about this w tell where to look first.
  BestIntercept best_intercept(std::span<const double> scores, std::span<const double> alpha = {}) const;
  // The same, and scores become margins.
  BestIntercept take_best_intercept(std::span<double> scores, std::span<const double> alpha = {}) const;
  // A point where the intercept is fixed or regularised, and as a rule for smooth losses. With one class
  // only an end may be infinite. No shift is sought.
  std::pair<double, double> best_intercepts(std::span<const double> scores,
                                            std::span<const double> alpha = {}) const;
  // The ends of the interval of all b with margins of at least 1; there is none if low > high.
  std::pair<double, double> intercepts_without_loss(std::span<const double> scores) const;

  // The largest violation of complementary slackness, and of what b is to be if it is regularised.
  double largest_violation(std::span<const double> margins, std::span<const double> alpha, double b) const;

 private:
  // Those of a loss without kink, where all targets are 1.
  template <class Loss>
  std::pair<double, double> smooth_intercepts(std::span<const double> scores) const;
  // The same, of sums that are known: the excess, and the sum of the multipliers.
  double worth_of(const Twofold& excess, const Twofold& sum, double reach) const;
  double divisor_of(const Twofold& excess, double sum, double size) const;
  // The sum of the magnitudes of all that gains are summed up from, given their sum and the multipliers'.
  double magnitudes_of(double gain, double sum) const;
  // How far sums over all rows in twofold precision can be off, given the sum of the magnitudes.
  double lost_in_sums(double magnitudes) const;
  bool excess_counts() const { return intercept != Intercept::fixed || number != 0; }
  // The costs of groups times the hinge of the smallest of their margins, given the margin of any row.
  template <class Margin>
  double group_losses(std::size_t rows, const Margin& margin) const;
  // All shifts, or all sums of b and the shift, that are best for the rows of one sign, or of both (0).
  std::pair<double, double> best_levels(std::span<const double> scores, double sign, double total) const;
  // A look at a few rows, which spares nearly all problems a pass.
  bool some_have_losses(std::span<const double> scores, double b) const;
};

// The proof of a feasible alpha and its own w(alpha) in the span of rows x_i of these lengths. Scores,
// which become margins, were summed up from values <x_i, x_j> that are each off by at most `value_error`
// times both lengths.
Proof prove(const Objective& objective, std::span<const double> alpha, std::span<double> scores,
            std::span<const double> lengths, double value_error);

// The same for the hinge, where targets are 1 and the intercept is exact; but w may be longer than
// w(alpha). Where C is large, what rounding may take from margins of 1 counts C times. A w that is longer
// by as much makes up for it.
Proof prove_at_best_length(const Objective& objective, std::span<const double> alpha,
                           std::span<double> scores, std::span<const double> lengths, double value_error);

}  // namespace maxmargin
