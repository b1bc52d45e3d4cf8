// SPDX-License-Identifier: BSD-3-Clause
#include "passes/row_classes.hpp"

namespace maxmargin {

void row_classes(std::span<const double> margins, const double* alpha, const double* costs, bool by_margins,
                 std::int8_t* out) {
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
