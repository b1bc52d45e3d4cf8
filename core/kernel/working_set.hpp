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

// Sequential minimal optimisation (004) on small dense matrices, the pair chosen by second-order gain.
//
// The rows of a set come in parts; between two of them all values of the kernel are 0. Each part has a
// matrix, and knows its own extremes of the gradient: a step costs as much as the parts that it moves.
//
// Where multipliers of each sign have their own total (kernel_dual.hpp), beta has two sides, and both rows
// of a pair move on one of them.
template <class T>
class SmallDual {
 public:
  explicit SmallDual(Integer most) : memory_(stride_of(most) * stride_of(most)) {}

  // Whether a set of one part with so many rows needs no more memory.
  bool has_room_for(Integer rows) const {
    return stride_of(rows) * stride_of(rows) <= static_cast<Integer>(memory_.size());
  }

  // Takes apart a set of rows, of which parts of these sizes follow each other.
  void arrange(std::span<const Integer> sizes) {
    parts_.clear();
    slots_.clear();
    Integer begin = 0, values = 0;
    for (const Integer size : sizes) {
      const Integer padded = (size + kLanes<double> - 1) / kLanes<double> * kLanes<double>;
      parts_.push_back({begin, begin + padded, stride_of(size), values});
      for (Integer k = 0; k < size; ++k) slots_.push_back(begin + k);
      begin += padded;
      values += size * stride_of(size);
    }
    if (values > static_cast<Integer>(memory_.size())) memory_ = Memory(values + values / 4);
    for (auto* array : {&f_, &low_, &high_, &width_, &diagonal_}) {
      array->resize(static_cast<std::size_t>(begin));
    }
    for (Side& side : sides_) {
      for (auto* array : {&side.value, &side.grow, &side.fall}) array->resize(f_.size());
      side.ends.resize(parts_.size());
    }
    part_of_.resize(static_cast<std::size_t>(begin));
    for (std::size_t p = 0; p < parts_.size(); ++p)
      std::fill(part_of_.begin() + parts_[p].begin, part_of_.begin() + parts_[p].end, p);
  }

  // The matrix of a part.
  T* matrix(std::size_t part = 0) { return memory_.data() + parts_[part].values; }
  Integer stride(std::size_t part = 0) const { return parts_[part].stride; }
  // Of row k of the set.
  double beta(Integer k) const { return above(k) + below(k); }
  double above(Integer k) const { return sides_[0].value[slots_[k]]; }
  double below(Integer k) const { return two_sides_ ? sides_[1].value[slots_[k]] : 0.0; }

  void load(const KernelDual& dual, std::span<const Integer> which) {
    two_sides_ = dual.sides() == 2;
    for (std::size_t slot = 0; slot < f_.size(); ++slot) {
      f_[slot] = low_[slot] = high_[slot] = width_[slot] = 0;
      sides_[0].value[slot] = sides_[1].value[slot] = 0;
      diagonal_[slot] = 1;
    }
    for (std::size_t k = 0; k < which.size(); ++k) {
      const Integer slot = slots_[k], i = which[k];
      f_[slot] = dual.f[i];
      sides_[0].value[slot] = two_sides_ ? dual.above[i] : dual.beta[i];
      if (two_sides_) sides_[1].value[slot] = dual.below[i];
      low_[slot] = dual.low[i];
      high_[slot] = dual.high[i];
      width_[slot] = dual.widths[i];
      const Part& part = parts_[part_of_[slot]];
      diagonal_[slot] = static_cast<double>(row(slot)[slot - part.begin]);
    }
    for (std::size_t slot = 0; slot < f_.size(); ++slot) mark(static_cast<Integer>(slot));
  }

  // f = K beta - y for the rows of a set of one part, where these are all rows.
  void restore_gradient(KernelDual& dual) const {
    for (std::size_t j = 0; j < dual.f.size(); ++j) dual.f[j] = -dual.wanted[j];
    double* f = dual.f.data();
    for (Integer i = 0; i < dual.count(); ++i) {
      const double beta = dual.beta[i];
      if (beta == 0) continue;
      const T* values = row(i);
#pragma omp simd
      for (Integer j = 0; j < dual.count(); ++j) f[j] += beta * static_cast<double>(values[j]);
    }
  }

  // Steps until no pair violates by more than `share` of the first, or `most` of them; returns their
  // number.
  Integer run(double share, double smallest, Integer most, Watch& watch) {
    return two_sides_ ? run<2>(share, smallest, most, watch) : run<1>(share, smallest, most, watch);
  }

 private:
  using D = Lanes<double>;
  typedef T Few __attribute__((vector_size(kLanes<double> * sizeof(T))));
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  static constexpr Integer kLine = 64 / sizeof(T);

  template <int sides>
  Integer run(double share, double smallest, Integer most, Watch& watch) {
    for (std::size_t p = 0; p < parts_.size(); ++p)
      move<true, sides>(p, row(parts_[p].begin), nullptr, 0.0);
    Worst ends = worst<sides>();
    const double stop = std::max(share * (ends.greatest - ends.least), smallest);
    Integer steps = 0;
    for (; steps < most && ends.greatest - ends.least > stop; ++steps) {
      Side& side = sides_[ends.side];
      const Integer i = ends.where_least;
      const Integer j = partner(i, ends.least, side);
      if (j < 0) break;
      const std::size_t part_i = part_of_[i], part_j = part_of_[j];
      const double K_ij = part_i == part_j ? static_cast<double>(row(i)[j - parts_[part_i].begin]) : 0.0;
      const double eta = PairStep::curvature(diagonal_[i], diagonal_[j], K_ij);
      const double step = PairStep::take(f_[j] + side.fall[j] - ends.least, eta, side.value[i],
                                         ceiling(i, ends.side), side.value[j], floor(j, ends.side));
      mark(i);
      mark(j);
      if (part_i == part_j) {
        move<false, sides>(part_i, row(i), row(j), step);
      } else {
        move<true, sides>(part_i, row(i), nullptr, step);
        move<true, sides>(part_j, row(j), nullptr, -step);
      }
      ends = worst<sides>();
      const Integer moved = parts_[part_i].size() + (part_i == part_j ? 0 : parts_[part_j].size());
      if (watch.spend(2 * moved + parts_[part_i].size())) return steps + 1;
    }
    return steps;
  }

  struct Part {
    Integer begin, end;      // slots; room for whole registers
    Integer stride, values;  // of its matrix, and where that begins

    Integer size() const { return end - begin; }
  };
  struct Extremes {
    double least = kInfinity, greatest = -kInfinity;
    Integer where_least = 0, where_greatest = 0;  // slots
  };
  struct Worst : Extremes {
    int side = 0;
  };
  // What may move, where all of it adds up to a number: beta, or its part on one side of 0.
  struct Side {
    std::vector<double> value, grow, fall;  // of each slot; the last two as `mark` says
    std::vector<Extremes> ends;             // of each part
  };
  // Numbers that are not initialised.
  class Memory {
   public:
    explicit Memory(Integer size)
        : values_(std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(size))), size_(size) {}
    T* data() const { return values_.get(); }
    Integer size() const { return size_; }

   private:
    std::unique_ptr<T[]> values_;
    Integer size_;
  };

  // Rows are an odd number of lines apart: lines of a column then share the processor's cache.
  static Integer stride_of(Integer rows) { return (rows + kLine - 1) / kLine * kLine | kLine; }

  const T* row(Integer slot) const {
    const Part& part = parts_[part_of_[slot]];
    return memory_.data() + part.values + (slot - part.begin) * part.stride;
  }
  // What is added to f where beta may grow or fall: the slope of e |beta| on that side, or infinity.
  void mark(Integer k) {
    if (two_sides_) {
      for (int side : {0, 1}) {
        const double value = sides_[side].value[k];
        sides_[side].grow[k] = value < ceiling(k, side) ? 0.0 : kInfinity;
        sides_[side].fall[k] = value > floor(k, side) ? 0.0 : -kInfinity;
      }
      return;
    }
    const double beta = sides_[0].value[k];
    sides_[0].grow[k] = !(beta < high_[k]) ? kInfinity : beta < 0 ? -width_[k] : width_[k];
    sides_[0].fall[k] = !(beta > low_[k]) ? -kInfinity : beta > 0 ? width_[k] : -width_[k];
  }
  double ceiling(Integer k, int side) const {
    if (two_sides_) return side ? 0.0 : high_[k];
    return KernelDual::ceiling(sides_[0].value[k], high_[k], width_[k]);
  }
  double floor(Integer k, int side) const {
    if (two_sides_) return side ? low_[k] : 0.0;
    return KernelDual::floor(sides_[0].value[k], low_[k], width_[k]);
  }
  static D load_few(const T* from) {
    Few few;
    std::memcpy(&few, from, sizeof(few));
    return __builtin_convertvector(few, D);
  }
  static D counting(Integer from) {
    D numbers;
    for (int lane = 0; lane < kLanes<double>; ++lane) numbers[lane] = static_cast<double>(from + lane);
    return numbers;
  }

  // Those of all parts, on the side that is further from its optimum.
  template <int sides>
  Worst worst() const {
    Worst found;
    for (int side = 0; side < sides; ++side) {
      Worst ends;
      ends.side = side;
      for (const Extremes& own : sides_[side].ends) {
        if (own.least < ends.least) {
          ends.least = own.least;
          ends.where_least = own.where_least;
        }
        ends.greatest = std::max(ends.greatest, own.greatest);
      }
      if (side == 0 || ends.greatest - ends.least > found.greatest - found.least) found = ends;
    }
    return found;
  }

  // f += step (K_i - K_j), or step K_i alone, in one part, and its new extremes, in one pass.
  template <bool alone, int sides>
  void move(std::size_t number, const T* row_i, const T* row_j, double step) {
    const Part& part = parts_[number];
    D least[sides], greatest[sides], where_least[sides]{}, where_greatest[sides]{};
    for (int side = 0; side < sides; ++side) {
      least[side] = all<double>(kInfinity);
      greatest[side] = all<double>(-kInfinity);
    }
    D slots = counting(part.begin);
    for (Integer k = 0; k < part.size(); k += kLanes<double>) {
      D f = maxmargin::load<double>(f_.data() + part.begin + k);
      if constexpr (alone) {
        f += step * load_few(row_i + k);
      } else {
        f += step * (load_few(row_i + k) - load_few(row_j + k));
      }
      store<double>(f_.data() + part.begin + k, f);
      for (int s = 0; s < sides; ++s) {
        const D growing = f + maxmargin::load<double>(sides_[s].grow.data() + part.begin + k);
        where_least[s] = growing < least[s] ? slots : where_least[s];
        least[s] = growing < least[s] ? growing : least[s];
        const D falling = f + maxmargin::load<double>(sides_[s].fall.data() + part.begin + k);
        where_greatest[s] = falling > greatest[s] ? slots : where_greatest[s];
        greatest[s] = falling > greatest[s] ? falling : greatest[s];
      }
      slots += static_cast<double>(kLanes<double>);
    }
    for (int s = 0; s < sides; ++s) {
      Extremes ends;
      for (int lane = 0; lane < kLanes<double>; ++lane) {
        if (least[s][lane] < ends.least) {
          ends.least = least[s][lane];
          ends.where_least = static_cast<Integer>(where_least[s][lane]);
        }
        if (greatest[s][lane] > ends.greatest) {
          ends.greatest = greatest[s][lane];
          ends.where_greatest = static_cast<Integer>(where_greatest[s][lane]);
        }
      }
      sides_[s].ends[number] = ends;
    }
  }

  // The j whose pair with i gains most: the largest (f_j - f_i)^2 / curvature. Of the parts that i is not
  // in, only the rows with the largest f are looked at.
  Integer partner(Integer i, double f_i, const Side& side) const {
    const std::size_t own_part = part_of_[i];
    const Part& part = parts_[own_part];
    const T* values = row(i);
    const double own = diagonal_[i];
    D best = all<double>(0.0), where = all<double>(-1.0), slots = counting(part.begin);
    for (Integer k = 0; k < part.size(); k += kLanes<double>) {
      const Integer slot = part.begin + k;
      const D difference = maxmargin::load<double>(f_.data() + slot) +
                           maxmargin::load<double>(side.fall.data() + slot) - f_i;
      D curvature = own + maxmargin::load<double>(diagonal_.data() + slot) - 2.0 * load_few(values + k);
      curvature = larger<double>(curvature, all<double>(PairStep::kLeastCurvature));
      const D positive = larger<double>(difference, D{});
      const D gain = positive * positive / curvature;
      where = gain > best ? slots : where;
      best = gain > best ? gain : best;
      slots += static_cast<double>(kLanes<double>);
    }
    double most = 0;
    Integer found = -1;
    for (int lane = 0; lane < kLanes<double>; ++lane) {
      if (best[lane] > most) {
        most = best[lane];
        found = static_cast<Integer>(where[lane]);
      }
    }
    for (std::size_t p = 0; p < parts_.size(); ++p) {
      const double difference = side.ends[p].greatest - f_i;
      if (p == own_part || !(difference > 0)) continue;
      const Integer j = side.ends[p].where_greatest;
      const double gain = difference * difference / PairStep::curvature(own, diagonal_[j], 0.0);
      if (gain > most) {
        most = gain;
        found = j;
      }
    }
    return found;
  }

  Memory memory_;
  std::vector<Part> parts_;
  std::vector<Integer> slots_;                             // of each row of the set
  std::vector<std::size_t> part_of_;                       // of each slot
  std::vector<double> f_, low_, high_, width_, diagonal_;  // of each slot
  Side sides_[2];
  bool two_sides_ = false;
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
    if (!small_) small_ = std::make_shared<Small>(std::min(size_, matrix.most_of_block()));
    chosen_mark_.assign(static_cast<std::size_t>(matrix.count()), 0);
  }

  Integer run(KernelDual& dual, Integer rounds, const Budget& budget, Watch& watch) override {
    dual.look();
    for (Integer round = 0; round < rounds; ++round) {
      if (dual.state.primal <= dual.state.dual || dual.state.violation() <= 0) return round;
      const double smallest = 1e-14 * (1 + std::abs(dual.state.ends[0].middle()));
      if (step_on_pairs(dual, kInnerShare, smallest, 100 * size_, budget, watch) == 0) return round;
      const bool over = take_over(dual, budget, watch);
      dual.look();
      if (over) return round + 1;
    }
    return rounds;
  }

  // For a set that has all rows: rounds of pairs, and Newton's method on the free multipliers after each,
  // until the relative gap is within tol or, if asked for, until rounding is all that is left. Multipliers
  // may be feasible ones of another solution; the gradient is computed afresh then. Returns the number of
  // steps.
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
    const bool started = std::ranges::any_of(dual.beta, [](double beta) { return beta != 0; });
    if (started && (!have_values(dual, budget) || good())) return 0;
    for (Integer round = 0; round < rounds && !watch.spend(0); ++round) {
      const bool by_systems = round < kRoundsOfSystems;
      const double first = started ? kInnerShare : kFirstShare;
      const double share = to_rounding && !by_systems ? 0.0 : round == 0 ? first : kInnerShare;
      const Integer most = (by_systems ? kStepsBeforeSystem : kStepsPerRow) * size_;
      const Integer taken = step_on_pairs(dual, share, kRounding, most, budget, watch);
      steps += taken;
      for (const std::size_t k : changed_) take(dual, k);
      if (good() || taken == 0) break;
      if (taken < most && dual.state.violation() > 0.5 * before) break;  // rounding is larger here
      const Integer count = by_systems ? free_.find(dual) : 0;
      // Only where a system costs no more than the steps did.
      if (count >= 2 && (to_rounding || count * count * count <= 2 * taken * size_)) {
        steps += free_.solve(small_->matrix(), small_->stride(), free_.rows(), dual, kMostSystemsOfFew);
        for (std::size_t a = 0; a < free_.rows().size(); ++a)
          dual.beta[free_.rows()[a]] = free_.targets()[a];
        dual.settle(free_.rows());
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
      dual.settle(free_.rows());
      return solved;
    } else {
      return 0;
    }
  }

 private:
  static constexpr double kInnerShare = 0.1;   // a round brings its own violation down to this share
  static constexpr double kFirstShare = 0.01;  // and so the first one from 0, with all rows in the set
  static constexpr double kNoise = 0.5;        // of the largest violation
  static constexpr double kSample = 16;        // violators looked at for each place in the set
  static constexpr double kFresh = 0.8;        // share of the set that is chosen anew
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
        take(dual, changed_[c]);
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
