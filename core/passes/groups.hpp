// SPDX-License-Identifier: BSD-3-Clause
// Rows in groups of several in turn, which share one hinge: that of the smallest of their margins.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "passes/sums.hpp"

namespace maxmargin {

// Multipliers that margins suggest: all of C for the row of the smallest margin, where that is below 1.
inline void group_multipliers(std::span<const double> margins, const double* costs, Integer group,
                              double* out) {
  for (std::size_t first = 0; first < margins.size(); first += static_cast<std::size_t>(group)) {
    const double* const own = &margins[first];
    const double* const least = std::min_element(own, own + group);
    std::fill(out + first, out + first + group, 0.0);
    if (*least < 1) out[first + static_cast<std::size_t>(least - own)] = costs[first];
  }
}

// Makes the exact sum of the multipliers of every group at most C, where none of them is negative. They are
// multiplied by a number a little too small, by what all roundings on the way can amount to; multipliers
// that this has made stay as they are when it is done again.
inline void share_costs(std::span<double> alpha, const double* costs, Integer group) {
  const double unit = static_cast<double>(group) * kUnit;
  for (std::size_t first = 0; first < alpha.size(); first += static_cast<std::size_t>(group)) {
    const double C = costs[first];
    double largest = 0, sum = 0;
    Integer some = 0;
    for (Integer k = 0; k < group; ++k) {
      largest = std::max(largest, alpha[first + k]);
      some += alpha[first + k] != 0;
    }
    if (some < 2) continue;                                                 // which its own box bounds
    for (Integer k = 0; k < group; ++k) sum += alpha[first + k] / largest;  // which does not overflow
    if (sum * (1 + 2 * unit) <= C / largest * (1 - 4 * kUnit)) continue;
    const double factor = C / largest / sum * (1 - 6 * unit - 16 * kUnit);
    for (Integer k = 0; k < group; ++k) alpha[first + k] *= std::min(factor, 1.0);
  }
}

// The largest violation of complementary slackness: of a group that lacks something for a margin of 1 and
// has multipliers to give, and of a row with a multiplier whose margin is not the smallest.
inline double group_violation(std::span<const double> margins, const double* alpha, const double* costs,
                              Integer group) {
  double worst = 0;
  for (std::size_t first = 0; first < margins.size(); first += static_cast<std::size_t>(group)) {
    double slack = 0, sum = 0;
    for (std::size_t i = first; i < first + static_cast<std::size_t>(group); ++i) {
      if (std::isnan(margins[i] + alpha[i])) return NAN;
      slack = std::max(slack, 1 - margins[i]);
      sum += alpha[i];
    }
    // A sum that rounding alone keeps below C has nothing to give.
    if (sum < costs[first] * (1 - 1e-12)) worst = std::max(worst, slack);
    for (std::size_t i = first; i < first + static_cast<std::size_t>(group); ++i) {
      if (alpha[i] > 0) worst = std::max(worst, slack - (1 - margins[i]));
    }
  }
  return worst;
}

}  // namespace maxmargin
