// SPDX-License-Identifier: BSD-3-Clause
#include "linear/column_jump.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "loops/loops.hpp"
#include "passes/passes.hpp"

namespace maxmargin {
namespace {

double most_left(std::span<const double> values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

}  // namespace

void conjugate_gradients(const AnyRows& columns, const JumpSystem& system, std::span<double> left,
                         std::span<double> step, std::span<double> image, Integer most, double enough,
                         const Budget& budget) {
  const auto& [some, diagonal, roots] = system;
  const bool moves_intercept = left.size() > some.size();
  // With zeros for the columns that stay, which products skip.
  std::vector<double> direction(left.size()), spread(static_cast<std::size_t>(columns.count)),
      effect(image.size()), turned(spread.size());
  std::ranges::fill(step, 0.0);
  std::ranges::fill(image, 0.0);
  double last = INFINITY;
  for (Integer k = 0; k < most && most_left(left) > enough && !budget.spent(); ++k) {
    double size = 0;
    for (std::size_t j = 0; j < left.size(); ++j) size += left[j] * left[j] / diagonal[j];
    for (std::size_t j = 0; j < left.size(); ++j) {
      direction[j] = left[j] / diagonal[j] + size / last * direction[j];
    }
    for (std::size_t j = 0; j < some.size(); ++j) spread[some[j]] = direction[j];
    combine(columns, spread.data(), effect, budget);
    if (moves_intercept) {
      for (std::size_t i = 0; i < effect.size(); ++i) effect[i] += direction.back() * roots[i];
    }
    const double curvature = dot(effect, effect);
    if (!(curvature > 0)) break;
    const double share = size / curvature;
    scores(columns, effect.data(), turned, budget);
    for (std::size_t j = 0; j < left.size(); ++j) step[j] += share * direction[j];
    for (std::size_t j = 0; j < some.size(); ++j) left[j] -= share * turned[some[j]];
    if (moves_intercept) left.back() -= share * dot(roots, effect);
    for (std::size_t i = 0; i < image.size(); ++i) image[i] += share * effect[i];
    last = size;
  }
}

}  // namespace maxmargin
