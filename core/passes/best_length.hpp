// SPDX-License-Identifier: BSD-3-Clause
// How long the best w is among those of one direction, for the hinge.
#pragma once

#include <span>

namespace maxmargin {

// The number of at least 1 that (w, b) is worth most times, given its margins and twice its regulariser.
//
// Where C is so large that hardly a loss is left at the optimum, every trifle that a row lacks counts C
// times, and a dual method leaves thousands of trifles. A w that is longer by as little clears them. It
// is 1 where rows below half the margin have a part in the optimum, or too few pull at the length.
double best_length(std::span<const double> margins, std::span<const double> costs, double held);

}  // namespace maxmargin
