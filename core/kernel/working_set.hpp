// SPDX-License-Identifier: BSD-3-Clause
// The dual of the kernel problem (kernel_dual.hpp), solved on a set of multipliers at a time: all of them
// where they are few, else some hundred or thousand.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernel/any_kernel_matrix.hpp"
#include "kernel/free_multipliers.hpp"
#include "kernel/kernel_dual.hpp"
#include "kernel/small_dual.hpp"
#include "machine/budget.hpp"
#include "machine/random.hpp"

namespace maxmargin {

// Rounds of: choose, solve on the chosen, tell all the others. A set that has all rows is chosen once, and
// its matrix is computed once.
//
// A Matrix is one of KernelMatrix, which computes values when they are needed, and GivenMatrix.
template <class Matrix>
class WorkingSet final : public AnyWorkingSet {
 public:
  using Value = typename Matrix::Value;
  using Small = SmallDual<Value>;

  // `small` is memory for a matrix of `size` rows, where there is some already.
  WorkingSet(Matrix& matrix, Integer size, std::uint64_t seed, std::shared_ptr<Small> small = nullptr)
      : matrix_(matrix), size_(std::min(size, matrix.count())), random_(seed), small_(std::move(small)) {
    if (!small_) small_ = std::make_shared<Small>(std::min(size_, matrix.most_of_block()));
    chosen_mark_.assign(static_cast<std::size_t>(matrix.count()), 0);
  }

  Integer run(KernelDual& dual, Integer rounds, const Budget& budget, Watch& watch) override {
    dual.look();
    for (Integer round = 0; round < rounds; ++round) {
      if (dual.state.primal <= dual.state.dual || dual.state.violation() <= 0) return round;
      const double smallest = 1e-14 * (1 + std::abs(dual.state.ends[0].middle()));
      const Integer most = (has_all() ? kStepsBeforeSystem : kStepsOfSome) * size_;
      if (step_on_pairs(dual, kInnerShare, smallest, most, budget, watch) == 0) return round;
      const bool over = all_at_hand() ? take_all(dual, watch) : take_over(dual, budget, watch);
      dual.look();
      if (over) return round + 1;
    }
    return rounds;
  }

  // For a set that has all rows: rounds of pairs, and Newton's method on the free multipliers after each,
  // until the relative gap is within tol or, if asked for, until rounding is all that is left. Multipliers
  // may be feasible ones of another solution; the gradient is computed afresh then, unless it is `known`.
  // Returns the number of steps.
  Integer solve(KernelDual& dual, double tol, bool to_rounding, Integer most_rounds, bool known,
                const Budget& budget, Watch& watch) {
    const Integer rounds = to_rounding ? std::max(kRoundsToRounding, most_rounds) : most_rounds;
    // Steps round the gradient off: where that could be seen, it is computed afresh before it is judged.
    const bool afresh = to_rounding || tol < kSeesRounding;
    // Whether the multipliers are good enough.
    const auto good = [&](bool restore) {
      if (restore) small_->restore_gradient(dual);
      dual.look();
      const bool within = relative_gap(dual.state.primal, dual.state.dual) <= tol;
      return (within && !to_rounding) || dual.state.violation() <= kRounding;
    };
    double before = std::numeric_limits<double>::infinity();
    Integer steps = 0;
    const bool started = std::ranges::any_of(dual.beta, [](double beta) { return beta != 0; });
    if (started && known && good(false)) return 0;
    if (started && (!have_values(dual, budget) || (!known && good(true)))) return 0;
    for (Integer round = 0; round < rounds && !watch.spend(0); ++round) {
      const bool by_systems = round < kRoundsOfSystems;
      const double first = started ? kInnerShare : kFirstShare;
      const double share = to_rounding && !by_systems ? 0.0 : round == 0 ? first : kInnerShare;
      const Integer most = (by_systems ? kStepsBeforeSystem : kStepsPerRow) * size_;
      const Integer taken = step_on_pairs(dual, share, kRounding, most, budget, watch);
      steps += taken;
      for (const std::size_t k : changed_) take(dual, k);
      if (!afresh && taken > 0) small_->give_gradient(dual);
      if (good(afresh) || taken == 0) break;
      if (taken < most && dual.state.violation() > 0.5 * before) break;  // rounding is larger here
      const Integer count = by_systems ? free_.find(dual) : 0;
      // Only where a system costs no more than the steps did.
      if (count >= 2 && (to_rounding || count * count * count <= 2 * taken * size_)) {
        steps += free_.solve(small_->matrix(), small_->stride(), free_.rows(), dual, kMostSystemsOfFew);
        for (std::size_t a = 0; a < free_.rows().size(); ++a) {
          const Integer i = free_.rows()[a];
          if (!afresh) small_->add_to_gradient(i, free_.targets()[a] - dual.beta[i], dual);
          dual.beta[i] = free_.targets()[a];
        }
        dual.settle(free_.rows());
        if (good(afresh)) break;
      }
      before = dual.state.violation();
      if (watch.spend(2 * taken * size_)) break;
    }
    return steps;
  }

  double work() const override { return work_; }
  Integer moved() const override { return moved_; }

  Integer move_free(KernelDual& dual, Integer most, Integer systems, const Budget& budget) override {
    if constexpr (std::is_same_v<Value, double>) {
      const Integer count = free_.find(dual);
      if (count < 2 || count > most) return 0;
      if (all_at_hand()) return solve_free(dual, systems);
      const auto matrix = std::make_unique_for_overwrite<double[]>(static_cast<std::size_t>(count * count));
      matrix_.square(free_.rows(), matrix.get(), count, budget);
      std::vector<Integer> places(static_cast<std::size_t>(count));
      std::iota(places.begin(), places.end(), Integer{0});
      const Integer solved = free_.solve(matrix.get(), count, places, dual, systems);
      dual.move(matrix_, free_.rows(), free_.targets(), budget);
      dual.settle(free_.rows());
      return solved;
    } else {
      return 0;
    }
  }

 private:
  static constexpr double kInnerShare = 0.1;    // a round brings its own violation down to this share
  static constexpr double kFirstShare = 0.01;   // and so the first one from 0, with all rows in the set
  static constexpr double kNoise = 0.5;         // of the largest violation
  static constexpr double kSample = 16;         // violators looked at for each place in the set
  static constexpr double kFresh = 0.8;         // share of the set that is chosen anew
  static constexpr Integer kStepsOfSome = 100;  // of a round on some of the rows, for each of these
  static constexpr Integer kPiece = Integer{1} << 28;  // multiply-adds between two looks at the clock
  // Of `solve`. A violation of this size is rounding.
  static constexpr double kRounding = 1e-13;
  static constexpr double kSeesRounding = 1e-6;  // a tol that thousands of steps' rounding stays far below
  static constexpr double kNoLoss = 1e-12;  // of the dual value: a step that takes less has not led away
  static constexpr Integer kRoundsToRounding = 100;
  static constexpr Integer kRoundsOfSystems = 40;  // the first ones; what is left then is not for Newton
  static constexpr Integer kMostSystemsOfFew = 64;
  static constexpr Integer kStepsPerRow = 20, kStepsBeforeSystem = 4;  // of a round, for each row

  bool has_all() const { return size_ == matrix_.count(); }
  // Whether all values are in one matrix.
  bool all_at_hand() const { return at_hand_ && matrix_.blocks() == 1; }

  // Sequential minimal optimisation on a new set; returns the number of steps, 0 where it changed nothing.
  Integer step_on_pairs(const KernelDual& dual, double share, double smallest, Integer most,
                        const Budget& budget, Watch& watch) {
    if (!have_values(dual, budget)) return 0;
    small_->load(dual, chosen_);
    const Integer steps = small_->run(share, smallest, most, watch);
    work_ += static_cast<double>(steps) * static_cast<double>(chosen_.size());
    changed_.clear();
    for (std::size_t k = 0; k < chosen_.size(); ++k) {
      if (has_changed(dual, k)) changed_.push_back(k);
    }
    return changed_.empty() ? 0 : steps;
  }

  // Chooses a set, and has the values among its rows, unless these are all rows and at hand already; false
  // where there is no pair.
  bool have_values(const KernelDual& dual, const Budget& budget) {
    if (at_hand_) return true;
    choose(dual);
    if (chosen_.size() < 2) return false;
    compute_values(budget);
    at_hand_ = has_all();
    return true;
  }

  // The values of the kernel among the rows of the set that are in one block: a part for each.
  void compute_values(const Budget& budget) {
    sizes_.clear();
    for (std::size_t k = 0; k < chosen_.size(); ++k) {
      if (k == 0 || matrix_.block_of(chosen_[k]) != matrix_.block_of(chosen_[k - 1])) sizes_.push_back(0);
      ++sizes_.back();
    }
    small_->arrange(sizes_);
    std::span<const Integer> left = chosen_;
    for (std::size_t part = 0; part < sizes_.size(); ++part) {
      const std::size_t size = static_cast<std::size_t>(sizes_[part]);
      matrix_.square(left.first(size), small_->matrix(part), small_->stride(part), budget);
      left = left.subspan(size);
    }
  }

  // Takes over the multiplier at a place in the set.
  void take(KernelDual& dual, std::size_t place) const {
    const Integer i = chosen_[place], k = static_cast<Integer>(place);
    dual.beta[i] = small_->beta(k);
    if (dual.sides() == 1) return;
    dual.above[i] = small_->above(k);
    dual.below[i] = small_->below(k);
  }
  // Whether it has changed: of twins both sides may, and not their sum.
  bool has_changed(const KernelDual& dual, std::size_t place) const {
    const Integer i = chosen_[place], k = static_cast<Integer>(place);
    return small_->beta(k) != dual.beta[i] || (dual.sides() == 2 && small_->above(k) != dual.above[i]);
  }

  // Newton's method on the free multipliers that were found, with all values at hand. Where many of these
  // rows depend on each other, rounding may lead away from the optimum: then nothing is done.
  Integer solve_free(KernelDual& dual, Integer systems) {
    dual.look();
    const double before = dual.state.dual;
    std::vector<double> beta;
    for (const Integer i : free_.rows()) beta.push_back(dual.beta[i]);
    const Integer solved = free_.solve(small_->matrix(), small_->stride(), free_.rows(), dual, systems);
    give_free(dual, free_.targets());
    dual.look();
    if (dual.state.dual >= before - kNoLoss * std::abs(before)) return solved;
    give_free(dual, beta);
    dual.look();
    return 0;
  }
  void give_free(KernelDual& dual, std::span<const double> targets) {
    for (std::size_t a = 0; a < targets.size(); ++a) dual.beta[free_.rows()[a]] = targets[a];
    small_->restore_gradient(dual);
    dual.settle(free_.rows());
  }

  // Takes over what has changed in a set of all rows, whose values are at hand; true when the budget is
  // spent.
  bool take_all(KernelDual& dual, Watch& watch) {
    moved_ += static_cast<Integer>(changed_.size());
    for (const std::size_t place : changed_) take(dual, place);
    small_->restore_gradient(dual);
    return watch.spend(dual.count() * dual.count());
  }

  // Takes over what has changed in the set, piece by piece; true when the budget is spent. Then some of it
  // may be missing: f is right for beta as it is, but the sum of beta is no longer 0.
  bool take_over(KernelDual& dual, const Budget& budget, Watch& watch) {
    rows_.clear();
    for (const std::size_t place : changed_) rows_.push_back(chosen_[place]);
    moved_ += static_cast<Integer>(rows_.size());
    const Integer work = matrix_.work(rows_);
    const std::size_t pieces = static_cast<std::size_t>(1 + work / kPiece);
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      rows_.clear();
      changes_.clear();
      // Not one after the other: rows may come sorted by class, and every piece is to have both.
      for (std::size_t c = piece; c < changed_.size(); c += pieces) {
        const Integer i = chosen_[changed_[c]];
        const double beta = small_->beta(static_cast<Integer>(changed_[c]));
        rows_.push_back(i);
        changes_.push_back(beta - dual.beta[i]);
        take(dual, changed_[c]);
      }
      matrix_.add(rows_, changes_, dual.f.data(), budget, piece > 0);
      if (watch.spend(work / static_cast<Integer>(pieces))) return true;
    }
    return false;
  }

  void choose_all() {
    chosen_.resize(static_cast<std::size_t>(matrix_.count()));
    std::iota(chosen_.begin(), chosen_.end(), Integer{0});
  }
  // Most of the set are violators on either side; the rest stays from the last round, free
  // multipliers first.
  void choose(const KernelDual& dual) {
    if (has_all()) return choose_all();
    // Of many violators a sample is as good as all of them, and sooner sorted.
    const double share =
        std::min(1.0, kSample * static_cast<double>(size_) / static_cast<double>(violators_ + 1));
    violators_ = 0;
    previous_ = chosen_;
    for (const Integer i : chosen_) chosen_mark_[i] = 0;
    chosen_.clear();
    taken_.assign(static_cast<std::size_t>(matrix_.blocks()), 0);
    const Integer fresh = previous_.empty() ? size_ : static_cast<Integer>(kFresh * size_);
    for (int side = 0; side < dual.sides(); ++side) {
      find_violators(dual, side, share);
      const Integer most = side + 1 == dual.sides() ? fresh : fresh / 2;
      const Integer picked = static_cast<Integer>(chosen_.size());
      take(growing_, (most - picked) / 2);
      take(falling_, most - static_cast<Integer>(chosen_.size()));
    }
    for (const bool free : {true, false}) {
      for (const Integer i : previous_) {
        if (static_cast<Integer>(chosen_.size()) >= size_) break;
        if (dual.is_free(i) == free) pick(i);
      }
    }
    std::sort(chosen_.begin(), chosen_.end());
  }
  // The rows that may grow or fall on a side and gain by it, or a share of them.
  void find_violators(const KernelDual& dual, int side, double share) {
    const Ends& ends = dual.state.ends[side];
    growing_.clear();
    falling_.clear();
    // Drawn, not just the worst: neighbours violate alike, and a set of neighbours is soon undone by
    // others.
    const double noise = kNoise * ends.violation();
    const auto key = [&](double f) { return f + noise * random_.unit(); };
    for (Integer i = 0; i < matrix_.count(); ++i) {
      const double up = dual.slope_up(i), down = dual.slope_down(i);
      const bool grows = dual.may_grow(i, side) && up < ends.greatest;
      const bool falls = dual.may_fall(i, side) && down > ends.least;
      violators_ += grows || falls;
      if (!(grows || falls) || (share < 1 && random_.unit() >= share)) continue;
      if (grows) growing_.push_back({key(up), i});
      if (falls) falling_.push_back({key(-down), i});
    }
  }
  void take(std::vector<std::pair<double, Integer>>& candidates, Integer count) {
    const std::size_t most = std::min(candidates.size(), static_cast<std::size_t>(2 * count));
    std::nth_element(candidates.begin(), candidates.begin() + most, candidates.end());
    std::sort(candidates.begin(), candidates.begin() + most);
    const std::size_t target = chosen_.size() + static_cast<std::size_t>(count);
    for (std::size_t k = 0; k < most && chosen_.size() < target; ++k) pick(candidates[k].second);
  }
  void pick(Integer i) {
    Integer& taken = taken_[static_cast<std::size_t>(matrix_.block_of(i))];
    if (chosen_mark_[i] || taken >= matrix_.most_of_block()) return;
    ++taken;
    chosen_mark_[i] = 1;
    chosen_.push_back(i);
  }

  Matrix& matrix_;
  Integer size_, violators_ = 0;
  double work_ = 0;
  Integer moved_ = 0;
  Random random_;
  std::shared_ptr<Small> small_;
  bool at_hand_ = false;  // whether it has the matrix of all rows
  FreeMultipliers free_;
  std::vector<Integer> chosen_, previous_, rows_;
  std::vector<Integer> sizes_;        // of the parts of the set
  std::vector<Integer> taken_;        // rows of each block that are in it
  std::vector<std::size_t> changed_;  // places in the set
  std::vector<double> changes_;
  std::vector<char> chosen_mark_;
  std::vector<std::pair<double, Integer>> growing_, falling_;
};

}  // namespace maxmargin
