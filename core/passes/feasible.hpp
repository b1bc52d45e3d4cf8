// SPDX-License-Identifier: BSD-3-Clause
// The nearest thing to given multipliers that is a dual point: inside the box and, if asked for, balanced.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "data/rows.hpp"
#include "passes/passes.hpp"

namespace maxmargin {

// Clips alpha to 0 <= alpha_i <= upper(C_i); what is not a number becomes 0. Returns sum_i alpha_i y_i.
template <class Loss>
double clip_to_box(std::span<double> alpha, const double* labels, const double* costs) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  return sum_in_blocks(alpha.size(), [&](std::size_t i) {
    const double inside = std::min(alpha[i], std::min(Loss::upper(costs[i]), kLargest));
    alpha[i] = inside > 0 ? inside : 0.0;
    return alpha[i] * labels[i];
  });
}

// Makes sum_i alpha_i y_i, the excess, 0 inside the box. Free multipliers cost least, since their margin is
// 1 and the dual value is flat there: those of the heavier class give up the excess, then those of the
// lighter class take on what is left. Bounded ones follow only if these do not suffice.
template <class Loss>
void balance_classes(std::span<double> alpha, const double* labels, const double* costs, double excess) {
  const std::size_t count = alpha.size();
  for (int round = 0; round < 2; ++round) {  // the second is for rounding
    if (excess == 0 || std::isnan(excess)) return;
    const double heavy = excess > 0 ? 1 : -1;
    double spare = 0, room = 0, all = 0;
#pragma omp simd reduction(+ : spare, room, all)
    for (std::size_t i = 0; i < count; ++i) {
      const double own = alpha[i], upper = Loss::upper(costs[i]);
      const double inside = own < upper ? own : 0.0, left = own > 0 && own < upper ? upper - own : 0.0;
      const bool heavier = labels[i] == heavy;
      spare += heavier ? inside : 0.0;
      room += heavier ? 0.0 : left;
      all += heavier ? own : 0.0;
    }
    const double needed = std::abs(excess);
    const double keep = spare > 0 ? std::max(0.0, 1 - needed / spare) : 1.0;
    const double left = std::max(0.0, needed - spare);
    const double share = left > 0 && room > 0 ? std::min(1.0, left / room) : 0.0;
    const double still = share > 0 ? left - share * room : left;
    // What the bounded ones of the heavier class keep: free ones have given all by now.
    const double bounded = all - (1 - keep) * spare;
    const double cut = still > 0 && bounded > 0 ? std::max(0.0, 1 - still / bounded) : 1.0;
    excess = sum_in_blocks(count, [&](std::size_t i) {
      const double upper = Loss::upper(costs[i]);
      const bool free = alpha[i] > 0 && alpha[i] < upper, heavier = labels[i] == heavy;
      const double down = (free ? keep : 1.0) * cut;
      const double up = free && share > 0 ? share * (upper - alpha[i]) : 0.0;
      alpha[i] = heavier ? alpha[i] * down : alpha[i] + up;
      return alpha[i] * labels[i];
    });
  }
}

// Makes the multipliers of a sign, or of all rows (0), add up to a total inside the box. Free ones give or
// take first, as above; then those at an upper wall give, or those at 0 take, each its share.
template <class Loss>
void reach_total(std::span<double> alpha, const double* labels, const double* costs, double sign,
                 double total) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  for (int round = 0; round < 3; ++round) {  // the last ones are for rounding
    double spare = 0, room = 0, bounded = 0, empty = 0;
    Twofold sum;  // so that multipliers which add up to the total stay what they are
    for (std::size_t i = 0; i < alpha.size(); ++i) {
      if (sign != 0 && labels[i] != sign) continue;
      const double upper = std::min(Loss::upper(costs[i]), kLargest);
      const bool free = alpha[i] > 0 && alpha[i] < upper;
      sum.add(alpha[i]);
      (free ? spare : bounded) += alpha[i];
      (free ? room : empty) += upper - alpha[i];
    }
    sum.add(-total);
    const double missing = -sum.rounded();
    if (missing == 0 || std::isnan(missing)) return;
    const double of_free = missing > 0 ? room : spare, of_others = missing > 0 ? empty : bounded;
    const double needed = std::abs(missing), left = std::max(0.0, needed - of_free);
    const double share = of_free > 0 ? std::min(1.0, needed / of_free) : 0.0;
    const double others = left > 0 && of_others > 0 ? std::min(1.0, left / of_others) : 0.0;
    for (std::size_t i = 0; i < alpha.size(); ++i) {
      if (sign != 0 && labels[i] != sign) continue;
      const double upper = std::min(Loss::upper(costs[i]), kLargest);
      const bool free = alpha[i] > 0 && alpha[i] < upper;
      const double part = free ? share : others;
      const double moved = missing > 0 ? alpha[i] + part * (upper - alpha[i]) : alpha[i] - part * alpha[i];
      alpha[i] = std::clamp(moved, 0.0, upper);
    }
  }
}

}  // namespace maxmargin
