// SPDX-License-Identifier: BSD-3-Clause
// Problems without one of their rows. The hinge: the row's multiplier is taken away, and those of rows near
// the margin follow. What they are worth in the end bounds the margin that the row has without itself. And
// passes over all rows for many points at once, each of which belongs to a problem of its own.
#pragma once

#include <span>

#include "data/any_rows.hpp"
#include "machine/budget.hpp"
#include "passes/any_loss.hpp"

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
  std::span<const double> between;    // y z'H^-1 of a group times all lines of `movements`' vectors
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
// empty. Rows that are not reached in time end where they begin.
void leave_out(const AnyRows& rows, const Followers& followers, const Standpoint& from,
               std::span<const Leaving> leaving, Integer most_events, std::span<Departure> ends,
               std::span<double> points, const Budget& budget);

// For the points (w_p, b_p) that are the columns of `points`, over all rows but left_out_p:
// out_p = sum_i C_i max(0, 1 - y_i (<w_p, x_i> + b_p)).
void hinges_of_points(const AnyRows& rows, std::span<const double> labels, std::span<const double> costs,
                      std::span<const double> points, std::span<const Integer> left_out,
                      std::span<double> out, const Budget& budget);

// What there is to know of rows, besides their values, and where margins are at the start.
struct StartingRows {
  std::span<const double> labels, costs, lengths;  // the last of z = x or (x, 1)
  std::span<const double> margins;
  std::span<const double> per_range;  // one over how far a margin may move; 0 for any distance
};

// For all points, and over the rows of `among`, sorted, but the one that is left out: the sums of a_i y_i
// z_i with a_i = -C_i loss'(m_i), which are the columns of `out`, of a_i |z_i|, and the most that a margin
// has moved.
void pulls_of_points(const AnyRows& rows, AnyLoss loss, const StartingRows& about,
                     std::span<const Integer> among, std::span<const double> points,
                     std::span<const Integer> left_out, std::span<double> out, std::span<double> sizes,
                     std::span<double> moved, const Budget& budget);

// out_k = |T'z|^2 for the rows of `which`, with z = x or (x, 1), as long as T has lines.
void squared_lengths_through(const AnyRows& rows, std::span<const Integer> which, std::span<const double> T,
                             Integer size, std::span<double> out, const Budget& budget);

}  // namespace maxmargin
