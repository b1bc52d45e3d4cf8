// SPDX-License-Identifier: BSD-3-Clause
#include "linear/small_classes.hpp"

#include <algorithm>
#include <cmath>

#include "linear/small_system.hpp"
#include "loops/loops.hpp"
#include "machine/random.hpp"
#include "passes/proof.hpp"

namespace maxmargin {
namespace {

// Memory is kept from class to class: to get it anew can take longer than a step.
class SmallClasses {
 public:
  SmallClasses(const AnyRows& rows, bool squared, const SmallOptions& options, const Terms& first,
               const Budget& budget, Watch& watch)
      : rows_(rows),
        squared_(squared),
        options_(options),
        budget_(budget),
        watch_(watch),
        system_(rows, first.regulariser),
        newton_(SquaredHinge{}, {}),
        lagrangian_(options.lagrangian, {}),
        scores_(first.labels.size()) {
    if (options.sweeps == 0) return;
    squared_norms_.resize(scores_.size());
    squared_norms(rows, squared_norms_, budget);
  }

  void solve(SmallClass& one, Random random) {
    if (options_.sweeps > 0) sweep_from_zero(one, random);
    squared_ ? solve_squared(one) : solve_hinge(one);
  }

 private:
  // Sweeps from zero at the costs themselves. Their w and b go to v, their alpha to the multipliers.
  void sweep_from_zero(SmallClass& one, Random& random) {
    const auto& [labels, costs, regulariser, targets] = one.terms;
    const std::size_t d = static_cast<std::size_t>(rows_.columns);
    double k = 0;  // dual_coordinate_ascent.py
    if (one.v.size() > d) k = 1 / (regulariser[d] + 1 / options_.bias_reach);
    std::vector<Coordinate> coordinates;
    std::vector<Integer> order;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const double diagonal = squared_ && costs[i] > 0 ? 0.5 / costs[i] : 0.0;
      const double curvature = std::max(squared_norms_[i] + k + diagonal, 1e-300);
      const double target = targets.empty() ? 1 : targets[i];
      coordinates.push_back({0.0, 1 / curvature, costs[i], diagonal, labels[i], target});
      if (costs[i] > 0) order.push_back(static_cast<Integer>(i));
    }
    double b = 0, centre = 0;
    for (Integer sweep = 0; sweep < options_.sweeps && !watch_.spend(0); ++sweep) {
      shuffle(order, random);
      const SweepOptions sweeps{squared_, b, k, options_.relaxation, {}, false};
      b = dual_coordinate_ascent(rows_, coordinates, order, one.v.data(), sweeps, watch_).bias;
      const double drift = (b - centre) * k / options_.bias_reach;
      centre = b;
      b += drift;
    }
    for (std::size_t i = 0; i < coordinates.size(); ++i) one.multipliers[i] = coordinates[i].alpha;
  }

  // Puts a method at v, with the best intercept for it.
  void place(SecondOrderMethod& method, SmallClass& one, bool squared) {
    const std::size_t d = static_cast<std::size_t>(rows_.columns);
    scores(rows_, one.v.data(), scores_, budget_);
    const auto& [labels, costs, regulariser, targets] = one.terms;
    Objective objective{squared ? AnyLoss(SquaredHinge{}) : AnyLoss(Hinge{}), labels, costs,
                        Intercept::fixed};
    objective.targets = targets;
    if (one.v.size() > d) {
      objective.intercept = regulariser[d] > 0 ? Intercept::regularised : Intercept::exact;
      objective.number = regulariser[d] > 0 ? 1 / std::sqrt(regulariser[d]) : 0;
    }
    const double b = objective.take_best_intercept(scores_).b;
    if (one.v.size() > d) one.v[d] = b;
    method.at.terms = one.terms;
    method.at.place(one.v, scores_);
    system_.clear();
  }

  void take_steps(SecondOrderMethod& method, SmallClass& one) {
    constexpr Integer kStepsBetweenLooks = 32;
    while (one.steps < options_.most && !budget_.spent()) {
      const Integer most = std::min(kStepsBetweenLooks, options_.most - one.steps);
      const Integer taken = method.steps(system_, most, options_.until, budget_);
      one.steps += taken;
      one.finished = method.finished();
      if (taken == 0 || one.finished || method.relative_gap() <= options_.until) return;
      if (watch_.spend(2 * taken * rows_.stored)) return;
    }
  }

  // A rough solution of the squared hinge's problem for a part of the costs, from where newton_ stands.
  void take_rough_steps(double part, SmallClass& one) {
    constexpr double kRough = 0.5;  // relative gap
    constexpr Integer kMost = 32;
    std::vector<double> costs(one.terms.costs.begin(), one.terms.costs.end());
    for (double& cost : costs) cost *= part;
    newton_.at.terms.costs = costs;
    newton_.begin(system_, budget_);
    one.steps += newton_.steps(system_, kMost, kRough, budget_);
    newton_.at.terms.costs = one.terms.costs;
  }

  void solve_squared(SmallClass& one) {
    place(newton_, one, true);
    // Where all of the costs would leave hardly a row inside the margin, steps for them alone go from one
    // set of rows to quite another.
    constexpr double kRaise = 10;
    for (double part = options_.first_part; part < 1 && !budget_.spent(); part *= kRaise) {
      take_rough_steps(part, one);
      system_.scale(std::min(kRaise, 1 / part));
    }
    newton_.begin(system_, budget_);
    take_steps(newton_, one);
    one.v = newton_.at.v;
  }

  void solve_hinge(SmallClass& one) {
    lagrangian_.options = options_.lagrangian;
    if (options_.sweeps > 0 && is_nearly_separated(one)) {
      constexpr double kStiffer = 20, kSmall = 0.1;  // the next smooth problem can be that much less so
      place(newton_, one, true);
      take_rough_steps(options_.first_part, one);
      one.v = newton_.at.v;
      for (std::size_t i = 0; i < one.multipliers.size(); ++i) {
        one.multipliers[i] = std::min(newton_.at.multipliers[i], one.terms.costs[i]);
      }
      lagrangian_.options.stiffness = kStiffer * options_.first_part;
      lagrangian_.options.small_part = std::min(options_.lagrangian.small_part, kSmall);
    }
    place(lagrangian_, one, false);
    lagrangian_.standing = {};
    std::span<const double> alpha;
    if (options_.sweeps > 0) alpha = one.multipliers;
    lagrangian_.begin(system_, alpha, {}, budget_);
    take_steps(lagrangian_, one);
    one.v = lagrangian_.standing.v;
    one.multipliers = lagrangian_.standing.multipliers;
  }

  // Whether the sweeps found few support vectors, and hardly one at its wall: then those of the squared
  // hinge are nearly the same.
  static bool is_nearly_separated(const SmallClass& one) {
    constexpr std::size_t kRowsPerSupportVector = 3, kRowsPerBound = 200;
    const std::span<const double> costs = one.terms.costs;
    std::size_t support = 0, bound = 0;
    for (std::size_t i = 0; i < costs.size(); ++i) {
      support += one.multipliers[i] > 0;
      bound += one.multipliers[i] > 0 && one.multipliers[i] >= costs[i];
    }
    return kRowsPerSupportVector * support <= costs.size() && kRowsPerBound * bound <= costs.size();
  }

  const AnyRows& rows_;
  bool squared_;
  const SmallOptions& options_;
  const Budget& budget_;
  Watch& watch_;
  SmallSystem system_;
  NewtonMethod newton_;
  AugmentedLagrangian lagrangian_;
  std::vector<double> squared_norms_, scores_;
};

}  // namespace

void solve_small_classes(const AnyRows& rows, bool squared, const SmallOptions& options,
                         std::span<SmallClass* const> classes, const Budget& budget, Watch& watch) {
  if (classes.empty()) return;
  SmallClasses solver(rows, squared, options, classes[0]->terms, budget, watch);
  for (std::size_t k = 0; k < classes.size(); ++k) {
    solver.solve(*classes[k], Random(options.seed + k));
    if (watch.spend(0) || budget.spent()) break;
  }
}

}  // namespace maxmargin
