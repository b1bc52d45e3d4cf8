// SPDX-License-Identifier: BSD-3-Clause
#include "linear/augmented_lagrangian.hpp"

#include <numeric>

namespace maxmargin {
namespace {

constexpr double kRounding = 1e-14, kAtRounding = 1e-11;

// What the dual value loses, about, when the balance of the multipliers is restored. Free rows do it for
// next to nothing: their margins are within 1 / stiffness of 1, where the dual value is flat. The others'
// are about 1 away.
double cost_of_balancing(double imbalance, double stiffness, std::span<const double> multipliers,
                         const double* costs, const Budget& budget) {
  constexpr double kSmallShare = 0.1;  // of the free multipliers' sum: up to here they can make up for it
  const double missing = std::abs(imbalance);
  if (missing == 0) return 0;
  const Integer count = static_cast<Integer>(multipliers.size()), threads = budget.threads_for(count);
  std::vector<double> parts(static_cast<std::size_t>(threads));
  in_parallel(threads, count, [&](Integer thread, Integer begin, Integer end) {
    double own = 0;
#pragma omp simd reduction(+ : own)
    for (Integer i = begin; i < end; ++i) own += multipliers[i] < costs[i] ? multipliers[i] : 0.0;
    parts[thread] = own;
  });
  const double free = std::accumulate(parts.begin(), parts.end(), 0.0);
  return missing < kSmallShare * free ? missing / stiffness : missing;
}

}  // namespace

void Standing::begin(double value, const std::vector<double>& point, const std::vector<double>& feasible) {
  if (v.empty()) v = point;  // also where its value is beyond all numbers
  remember_point(value, point);
  if (dual == -INFINITY) multipliers = feasible;
  idle = 0;
  finished = false;
}

void Standing::remember(const Values& now, double balancing, const NewtonPoint& at, const Budget& budget) {
  const double before = primal - dual;
  remember_point(now.primal, at.v);
  remember_multipliers(now, balancing, at, budget);
  const double gap = primal - dual;
  relative_gap = primal != 0 ? gap / std::abs(primal) : 0.0;
  // Before, steps may well bring the smooth problem closer to its end and neither value to the other.
  constexpr double kNearRounding = 1e-8;
  const bool stands = relative_gap <= kNearRounding && before - gap <= kRounding * std::abs(primal);
  idle = stands ? idle + 1 : 0;
  finished = finished || idle >= (relative_gap <= kAtRounding ? 2 : 10);
}

void Standing::remember_point(double value, const std::vector<double>& point) {
  if (value < primal) {
    // A better b tells more about multipliers that are out of balance.
    if (imbalance != 0) dual -= imbalance * (point.back() - v.back());
    primal = value;
    v = point;
  }
  if (is_false(dual, imbalance)) dual = -INFINITY;
}

void Standing::remember_multipliers(const Values& now, double balancing, const NewtonPoint& at,
                                    const Budget& budget) {
  double value = now.dual - balancing;
  if (now.imbalance != 0) value -= now.imbalance * (v.back() - at.v.back());
  if (is_false(value, now.imbalance)) value = -INFINITY;
  if (!(value > dual || dual == -INFINITY)) return;
  dual = value;
  imbalance = now.imbalance;
  copy(budget, at.multipliers, multipliers);
}

bool Standing::is_false(double value, double out_of_balance) const {
  const double scale = std::abs(primal);
  return value - primal > kAtRounding * scale && std::abs(out_of_balance) > kRounding * scale;
}

void AugmentedLagrangian::begin(System& system, std::span<const double> known,
                                std::span<const double> combined, const Budget& budget) {
  const Terms& terms = at.terms;
  at.forget();
  alpha.resize(terms.costs.size());
  stiffness = options.stiffness;
  begun_ = known.empty();
  for_each_row(budget, alpha.size(), [&](std::size_t i) {
    const double cost = terms.costs[i];
    alpha[i] = begun_ ? 0.5 * cost : known[i];
    at.curvatures[i] = alpha[i] > 0 && alpha[i] < cost ? stiffness * cost : 0.0;
    at.per_row[i] = alpha[i] * terms.labels[i];
  });
  if (begun_) {
    at.refresh(piece(), system, budget);
  } else {
    at.multipliers.assign(alpha.begin(), alpha.end());
    std::copy(combined.begin(), combined.end(), at.combined.begin());
    if (combined.empty()) at.combine_all(system, budget);
    at.sums.loss = loss_sum<Hinge>(at.margins, terms.costs.data());
  }
  standing.begin(at.primal(), at.v, alpha);
}

Values AugmentedLagrangian::values() const {
  const std::span<const double> r = at.terms.regulariser;
  double squares = 0;
  for (std::size_t j = 0; j < r.size(); ++j) {
    squares += r[j] > 0 ? at.combined[j] * at.combined[j] / r[j] : 0.0;
  }
  Values now{at.primal(), at.sums.multipliers + at.settled_costs - 0.5 * squares, 0.0};
  const std::span<const double> targets = at.terms.targets;
  for (std::size_t i = 0; i < targets.size(); ++i) now.dual += (targets[i] - 1) * at.multipliers[i];
  if (at.terms.is_exact()) {
    now.imbalance = at.sums.balance + (at.settled.empty() ? 0.0 : at.settled.back());
    now.dual -= now.imbalance * at.v.back();  // Lagrange's term
  }
  return now;
}

bool AugmentedLagrangian::step(System& system, const Budget& budget) {
  at.set_gradient();  // 3
  const bool first = !begun_;
  if (first) leave_unclipped(system, budget);
  begun_ = true;
  const std::optional<double> length = at.move(piece(), system, budget);  // 5, 6, 2
  if (!length) return false;
  const Values now = values();
  const double balancing =
      cost_of_balancing(now.imbalance, stiffness, at.multipliers, at.terms.costs.data(), budget);
  standing.remember(now, balancing, at, budget);
  standing.finished = standing.finished || (*length == 0 && !first);
  const bool nearly_solved =
      at.residual() + balancing <= options.small_part * (now.primal - now.dual);  // 4
  if (nearly_solved) take_next_alpha(system, budget);
  return true;
}

void AugmentedLagrangian::leave_unclipped(System& system, const Budget& budget) {
  const Terms& terms = at.terms;
  for_each_row(budget, alpha.size(), [&](std::size_t i) {
    const double slope = at.curvatures[i] > 0 ? stiffness * terms.costs[i] : 0.0;
    at.per_row[i] = slope * terms.labels[i] * (1 - at.margins[i]);
  });
  std::vector<double> sums(at.v.size());
  system.combine(at.per_row, sums, budget);
  for (std::size_t j = 0; j < sums.size(); ++j) at.per_column[j] -= sums[j];
}

void AugmentedLagrangian::take_next_alpha(System& system, const Budget& budget) {
  standing.finished = standing.finished || stiffness > options.stiffest;
  copy(budget, at.multipliers, alpha);
  stiffness *= options.raise_by;
  begun_ = false;
  for_each_row(budget, alpha.size(), [&](std::size_t i) { at.curvatures[i] *= options.raise_by; });
  system.scale(options.raise_by);
}

}  // namespace maxmargin
