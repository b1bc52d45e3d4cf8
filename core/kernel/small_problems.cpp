// SPDX-License-Identifier: BSD-3-Clause
#include "kernel/small_problems.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <thread>

#include "kernel/working_set.hpp"
#include "machine/threads.hpp"
#include "passes/proof.hpp"

namespace maxmargin {

namespace {

// Calls solve(p, watch) for 0 .. count - 1 on several threads. Only the thread that calls can be asked
// whether somebody interrupts: it goes on to ask while others are at work, and they hear of it.
template <class Solve>
void solve_side_by_side(Integer threads, Integer count, const Budget& budget, Watch& watch,
                        const Solve& solve) {
  struct Shared {
    std::atomic<Integer> next{0}, at_work{0};
    std::atomic<bool> over{false};
  } shared;
  const auto caller = std::this_thread::get_id();
  in_parallel(std::max<Integer>(1, std::min(threads, count)), count, [&](Integer, Integer, Integer) {
    const bool asks = std::this_thread::get_id() == caller;
    Watch hears(
        budget, [](void* over) { return static_cast<std::atomic<bool>*>(over)->load(); }, &shared.over);
    ++shared.at_work;
    for (Integer p; (p = shared.next.fetch_add(1)) < count;) solve(p, asks ? watch : hears);
    --shared.at_work;
    while (asks && shared.at_work > 0) {
      if (watch.spend(std::numeric_limits<Integer>::max() / 2)) shared.over = true;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
  });
}

// The gradient of a dual, by the scores of the multipliers `before` they were made feasible.
void tell_gradient(GivenMatrix& matrix, std::span<const double> scores, std::span<const double> before,
                   const Budget& budget, KernelDual& dual) {
  std::vector<Integer> changed;
  std::vector<double> changes;
  for (Integer i = 0; i < dual.count(); ++i) {
    dual.f[i] = scores[i] - dual.wanted[i];
    const double change = dual.beta[i] - before[i] * dual.wanted[i];
    if (change == 0) continue;
    changed.push_back(i);
    changes.push_back(change);
  }
  matrix.add(changed, changes, dual.f.data(), budget);
}

}  // namespace

std::vector<Integer> solve_small(const SmallProblems& all, std::span<double> alpha,
                                 std::span<const double> scores, double tol, Integer tiny,
                                 Integer most_rounds, KeptValues* kept, const Budget& budget,
                                 Watch& watch) {
  Integer largest = 2, work = 0;
  for (Integer p = 0; p < all.count(); ++p) {
    largest = std::max(largest, all.rows(p));
    work += all.rows(p) * all.rows(p);
  }
  // Problems that follow one another on the same rows, at other costs, share the values among these.
  std::vector<Integer> groups;
  for (Integer p = 0; p < all.count(); ++p) {
    if (p == 0 || !std::ranges::equal(all.part(p, all.order), all.part(p - 1, all.order)))
      groups.push_back(p);
  }
  const Integer count = static_cast<Integer>(groups.size());
  groups.push_back(all.count());
  std::vector<Integer> steps(all.count(), 0);
  solve_side_by_side(budget.threads_for(work), count, budget, watch, [&](Integer group, Watch& own) {
    // Kept between calls: to get so much memory anew can take longer than to solve the problems.
    thread_local std::shared_ptr<SmallDual<double>> own_memory;
    const bool keeps = kept != nullptr && count == 1, at_hand = keeps && kept->small;
    std::shared_ptr<SmallDual<double>> small = at_hand ? kept->small : keeps ? nullptr : own_memory;
    if (!small || !small->has_room_for(largest)) small = std::make_shared<SmallDual<double>>(largest);
    if (!keeps) own_memory = small;
    const Integer m = all.rows(groups[group]);
    GivenMatrix matrix = all.matrix_of(groups[group]);
    WorkingSet set(matrix, m, 0, small, at_hand);
    for (Integer p = groups[group]; p < groups[group + 1]; ++p) {
      const Objective objective{Hinge{}, all.part(p, all.labels), all.part(p, all.costs)};
      const auto multipliers = all.part(p, alpha);
      KernelDual dual(objective.labels, objective.costs);
      std::vector<double> before;
      if (!scores.empty()) before.assign(multipliers.begin(), multipliers.end());
      objective.make_feasible(multipliers);
      for (Integer i = 0; i < m; ++i) dual.beta[i] = multipliers[i] * objective.labels[i];
      if (!scores.empty()) tell_gradient(matrix, all.part(p, scores), before, budget, dual);
      steps[p] = set.solve(dual, tol, m <= tiny, most_rounds, !scores.empty(), budget, own);
      for (Integer i = 0; i < m; ++i) multipliers[i] = std::abs(dual.beta[i]);
    }
    if (keeps && set.at_hand()) kept->small = small;
  });
  return steps;
}

void prove_small(const SmallProblems& all, std::span<double> alpha, std::span<double> margins,
                 std::span<const double> lengths, double value_error, std::span<SmallProof> proofs,
                 const Budget& budget) {
  Integer work = 0;
  for (Integer p = 0; p < all.count(); ++p) work += all.rows(p) * all.rows(p);
  share_out(budget.threads_for(work), all.count(), [&](Integer p) {
    thread_local std::vector<Integer> support;
    thread_local std::vector<double> beta, own_lengths;
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
  });
}

}  // namespace maxmargin
