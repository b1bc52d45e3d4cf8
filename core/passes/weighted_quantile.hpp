// SPDX-License-Identifier: BSD-3-Clause
// Where the sum of weights, taken in the order of their values, crosses a level: O(n) by selection.
#pragma once

#include <cmath>
#include <span>
#include <utility>

namespace maxmargin {

// All t that minimise  ridge / 2 t^2 + sum_i weight_i max(0, t - value_i) - level t, as an
// interval. Without the ridge this is a weighted quantile, and may be a whole interval, with an infinite
// end where the level is 0 or that of all weights. It is soon found where it lies inside `likely`.
std::pair<double, double> weighted_quantile(std::span<const double> values, std::span<const double> weights,
                                            double level, double ridge,
                                            std::pair<double, double> likely = {-INFINITY, INFINITY});

// The middle of such an interval; its finite end where it has only one, and 0 where it has none.
inline double middle_of(double low, double high) {
  if (std::isinf(low) && std::isinf(high)) return 0;
  if (std::isinf(low)) return high;
  return std::isinf(high) ? low : 0.5 * (low + high);
}

}  // namespace maxmargin
