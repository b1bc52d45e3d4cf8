// SPDX-License-Identifier: BSD-3-Clause
// The direction of a jump on the model of src/maxmargin/solvers/columns/models.py: conjugate gradients over
// some of its columns, and its intercept.
#pragma once

#include <span>

#include "data/any_rows.hpp"
#include "machine/budget.hpp"

namespace maxmargin {

// Of what is looked for, for each of the columns and, where there is one more, for the intercept, whose
// column are the roots of the curvatures.
struct JumpSystem {
  std::span<const Integer> some;
  std::span<const double> diagonal;  // of A'A, where A are the columns and the roots
  std::span<const double> roots;
};

// Solves  A'A step = left  from step = 0, in `most` products with A and A' or fewer, until nothing of what
// is left is above `enough`. `left` becomes what is left, and `image` is A step in the end.
void conjugate_gradients(const AnyRows& columns, const JumpSystem& system, std::span<double> left,
                         std::span<double> step, std::span<double> image, Integer most, double enough,
                         const Budget& budget);

}  // namespace maxmargin
