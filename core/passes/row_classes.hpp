// SPDX-License-Identifier: BSD-3-Clause
// What each row is to the solution: the RowClass of certificate.py.
#pragma once

#include <cstdint>
#include <span>

namespace maxmargin {

enum RowClass : std::int8_t { kNotSupportVector, kOnMargin, kInsideMargin, kMisclassified };

// By the multiplier; by the margin alone where multipliers do not tell.
inline void row_classes(std::span<const double> margins, const double* alpha, const double* costs,
                        bool by_margins, std::int8_t* out) {
  for (std::size_t i = 0; i < margins.size(); ++i) {
    const RowClass bounded = margins[i] <= 0 ? kMisclassified : kInsideMargin;
    if (by_margins) {
      out[i] = margins[i] < 1 ? bounded : kNotSupportVector;
    } else {
      out[i] = !(alpha[i] > 0) ? kNotSupportVector : alpha[i] >= costs[i] ? bounded : kOnMargin;
    }
  }
}

}  // namespace maxmargin
