// SPDX-License-Identifier: BSD-3-Clause
// Small kernel problems whose matrix is at hand: solved and proven one after the other in one call.
//
// A pair of classes with a hundred rows takes some ten microseconds, less than the way to it from Python.
#pragma once

#include <cmath>
#include <numeric>

#include "kernel/free_multipliers.hpp"
#include "kernel/working_set.hpp"
#include "passes/weighted_quantile.hpp"

namespace maxmargin {

// What a problem is worth at a feasible alpha, with the best intercept for its w.
struct Proof {
  double b = 0, primal = 0, dual = 0;
  double low = 0, high = 0;  // any b between these is as good
};

// Makes sum alpha_i y_i zero where it is nearly so: free multipliers of the heavier class give up the
// excess, those of the lighter class take on what is left, bounded ones follow (certificate.py, _feasible).
inline void balance(std::span<const double> labels, std::span<const double> costs,
                    std::span<double> alpha) {
  for (int round = 0; round < 2; ++round) {
    double excess = 0;
    for (std::size_t i = 0; i < alpha.size(); ++i) excess += alpha[i] * labels[i];
    if (excess == 0) return;
    const double heavier = excess > 0 ? 1 : -1;
    double left = std::abs(excess), spare = 0, room = 0;
    const auto free = [&](std::size_t i) { return alpha[i] > 0 && alpha[i] < costs[i]; };
    for (std::size_t i = 0; i < alpha.size(); ++i) {
      if (free(i))
        (labels[i] == heavier ? spare : room) += labels[i] == heavier ? alpha[i] : costs[i] - alpha[i];
    }
    const double kept = spare > 0 ? std::max(0.0, 1 - left / spare) : 1;
    left = std::max(0.0, left - spare);
    const double taken = left > 0 && room > 0 ? std::min(1.0, left / room) : 0;
    left -= taken * room;
    double bounded = 0;
    for (std::size_t i = 0; i < alpha.size(); ++i) {
      if (free(i))
        alpha[i] = labels[i] == heavier ? kept * alpha[i] : alpha[i] + taken * (costs[i] - alpha[i]);
      if (labels[i] == heavier) bounded += alpha[i];
    }
    if (left <= 0 || bounded <= 0) continue;
    for (std::size_t i = 0; i < alpha.size(); ++i) {
      if (labels[i] == heavier) alpha[i] *= std::max(0.0, 1 - left / bounded);
    }
  }
}

// scores = matrix (alpha y)
inline void scores_of_alpha(const double* matrix, Integer stride, std::span<const double> labels,
                            std::span<const double> alpha, std::span<double> scores) {
  const std::size_t m = alpha.size();
  std::fill(scores.begin(), scores.end(), 0.0);
  for (std::size_t i = 0; i < m; ++i) {
    if (alpha[i] == 0) continue;
    const double beta = alpha[i] * labels[i];
    const double* row = matrix + static_cast<Integer>(i) * stride;
#pragma omp simd
    for (std::size_t j = 0; j < m; ++j) scores[j] += beta * row[j];
  }
}

// Both values of an alpha in its box that is nearly balanced, from the matrix alone; margins come with
// them.
inline Proof prove(const double* matrix, Integer stride, std::span<const double> labels,
                   std::span<const double> costs, std::span<double> alpha, std::span<double> margins) {
  balance(labels, costs, alpha);
  scores_of_alpha(matrix, stride, labels, alpha, margins);
  double squared_norm = 0, gain = 0, level = 0, loss = 0;
  std::vector<double> kinks(alpha.size());
  for (std::size_t i = 0; i < alpha.size(); ++i) {
    squared_norm += alpha[i] * labels[i] * margins[i];
    gain += alpha[i];
    if (labels[i] > 0) level += costs[i];
    kinks[i] = labels[i] - margins[i];
  }
  const auto [low, high] = weighted_quantile(kinks, costs, level, 0.0);
  const double b = middle_of(low, high);
  for (std::size_t i = 0; i < alpha.size(); ++i) {
    margins[i] = labels[i] * (margins[i] + b);
    loss += costs[i] * std::max(0.0, 1 - margins[i]);
  }
  return {b, 0.5 * squared_norm + loss, gain - 0.5 * squared_norm, low, high};
}

// Problems on rows of one matrix; problem p has the numbers begins[p] .. begins[p + 1] - 1 of each array.
struct SmallProblems {
  const double* matrix;
  Integer size;  // rows and columns of the matrix
  std::span<const Integer> order, begins;
  std::span<const double> labels, costs;
  std::span<double> alpha, margins;
};

// Sequential minimal optimisation on all rows of each problem, with Newton's method on the free multipliers
// after every round, until its gap is within tol, or, for a problem of at most `tiny` rows, until rounding
// is all that is left. A problem that is not tiny may take `most_rounds`. Returns the steps of each; the
// proof of problem p is values[5 p] .. values[5 p + 4].
inline std::vector<Integer> solve_small(const SmallProblems& all, double tol, Integer tiny,
                                        Integer most_rounds, double* values, Watch& watch) {
  constexpr double rounding = 1e-13;
  constexpr Integer kRoundsOfTiny = 100;
  constexpr Integer kRoundsOfSystems = 40;  // the first ones; what is left then is not for Newton's method
  constexpr Integer kStepsPerRow = 20, kStepsBeforeSystem = 4;  // of a round, for each row
  const Integer count = static_cast<Integer>(all.begins.size()) - 1;
  Integer largest = 2;
  for (Integer p = 0; p < count; ++p) largest = std::max(largest, all.begins[p + 1] - all.begins[p]);
  // Kept between calls: to get so much memory anew can take longer than to solve the problems.
  thread_local SmallDual<double> small(0);
  if (small.stride() < largest) small = SmallDual<double>(largest);
  std::vector<double> low(largest), high(largest), beta(largest), f(largest);
  std::vector<Integer> numbers(largest), steps(count, 0);
  FreeMultipliers free;
  std::iota(numbers.begin(), numbers.end(), Integer{0});
  for (Integer p = 0; p < count; ++p) {
    const Integer begin = all.begins[p], m = all.begins[p + 1] - begin;
    const auto order = all.order.subspan(begin, m);
    const auto labels = all.labels.subspan(begin, m), costs = all.costs.subspan(begin, m);
    const auto alpha = all.alpha.subspan(begin, m);
    for (Integer i = 0; i < m; ++i) {
      const double* row = all.matrix + order[i] * all.size;
      double* copy = small.matrix() + i * small.stride();
      for (Integer j = 0; j < m; ++j) copy[j] = row[order[j]];
      low[i] = std::min(0.0, labels[i] * costs[i]);
      high[i] = std::max(0.0, labels[i] * costs[i]);
      beta[i] = 0;
      f[i] = -labels[i];
    }
    const KernelDual dual{std::span(low).first(m), std::span(high).first(m), labels,
                          std::span(beta).first(m), std::span(f).first(m)};
    double before = std::numeric_limits<double>::infinity(), violation = before;
    // Computes alpha and f from beta; whether that is good enough.
    const auto good = [&] {
      for (Integer i = 0; i < m; ++i) alpha[i] = std::clamp(beta[i] * labels[i], 0.0, costs[i]);
      scores_of_alpha(small.matrix(), small.stride(), labels, alpha, dual.f);
      for (Integer i = 0; i < m; ++i) f[i] -= labels[i];
      const DualState state = look(dual);
      violation = state.greatest - state.least;
      const bool within = state.primal - state.dual <= tol * std::abs(state.primal);
      return (m > tiny && within) || violation <= rounding;
    };
    const Integer rounds = m <= tiny ? std::max(kRoundsOfTiny, most_rounds) : most_rounds;
    for (Integer round = 0; round < rounds && !watch.spend(0); ++round) {
      small.load(dual, std::span(numbers).first(m));
      const bool by_systems = round < kRoundsOfSystems;
      const double share = m <= tiny && !by_systems ? 0.0 : round == 0 ? 1e-2 : 1e-1;
      const Integer most = (by_systems ? kStepsBeforeSystem : kStepsPerRow) * m;
      const Integer taken = small.run(share, rounding, most);
      steps[p] += taken;
      for (Integer i = 0; i < m; ++i) beta[i] = small.beta(i);
      if (good() || taken == 0) break;
      if (taken < most && violation > 0.5 * before) break;  // rounding is larger here
      const Integer unknowns = by_systems ? free.find(dual) : 0;
      // Only where a system costs no more than the steps did.
      if (unknowns >= 2 && (m <= tiny || unknowns * unknowns * unknowns <= 2 * taken * m)) {
        steps[p] += free.move(small.matrix(), small.stride(), dual);
        if (good()) break;
      }
      before = violation;
      if (watch.spend(2 * taken * m)) break;
    }
    const Proof proof =
        prove(small.matrix(), small.stride(), labels, costs, alpha, all.margins.subspan(begin, m));
    const double five[] = {proof.b, proof.primal, proof.dual, proof.low, proof.high};
    std::copy(five, five + 5, values + 5 * p);
  }
  return steps;
}

}  // namespace maxmargin
