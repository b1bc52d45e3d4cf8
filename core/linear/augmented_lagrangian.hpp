// SPDX-License-Identifier: BSD-3-Clause
// The augmented Lagrangian of the hinge. The numbers 2 to 6 are those of the algorithm's statement in
// src/maxmargin/solvers/augmented_lagrangian.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "linear/newton.hpp"

namespace maxmargin {

// The values of a point and of its multipliers.
struct Values {
  double primal = INFINITY;
  double dual = -INFINITY;  // where b is exact, the least of the Lagrangian with the point's b
  // sum_i a_i y_i where it should be 0. A step of b by 1 makes the dual value smaller by this much: while b
  // is far from its place, it may lie above the optimum.
  double imbalance = 0;
};

// The best point and the best multipliers so far: any two such points make a proof.
struct Standing {
  std::vector<double> v, multipliers;
  double primal = INFINITY;
  double dual = -INFINITY;  // of the best multipliers, as far as the b of the best point can tell
  double imbalance = 0;     // of the best multipliers
  double relative_gap = INFINITY;
  Integer idle = 0;  // steps in a row that brought neither value closer, beyond rounding
  bool finished = false;

  // Begins with a point whose multipliers nothing is known of but that they are feasible.
  void begin(double value, const std::vector<double>& point, const std::vector<double>& feasible);
  void remember(const Values& now, double balancing, const NewtonPoint& at, const Budget& budget);

 private:
  void remember_point(double value, const std::vector<double>& point);
  void remember_multipliers(const Values& now, double balancing, const NewtonPoint& at,
                            const Budget& budget);
  // Whether b is too far off to tell what multipliers out of balance are worth: above the primal value.
  bool is_false(double value, double out_of_balance) const;
};

// The options of the solver, under their names there.
struct LagrangianOptions {
  double stiffness = 3;  // the first k
  double raise_by = 3;
  double small_part = 0.2;
  double stiffest = 1e7;  // beyond, free multipliers show nothing but margins' rounding
};

class AugmentedLagrangian : public SecondOrderMethod {
 public:
  AugmentedLagrangian(const LagrangianOptions& options, const Terms& terms)
      : SecondOrderMethod(terms), options(options) {}

  // At the point where `at` has been placed, with multipliers in their boxes, and with their sum_i alpha_i
  // y_i z_i; either may be empty, for not known. Without multipliers, they are in the middle of their
  // boxes: the rounded kink is then around m = 1, and the margins tell which rows are free. What an earlier
  // run has reached stays remembered.
  void begin(System& system, std::span<const double> known, std::span<const double> combined,
             const Budget& budget);

  double relative_gap() const override { return standing.relative_gap; }
  bool finished() const override { return standing.finished; }

  LagrangianOptions options;
  std::vector<double> alpha;
  double stiffness = 0;  // k
  Standing standing;

 private:
  AugmentedHinge piece() const { return {at.terms.costs.data(), alpha.data(), stiffness}; }
  Values values() const;
  bool step(System& system, const Budget& budget) override;
  // In the first gradient for an alpha, the multipliers of free rows are not clipped: the step then aims at
  // m_i = 1 for all of them.
  void leave_unclipped(System& system, const Budget& budget);
  void take_next_alpha(System& system, const Budget& budget);

  bool begun_ = false;  // whether the first step of this alpha has been taken
};

}  // namespace maxmargin
