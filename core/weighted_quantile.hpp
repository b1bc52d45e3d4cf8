// SPDX-License-Identifier: BSD-3-Clause
// Where the sum of weights, taken in the order of their values, crosses a level: O(n) by selection.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "rows.hpp"

namespace maxmargin {

// All t that minimise  ridge / 2 t^2 + sum_i weight_i max(0, t - value_i) - level t, as an
// interval. Without the ridge this is a weighted quantile, and may be a whole interval.
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
  if (points.empty()) return {0, 0};
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
  const bool flat = before >= level - rounding && begin != points.begin();
  return {flat ? std::max_element(points.begin(), begin)->first : at, at};
}

}  // namespace maxmargin
