// SPDX-License-Identifier: BSD-3-Clause
// Small linear problems on the same rows, one for each class, solved one after the other in one call: a few
// sweeps of dual coordinate ascent where rows are long, then the steps of newton or of
// augmented_lagrangian.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "linear/augmented_lagrangian.hpp"
#include "linear/dual_coordinate_ascent.hpp"
#include "linear/small_newton.hpp"
#include "machine/random.hpp"
#include "passes/best_intercept.hpp"
#include "passes/weighted_quantile.hpp"

namespace maxmargin {

// The options of the two solvers, under their names in src/maxmargin/solvers/.
struct SmallOptions {
  Integer sweeps;
  double relaxation, bias_reach;           // of the sweeps
  double first_part;                       // of the costs, in the first Newton steps
  double stiffness, raise_by, small_part;  // of the augmented Lagrangian
  Integer most;                            // steps
  double until;                            // the relative gap that ends them
};

// One class against the rest. The answer is written to v and, for the hinge, to the multipliers.
struct SmallClass {
  std::span<const double> labels, costs, regulariser;
  std::span<double> v, multipliers;
  Integer steps = 0;
  bool finished = false;  // nothing was left to gain
};

// Sweeps from zero at the costs themselves. Their w and b go to v, their alpha to the multipliers.
template <bool kSquared, class Rows>
void sweep_from_zero(const Rows& rows, std::span<const double> squared_norms, const SmallOptions& options,
                     SmallClass& one, Random& random, Watch& watch) {
  const std::size_t d = static_cast<std::size_t>(rows.columns);
  double k = 0;  // dual_coordinate_ascent.py
  if (one.v.size() > d) k = 1 / (one.regulariser[d] + 1 / options.bias_reach);
  std::vector<Coordinate> coordinates;
  std::vector<Integer> order;
  for (std::size_t i = 0; i < one.labels.size(); ++i) {
    const double diagonal = kSquared && one.costs[i] > 0 ? 0.5 / one.costs[i] : 0.0;
    const double curvature = std::max(squared_norms[i] + k + diagonal, 1e-300);
    coordinates.push_back({0.0, 1 / curvature, one.costs[i], diagonal, one.labels[i]});
    if (one.costs[i] > 0) order.push_back(static_cast<Integer>(i));
  }
  double b = 0, centre = 0;
  for (Integer sweep = 0; sweep < options.sweeps; ++sweep) {
    shuffle(order, random);
    b = dual_coordinate_ascent<kSquared>(rows, std::span(coordinates), std::span(order), one.v.data(), b, k,
                                         options.relaxation, Walls{}, watch)
            .bias;
    const double drift = (b - centre) * k / options.bias_reach;
    centre = b;
    b += drift;
  }
  for (std::size_t i = 0; i < coordinates.size(); ++i) one.multipliers[i] = coordinates[i].alpha;
}

// The arrays of a SmallIterate. Kept from class to class: to get memory anew can take longer than a step.
class SmallRoom {
 public:
  SmallRoom(std::size_t n, std::size_t size)
      : n_(n), size_(size), per_row_(5 * n), per_column_(3 * size), lower_(size * size) {}

  // At v, with the best intercept for it.
  template <class Data>
  SmallIterate start(const Data& data, const SmallClass& one, bool squared, const Budget& budget) {
    std::fill(per_row_.begin(), per_row_.end(), 0.0);
    std::fill(per_column_.begin(), per_column_.end(), 0.0);
    std::fill(lower_.begin(), lower_.end(), 0.0);
    const auto row = [&](std::size_t k) { return std::span(per_row_).subspan(k * n_, n_); };
    const auto column = [&](std::size_t k) { return std::span(per_column_).subspan(k * size_, size_); };
    SmallIterate at{one.labels, one.regulariser, column(0), row(0),    row(1), column(1),
                    row(2),     lower_,          row(3),    column(2), {}};
    std::copy(one.v.begin(), one.v.end(), at.v.begin());
    data.visit([&](const auto& rows) { scores(rows, at.v.data(), at.margins, budget); });
    const std::size_t d = static_cast<std::size_t>(data.columns());
    double b = 0;
    if (size_ > d) {
      b = at.v[d] = best_intercept_of(at.margins, one, one.regulariser[d], squared);
    }
    for (std::size_t i = 0; i < n_; ++i) at.margins[i] = one.labels[i] * (at.margins[i] + b);
    return at;
  }
  std::span<double> changes() { return std::span(per_row_).last(n_); }

 private:
  double best_intercept_of(std::span<const double> scores, const SmallClass& one, double ridge,
                           bool squared) {
    const double* costs = one.costs.data();
    if (squared) return best_intercept<SquaredHinge>(scores, one.labels.data(), costs, ridge);
    double positive = 0;
    for (std::size_t i = 0; i < n_; ++i) {
      positive += one.labels[i] > 0 ? costs[i] : 0.0;
      changes()[i] = one.labels[i] - scores[i];
    }
    const auto [low, high] = weighted_quantile(changes(), one.costs, positive, ridge);
    return middle_of(low, high);
  }

  std::size_t n_, size_;
  std::vector<double> per_row_, per_column_, lower_;
};

inline constexpr Integer kStepsBetweenLooks = 32;

// Calls `some(most)` for some steps at a time, until it says that these were the last ones.
template <class Some>
void in_shares(const SmallOptions& options, SmallClass& one, Integer work, const Budget& budget,
               Watch& watch, const Some& some) {
  bool goes_on = true;
  while (goes_on && one.steps < options.most) {
    const Integer before = one.steps;
    goes_on = some(std::min(kStepsBetweenLooks, options.most - one.steps));
    goes_on = !watch.spend((one.steps - before) * work) && goes_on && !budget.spent();
  }
}

// What follows from the margins, for another piece than before.
template <class Data, class Piece>
void take_over(const Data& data, const Piece& piece, SmallIterate& at, std::span<double> changes,
               const Budget& budget) {
  at.sums = refresh(piece, at.margins, at.labels.data(), at.multipliers.data(), changes.data(),
                    at.curvatures.data(), budget);
  std::vector<double> sums(at.v.size());
  combine_with_bias(data, changes, sums, budget);
  for (std::size_t j = 0; j < sums.size(); ++j) at.combined[j] += sums[j];
}

// A rough solution of the squared hinge's problem for a part of the costs.
template <class Data>
void rough_steps(const Data& data, double part, SmallClass& one, SmallIterate& at,
                 std::span<double> changes, const Budget& budget) {
  constexpr double kRough = 0.5;  // relative gap
  std::vector<double> costs(one.costs.begin(), one.costs.end());
  for (double& cost : costs) cost *= part;
  const SmoothPiece<SquaredHinge> piece{costs.data()};
  take_over(data, piece, at, changes, budget);
  one.steps += small_steps(data, piece, at, kStepsBetweenLooks, kRough, budget).first;
}

template <class Data>
void small_newton(const Data& data, const SmallOptions& options, SmallClass& one, SmallRoom& room,
                  const Budget& budget, Watch& watch) {
  constexpr double kRounding = 1e-15;
  SmallIterate at = room.start(data, one, true, budget);
  // Where all of the costs would leave hardly a row inside the margin, steps for them alone go from one set
  // of rows to quite another.
  constexpr double kRaise = 10;
  for (double part = options.first_part; part < 1 && !budget.spent(); part *= kRaise) {
    rough_steps(data, part, one, at, room.changes(), budget);
    at.scale_hessian(std::min(kRaise, 1 / part));
  }
  const SmoothPiece<SquaredHinge> piece{one.costs.data()};
  take_over(data, piece, at, room.changes(), budget);
  const double until = std::max(options.until, kRounding);
  in_shares(options, one, 2 * data.stored(), budget, watch, [&](Integer most) {
    const auto [taken, length] = small_steps(data, piece, at, most, until, budget);
    one.steps += taken;
    if (std::isnan(length)) return false;
    const double relative_gap = at.primal() != 0 ? at.residual() / at.primal() : 0.0;
    one.finished = length == 0 || relative_gap <= kRounding;
    return !one.finished && relative_gap > until;
  });
  std::copy(at.v.begin(), at.v.end(), one.v.begin());
}

// Whether the sweeps found few support vectors, and hardly one at its wall: then those of the squared hinge
// are nearly the same.
inline bool nearly_separated(const SmallClass& one) {
  constexpr std::size_t kRowsPerSupportVector = 3, kRowsPerBound = 200;
  std::size_t support = 0, bound = 0;
  for (std::size_t i = 0; i < one.costs.size(); ++i) {
    support += one.multipliers[i] > 0;
    bound += one.multipliers[i] > 0 && one.multipliers[i] >= one.costs[i];
  }
  return kRowsPerSupportVector * support <= one.costs.size() && kRowsPerBound * bound <= one.costs.size();
}

template <class Data>
void small_hinge(const Data& data, const SmallOptions& options, SmallClass& one, SmallRoom& room,
                 const Budget& budget, Watch& watch) {
  const std::size_t n = one.labels.size(), d = static_cast<std::size_t>(data.columns());
  const std::span<double> changes = room.changes();
  double stiffness = options.stiffness, small_part = options.small_part;
  if (options.sweeps > 0 && nearly_separated(one)) {
    constexpr double kStiffer = 20, kSmall = 0.1;  // the next smooth problem can be that much less so
    SmallIterate rough = room.start(data, one, true, budget);
    rough_steps(data, options.first_part, one, rough, changes, budget);
    std::copy(rough.v.begin(), rough.v.end(), one.v.begin());
    for (std::size_t i = 0; i < n; ++i) one.multipliers[i] = std::min(rough.multipliers[i], one.costs[i]);
    stiffness = kStiffer * options.first_part;
    small_part = std::min(small_part, kSmall);
  }
  SmallIterate at = room.start(data, one, false, budget);
  std::vector<double> alpha(one.multipliers.begin(), one.multipliers.end());
  // Multipliers that nothing is known of are in the middle: the rounded kink is then around m = 1.
  const bool known = options.sweeps > 0;
  for (std::size_t i = 0; i < n; ++i) {
    if (!known) alpha[i] = 0.5 * one.costs[i];
    const bool free = alpha[i] > 0 && alpha[i] < one.costs[i];
    at.curvatures[i] = free ? stiffness * one.costs[i] : 0.0;
    changes[i] = alpha[i] * one.labels[i];
  }
  Smoothing smoothing{one.costs.data(), alpha, stiffness, !known, options.raise_by, small_part};
  if (known) {
    std::copy(alpha.begin(), alpha.end(), at.multipliers.begin());
  } else {
    // Without multipliers, the margins tell which rows are free.
    at.sums = refresh(smoothing.piece(), at.margins, at.labels.data(), at.multipliers.data(),
                      changes.data(), at.curvatures.data(), budget);
  }
  combine_with_bias(data, changes, at.combined, budget);
  Standing standing;
  at.sums.loss = loss_sum<Hinge>(at.margins, one.costs.data());
  standing.primal = at.primal();
  std::copy(at.v.begin(), at.v.end(), one.v.begin());
  std::copy(alpha.begin(), alpha.end(), one.multipliers.begin());
  const bool exact = one.v.size() > d && one.regulariser[d] == 0;
  Values values;
  in_shares(options, one, 2 * data.stored(), budget, watch, [&](Integer most) {
    const Integer taken = small_augmented_lagrangian(data, smoothing, at, standing, values, one.v,
                                                     one.multipliers, exact, most, options.until, budget);
    one.steps += taken;
    one.finished = standing.finished;
    return taken > 0 && !one.finished && standing.relative_gap > options.until;
  });
}

// Every class in turn, until the budget is spent; those that had no turn keep a v of zeros.
template <class Data>
void solve_small_classes(const Data& data, bool squared, const SmallOptions& options,
                         std::span<SmallClass> classes, std::uint64_t seed, const Budget& budget,
                         Watch& watch) {
  std::vector<double> norms;
  if (options.sweeps > 0) {
    norms.resize(static_cast<std::size_t>(data.count()));
    data.visit([&](const auto& rows) { squared_norms(rows, std::span(norms), budget); });
  }
  SmallRoom room(static_cast<std::size_t>(data.count()), classes.empty() ? 0 : classes[0].v.size());
  for (SmallClass& one : classes) {
    Random random(seed++);
    if (options.sweeps > 0) {
      data.visit([&](const auto& rows) {
        squared ? sweep_from_zero<true>(rows, norms, options, one, random, watch)
                : sweep_from_zero<false>(rows, norms, options, one, random, watch);
      });
    }
    squared ? small_newton(data, options, one, room, budget, watch)
            : small_hinge(data, options, one, room, budget, watch);
    if (watch.spend(0) || budget.spent()) break;
  }
}

}  // namespace maxmargin
