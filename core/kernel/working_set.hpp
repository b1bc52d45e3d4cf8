// SPDX-License-Identifier: BSD-3-Clause
// The dual of the kernel problem (kernel_dual.hpp), solved on a set of multipliers at a time: all of them
// where they are few, else some hundred or thousand.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
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
#include "machine/budget.hpp"
#include "machine/random.hpp"
#include "machine/vectors.hpp"

namespace maxmargin {

// Sequential minimal optimisation (004) on a small dense matrix, the pair chosen by second-order gain.
template <class T>
class SmallDual {
 public:
  SmallDual(Integer most)
      : stride_((most + kLine - 1) / kLine * kLine | kLine),
        matrix_(std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(stride_ * stride_))) {
    for (auto* array : {&f_, &beta_, &low_, &high_, &width_, &diagonal_, &grow_, &fall_}) {
      array->resize(static_cast<std::size_t>(stride_));
    }
  }

  T* matrix() { return matrix_.get(); }
  Integer stride() const { return stride_; }
  double beta(Integer k) const { return beta_[k]; }

  void load(const KernelDual& dual, std::span<const Integer> which) {
    const Integer size = static_cast<Integer>(which.size());
    padded_ = (size + kLanes<double> - 1) / kLanes<double> * kLanes<double>;
    for (Integer k = 0; k < padded_; ++k) {
      const bool real = k < size;
      const Integer i = real ? which[k] : 0;
      f_[k] = real ? dual.f[i] : 0;
      beta_[k] = real ? dual.beta[i] : 0;
      low_[k] = real ? dual.low[i] : 0;
      high_[k] = real ? dual.high[i] : 0;
      width_[k] = real ? dual.widths[i] : 0;
      diagonal_[k] = real ? static_cast<double>(matrix_[k * stride_ + k]) : 1;
      mark(k);
    }
  }

  // f = K beta - y for the rows of the set, where these are all rows.
  void restore_gradient(KernelDual& dual) const {
    for (std::size_t j = 0; j < dual.f.size(); ++j) dual.f[j] = -dual.wanted[j];
    double* f = dual.f.data();
    for (Integer i = 0; i < dual.count(); ++i) {
      const double beta = dual.beta[i];
      if (beta == 0) continue;
      const T* row = matrix_.get() + i * stride_;
#pragma omp simd
      for (Integer j = 0; j < dual.count(); ++j) f[j] += beta * static_cast<double>(row[j]);
    }
  }

  // Steps until no pair violates by more than `share` of the first, or `most` of them; returns their
  // number.
  Integer run(double share, double smallest, Integer most, Watch& watch) {
    Extremes ends = extremes();
    const double stop = std::max(share * (ends.greatest - ends.least), smallest);
    Integer steps = 0;
    for (; steps < most && ends.greatest - ends.least > stop; ++steps) {
      const Integer i = ends.where_least;
      const Integer j = partner(i, ends.least);
      if (j < 0) break;
      const T* row_i = matrix_.get() + i * stride_;
      const double eta = PairStep::curvature(diagonal_[i], diagonal_[j], static_cast<double>(row_i[j]));
      const double step = PairStep::take(f_[j] + fall_[j] - ends.least, eta, beta_[i],
                                         KernelDual::ceiling(beta_[i], high_[i], width_[i]), beta_[j],
                                         KernelDual::floor(beta_[j], low_[j], width_[j]));
      mark(i);
      mark(j);
      ends = move(row_i, matrix_.get() + j * stride_, step);
      if (watch.spend(3 * padded_)) return steps + 1;
    }
    return steps;
  }

 private:
  using D = Lanes<double>;
  typedef T Few __attribute__((vector_size(kLanes<double> * sizeof(T))));
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // Rows are an odd number of lines apart: lines of a column then share the processor's cache.
  static constexpr Integer kLine = 64 / sizeof(T);

  struct Extremes {
    double least, greatest;
    Integer where_least;
  };

  // What is added to f where beta may grow or fall: the slope of e |beta| on that side, or infinity.
  void mark(Integer k) {
    grow_[k] = !(beta_[k] < high_[k]) ? kInfinity : beta_[k] < 0 ? -width_[k] : width_[k];
    fall_[k] = !(beta_[k] > low_[k]) ? -kInfinity : beta_[k] > 0 ? width_[k] : -width_[k];
  }
  static D load_few(const T* from) {
    Few few;
    std::memcpy(&few, from, sizeof(few));
    return __builtin_convertvector(few, D);
  }
  static D counting() {
    D numbers;
    for (int lane = 0; lane < kLanes<double>; ++lane) numbers[lane] = lane;
    return numbers;
  }

  Extremes extremes() { return move(matrix_.get(), matrix_.get(), 0.0); }

  // f += step (K_i - K_j), and the new extremes, in one pass.
  Extremes move(const T* row_i, const T* row_j, double step) {
    D least = all<double>(kInfinity), greatest = all<double>(-kInfinity);
    D where{}, number = counting();
    for (Integer k = 0; k < padded_; k += kLanes<double>) {
      D f = maxmargin::load<double>(f_.data() + k);
      f += step * (load_few(row_i + k) - load_few(row_j + k));
      store<double>(f_.data() + k, f);
      const D growing = f + maxmargin::load<double>(grow_.data() + k);
      where = growing < least ? number : where;
      least = growing < least ? growing : least;
      const D falling = f + maxmargin::load<double>(fall_.data() + k);
      greatest = falling > greatest ? falling : greatest;
      number += static_cast<double>(kLanes<double>);
    }
    Extremes ends{kInfinity, -kInfinity, 0};
    for (int lane = 0; lane < kLanes<double>; ++lane) {
      if (least[lane] < ends.least) {
        ends.least = least[lane];
        ends.where_least = static_cast<Integer>(where[lane]);
      }
      ends.greatest = std::max(ends.greatest, static_cast<double>(greatest[lane]));
    }
    return ends;
  }

  // The j whose pair with i gains most: the largest (f_j - f_i)^2 / curvature.
  Integer partner(Integer i, double f_i) const {
    const T* row = matrix_.get() + i * stride_;
    const double own = diagonal_[i];
    D best = all<double>(0.0), where = all<double>(-1.0), number = counting();
    for (Integer k = 0; k < padded_; k += kLanes<double>) {
      const D difference =
          maxmargin::load<double>(f_.data() + k) + maxmargin::load<double>(fall_.data() + k) - f_i;
      D curvature = own + maxmargin::load<double>(diagonal_.data() + k) - 2.0 * load_few(row + k);
      curvature = larger<double>(curvature, all<double>(PairStep::kLeastCurvature));
      const D positive = larger<double>(difference, D{});
      const D gain = positive * positive / curvature;
      where = gain > best ? number : where;
      best = gain > best ? gain : best;
      number += static_cast<double>(kLanes<double>);
    }
    double most = 0;
    Integer found = -1;
    for (int lane = 0; lane < kLanes<double>; ++lane) {
      if (best[lane] > most) {
        most = best[lane];
        found = static_cast<Integer>(where[lane]);
      }
    }
    return found;
  }

  Integer stride_, padded_ = 0;
  std::unique_ptr<T[]> matrix_;
  std::vector<double> f_, beta_, low_, high_, width_, diagonal_, grow_, fall_;
};

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
    if (!small_) small_ = std::make_shared<Small>(size_);
    chosen_mark_.assign(static_cast<std::size_t>(matrix.count()), 0);
  }

  Integer run(KernelDual& dual, Integer rounds, const Budget& budget, Watch& watch) override {
    dual.look();
    for (Integer round = 0; round < rounds; ++round) {
      if (dual.state.primal <= dual.state.dual || dual.state.violation() <= 0) return round;
      const double smallest = 1e-14 * (1 + std::abs(dual.state.least));
      if (step_on_pairs(dual, kInnerShare, smallest, 100 * size_, budget, watch) == 0) return round;
      const bool over = take_over(dual, budget, watch);
      dual.look();
      if (over) return round + 1;
    }
    return rounds;
  }

  // For a set that has all rows: rounds of pairs, and Newton's method on the free multipliers after each,
  // until the relative gap is within tol or, if asked for, until rounding is all that is left. Returns the
  // number of steps.
  Integer solve(KernelDual& dual, double tol, bool to_rounding, Integer most_rounds, const Budget& budget,
                Watch& watch) {
    const Integer rounds = to_rounding ? std::max(kRoundsToRounding, most_rounds) : most_rounds;
    // Computes the gradient afresh; whether it is good enough.
    const auto good = [&] {
      small_->restore_gradient(dual);
      dual.look();
      const bool within = relative_gap(dual.state.primal, dual.state.dual) <= tol;
      return (within && !to_rounding) || dual.state.violation() <= kRounding;
    };
    double before = std::numeric_limits<double>::infinity();
    Integer steps = 0;
    for (Integer round = 0; round < rounds && !watch.spend(0); ++round) {
      const bool by_systems = round < kRoundsOfSystems;
      const double share = to_rounding && !by_systems ? 0.0 : round == 0 ? 1e-2 : kInnerShare;
      const Integer most = (by_systems ? kStepsBeforeSystem : kStepsPerRow) * size_;
      const Integer taken = step_on_pairs(dual, share, kRounding, most, budget, watch);
      steps += taken;
      for (const std::size_t k : changed_) dual.beta[k] = small_->beta(static_cast<Integer>(k));
      if (good() || taken == 0) break;
      if (taken < most && dual.state.violation() > 0.5 * before) break;  // rounding is larger here
      const Integer count = by_systems ? free_.find(dual) : 0;
      // Only where a system costs no more than the steps did.
      if (count >= 2 && (to_rounding || count * count * count <= 2 * taken * size_)) {
        steps += free_.solve(small_->matrix(), small_->stride(), free_.rows(), dual, kMostSystemsOfFew);
        for (std::size_t a = 0; a < free_.rows().size(); ++a)
          dual.beta[free_.rows()[a]] = free_.targets()[a];
        if (good()) break;
      }
      before = dual.state.violation();
      if (watch.spend(2 * taken * size_)) break;
    }
    return steps;
  }

  double work() const override { return work_; }

  Integer move_free(KernelDual& dual, Integer most, Integer systems, const Budget& budget) override {
    if constexpr (std::is_same_v<Value, double>) {
      const Integer count = free_.find(dual);
      if (count < 2 || count > most) return 0;
      const auto matrix = std::make_unique_for_overwrite<double[]>(static_cast<std::size_t>(count * count));
      matrix_.square(free_.rows(), matrix.get(), count, budget);
      std::vector<Integer> places(static_cast<std::size_t>(count));
      std::iota(places.begin(), places.end(), Integer{0});
      const Integer solved = free_.solve(matrix.get(), count, places, dual, systems);
      dual.move(matrix_, free_.rows(), free_.targets(), budget);
      return solved;
    } else {
      return 0;
    }
  }

 private:
  static constexpr double kInnerShare = 0.1;  // a round brings its own violation down to this share
  static constexpr double kNoise = 0.5;       // of the largest violation
  static constexpr double kSample = 16;       // violators looked at for each place in the set
  static constexpr double kFresh = 0.8;       // share of the set that is chosen anew
  static constexpr Integer kPiece = Integer{1} << 28;  // multiply-adds between two looks at the clock
  // Of `solve`. A violation of this size is rounding.
  static constexpr double kRounding = 1e-13;
  static constexpr Integer kRoundsToRounding = 100;
  static constexpr Integer kRoundsOfSystems = 40;  // the first ones; what is left then is not for Newton
  static constexpr Integer kMostSystemsOfFew = 64;
  static constexpr Integer kStepsPerRow = 20, kStepsBeforeSystem = 4;  // of a round, for each row

  bool has_all() const { return size_ == matrix_.count(); }

  // Sequential minimal optimisation on a new set; returns the number of steps, 0 where it changed nothing.
  Integer step_on_pairs(const KernelDual& dual, double share, double smallest, Integer most,
                        const Budget& budget, Watch& watch) {
    if (!at_hand_) {
      choose(dual);
      if (chosen_.size() < 2) return 0;
      matrix_.square(chosen_, small_->matrix(), small_->stride(), budget);
      at_hand_ = has_all();
    }
    small_->load(dual, chosen_);
    const Integer steps = small_->run(share, smallest, most, watch);
    work_ += static_cast<double>(steps) * static_cast<double>(chosen_.size());
    changed_.clear();
    for (std::size_t k = 0; k < chosen_.size(); ++k) {
      if (small_->beta(static_cast<Integer>(k)) != dual.beta[chosen_[k]]) changed_.push_back(k);
    }
    return changed_.empty() ? 0 : steps;
  }

  // Takes over what has changed in the set, piece by piece; true when the budget is spent. Then some of it
  // may be missing: f is right for beta as it is, but the sum of beta is no longer 0.
  bool take_over(KernelDual& dual, const Budget& budget, Watch& watch) {
    rows_.clear();
    for (const std::size_t place : changed_) rows_.push_back(chosen_[place]);
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
        dual.beta[i] = beta;
      }
      matrix_.add(rows_, changes_, dual.f.data(), budget, piece > 0);
      if (watch.spend(work / static_cast<Integer>(pieces))) return true;
    }
    return false;
  }

  // Most of the set are violators on either side; the rest stays from the last round, free
  // multipliers first.
  void choose(const KernelDual& dual) {
    const Integer n = matrix_.count();
    if (has_all()) {
      chosen_.resize(static_cast<std::size_t>(n));
      std::iota(chosen_.begin(), chosen_.end(), Integer{0});
      return;
    }
    const DualState& state = dual.state;
    growing_.clear();
    falling_.clear();
    // Drawn, not just the worst: neighbours violate alike, and a set of neighbours is soon undone by
    // others.
    const double noise = kNoise * state.violation();
    const auto key = [&](double f) { return f + noise * random_.unit(); };
    // Of many violators a sample is as good as all of them, and sooner sorted.
    const double share =
        std::min(1.0, kSample * static_cast<double>(size_) / static_cast<double>(violators_ + 1));
    violators_ = 0;
    for (Integer i = 0; i < n; ++i) {
      const double up = dual.slope_up(i), down = dual.slope_down(i);
      const bool grows = dual.may_grow(i) && up < state.greatest;
      const bool falls = dual.may_fall(i) && down > state.least;
      violators_ += grows || falls;
      if (!(grows || falls) || (share < 1 && random_.unit() >= share)) continue;
      if (grows) growing_.push_back({key(up), i});
      if (falls) falling_.push_back({key(-down), i});
    }
    previous_ = chosen_;
    for (const Integer i : chosen_) chosen_mark_[i] = 0;
    chosen_.clear();
    const Integer fresh = previous_.empty() ? size_ : static_cast<Integer>(kFresh * size_);
    take(growing_, fresh / 2);
    take(falling_, fresh - static_cast<Integer>(chosen_.size()));
    for (const bool free : {true, false}) {
      for (const Integer i : previous_) {
        if (static_cast<Integer>(chosen_.size()) >= size_) break;
        if (dual.is_free(i) == free) pick(i);
      }
    }
    std::sort(chosen_.begin(), chosen_.end());
  }
  void take(std::vector<std::pair<double, Integer>>& candidates, Integer count) {
    const std::size_t most = std::min(candidates.size(), static_cast<std::size_t>(2 * count));
    std::nth_element(candidates.begin(), candidates.begin() + most, candidates.end());
    std::sort(candidates.begin(), candidates.begin() + most);
    const std::size_t target = chosen_.size() + static_cast<std::size_t>(count);
    for (std::size_t k = 0; k < most && chosen_.size() < target; ++k) pick(candidates[k].second);
  }
  void pick(Integer i) {
    if (chosen_mark_[i]) return;
    chosen_mark_[i] = 1;
    chosen_.push_back(i);
  }

  Matrix& matrix_;
  Integer size_, violators_ = 0;
  double work_ = 0;
  Random random_;
  std::shared_ptr<Small> small_;
  bool at_hand_ = false;  // whether it has the matrix of all rows
  FreeMultipliers free_;
  std::vector<Integer> chosen_, previous_, rows_;
  std::vector<std::size_t> changed_;  // places in the set
  std::vector<double> changes_;
  std::vector<char> chosen_mark_;
  std::vector<std::pair<double, Integer>> growing_, falling_;
};

}  // namespace maxmargin
