// SPDX-License-Identifier: BSD-3-Clause
// One sweep of dual coordinate ascent with a kernel. The numbers 1 to 4 are those of the algorithm's
// statement in src/maxmargin/solvers/kernel_dual_ascent.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "kernel/any_kernel_matrix.hpp"
#include "linear/dual_coordinate_ascent.hpp"
#include "machine/budget.hpp"

namespace maxmargin {

// sum_i C_i loss(m_i) + C_i loss*(-alpha_i / C_i) + alpha_i m_i
template <bool kSquared>
double duality_gap(std::span<const Coordinate> coordinates, std::span<const double> scores, double bias) {
  double gap = 0;
  for (std::size_t i = 0; i < coordinates.size(); ++i) {
    const Coordinate& c = coordinates[i];
    if (c.cost == 0) continue;
    const double slack = c.target - c.label * (scores[i] + bias);
    const double loss = std::max(slack, 0.0);
    if constexpr (kSquared) {
      gap += c.cost * loss * loss - c.alpha * (slack - c.alpha / (4 * c.cost));
    } else {
      gap += c.cost * loss - c.alpha * slack;
    }
  }
  return gap;
}

// `scores` are K_i . (alpha y) for every row i, kept up to date.
template <bool kSquared, class Matrix>
KernelSweep kernel_dual_ascent(Matrix& matrix, std::span<Coordinate> coordinates,
                               std::span<const Integer> order, std::span<double> scores, double bias,
                               double bias_curvature, const Budget& budget, Watch& watch) {
  KernelSweep sweep;
  sweep.bias = bias;
  for (std::size_t position = 0; position < order.size(); ++position) {
    const Integer i = order[position];  // 1
    Coordinate& c = coordinates[i];
    const double derivative = c.label * (scores[i] + sweep.bias) - c.target + c.diagonal * c.alpha;  // 2
    double moved = std::max(c.alpha - derivative * c.inverse_curvature, 0.0);                        // 3
    if constexpr (!kSquared) moved = std::min(moved, c.cost);
    const double change = moved - c.alpha;
    if (change == 0) continue;
    const auto row = matrix.row(i, budget);  // 4
    double* out = scores.data() + matrix.first(i);
    const double pull = change * c.label;
    for (std::size_t k = 0; k < row.size(); ++k) out[k] += pull * static_cast<double>(row[k]);
    sweep.bias += bias_curvature * pull;
    c.alpha = moved;
    sweep.ascent -= change * (derivative + 0.5 * change / c.inverse_curvature);
    sweep.unrest = std::max(sweep.unrest, std::abs(change) / c.inverse_curvature);
    if (watch.spend(2 * matrix.count())) {
      sweep.whole = position + 1 == order.size();
      break;
    }
  }
  sweep.gap = duality_gap<kSquared>(coordinates, scores, sweep.bias);
  return sweep;
}

}  // namespace maxmargin
