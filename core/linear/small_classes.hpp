// SPDX-License-Identifier: BSD-3-Clause
// Small linear problems on the same rows, one for each class, solved one after the other in one call: a few
// sweeps of dual coordinate ascent where rows are long, then the steps of newton or of
// augmented_lagrangian.
#pragma once

#include <span>
#include <vector>

#include "data/any_rows.hpp"
#include "linear/augmented_lagrangian.hpp"

namespace maxmargin {

struct SmallOptions {
  Integer sweeps = 0;                     // of dual coordinate ascent, before the steps
  double relaxation = 1, bias_reach = 1;  // the options of the sweeps
  double first_part = 1;                  // the part of the costs in the first Newton steps
  LagrangianOptions lagrangian;
  Integer most = 0;  // steps of one class
  double until = 0;  // the relative gap that ends them
  std::uint64_t seed = 0;
};

// One class against the rest, with the answer: v and, for the hinge, the multipliers.
struct SmallClass {
  explicit SmallClass(const Terms& terms)
      : terms(terms), v(terms.regulariser.size()), multipliers(terms.labels.size()) {}

  Terms terms;
  std::vector<double> v, multipliers;
  Integer steps = 0;
  bool finished = false;  // nothing was left to gain
};

// Every class in turn, until the budget is spent; those that had no turn keep a v of zeros.
void solve_small_classes(const AnyRows& rows, bool squared, const SmallOptions& options,
                         std::span<SmallClass* const> classes, const Budget& budget, Watch& watch);

}  // namespace maxmargin
