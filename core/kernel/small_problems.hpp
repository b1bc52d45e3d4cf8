// SPDX-License-Identifier: BSD-3-Clause
// Small kernel problems on rows of one matrix that is at hand: all of them solved, or proven, in one call.
//
// A pair of classes with a hundred rows takes some ten microseconds, less than the way to it from Python.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "kernel/given_matrix.hpp"
#include "kernel/working_set.hpp"
#include "passes/proof.hpp"

namespace maxmargin {

// Problem p has the numbers begins[p] .. begins[p + 1] - 1 of each array.
struct SmallProblems {
  const double* matrix;
  Integer size;  // rows and columns of the matrix
  std::span<const Integer> order, begins;
  std::span<const double> labels, costs;

  Integer count() const { return static_cast<Integer>(begins.size()) - 1; }
  Integer rows(Integer p) const { return begins[p + 1] - begins[p]; }
  template <class T>
  std::span<T> part(Integer p, std::span<T> array) const {
    return array.subspan(begins[p], rows(p));
  }
  GivenMatrix matrix_of(Integer p) const { return {matrix, size, part(p, order)}; }
};

// Multipliers alpha of every problem with a relative gap of at most tol, or, for at most `tiny` rows, that
// rounding alone keeps from the best; after `most_rounds` it may be worse. Returns the steps of each.
inline std::vector<Integer> solve_small(const SmallProblems& all, std::span<double> alpha, double tol,
                                        Integer tiny, Integer most_rounds, const Budget& budget,
                                        Watch& watch) {
  Integer largest = 2;
  for (Integer p = 0; p < all.count(); ++p) largest = std::max(largest, all.rows(p));
  // Kept between calls: to get so much memory anew can take longer than to solve the problems.
  thread_local std::shared_ptr<SmallDual<double>> small;
  if (!small || small->stride() < largest) small = std::make_shared<SmallDual<double>>(largest);
  std::vector<Integer> steps(all.count(), 0);
  for (Integer p = 0; p < all.count(); ++p) {
    const Integer m = all.rows(p);
    GivenMatrix matrix = all.matrix_of(p);
    KernelDual dual(all.part(p, all.labels), all.part(p, all.costs));
    WorkingSet set(matrix, m, 0, small);
    steps[p] = set.solve(dual, tol, m <= tiny, most_rounds, budget, watch);
    for (Integer i = 0; i < m; ++i) all.part(p, alpha)[i] = dual.beta[i] * dual.labels[i];
  }
  return steps;
}

// Six numbers that prove what a problem's multipliers are worth, as Python takes them.
struct SmallProof {
  double b, low, high, primal, dual;
  double violation;  // the largest one of complementary slackness
};

// Makes every problem's alpha feasible and proves what it is worth; margins come with it.
inline void prove_small(const SmallProblems& all, std::span<double> alpha, std::span<double> margins,
                        std::span<SmallProof> proofs, const Budget& budget) {
  std::vector<Integer> support;
  std::vector<double> beta;
  for (Integer p = 0; p < all.count(); ++p) {
    const Objective objective{Hinge{}, all.part(p, all.labels), all.part(p, all.costs)};
    const auto own = all.part(p, alpha), scores = all.part(p, margins);
    objective.make_feasible(own);
    support.clear();
    beta.clear();
    for (Integer i = 0; i < all.rows(p); ++i) {
      if (own[i] == 0) continue;
      support.push_back(i);
      beta.push_back(own[i] * objective.labels[i]);
    }
    std::fill(scores.begin(), scores.end(), 0.0);
    all.matrix_of(p).add(support, beta, scores.data(), budget);
    const auto [best, primal, dual] = prove(objective, own, scores);
    proofs[p] = {best.b, best.low, best.high,
                 primal, dual,     objective.largest_violation(scores, own, best.b)};
  }
}

}  // namespace maxmargin
