// SPDX-License-Identifier: BSD-3-Clause
#include "passes/best_length.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "passes/weighted_quantile.hpp"

namespace maxmargin {
namespace {

// The share of `held` above which losses of rows below half the margin are a part of the optimum; and how
// much harder rows must pull at the length of w than it is held, for a better length to be sought.
constexpr double kFewLosses = 0.25, kPull = 2;

}  // namespace

double best_length(std::span<const double> margins, std::span<const double> costs, double held) {
  double low_losses = 0, pull = 0, level = 0;
#pragma omp simd reduction(+ : low_losses, pull, level)
  for (std::size_t i = 0; i < margins.size(); ++i) {
    const double margin = margins[i], pulled = costs[i] * margin;
    low_losses += costs[i] * std::max(0.0, 0.5 - margin);
    pull += margin < 1 ? pulled : 0.0;
    level += pulled;
  }
  if (low_losses > kFewLosses * held || !(pull > kPull * held)) return 1;
  // At s (w, b) the objective rises by  s held - sum of C_i m_i over the rows with s m_i < 1.
  std::vector<double> crossings(margins.size()), weights(margins.size());
  for (std::size_t i = 0; i < margins.size(); ++i) {
    weights[i] = std::max(0.0, costs[i] * margins[i]);
    crossings[i] = weights[i] > 0 ? 1 / margins[i] : 0.0;
  }
  const double length = weighted_quantile(crossings, weights, level, held).first;
  return length > 1 && length < INFINITY ? length : 1;
}

}  // namespace maxmargin
