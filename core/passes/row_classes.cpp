// SPDX-License-Identifier: BSD-3-Clause
#include "passes/row_classes.hpp"

namespace maxmargin {

namespace {

// A solved fit leaves less than this between a margin and what the multiplier says of it.
constexpr double kNearMargin = 0.01;

// Far from 1 the margin tells, since the multipliers of a fit that was cut short say nothing about it.
RowClass row_class(double margin, double alpha, double cost) {
  if (!(cost > 0)) return kNotSupportVector;  // a row of no weight is as good as left out
  if (margin <= 0) return kMisclassified;
  if (margin < 1 - kNearMargin) return kInsideMargin;
  if (!(alpha > 0) || margin > 1 + kNearMargin) return kNotSupportVector;
  return alpha >= cost ? kInsideMargin : kOnMargin;
}

}  // namespace

void row_classes(std::span<const double> margins, const double* alpha, const double* costs, bool by_margins,
                 std::int8_t* out) {
  for (std::size_t i = 0; i < margins.size(); ++i) {
    const double told = by_margins ? (margins[i] < 1 ? costs[i] : 0) : alpha[i];
    out[i] = row_class(margins[i], told, costs[i]);
  }
}

}  // namespace maxmargin
