// SPDX-License-Identifier: BSD-3-Clause
#include "kernel/small_problems.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "kernel/small_dual.hpp"
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

// The first problem of each group of those that follow one another on the same rows, and the end of all.
std::vector<Integer> groups_of(const SmallProblems& all) {
  std::vector<Integer> groups;
  for (Integer p = 0; p < all.count(); ++p) {
    if (p == 0 || !std::ranges::equal(all.part(p, all.order), all.part(p - 1, all.order)))
      groups.push_back(p);
  }
  groups.push_back(all.count());
  return groups;
}

// Rows of the largest problem, and multiply-adds for a product with each matrix.
struct Sizes {
  Integer largest = 2, work = 0;

  explicit Sizes(const SmallProblems& all) {
    for (Integer p = 0; p < all.count(); ++p) {
      largest = std::max(largest, all.rows(p));
      work += all.rows(p) * all.rows(p);
    }
  }
};

// Memory for a matrix of so many rows, kept by its thread between calls where it is not much: to get it
// anew can take longer than to solve the problems.
std::shared_ptr<SmallDual<double>> memory_for(Integer rows) {
  constexpr Integer kMostKept = 2048;  // rows, whose values take 32 MB
  if (rows > kMostKept) return std::make_shared<SmallDual<double>>(rows);
  thread_local std::shared_ptr<SmallDual<double>> own;
  if (!own || !own->has_room_for(rows)) own = std::make_shared<SmallDual<double>>(rows);
  return own;
}

// The gradient of a dual, by the scores of the multipliers `before` they were made feasible. Changes as
// small as the rounding of these scores are left out, unless it is solved `to_rounding`: each would cost a
// row.
void tell_gradient(GivenMatrix& matrix, std::span<const double> scores, std::span<const double> before,
                   bool to_rounding, const Budget& budget, KernelDual& dual) {
  constexpr double kRounding = 1e-13;  // of the largest multiplier
  double largest = 0;
  for (const double beta : dual.beta) largest = std::max(largest, std::abs(beta));
  const double unseen = to_rounding ? 0.0 : kRounding * largest;
  std::vector<Integer> changed;
  std::vector<double> changes;
  for (Integer i = 0; i < dual.count(); ++i) {
    dual.f[i] = scores[i] - dual.wanted[i];
    const double change = dual.beta[i] - before[i] * dual.wanted[i];
    if (std::abs(change) <= unseen) continue;
    changed.push_back(i);
    changes.push_back(change);
  }
  matrix.add(changed, changes, dual.f.data(), budget);
}

// The proof of a problem in the numbers that Python takes; scores become margins.
SmallProof small_proof(const Objective& objective, std::span<const double> alpha, std::span<double> scores,
                       std::span<const double> lengths, double value_error) {
  const Proof proof = prove_at_best_length(objective, alpha, scores, lengths, value_error);
  const BestIntercept& best = proof.intercept;
  const double largest = *std::max_element(alpha.begin(), alpha.end());
  const double violation =
      std::max(objective.largest_violation(scores, alpha, best.b), (proof.length - 1) * largest);
  return {best.b, best.low, best.high, proof.primal, proof.dual, violation, proof.length};
}

}  // namespace

std::vector<Integer> solve_small(const SmallProblems& all, std::span<double> alpha,
                                 std::span<const double> scores, double tol, Integer tiny,
                                 Integer most_rounds, const Budget& budget, Watch& watch) {
  const Sizes sizes(all);
  const std::vector<Integer> groups = groups_of(all);
  const Integer count = static_cast<Integer>(groups.size()) - 1;
  std::vector<Integer> steps(all.count(), 0);
  solve_side_by_side(budget.threads_for(sizes.work), count, budget, watch, [&](Integer group, Watch& own) {
    const Integer m = all.rows(groups[group]);
    GivenMatrix matrix = all.matrix_of(groups[group]);
    WorkingSet set(matrix, m, 0, memory_for(sizes.largest));
    for (Integer p = groups[group]; p < groups[group + 1]; ++p) {
      const Objective objective{Hinge{}, all.part(p, all.labels), all.part(p, all.costs)};
      const auto multipliers = all.part(p, alpha);
      KernelDual dual(objective.labels, objective.costs);
      std::vector<double> before;
      if (!scores.empty()) before.assign(multipliers.begin(), multipliers.end());
      objective.make_feasible(multipliers);
      for (Integer i = 0; i < m; ++i) dual.beta[i] = multipliers[i] * objective.labels[i];
      if (!scores.empty()) tell_gradient(matrix, all.part(p, scores), before, m <= tiny, budget, dual);
      steps[p] = set.solve(dual, tol, m <= tiny, most_rounds, !scores.empty(), budget, own);
      for (Integer i = 0; i < m; ++i) multipliers[i] = std::abs(dual.beta[i]);
    }
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
    proofs[p] = small_proof(objective, own, scores, own_lengths, value_error);
  });
}

namespace {

// The problems of one group at one C after the other.
class GroupAlongCosts {
 public:
  GroupAlongCosts(const SmallProblems& all, const AlongCosts& found, Integer first, Integer last,
                  Integer largest, Integer tiny, std::span<const double> lengths, double value_error)
      : all_(all),
        found_(found),
        first_(first),
        last_(last),
        rows_(all.rows(first)),
        matrix_(all.matrix_of(first)),
        small_(memory_for(largest)),
        set_(matrix_, rows_, 0, small_),
        to_rounding_(rows_ <= tiny),
        value_error_(value_error),
        costs_(static_cast<std::size_t>(rows_)),
        weights_(static_cast<std::size_t>(rows_ * (last - first))) {
    for (const Integer i : all.part(first, all.order)) lengths_.push_back(lengths[i]);
  }

  // Solves all problems at a C, and proves them; whether each is within tol.
  bool solve(Integer line, double tol, Integer most_rounds, const Budget& budget, Watch& watch) {
    for (Integer p = first_; p < last_; ++p) {
      const Objective objective = problem(line, p);
      const auto own = alpha(line, p);
      KernelDual dual(objective.labels, objective.costs);
      if (line == 0) {
        std::fill(own.begin(), own.end(), 0.0);
      } else {
        start(line, p, objective, budget, dual);
      }
      found_.steps[line * all_.count() + p] =
          set_.solve(dual, tol, to_rounding_, most_rounds, true, budget, watch);
      for (Integer i = 0; i < rows_; ++i) own[i] = std::abs(dual.beta[i]);
      objective.make_feasible(own);
    }
    sum_up(line);
    if (watch.spend((last_ - first_) * rows_ * static_cast<Integer>(used_.size()))) return false;
    bool all_are_good = true;
    for (Integer p = first_; p < last_; ++p) {
      const Objective objective = problem(line, p);
      SmallProof& own = proof(line, p);
      own = small_proof(objective, alpha(line, p), margins(line, p), lengths_, value_error_);
      all_are_good = all_are_good && relative_gap(own.primal, std::max(own.dual, 0.0)) <= tol;
    }
    return all_are_good;
  }

 private:
  std::span<double> line_of(std::span<double> array, Integer line, Integer p) const {
    const Integer rows = static_cast<Integer>(all_.order.size());
    return all_.part(p, array.subspan(line * rows, rows));
  }
  std::span<double> alpha(Integer line, Integer p) const { return line_of(found_.alpha, line, p); }
  std::span<double> margins(Integer line, Integer p) const { return line_of(found_.margins, line, p); }
  SmallProof& proof(Integer line, Integer p) const { return found_.proofs[line * all_.count() + p]; }

  // Of these costs there is one at a time.
  Objective problem(Integer line, Integer p) {
    const auto unit = all_.part(p, all_.costs);
    for (Integer i = 0; i < rows_; ++i) costs_[i] = found_.Cs[line] * unit[i];
    return {Hinge{}, all_.part(p, all_.labels), costs_};
  }

  // The multipliers of the last C, times the factor t that makes the most of them, and the gradient there.
  // D(t alpha) = t s - t^2 q / 2 with s = sum alpha_i and q = |w(alpha)|^2, which D(alpha) tells.
  void start(Integer line, Integer p, const Objective& objective, const Budget& budget, KernelDual& dual) {
    const auto last = alpha(line - 1, p), own = alpha(line, p), known = margins(line - 1, p);
    const SmallProof& proven = proof(line - 1, p);
    double sum = 0;
    for (const double multiplier : last) sum += multiplier;
    const double squared_length = 2 * std::max(sum - std::max(proven.dual, 0.0), 0.0);
    const double most = found_.Cs[line] / found_.Cs[line - 1];
    const double factor = squared_length > 0 ? std::clamp(sum / squared_length, 0.0, most) : most;
    scores_.resize(costs_.size());
    for (Integer i = 0; i < rows_; ++i) {
      own[i] = factor * last[i];
      scores_[i] = factor / proven.length * (objective.labels[i] * known[i] - proven.b);
    }
    before_.assign(own.begin(), own.end());
    objective.make_feasible(own);
    for (Integer i = 0; i < rows_; ++i) dual.beta[i] = own[i] * objective.labels[i];
    tell_gradient(matrix_, scores_, before_, to_rounding_, budget, dual);
  }

  // The scores of all problems at a C, in the place of their margins.
  void sum_up(Integer line) {
    used_.clear();
    for (Integer i = 0; i < rows_; ++i) {
      bool is_used = false;
      for (Integer p = first_; p < last_; ++p) {
        const double beta = alpha(line, p)[i] * all_.part(p, all_.labels)[i];
        weights_[(p - first_) * rows_ + i] = beta;
        is_used = is_used || beta != 0;
      }
      if (is_used) used_.push_back(i);
    }
    const auto all_scores = found_.margins.subspan(
        line * static_cast<Integer>(all_.order.size()) + all_.begins[first_], weights_.size());
    std::fill(all_scores.begin(), all_scores.end(), 0.0);
    if (!used_.empty()) small_->add_sums(used_, weights_, all_scores);
  }

  const SmallProblems& all_;
  const AlongCosts& found_;
  Integer first_, last_, rows_;
  GivenMatrix matrix_;
  std::shared_ptr<SmallDual<double>> small_;
  WorkingSet<GivenMatrix> set_;
  bool to_rounding_;
  double value_error_;
  std::vector<double> lengths_, costs_, scores_, before_;
  std::vector<double> weights_;  // beta of all problems
  std::vector<Integer> used_;    // rows with a weight in one of them
};

}  // namespace

Integer solve_along(const SmallProblems& all, const AlongCosts& found, double tol, Integer tiny,
                    Integer most_rounds, std::span<const double> lengths, double value_error,
                    const Budget& budget, Watch& watch) {
  const Sizes sizes(all);
  const std::vector<Integer> groups = groups_of(all);
  const Integer count = static_cast<Integer>(groups.size()) - 1;
  const Integer lines = static_cast<Integer>(found.Cs.size());
  std::atomic<Integer> good{lines};
  const Integer threads = budget.threads_for(sizes.work * lines);
  solve_side_by_side(threads, count, budget, watch, [&](Integer number, Watch& own) {
    const Integer first = groups[number], last = groups[number + 1];
    GroupAlongCosts group(all, found, first, last, sizes.largest, tiny, lengths, value_error);
    for (Integer line = 0; line < good; ++line) {
      if (group.solve(line, tol, most_rounds, budget, own)) continue;
      for (Integer least = good; line < least && !good.compare_exchange_weak(least, line);) {
      }
      return;
    }
  });
  return good;
}

}  // namespace maxmargin
