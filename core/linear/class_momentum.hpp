// SPDX-License-Identifier: BSD-3-Clause
// From the end of a sweep over all classes further along the way it went, as far as the dual value grows:
// see src/maxmargin/solvers/ascent/class_momentum.py, whose line numbers these are.
#pragma once

#include <cstdint>
#include <span>

#include "data/rows.hpp"
#include "passes/classes.hpp"

namespace maxmargin {

// The multipliers, one line for each row, and the weights at the end of the sweep before the last; then at
// the end of the last one.
struct ClassesBefore {
  std::span<double> multipliers;
  std::span<double> w;
};

// What of each row the move has to know.
struct ClassBoxes {
  std::span<const Integer> codes;  // the class y_i
  std::span<const double> costs;   // C_i
  std::span<double> multipliers;   // beta_ik, one line for each row
  std::span<std::int8_t> moved;    // whether a row has moved since; those that go on have moved afterwards
};

// By how much the dual value grew.
double go_on(const StoredRows& rows, const ClassBoxes& boxes, const ClassWeights& w,
             const ClassesBefore& before);

}  // namespace maxmargin
