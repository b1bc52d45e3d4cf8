// SPDX-License-Identifier: BSD-3-Clause
// Where the sum of weights, taken in the order of their values, crosses a level: O(n) by selection.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "rows.hpp"

namespace maxmargin {

// All t that minimise  ridge / 2 t^2 + sum_i weight_i max(0, t - value_i) - level t, as an
// interval. Without the ridge this is a weighted quantile, and may be a whole interval, with an infinite
// end where the level is 0 or that of all weights.
inline std::pair<double, double> weighted_quantile(std::span<const double> values,
                                                   std::span<const double> weights, double level,
                                                   double ridge) {
  std::vector<std::pair<double, double>> points;
  points.reserve(values.size());
  double total = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (weights[i] <= 0) continue;
    points.emplace_back(values[i], weights[i]);
    total += weights[i];
  }
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (points.empty()) return ridge > 0 ? std::pair{0.0, 0.0} : std::pair{-infinity, infinity};
  const double rounding = 1e-13 * total;  // sums of the same weights in another order differ by this
  auto begin = points.begin();
  auto end = points.end();
  double before = 0;  // weight of all points left of begin
  while (end - begin > 1) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end);
    double left = 0;
    for (auto point = begin; point != middle; ++point) left += point->second;
    if (ridge * middle->first + before + left > level + rounding) {
      end = middle;
    } else {
      before += left;
      begin = middle;
    }
  }
  // The slope is not positive just left of this point, or this is the first point of all.
  const double at = begin->first;
  if (ridge > 0) {
    if (ridge * at + before > level) return {(level - before) / ridge, (level - before) / ridge};
    const double beyond = (level - before - begin->second) / ridge;
    return {std::max(at, beyond), std::max(at, beyond)};
  }
  if (end == points.end() && before + begin->second <= level + rounding) return {at, infinity};
  if (before < level - rounding) return {at, at};
  return {begin == points.begin() ? -infinity : std::max_element(points.begin(), begin)->first, at};
}

// The middle of such an interval; its finite end where it has only one, and 0 where it has none.
inline double middle_of(double low, double high) {
  if (std::isinf(low) && std::isinf(high)) return 0;
  if (std::isinf(low)) return high;
  return std::isinf(high) ? low : 0.5 * (low + high);
}

}  // namespace maxmargin
