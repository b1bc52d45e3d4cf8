// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

#include "kernel/small_set.hpp"
#include "machine/budget.hpp"

namespace maxmargin {

// Sequential minimal optimisation (004) on small dense matrices, the pair chosen by second-order gain.
// What a step reads and writes is in small_set.hpp.
//
// Shrinking: after some steps on a set of one part, the rows that a pair can move now are taken apart, with
// the values among them, and are solved for as a smaller set. What they moved by is then told the others.
// In single precision, whose steps read half as much, it gains nothing, and sets stay whole.
//
// Steps in a set of one part and one side are conjugate to the one before (Torres-Barran, Alaiz and
// Dorronsoro 2021): a pair d = e_i - e_j takes the last direction p along,
//
//   p <- d + turn p,   turn = -d'Kp / p'Kp,   curvature p'Kp = d'Kd - (d'Kp)^2 / p'Kp before,
//
// so that it does not undo what was gained along p, and gains at least as much as the pair alone. Where a
// multiplier would meet its wall, the pair goes alone, and where it does not meet one, the next p is d. The
// first steps, which find walls rather than a way, go alone, and so do all of an easy problem.
template <class T>
class SmallDual : public SmallSet<T> {
 public:
  using SmallSet<T>::SmallSet;

  // Takes apart a set of rows, of which parts of these sizes follow each other.
  void arrange(std::span<const Integer> sizes) {
    SmallSet<T>::arrange(sizes);
    along_.begin(f_.size());
  }

  // Steps until no pair violates by more than `share` of the first, or `most` of them; returns their
  // number.
  Integer run(double share, double smallest, Integer most, Watch& watch) {
    // Two sides have no loop of their own for a single part: it would be compiled for each type, too.
    if (two_sides_) return run<2, true>(share, smallest, most, watch);
    return parts_.size() > 1 ? run<1, true>(share, smallest, most, watch)
                             : run<1, false>(share, smallest, most, watch);
  }

 private:
  using Set = SmallSet<T>;
  using Set::diagonal_, Set::sides_, Set::two_sides_;
  using Set::parts_, Set::slots_, Set::part_of_, Set::low_, Set::high_, Set::width_, Set::f_;
  using Set::row, Set::mark, Set::is_inside, Set::ceiling, Set::floor, Set::kLeastShare;
  using typename Set::Rows, typename Set::Extremes, typename Set::Worst, typename Set::Side;

  static constexpr double kUnseen = 16 * std::numeric_limits<T>::epsilon();  // of both diagonals: rounding

  // Of shrinking. A step on fewer rows takes as long as one on so many: there is nothing to gain.
  static constexpr Integer kLeastRows = 256;
  static constexpr double kShrinkTo = 0.5;  // rows are taken apart where at most this share may move
  static constexpr double kLookAfter =
      0.25;  // steps for each row until it is worth a look, and until directions are
  static constexpr Integer kReadsOfStep = 3;  // registers that a step reads for those of one row
  static constexpr double kPartShare = 0.1;   // a smaller set brings the violation down to this share

  template <int sides, bool several>
  Integer run(double share, double smallest, Integer most, Watch& watch) {
    Worst ends = Set::template look<sides, several>();
    const double stop = std::max(share * (ends.greatest - ends.least), smallest);
    const Integer rows = static_cast<Integer>(slots_.size());
    const bool may_shrink = std::is_same_v<T, double> && parts_.size() == 1 && rows >= kLeastRows;
    const Integer patience = static_cast<Integer>(kLookAfter * static_cast<double>(rows));
    Integer steps = 0, copied = 0, next = patience;
    while (steps < most && ends.greatest - ends.least > stop) {
      if (may_shrink && steps >= next) {
        settle();
        // One value is copied in the time in which a step reads a register of them.
        const Integer copies = kReadsOfStep * (steps - copied) * rows / kLanes<T>;
        const Integer taken = run_on_some<sides>(copies, stop, most - steps, watch);
        next = (steps += taken) + (taken < patience ? patience : 0);
        if (watch.spend(0)) break;
        if (taken > 0) {
          copied = steps - taken;
          ends = Set::template look<sides, several>();
          continue;
        }
      }
      Side& side = sides_[ends.side];
      const Integer i = ends.where_least;
      const Integer j = along_.curvature > 0
                            ? Set::template partner<several, may_turn<sides, several>>(
                                  i, ends.least, side, along_.product.data(), along_.curvature)
                            : Set::template partner<several, false>(i, ends.least, side);
      if (j < 0) break;
      const std::size_t part_i = part_of_[i], part_j = part_of_[j];
      const double K_ij = part_i == part_j ? static_cast<double>(row(i)[j - parts_[part_i].begin]) : 0.0;
      const double eta = PairStep::curvature(diagonal_[i], diagonal_[j], K_ij);
      const double slope = f_[j] + side.fall[j] - ends.least;
      ++steps;
      if constexpr (may_turn<sides, several>) {
        if (!go_along(i, j, slope, eta)) go_alone(i, j, slope, eta, steps > patience);
      } else {
        const T step = take_pair(i, j, slope, eta, ends.side);
        if (part_i == part_j) {
          Set::template move<Rows::pair, sides, several>(part_i, row(i), row(j), step);
        } else {
          Set::template move<Rows::one, sides, several>(part_i, row(i), nullptr, step);
          Set::template move<Rows::one, sides, several>(part_j, row(j), nullptr, -step);
        }
      }
      ends = Set::template worst<sides>();
      const Integer moved = parts_[part_i].size() + (part_i == part_j ? 0 : parts_[part_j].size());
      if (watch.spend(2 * moved + parts_[part_i].size())) break;
    }
    settle();
    return steps;
  }

  // Steps of a set of one part and one side may take the last direction along.
  template <int sides, bool several>
  static constexpr bool may_turn = sides == 1 && !several;

  // The step of a pair alone, as its multipliers have it.
  T take_pair(Integer i, Integer j, double slope, double eta, int side) {
    std::vector<double>& value = sides_[side].value;
    const double step = PairStep::take(slope, eta, value[i], ceiling(i, side), value[j], floor(j, side));
    mark(i);
    mark(j);
    return static_cast<T>(step);
  }

  // The same, and all that follows from it; without a wall on the way, the pair may be the next direction.
  void go_alone(Integer i, Integer j, double slope, double eta, bool may_begin) {
    settle();
    const T step = take_pair(i, j, slope, eta, 0);
    const bool is_rounding = eta <= kUnseen * (diagonal_[i] + diagonal_[j]);
    if (!may_begin || is_rounding || !is_inside(i) || !is_inside(j))
      return Set::template move<Rows::pair, 1, false>(0, row(i), row(j), step);
    along_.curvature = eta;
    along_.add(i, 1.0, *this);
    along_.add(j, -1.0, *this);
    Set::template move<Rows::first, 1, false>(0, row(i), row(j), step, along_.product.data());
  }

  // Goes along the pair and the last direction, where there is one and no wall is on the way.
  bool go_along(Integer i, Integer j, double slope, double eta) {
    if (!(along_.curvature > 0)) return false;
    const double both = static_cast<double>(along_.product[i]) - static_cast<double>(along_.product[j]);
    const double turn = -both / along_.curvature, curvature = eta + both * turn;
    if (!(curvature > kLeastShare * eta)) return false;
    const double step = slope / curvature;
    if (!along_.turn(i, j, turn, step, *this)) return false;
    along_.curvature = curvature;
    for (const Integer k : {i, j}) {
      sides_[0].value[k] = along_.value[along_.place[k]];
      mark(k);
    }
    Set::template move<Rows::along, 1, false>(0, row(i), row(j), static_cast<T>(step),
                                              along_.product.data(), static_cast<T>(turn));
    return true;
  }

  // Gives the multipliers of the last direction back, and forgets it.
  void settle() {
    for (Integer a = 0; a < along_.count; ++a) {
      sides_[0].value[along_.slots[a]] = along_.value[a];
      along_.place[along_.slots[a]] = -1;
    }
    along_.curvature = 0;
    along_.count = 0;
  }

  // The direction of the last steps. Its multipliers are here, side by side, in the first `count` places.
  struct Direction {
    std::vector<T> product;      // K p, of each slot
    std::vector<Integer> place;  // of each slot; -1 where it does not move
    std::vector<Integer> slots;
    std::vector<double> p, value, low, high;
    double curvature = 0;  // p'Kp; 0 where there is no direction
    Integer count = 0;

    void begin(std::size_t size) {
      for (auto* array : {&p, &value, &low, &high}) array->resize(size);
      product.resize(size);
      slots.resize(size);
      place.assign(size, -1);
      curvature = 0;
      count = 0;
    }
    // Slot k goes along by `by`, in units of the step.
    void add(Integer k, double by, const SmallDual& set) {
      if (place[k] >= 0) {
        p[place[k]] += by;
        return;
      }
      const double beta = set.sides_[0].value[k], width = set.width_[k];
      const bool is_above = beta > 0 || (beta == 0 && by > 0);
      slots[count] = k;
      p[count] = by;
      value[count] = beta;
      low[count] = width > 0 && is_above ? 0.0 : set.low_[k];
      high[count] = width > 0 && !is_above ? 0.0 : set.high_[k];
      place[k] = count++;
    }
    // Turns to a pair, and goes there unless a wall is on the way; then only p has changed.
    bool turn(Integer i, Integer j, double by, double step, const SmallDual& set) {
      double *const p_ = p.data(), *const value_ = value.data();
#pragma omp simd
      for (Integer a = 0; a < count; ++a) p_[a] *= by;
      add(i, 1.0, set);
      add(j, -1.0, set);
      const double *low_ = low.data(), *high_ = high.data();
      double room = INFINITY;
#pragma omp simd reduction(min : room)
      for (Integer a = 0; a < count; ++a) {
        const double next = value_[a] + step * p_[a];
        room = std::min(room, std::min(next - low_[a], high_[a] - next));
      }
      if (!(room > 0)) return false;
#pragma omp simd
      for (Integer a = 0; a < count; ++a) value_[a] += step * p_[a];
      return true;
    }
  };

  // Steps on the rows of a set of one part that a pair can move now, where these are few enough for their
  // values to be copied; their number.
  template <int sides>
  Integer run_on_some(Integer copies, double stop, Integer most, Watch& watch) {
    moving_.clear();
    for (const Integer slot : slots_) {
      bool moves = false;
      for (int s = 0; s < sides; ++s) {
        const Extremes& ends = sides_[s].ends[0];
        moves |= f_[slot] + sides_[s].grow[slot] < ends.greatest;
        moves |= f_[slot] + sides_[s].fall[slot] > ends.least;
      }
      if (moves) moving_.push_back(slot);
    }
    const Integer count = static_cast<Integer>(moving_.size()), rows = static_cast<Integer>(slots_.size());
    if (count < 2 || count * count > copies) return 0;
    if (static_cast<double>(count) > kShrinkTo * static_cast<double>(rows)) return 0;
    if (!some_) some_ = std::make_unique<SmallDual>(count);
    some_->arrange(std::span(&count, 1));
    some_->copy(*this, moving_);
    const Integer steps = some_->template run<sides, sides == 2>(kPartShare, stop, most, watch);
    Integer changed = 0;
    for (Integer a = 0; a < count; ++a) {
      const Integer slot = moving_[a];
      const double before = sides_[0].value[slot] + (sides == 2 ? sides_[1].value[slot] : 0.0);
      for (int s = 0; s < sides; ++s) sides_[s].value[slot] = some_->sides_[s].value[a];
      mark(slot);
      const T change = static_cast<T>(some_->beta(a) - before);
      if (change == 0) continue;
      ++changed;
      T* const f = f_.data();
      const T* const values = row(slot);
#pragma omp simd
      for (Integer k = 0; k < rows; ++k) f[k] += change * values[k];
    }
    watch.spend(count * count + changed * rows);
    return steps;
  }

  Direction along_;
  std::vector<Integer> moving_;      // slots of the rows that are taken apart
  std::unique_ptr<SmallDual> some_;  // and the set of these
};

}  // namespace maxmargin
