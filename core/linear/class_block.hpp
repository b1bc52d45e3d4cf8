// SPDX-License-Identifier: BSD-3-Clause
// Several classes in one problem: the exact maximiser over the multipliers of one row (line 3 of the
// statement in src/maxmargin/solvers/crammer_singer.py). Its loops are over whole blocks of lanes: those
// beyond the classes have a height that no level reaches.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "data/rows.hpp"

namespace maxmargin {

struct ClassSweep {
  Integer active = 0;    // order[0 .. active) holds the rows to visit next time
  double violation = 0;  // the largest of any row seen
  double ascent = 0;     // by how much the dual value grew
  double gap = 0;        // sum over visited rows of their shares of the gap, each at its visit
};

// The numbers of one row, one for each lane.
class ClassBlock {
 public:
  explicit ClassBlock(Integer lanes)
      : memory_(static_cast<std::size_t>(kArrays * lanes + kLine)), lanes_(lanes) {
    for (Integer a = 0; a < lanes; ++a) array(4)[a] = static_cast<double>(a);
  }

  double* scores() { return array(0); }       // G_k = <w_k, x> + [k != y]
  double* multipliers() { return array(1); }  // beta_k
  double* heights() { return array(2); }      // D_k, of which the projection takes the tops
  double* changes() { return array(3); }      // of the multipliers
  // 0, 1, 2 and so on: the narrowest registers compare such numbers, but no integers of their size.
  const double* numbers() { return array(4); }

 private:
  static constexpr Integer kArrays = 5;
  static constexpr Integer kLine = 8;  // numbers of one line of the cache, which registers should not cross

  double* array(Integer which) {
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.data());
    const std::uintptr_t beyond = address / sizeof(double) % kLine;
    return memory_.data() + (kLine - beyond) % kLine + which * lanes_;
  }
  std::vector<double> memory_;
  Integer lanes_;
};

// What a visit knows of its row before.
struct ClassRow {
  Integer own;   // the lane of y
  Integer some;  // how many lanes have a class
  double C, A;   // the cost, and |x|^2 or what takes its place
};

struct Water {
  double level;  // theta, below the highest of D, where sum_k max(0, D_k - theta) = volume
  double above;  // how many D_k are above it
};

// What the maximiser is: the level, the largest score, and the changes of the multipliers, of which the
// block has all but the own one.
struct Best {
  Water water;
  double largest_score;
  double own_change = 0;
  double largest_change = 0;  // of any other
};

// The level by Michelot's method, from one that is not above it: what is below the level of those that are
// left cannot be above the last. Heights count from the highest, which is 0: a volume that is small beside
// the scores keeps its digits.
MAXMARGIN_INLINE Water level_of(const double* heights, Integer lanes, double volume, double level) {
  for (;;) {
    double sum = 0, count = 0, lowest = INFINITY;
#pragma omp simd reduction(+ : sum, count) reduction(min : lowest)
    for (Integer a = 0; a < lanes; ++a) {
      const bool is_above = heights[a] > level;
      sum += is_above ? heights[a] : 0.0;
      count += is_above ? 1.0 : 0.0;
      lowest = std::min(lowest, is_above ? heights[a] : INFINITY);
    }
    if (count == 0) return {level, 1};
    const double next = (sum - volume) / count;
    if (lowest > next) return {next, count};
    if (!(next > level)) return {level, count};
    level = next;
  }
}

// Whether the largest score is ahead of all others by more than this.
MAXMARGIN_INLINE bool is_ahead(ClassBlock& block, Integer lanes, Integer some, double largest, double by) {
  const double *const scores = block.scores(), *const number = block.numbers();
  const double least = largest - by, beyond = static_cast<double>(some);
  double near = 0;
#pragma omp simd reduction(+ : near)
  for (Integer a = 0; a < lanes; ++a)
    near += (number[a] < beyond ? scores[a] : -INFINITY) >= least ? 1.0 : 0.0;
  return near < 2;
}

constexpr double kNothing = 1e-15;  // what rounding leaves of a change, in units of the scores
constexpr double kLittle = 1e-3;    // and at most this share of C, which may be smaller than that
constexpr double kOfSums = 1e-13;   // of sums over many classes, in units of the scores

// An empty row is worth the same whatever class has its multipliers, as long as all are given.
inline void share_equally(const ClassRow& row, Integer lanes, const double* beta, double* change,
                          Best& best) {
  const double each = row.C / static_cast<double>(row.some - 1);
  for (Integer a = 0; a < lanes; ++a) {
    change[a] = a != row.own && a < row.some ? -each - beta[a] : 0.0;
    best.largest_change = std::max(best.largest_change, std::abs(change[a]));
  }
  best.own_change = row.C - beta[row.own];
}

// The exact maximiser over the block of one row: the changes of its multipliers, which stay as they are.
// The block has its multipliers and, as scores, <w_k, x>, with zeros in lanes without a class. `lanes` is
// kLanes where that is not 0: loops of few rounds whose number is known take half the time.
template <Integer kLanes>
Best best_changes(const ClassRow& row, Integer lanes, ClassBlock& block, ClassSweep& sweep) {
  if constexpr (kLanes > 0) lanes = kLanes;
  const Integer own = row.own, some = row.some;
  const double C = row.C, A = row.A, volume = A * C;
  double *const G = block.scores(), *const D = block.heights(), *const change = block.changes();
  const double *const beta = block.multipliers(), *const number = block.numbers();
  const double own_number = static_cast<double>(own), beyond = static_cast<double>(some);
  const double own_score = G[own];
  double share = 0, size = 1, largest = -INFINITY, least = INFINITY, highest = -INFINITY;
  double above = 0, sum = 0;  // of the heights of those that were above the level the last time
#pragma omp simd reduction(max : size, largest, highest) reduction(min : least) \
    reduction(+ : share, above, sum)
  for (Integer a = 0; a < lanes; ++a) {
    const double score = number[a] == own_number ? G[a] : G[a] + 1,
                 wall = number[a] == own_number ? C : 0.0;
    const double height = score - A * beta[a] + (number[a] == own_number ? volume : 0.0);
    G[a] = score;
    D[a] = number[a] < beyond ? height : -INFINITY;
    share += beta[a] * score;
    size = std::max(size, std::abs(score));
    largest = std::max(largest, number[a] < beyond ? score : -INFINITY);
    highest = std::max(highest, number[a] < beyond ? height : -INFINITY);
    least = std::min(least, beta[a] < wall ? score : INFINITY);  // what it has, it can give back
    above += beta[a] < wall ? 1.0 : 0.0;
    sum += beta[a] < wall ? height : 0.0;
  }
  sweep.gap += std::max(0.0, C * (largest - own_score) + share);
  sweep.violation = std::max(sweep.violation, least < INFINITY ? largest - least : 0.0);
#pragma omp simd
  for (Integer a = 0; a < lanes; ++a) D[a] -= highest;
  // The level of any of the classes alone is not above that of all, but for rounding.
  const double last = above > 0 ? (sum - volume) / above - highest - kOfSums * size : -volume;
  Best best{level_of(D, lanes, volume, std::max(last, -volume)), largest};
  if (!(A > 0) && C > 0) {
    share_equally(row, lanes, beta, change, best);
    return best;
  }
  const double inverse = A > 0 ? 1 / A : 0.0, nothing = std::min(kNothing * size * inverse, kLittle * C);
  const double nearly_all = -C * (1 - 16 * kNothing);  // all but for rounding
  const double level = best.water.level;
  double given = 0, moved = 0;
#pragma omp simd reduction(+ : given) reduction(max : moved)
  for (Integer a = 0; a < lanes; ++a) {
    const double step = std::min(0.0, (level - D[a]) * inverse), target = step < nearly_all ? -C : step;
    const double difference = target - beta[a], is_other = number[a] == own_number ? 0.0 : 1.0;
    const double by = std::abs(difference) > nothing || target == 0 ? difference : 0.0;
    change[a] = is_other * by;
    moved = std::max(moved, is_other * std::abs(by));
    given -= is_other * (beta[a] + by);
  }
  best.own_change = given - beta[own];
  best.largest_change = moved;
  return best;
}

// The multipliers go there, and the dual value grows.
template <Integer kLanes>
void take(const Best& best, const ClassRow& row, Integer lanes, double squared_norm, ClassBlock& block,
          ClassSweep& sweep) {
  if constexpr (kLanes > 0) lanes = kLanes;
  const double own_change = best.own_change;
  double *const beta = block.multipliers(), *const change = block.changes();
  const double *const G = block.scores(), *const number = block.numbers();
  const double own_number = static_cast<double>(row.own);
  double gained = 0, squares = 0;
#pragma omp simd reduction(+ : gained, squares)
  for (Integer a = 0; a < lanes; ++a) {
    const double by = number[a] == own_number ? own_change : change[a];
    change[a] = by;
    beta[a] += by;
    gained -= G[a] * by;
    squares += by * by;
  }
  sweep.ascent += gained - 0.5 * squared_norm * squares;
}

// The same for two classes, in closed form: what the own class takes of the other, which gives as much.
struct BestOfTwo {
  double given;  // alpha, in [0, C]
  double change;
  bool is_left_out;
};
MAXMARGIN_INLINE BestOfTwo best_of_two(const ClassRow& row, double own_score, double other_score,
                                       double alpha, double squared_norm, double held, ClassSweep& sweep) {
  const double C = row.C, ahead = other_score + 1 - own_score;
  sweep.gap += C * std::max(ahead, 0.0) - alpha * ahead;
  const double up = alpha < C ? ahead : 0.0, down = alpha > 0 ? -ahead : 0.0;
  sweep.violation = std::max(sweep.violation, std::max(up, down));
  const double size = std::max(1.0, std::max(std::abs(own_score), std::abs(other_score + 1)));
  // Not infinite, however short the row: times 0 that would be no number.
  const double half = row.A > 0 ? std::min(0.5 / row.A, std::numeric_limits<double>::max()) : 0.0;
  const double nothing = std::min(kNothing * size * 2 * half, kLittle * C);
  const double step = row.A > 0 ? std::clamp(alpha + half * ahead, 0.0, C) : C;
  const double target = step > C * (1 - 16 * kNothing) ? C : step;
  const double change = std::abs(target - alpha) > nothing || target == 0 ? target - alpha : 0.0;
  sweep.ascent += change * (ahead - squared_norm * change);
  return {alpha + change, change, (target == 0 || target == C) && std::abs(ahead) > held};
}

}  // namespace maxmargin
