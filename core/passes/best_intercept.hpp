// SPDX-License-Identifier: BSD-3-Clause
// The intercept of a smooth loss that minimises
//
//   ridge / 2 b^2 + threshold |b| + sum_i C_i loss(y_i (score_i + b)).
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "data/rows.hpp"
#include "passes/losses.hpp"

namespace maxmargin {

// Newton's method on the slope, which rises with b, inside a bracket that each look makes smaller.
template <class Loss>
double best_intercept(std::span<const double> scores, const double* labels, const double* costs,
                      double ridge, double threshold) {
  double reach = 2, positive = 0, negative = 0;
#pragma omp simd reduction(max : reach) reduction(+ : positive, negative)
  for (std::size_t i = 0; i < scores.size(); ++i) {
    reach = std::max(reach, 2 + std::abs(scores[i]));
    positive += labels[i] > 0 ? costs[i] : 0.0;
    negative += labels[i] > 0 ? 0.0 : costs[i];
  }
  // At equal scores the best b of the logistic loss is log(positive / negative); a lone class has none.
  reach += std::min(std::abs(std::log(positive / negative)), 40.0);
  double low = -reach, high = reach, b = 0, pull = 0;
  for (int look = 0; look < 200; ++look) {
    double slope = ridge * b + pull, curvature = ridge;
#pragma omp simd reduction(+ : slope, curvature)
    for (std::size_t i = 0; i < scores.size(); ++i) {
      const double margin = labels[i] * (scores[i] + b);
      slope += costs[i] * Loss::derivative(margin) * labels[i];
      curvature += costs[i] * Loss::curvature(margin);
    }
    if (look == 0 && threshold > 0) {
      // At 0 the penalty has a kink, which holds b there or is on one side of it for good.
      if (std::abs(slope) <= threshold) return 0;
      pull = slope > 0 ? -threshold : threshold;
      slope += pull;
    }
    (slope > 0 ? high : low) = b;
    // Far from its place a loss may be all slope: no Newton step then, and the bracket is halved.
    const double newton = curvature > 0 ? b - slope / curvature : std::nan("");
    // Before the bracket is asked: a step that rounding swallows ends on its edge, and is no reason to
    // halve it.
    const double enough = 1e-15 * (1 + std::abs(b));
    if (slope == 0 || std::abs(newton - b) <= enough) break;
    const double next = low < newton && newton < high ? newton : (low + high) / 2;
    if (std::abs(next - b) <= enough) break;
    b = next;
  }
  return b;
}

}  // namespace maxmargin
