// SPDX-License-Identifier: BSD-3-Clause
// What each row is to the solution: the RowClass of certificate.py.
#pragma once

#include <cstdint>
#include <span>

namespace maxmargin {

enum RowClass : std::int8_t { kNotSupportVector, kOnMargin, kInsideMargin, kMisclassified };

// By the margin; close to 1 by the multiplier, unless multipliers do not tell.
void row_classes(std::span<const double> margins, const double* alpha, const double* costs, bool by_margins,
                 std::int8_t* out);

}  // namespace maxmargin
