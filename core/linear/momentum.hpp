// SPDX-License-Identifier: BSD-3-Clause
// From the end of a sweep of dual coordinate ascent further along the way it went, as far as the dual value
// grows: see src/maxmargin/solvers/momentum.py.
#pragma once

#include <span>

#include "data/any_rows.hpp"
#include "linear/dual_coordinate_ascent.hpp"

namespace maxmargin {

// alpha and w at the end of the sweep before the last; then at the end of the last one.
struct Before {
  double* alpha;
  std::span<double> w;
};

// By how much the dual value grew. `order` names the rows that may have moved since; no other has.
double go_on(const AnyRows& rows, bool squared, std::span<Coordinate> coordinates,
             std::span<const Integer> order, std::span<double> w, double& bias, double bias_curvature,
             Before before);

}  // namespace maxmargin
