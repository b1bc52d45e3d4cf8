// SPDX-License-Identifier: BSD-3-Clause
// Passes over all rows for many points at once, each of which belongs to a problem without one of its rows.
#pragma once

#include <span>

#include "data/any_rows.hpp"
#include "machine/budget.hpp"
#include "passes/any_loss.hpp"

namespace maxmargin {

// For the points (w_p, b_p) that are the columns of `points`, over all rows but left_out_p:
// out_p = sum_i C_i max(0, 1 - y_i (<w_p, x_i> + b_p)). Each row's crossing grows by how far points have it
// on the other side of the margin than `margins`, or nearer to it than `width`.
void hinges_of_points(const AnyRows& rows, std::span<const double> labels, std::span<const double> costs,
                      std::span<const double> margins, double width, std::span<const double> points,
                      std::span<const Integer> left_out, std::span<double> out, std::span<double> crossings,
                      const Budget& budget);

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
