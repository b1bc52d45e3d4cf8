// SPDX-License-Identifier: BSD-3-Clause
// Problems without one of their rows. The hinge: the row's multiplier is taken away, and those of rows near
// the margin follow. What they are worth in the end bounds the margin that the row has without itself.
#pragma once

#include <span>

#include "data/any_rows.hpp"
#include "machine/budget.hpp"

namespace maxmargin {

// Groups of equal rows near the margin. With z = (x, bias) and k the slope of a group, a multiplier is
// clip(k (1 - m) + constant) of its margin m, between two walls; H = R + sum of k z z' over the groups that
// are between theirs.
struct Followers {
  std::span<const Integer> rows;      // one of each group
  std::span<const double> labels;     // their y
  std::span<const double> down, up;   // by how much the multipliers of a group may fall and rise together
  std::span<const double> beyond;     // what is cut off at the walls: 0 between them
  std::span<const double> slopes;     // k
  std::span<const double> movements;  // y z'H^-1, a line for each group, and the last column of H^-1
  std::span<const double> inverse;    // H^-1
  std::span<const double> between;    // y z'H^-1 z y of a group and all lines of `movements`, or empty
};

// The multipliers of all rows, and what bounds on values need.
struct Standpoint {
  std::span<const double> combined;  // sum_j alpha_j y_j z_j
  double off;                        // how far that can be off, as a length
  std::span<const double> lengths;   // of all rows
  double bias;                       // the last value of every z; 0 where there is none
  double reach;                      // the worth of what multipliers lack for balance; 0 with a regulariser
  double intercept;                  // b of the point that the groups are taken from
};

// A row that is left out.
struct Leaving {
  Integer row, group;  // a group of -1 is none
  double label, multiplier, cost, slope, margin;
  double slack;   // how much its dual value must gain to be that of a primal point
  double target;  // the margin that it is to have at least
};

// Where the path of a row ended, and what its multipliers are worth there.
struct Departure {
  double multiplier;  // of the row: below 0 where the margin is pushed down
  double gain;        // of the dual value, rounded down
};

// Takes rows away, each from the same standpoint; `points` has the primal point (w, b) without each, or is
// empty. Paths are in double precision if `in_full`. Rows that are not reached in time end where they
// begin.
void leave_out(const AnyRows& rows, const Followers& followers, const Standpoint& from,
               std::span<const Leaving> leaving, Integer most_events, bool in_full,
               std::span<Departure> ends, std::span<double> points, const Budget& budget);

}  // namespace maxmargin
