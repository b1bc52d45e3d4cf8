// SPDX-License-Identifier: BSD-3-Clause
#include "kernel/small_problems.hpp"

#include <algorithm>
#include <memory>

#include "kernel/working_set.hpp"
#include "passes/proof.hpp"

namespace maxmargin {

std::vector<Integer> solve_small(const SmallProblems& all, std::span<double> alpha, double tol,
                                 Integer tiny, Integer most_rounds, const Budget& budget, Watch& watch) {
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
    for (Integer i = 0; i < m; ++i) all.part(p, alpha)[i] = std::abs(dual.beta[i]);
  }
  return steps;
}

void prove_small(const SmallProblems& all, std::span<double> alpha, std::span<double> margins,
                 std::span<const double> lengths, double value_error, std::span<SmallProof> proofs,
                 const Budget& budget) {
  std::vector<Integer> support;
  std::vector<double> beta, own_lengths;
  for (Integer p = 0; p < all.count(); ++p) {
    const Objective objective{Hinge{}, all.part(p, all.labels), all.part(p, all.costs)};
    const auto own = all.part(p, alpha), scores = all.part(p, margins);
    objective.make_feasible(own);
    support.clear();
    beta.clear();
    own_lengths.clear();
    for (const Integer i : all.part(p, all.order)) own_lengths.push_back(lengths[i]);
    for (Integer i = 0; i < all.rows(p); ++i) {
      if (own[i] == 0) continue;
      support.push_back(i);
      beta.push_back(own[i] * objective.labels[i]);
    }
    std::fill(scores.begin(), scores.end(), 0.0);
    all.matrix_of(p).add(support, beta, scores.data(), budget);
    const auto [best, primal, dual] = prove(objective, own, scores, own_lengths, value_error);
    proofs[p] = {best.b, best.low, best.high,
                 primal, dual,     objective.largest_violation(scores, own, best.b)};
  }
}

}  // namespace maxmargin
