// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "kernel/kernel_dual.hpp"
#include "machine/large_array.hpp"
#include "machine/vectors.hpp"

namespace maxmargin {

// Rows of a kernel problem and the values between them, as small dense matrices, and the two passes that a
// step on a pair of rows takes over them: `partner` and `move`. Which steps to take, small_dual.hpp says.
//
// The rows of a set come in parts; between two of them all values of the kernel are 0. Each part has a
// matrix, and knows its own extremes of the gradient: a step costs as much as the parts that it moves.
// A row has a slot in the arrays, where parts begin with whole registers.
//
// Where multipliers of each sign have their own total (kernel_dual.hpp), beta has two sides, and both rows
// of a pair move on one of them.
//
// The gradient has the precision of the matrix, without which it would not be known either. It is counted
// from the middle of its extremes, so that in single precision the slopes that a step compares are small
// numbers with all their digits. Multipliers are in double precision: their sum is to stay what it is.
template <class T>
class SmallSet {
 public:
  explicit SmallSet(Integer most) : memory_(stride_of(most) * stride_of(most)) {}

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
      const Integer padded = (size + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
      parts_.push_back({begin, begin + padded, stride_of(size), values});
      for (Integer k = 0; k < size; ++k) slots_.push_back(begin + k);
      begin += padded;
      values += size * stride_of(size);
    }
    if (values > static_cast<Integer>(memory_.size())) memory_ = Memory(values + values / 4);
    for (auto* array : {&low_, &high_, &width_}) array->resize(static_cast<std::size_t>(begin));
    for (auto* array : {&f_, &diagonal_}) array->resize(low_.size());
    for (Side& side : sides_) {
      side.value.resize(low_.size());
      for (auto* array : {&side.grow, &side.fall}) array->resize(low_.size());
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
    middle_ = 0;
    for (int side = 0; side < dual.sides(); ++side)
      middle_ += dual.state.ends[side].middle() / dual.sides();
    for (std::size_t slot = 0; slot < f_.size(); ++slot) {
      f_[slot] = 0;
      low_[slot] = high_[slot] = width_[slot] = 0;
      sides_[0].value[slot] = sides_[1].value[slot] = 0;
      diagonal_[slot] = 1;
    }
    for (std::size_t k = 0; k < which.size(); ++k) {
      const Integer slot = slots_[k], i = which[k];
      f_[slot] = static_cast<T>(dual.f[i] - middle_);
      sides_[0].value[slot] = two_sides_ ? dual.above[i] : dual.beta[i];
      if (two_sides_) sides_[1].value[slot] = dual.below[i];
      low_[slot] = dual.low[i];
      high_[slot] = dual.high[i];
      width_[slot] = dual.widths[i];
      const Part& part = parts_[part_of_[slot]];
      diagonal_[slot] = row(slot)[slot - part.begin];
    }
    for (std::size_t slot = 0; slot < f_.size(); ++slot) mark(static_cast<Integer>(slot));
  }

  // f = K beta - y for the rows of a set of one part, where these are all rows.
  void restore_gradient(KernelDual& dual) const {
    for (std::size_t j = 0; j < dual.f.size(); ++j) dual.f[j] = -dual.wanted[j];
    for (Integer i = 0; i < dual.count(); ++i) {
      if (dual.beta[i] != 0) add_to_gradient(i, dual.beta[i], dual);
    }
  }

  // f as the steps have left it, for the rows of a set of one part, where these are all rows.
  void give_gradient(KernelDual& dual) const {
    for (std::size_t j = 0; j < dual.f.size(); ++j) dual.f[j] = static_cast<double>(f_[j]) + middle_;
  }
  // f += change K_i, for such a set.
  void add_to_gradient(Integer i, double change, KernelDual& dual) const {
    double* f = dual.f.data();
    const T* values = row(i);
#pragma omp simd
    for (Integer j = 0; j < dual.count(); ++j) f[j] += change * static_cast<double>(values[j]);
  }

  // out[p][j] += sum_i weights[p][i] K_ij for several lines of weights and numbers, for such a set; all
  // weights of rows that are not `used` are 0. Block by block of columns, which stay in the nearest cache
  // while lines follow one another.
  void add_sums(std::span<const Integer> used, std::span<const double> weights,
                std::span<double> out) const {
    constexpr Integer kBlock = 256;
    const Integer rows = static_cast<Integer>(slots_.size()), count = static_cast<Integer>(used.size());
    const Integer lines = static_cast<Integer>(out.size()) / rows;
    for (Integer left = 0; left < rows; left += kBlock) {
      const Integer width = std::min(kBlock, rows - left);
      for (Integer k = 0; k < count; k += 4) {
        const T* values[4];
        for (Integer a = 0; a < 4; ++a) values[a] = row(used[std::min(k + a, count - 1)]) + left;
        for (Integer p = 0; p < lines; ++p) {
          double own[4];
          bool any = false;
          for (Integer a = 0; a < 4; ++a) {
            own[a] = k + a < count ? weights[p * rows + used[k + a]] : 0.0;
            any = any || own[a] != 0;
          }
          if (!any) continue;
          double* const sums = out.data() + p * rows + left;
#pragma omp simd
          for (Integer j = 0; j < width; ++j) {
            sums[j] += (own[0] * values[0][j] + own[1] * values[1][j]) +
                       (own[2] * values[2][j] + own[3] * values[3][j]);
          }
        }
      }
    }
  }

 protected:
  using D = Lanes<T>;
  static constexpr T kInfinity = std::numeric_limits<T>::infinity();
  static constexpr double kLeastShare = 1e-2;  // of a pair's curvature: what is less may be rounding

  // What a step of a set of one part adds to f: a row of the matrix, two of them, the same as the first
  // of a direction, or with the last direction along.
  enum class Rows { one, pair, first, along };

  struct Part {
    Integer begin, end;      // slots; room for whole registers
    Integer stride, values;  // of its matrix, and where that begins

    Integer size() const { return end - begin; }
  };
  struct Extremes {
    T least = kInfinity, greatest = -kInfinity;
    Integer where_least = 0, where_greatest = 0;  // slots
  };
  struct Worst : Extremes {
    int side = 0;
  };
  // What may move, where all of it adds up to a number: beta, or its part on one side of 0.
  struct Side {
    std::vector<double> value;   // of each slot
    std::vector<T> grow, fall;   // too, as `mark` says
    std::vector<Extremes> ends;  // of each part
  };

  const T* row(Integer slot) const {
    const Part& part = parts_[part_of_[slot]];
    return memory_.data() + part.values + (slot - part.begin) * part.stride;
  }
  // What is added to f where beta may grow or fall: the slope of e |beta| on that side, or infinity.
  void mark(Integer k) {
    if (two_sides_) {
      for (int side : {0, 1}) {
        const double value = sides_[side].value[k];
        sides_[side].grow[k] = value < ceiling(k, side) ? T{} : kInfinity;
        sides_[side].fall[k] = value > floor(k, side) ? T{} : -kInfinity;
      }
      return;
    }
    const double beta = sides_[0].value[k];
    const T width = static_cast<T>(width_[k]);
    sides_[0].grow[k] = !(beta < high_[k]) ? kInfinity : beta < 0 ? -width : width;
    sides_[0].fall[k] = !(beta > low_[k]) ? -kInfinity : beta > 0 ? width : -width;
  }
  // Whether beta is neither at a wall nor at the kink.
  bool is_inside(Integer k) const {
    const double beta = sides_[0].value[k];
    return beta > low_[k] && beta < high_[k] && (beta != 0 || !(width_[k] > 0));
  }
  double ceiling(Integer k, int side) const {
    if (two_sides_) return side ? 0.0 : high_[k];
    return KernelDual::ceiling(sides_[0].value[k], high_[k], width_[k]);
  }
  double floor(Integer k, int side) const {
    if (two_sides_) return side ? low_[k] : 0.0;
    return KernelDual::floor(sides_[0].value[k], low_[k], width_[k]);
  }
  // The extremes as f has them.
  template <int sides, bool several>
  Worst look() {
    for (std::size_t p = 0; p < parts_.size(); ++p)
      move<Rows::one, sides, several>(p, row(parts_[p].begin), nullptr, T{});
    return worst<sides>();
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

  // f += step (K_i - K_j), or step K_i alone, in one part, and its new extremes, in one pass; or step Kp
  // with Kp <- K_i - K_j + turn Kp, where `product` is Kp. Where the greatest one is, is asked only where
  // there are several parts.
  template <Rows rows, int sides, bool several>
  void move(std::size_t number, const T* row_i, const T* row_j, T step, T* product = nullptr,
            T turn = T{}) {
    const Part part = parts_[number];
    T* const f = f_.data() + part.begin;
    const T *grow[sides], *fall[sides];
    D least[sides][kChains], greatest[sides][kChains];
    D where_least[sides][kChains]{}, where_greatest[sides][kChains]{};
    for (int s = 0; s < sides; ++s) {
      grow[s] = sides_[s].grow.data() + part.begin;
      fall[s] = sides_[s].fall.data() + part.begin;
      for (int c = 0; c < kChains; ++c) {
        least[s][c] = all<T>(kInfinity);
        greatest[s][c] = all<T>(-kInfinity);
      }
    }
    D slots = counting(part.begin);
    in_chains(part.size(), [&](Integer k, int c) {
      D now = maxmargin::load<T>(f + k);
      D change = maxmargin::load<T>(row_i + k);
      if constexpr (rows != Rows::one) change -= maxmargin::load<T>(row_j + k);
      if constexpr (rows == Rows::along) change += turn * maxmargin::load<T>(product + k);
      if constexpr (rows == Rows::first || rows == Rows::along) store<T>(product + k, change);
      now += step * change;
      store<T>(f + k, now);
      for (int s = 0; s < sides; ++s) {
        const D growing = now + maxmargin::load<T>(grow[s] + k);
        where_least[s][c] = growing < least[s][c] ? slots : where_least[s][c];
        least[s][c] = smaller<T>(growing, least[s][c]);
        const D falling = now + maxmargin::load<T>(fall[s] + k);
        if constexpr (several)
          where_greatest[s][c] = falling > greatest[s][c] ? slots : where_greatest[s][c];
        greatest[s][c] = larger<T>(falling, greatest[s][c]);
      }
      slots += static_cast<T>(kLanes<T>);
    });
    for (int s = 0; s < sides; ++s) {
      Extremes ends;
      const D lowest = joined(least[s], [](D a, D b) { return smaller<T>(a, b); });
      const D highest = joined(greatest[s], [](D a, D b) { return larger<T>(a, b); });
      ends.least = least_of(lowest);
      ends.greatest = -least_of(-highest);
      if (ends.least < kInfinity) ends.where_least = slot_of(ends.least, least[s], where_least[s]);
      if constexpr (several) {
        if (ends.greatest > -kInfinity)
          ends.where_greatest = slot_of(ends.greatest, greatest[s], where_greatest[s]);
      }
      sides_[s].ends[number] = ends;
    }
  }

  // The j whose pair with i gains most: the largest (f_j - f_i)^2 / curvature. `turns`: where the pair
  // takes a direction p along, of which `product` is Kp and `along` p'Kp. Of the parts that i is not in,
  // only the rows with the largest f are looked at. Fractions are compared by products, since a division
  // takes as long as all the rest.
  template <bool several, bool turns>
  Integer partner(Integer i, T f_i, const Side& side, const T* product = nullptr, double along = 1) const {
    const std::size_t own_part = part_of_[i];
    const Part& part = parts_[own_part];
    const T* const values = row(i);
    const T own = diagonal_[i];
    const T* const f = f_.data() + part.begin;
    const T* const fall = side.fall.data() + part.begin;
    const T* const diagonal = diagonal_.data() + part.begin;
    const T of_i = turns ? product[i] : T{}, inverse = turns ? static_cast<T>(1 / along) : T{};
    D best[kChains], below[kChains], where[kChains], slots = counting(part.begin);
    for (int c = 0; c < kChains; ++c) {
      best[c] = all<T>(0);
      below[c] = all<T>(1);
      where[c] = all<T>(-1);
    }
    in_chains(part.size(), [&](Integer k, int c) {
      const D difference = maxmargin::load<T>(f + k) + maxmargin::load<T>(fall + k) - f_i;
      D curvature = own + maxmargin::load<T>(diagonal + k) - 2 * maxmargin::load<T>(values + k);
      curvature = larger<T>(curvature, all<T>(static_cast<T>(PairStep::kLeastCurvature)));
      if constexpr (turns) {
        const D both = of_i - maxmargin::load<T>(product + k);
        curvature = larger<T>(curvature - both * both * inverse, curvature * static_cast<T>(kLeastShare));
      }
      const D positive = larger<T>(difference, D{});
      const D square = positive * positive;
      const auto better = square * below[c] > best[c] * curvature;
      where[c] = better ? slots : where[c];
      best[c] = better ? square : best[c];
      below[c] = better ? curvature : below[c];
      slots += static_cast<T>(kLanes<T>);
    });
    D gains[kChains];
    for (int c = 0; c < kChains; ++c) gains[c] = best[c] / below[c];
    const D highest = joined(gains, [](D a, D b) { return larger<T>(a, b); });
    const T largest = -least_of(-highest);
    double most = largest;
    Integer found = largest > 0 ? slot_of(largest, gains, where) : -1;
    if constexpr (!several) return found;
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

  // Takes over some rows of another set of one part, as they are there; arranged for so many.
  void copy(const SmallSet& whole, std::span<const Integer> rows) {
    const Integer count = static_cast<Integer>(rows.size());
    two_sides_ = whole.two_sides_;
    const Integer padded = parts_[0].size();
    for (Integer a = 0; a < padded; ++a) {
      const bool is_row = a < count;
      const Integer slot = is_row ? rows[a] : 0;
      f_[a] = is_row ? whole.f_[slot] : T{};
      low_[a] = is_row ? whole.low_[slot] : 0.0;
      high_[a] = is_row ? whole.high_[slot] : 0.0;
      width_[a] = is_row ? whole.width_[slot] : 0.0;
      diagonal_[a] = is_row ? whole.diagonal_[slot] : T{1};
      for (int side : {0, 1}) sides_[side].value[a] = is_row ? whole.sides_[side].value[slot] : 0.0;
      mark(a);
    }
    for (Integer a = 0; a < count; ++a) {
      T* const to = matrix() + a * stride();
      const T* const from = whole.row(rows[a]);
      for (Integer b = 0; b < count; ++b) to[b] = from[rows[b]];
      std::fill(to + count, to + padded, T{});
    }
  }

  std::vector<Part> parts_;
  std::vector<Integer> slots_;              // of each row of the set
  std::vector<std::size_t> part_of_;        // of each slot
  std::vector<double> low_, high_, width_;  // of each slot
  std::vector<T> f_, diagonal_;             // too; f is counted from its middle:
  double middle_ = 0;
  Side sides_[2];
  bool two_sides_ = false;

 private:
  static constexpr Integer kLine = 64 / sizeof(T);
  static constexpr int kChains = 2;  // of comparisons that need not wait for each other

  // Numbers that are not initialised. Of many, the first touch of a page would take as long as their
  // values.
  class Memory {
   public:
    explicit Memory(Integer size) : size_(size) {
      const std::size_t count = static_cast<std::size_t>(size);
      if (count * sizeof(T) >= kLarge) {
        large_ = large_array<T>(count);
      } else {
        small_ = std::make_unique_for_overwrite<T[]>(count);
      }
    }
    T* data() const { return large_ ? large_.get() : small_.get(); }
    Integer size() const { return size_; }

   private:
    static constexpr std::size_t kLarge = std::size_t{1} << 22;  // bytes
    std::unique_ptr<T[]> small_;
    LargeArray<T> large_;
    Integer size_;
  };

  // Rows are an odd number of lines apart: lines of a column then share the processor's cache.
  static Integer stride_of(Integer rows) { return (rows + kLine - 1) / kLine * kLine | kLine; }

  static D counting(Integer from) {
    D numbers;
    for (int lane = 0; lane < kLanes<T>; ++lane) numbers[lane] = static_cast<T>(from + lane);
    return numbers;
  }

  // Calls use(k, chain) for the registers of a part, which begin at k: neighbours in different chains, so
  // that a comparison need not wait for the one before it.
  template <class Use>
  static void in_chains(Integer size, const Use& use) {
    constexpr Integer at_once = kChains * kLanes<T>;
    Integer k = 0;
    for (; k + at_once <= size; k += at_once) {
      for (int c = 0; c < kChains; ++c) use(k + c * kLanes<T>, c);
    }
    for (; k < size; k += kLanes<T>) use(k, 0);
  }
  template <class Join>
  static D joined(const D (&chains)[kChains], const Join& join) {
    D all = chains[0];
    for (int c = 1; c < kChains; ++c) all = join(all, chains[c]);
    return all;
  }
  static T least_of(const D& values) {
    T least = values[0];
#pragma omp simd reduction(min : least)
    for (int lane = 0; lane < kLanes<T>; ++lane) least = std::min(least, values[lane]);
    return least;
  }
  // The first slot, of lanes that count them, where a lane has this value; -1 where none has.
  static Integer slot_of(T value, const D (&values)[kChains], const D (&slots)[kChains]) {
    D found = all<T>(kInfinity);
    for (int c = 0; c < kChains; ++c) found = smaller<T>(values[c] == value ? slots[c] : found, found);
    const T slot = least_of(found);
    return slot < kInfinity ? static_cast<Integer>(slot) : -1;
  }

  Memory memory_;
};

}  // namespace maxmargin
