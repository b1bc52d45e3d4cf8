// SPDX-License-Identifier: BSD-3-Clause
// Several classes in one problem (Crammer and Singer 2001): one sweep of dual ascent by blocks, and the two
// passes of its proof. The numbers 1 to 4 are those of the algorithm's statement in
// src/maxmargin/solvers/crammer_singer.py.
#pragma once

#include <cstdint>
#include <span>

#include "data/rows.hpp"
#include "linear/class_block.hpp"
#include "machine/budget.hpp"
#include "passes/classes.hpp"

namespace maxmargin {

// What a sweep needs of the rows besides their values.
struct ClassExamples {
  std::span<const Integer> codes;         // the class y_i of each row
  std::span<const double> squared_norms;  // |x_i|^2, that of the constant feature included
  std::span<const double> costs;          // C_i
  std::span<double> multipliers;          // beta_ik, one line for each row
  std::span<std::int32_t> places;         // where a row looks at few: its own class, then the others
  std::span<std::int32_t> sizes;          // how many classes are still looked at, two at least
  std::span<std::int8_t> moved;           // is set to 1 where a row's multipliers change
};

// A row whose multipliers are all with one class, which is ahead of the others by more than `held`, is left
// out of later sweeps. So is a class of a row that has no multipliers and is below the level of those that
// have by more than `held_class`, where few are left. `relaxation` is the factor on all steps, below 2.
struct ClassSteps {
  double relaxation, held, held_class;
};
ClassSweep crammer_singer(const StoredRows& rows, const ClassExamples& examples, std::span<Integer> order,
                          const ClassWeights& w, const ClassSteps& steps, Watch& watch);

// Whether these are classes, in a few wide instructions: a comparison for each of all places would take a
// tenth of a sweep's time.
bool are_classes(std::span<const std::int32_t> places, Integer classes);

// <w_y - w_k, x_i> for the classes k other than y = y_i, one line for each row.
void class_scores(const StoredRows& rows, std::span<const Integer> codes, const ClassWeights& w,
                  double* out, const Budget& budget);

// w_k = sum_i beta_ik x_i, where -beta_ik is alpha_ik for k other than y_i, and beta_iy the sum of these.
void class_combine(const StoredRows& rows, std::span<const Integer> codes, const double* alpha,
                   Integer classes, double constant, std::span<double> out, const Budget& budget);

}  // namespace maxmargin
