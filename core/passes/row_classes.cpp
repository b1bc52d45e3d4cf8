// SPDX-License-Identifier: BSD-3-Clause
#include "passes/row_classes.hpp"

#include <algorithm>

namespace maxmargin {

namespace {

// A solved fit leaves less than this between a margin and what the multiplier says of it.
constexpr double kNearMargin = 0.01;

// Far from 1 the margin tells, since the multipliers of a fit that was cut short say nothing about it.
// A row of no weight is as good as left out. Both sides of every question are there, so that many rows can
// be asked at once: a branch for each would be mistaken for every second row near the margin.
double row_class(double margin, double alpha, double cost) {
  constexpr double kNot = kNotSupportVector, kOn = kOnMargin, kInside = kInsideMargin,
                   kWrong = kMisclassified;
  double told = alpha >= cost ? kInside : kOn;
  told = alpha > 0 ? told : kNot;
  told = margin > 1 + kNearMargin ? kNot : told;
  told = margin < 1 - kNearMargin ? kInside : told;
  told = margin <= 0 ? kWrong : told;
  return cost > 0 ? told : kNot;
}

}  // namespace

void row_classes(std::span<const double> margins, const double* alpha, const double* costs, bool by_margins,
                 std::int8_t* out) {
  constexpr std::size_t kBlock = 512;  // classes that are told as numbers before they become bytes
  for (std::size_t first = 0; first < margins.size(); first += kBlock) {
    const std::size_t size = std::min(kBlock, margins.size() - first);
    const double *const margin = &margins[first], *const own = alpha + first, *const cost = costs + first;
    double classes[kBlock];
    if (by_margins) {
#pragma omp simd
      for (std::size_t i = 0; i < size; ++i)
        classes[i] = row_class(margin[i], margin[i] < 1 ? cost[i] : 0.0, cost[i]);
    } else {
#pragma omp simd
      for (std::size_t i = 0; i < size; ++i) classes[i] = row_class(margin[i], own[i], cost[i]);
    }
    for (std::size_t i = 0; i < size; ++i) out[first + i] = static_cast<std::int8_t>(classes[i]);
  }
}

}  // namespace maxmargin
