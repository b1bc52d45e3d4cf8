// SPDX-License-Identifier: BSD-3-Clause
#include "linear/crammer_singer.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <variant>
#include <vector>

#include "passes/passes.hpp"

namespace maxmargin {
namespace {

constexpr Integer kFew = 64;        // classes of which a row may change the multipliers one by one
constexpr Integer kLanesOfOne = 8;  // classes that cost no more than one, if their weights lie side by side
constexpr double kNothing = 1e-15;  // what rounding leaves of a change, in units of the scores
constexpr double kLittle = 1e-3;    // and at most this share of C, which may be smaller than that

// The numbers of one row, for the classes that are still looked at; the own class is the first of them.
struct Block {
  explicit Block(Integer stride)
      : all(static_cast<std::size_t>(stride)),
        scores(all.size()),
        multipliers(all.size()),
        heights(all.size()),
        changes(all.size()),
        all_changes(all.size()) {}

  std::vector<double> all;          // <w_k, x> of all classes and lanes
  std::vector<double> scores;       // G_k = <w_k, x> + [k != y]
  std::vector<double> multipliers;  // beta_k
  std::vector<double> heights;      // D_k, of which the projection takes the tops
  std::vector<double> changes;      // of the multipliers
  std::vector<double> all_changes;  // the same in the places of all classes; 0 but while it is used
};

struct Water {
  double level;  // theta, below the highest of D, where sum_k max(0, D_k - theta) = volume
  double above;  // how many D_k are above it
};

// The level by Michelot's method: what is below the level of those that are left cannot be above the last.
// Heights count from the highest, which is 0: a volume that is small beside the scores keeps its digits.
MAXMARGIN_INLINE Water level_of(const double* heights, Integer classes, double volume) {
  double level = -volume, above = -1;
  for (;;) {
    double sum = 0, count = 0;
#pragma omp simd reduction(+ : sum, count)
    for (Integer k = 0; k < classes; ++k) {
      const bool is_above = heights[k] > level;
      sum += is_above ? heights[k] : 0.0;
      count += is_above ? 1.0 : 0.0;
    }
    if (count == above || count == 0) return {level, std::max(above, 1.0)};
    above = count;
    const double next = (sum - volume) / count;
    if (!(next > level)) return {level, count};
    level = next;
  }
}

// Whether one score is ahead of all others by more than this.
inline bool is_ahead(const double* scores, Integer classes, double by) {
  double first = -INFINITY, second = -INFINITY;
  for (Integer k = 0; k < classes; ++k) {
    second = std::max(second, std::min(first, scores[k]));
    first = std::max(first, scores[k]);
  }
  return first - second > by;
}

// scores_a = <w_k, x> for a few classes k = places_a, whose sums stay in registers.
template <Integer kLanes, class OneRow>
MAXMARGIN_INLINE void few_scores(const OneRow& row, const ClassWeights& w, Integer columns,
                                 const std::int32_t* places, double* scores) {
  double sums[kLanes] = {};
  const auto add = [&](Integer column, double x) {
    const double* const weights = w.values + column * w.stride;
    for (Integer a = 0; a < kLanes; ++a) sums[a] += x * weights[places[a]];
  };
  for_each_value(row, [&](Integer column, auto value) { add(column, static_cast<double>(value)); });
  if (w.constant != 0) add(columns, w.constant);
  std::copy_n(sums, kLanes, scores);
}

// scores_a = <w_k, x> for some classes k = places_a.
template <class OneRow>
void some_scores(const OneRow& row, const ClassWeights& w, Integer columns, const std::int32_t* places,
                 Integer count, double* scores) {
  std::fill(scores, scores + count, 0.0);
  const auto add = [&](Integer column, double x) {
    const double* const weights = w.values + column * w.stride;
    for (Integer a = 0; a < count; ++a) scores[a] += x * weights[places[a]];
  };
  for_each_value(row, [&](Integer column, auto value) { add(column, static_cast<double>(value)); });
  if (w.constant != 0) add(columns, w.constant);
}

// w_k += changes_a x for some classes k = places_a.
template <class OneRow>
void add_to_some(const OneRow& row, const ClassWeights& w, Integer columns, const std::int32_t* places,
                 Integer count, Block& block) {
  std::int32_t moved[kFew];
  double by[kFew];
  Integer some = 0;
  for (Integer a = 0; a < count; ++a) {
    if (block.changes[a] == 0) continue;
    if (some < kFew) {
      moved[some] = places[a];
      by[some] = block.changes[a];
    }
    ++some;
  }
  if (some <= kFew && 3 * some <= w.stride) {
    const auto add = [&](Integer column, double x) {
      double* const weights = w.values + column * w.stride;
      for (Integer a = 0; a < some; ++a) weights[moved[a]] += x * by[a];
    };
    for_each_value(row, [&](Integer column, auto value) { add(column, static_cast<double>(value)); });
    if (w.constant != 0) add(columns, w.constant);
    return;
  }
  for (Integer a = 0; a < count; ++a) block.all_changes[places[a]] = block.changes[a];
  const auto add = [&](Integer column, double x) {
    double* const weights = w.values + column * w.stride;
#pragma omp simd
    for (Integer k = 0; k < w.stride; ++k) weights[k] += x * block.all_changes[k];
  };
  for_each_value(row, [&](Integer column, auto value) { add(column, static_cast<double>(value)); });
  if (w.constant != 0) add(columns, w.constant);
  for (Integer a = 0; a < count; ++a) block.all_changes[places[a]] = 0;
}

// What a visit leaves of the level, and of the largest change of a multiplier.
struct Moved {
  Water water;
  double largest;
};

// The places of kLanes classes; lanes beyond `some` hold the first of the others once more.
template <Integer kLanes>
MAXMARGIN_INLINE std::array<std::int32_t, kLanes> in_lanes(const std::int32_t* places, Integer some) {
  std::array<std::int32_t, kLanes> known;
  for (Integer a = 0; a < kLanes; ++a) known[a] = places[a < some ? a : 1];
  return known;
}

// The scores of the classes of one row that are still looked at (2): of kLanes of them where their number
// is known beforehand, and of all where that is 0. `all`: those of all classes are in the block already.
template <Integer kLanes, class OneRow>
MAXMARGIN_INLINE void look_at(const OneRow& row, const ClassWeights& w, Integer columns,
                              const std::int32_t* places, Integer some, bool all, Block& block) {
  double* const G = block.scores.data();
  if constexpr (kLanes > 0) {
    const auto known = in_lanes<kLanes>(places, some);
    if (!all) return few_scores<kLanes>(row, w, columns, known.data(), G);
    for (Integer a = 0; a < kLanes; ++a) G[a] = block.all[known[a]];
  } else if (!all) {
    some_scores(row, w, columns, places, some, G);
  } else {
    for (Integer a = 0; a < some; ++a) G[a] = block.all[places[a]];
  }
}

// The exact maximiser over the block of one row, whose scores are known (3): the changes of its
// multipliers, which stay as they are. A number of lanes that is known beforehand saves loops of few rounds
// most of their time; lanes beyond the classes have a height that no level reaches. 0 lanes: as many as
// there are classes.
template <Integer kLanes>
Moved best_changes(const std::int32_t* places, Integer some, const double* stored, double C, double A,
                   Block& block, ClassSweep& sweep) {
  const Integer lanes = kLanes > 0 ? kLanes : some;
  double *const G = block.scores.data(), *const D = block.heights.data(),
                *const change = block.changes.data(), *const beta = block.multipliers.data();
  for (Integer a = 0; a < lanes; ++a) beta[a] = a < some ? stored[places[a]] : 0.0;
  const double own_score = G[0];
  double share = beta[0] * own_score, size = std::max(1.0, std::abs(own_score)), largest = own_score;
  double least = beta[0] < C ? own_score : INFINITY, highest = own_score + A * (C - beta[0]);
  D[0] = highest;
#pragma omp simd reduction(max : size, largest, highest) reduction(min : least) reduction(+ : share)
  for (Integer a = 1; a < lanes; ++a) {
    const double score = G[a] + 1;
    G[a] = score;
    D[a] = score - A * beta[a];
    share += beta[a] * score;
    size = std::max(size, std::abs(score));
    largest = std::max(largest, score);
    highest = std::max(highest, D[a]);
    least = std::min(least, beta[a] < 0 ? score : INFINITY);  // what it has, it can give back
  }
  sweep.gap += std::max(0.0, C * (largest - own_score) + share);
  sweep.violation = std::max(sweep.violation, least < INFINITY ? largest - least : 0.0);
#pragma omp simd
  for (Integer a = 0; a < lanes; ++a) D[a] = a < some ? D[a] - highest : -INFINITY;
  const Water water = level_of(D, lanes, A * C);  // 3
  const double inverse = A > 0 ? 1 / A : 0.0, nothing = std::min(kNothing * size * inverse, kLittle * C);
  const double nearly_all = -C * (1 - 16 * kNothing);  // all but for rounding
  double own = 0, moved = 0;
#pragma omp simd reduction(+ : own) reduction(max : moved)
  for (Integer a = 1; a < lanes; ++a) {
    const double step = std::min(0.0, (water.level - D[a]) * inverse);
    const double target = step < nearly_all ? -C : step, difference = target - beta[a];
    change[a] = std::abs(difference) > nothing || target == 0 ? difference : 0.0;
    moved = std::max(moved, std::abs(change[a]));
    own -= beta[a] + change[a];
  }
  if (!(A > 0) && C > 0) {
    // An empty row is worth the same whatever class has its multipliers, as long as all are given.
    const double each = C / static_cast<double>(some - 1);
    moved = 0;
    for (Integer a = 1; a < some; ++a) {
      change[a] = -each - beta[a];
      moved = std::max(moved, std::abs(change[a]));
    }
    own = C;
  }
  change[0] = own - beta[0];
  return {water, moved};
}

template <class Rows>
ClassSweep sweep_over(Rows rows, const ClassExamples& examples, std::span<Integer> order,
                      const ClassWeights& w, const ClassSteps& steps, Watch& watch) {
  constexpr Integer kAhead = 2;  // rows that are on their way from memory
  const Integer count = static_cast<Integer>(order.size()), classes = w.classes;
  Block block(w.stride);
  double *const G = block.scores.data(), *const D = block.heights.data(),
                *const change = block.changes.data(), *const beta = block.multipliers.data();
  ClassSweep sweep;
  Integer position = 0;
  while (position < count) {
    if (position + kAhead < count) {
      const Integer next = order[position + kAhead];
      rows.prefetch(next);
      MAXMARGIN_PREFETCH(&examples.multipliers[next * classes]);
      MAXMARGIN_PREFETCH(&examples.places[next * classes]);
    }
    const Integer i = order[position++];  // 1
    const auto row = rows[i];
    const double squared_norm = examples.squared_norms[i], C = examples.costs[i];
    // A step that looks ahead is exact for a curvature that is smaller.
    const double A = squared_norm / steps.relaxation;
    double* const stored = &examples.multipliers[i * classes];
    std::int32_t* const places = &examples.places[i * classes];
    Integer some = examples.sizes[i];
    Moved found;
    const Integer lanes = some == 2 ? 2 : some <= 4 ? 4 : some <= 8 && w.stride >= 8 ? 8 : 0;
    // Here, and not for each number of lanes: these are most of the loops of a sweep.
    const bool all = (lanes > 0 ? kLanesOfOne * lanes : 6 * some) > w.stride;
    if (all) all_scores(row, w, rows.columns, block.all.data());
    const auto look = [&]<Integer kLanes>(std::integral_constant<Integer, kLanes>) {
      look_at<kLanes>(row, w, rows.columns, places, some, all, block);
      found = best_changes<kLanes>(places, some, stored, C, A, block, sweep);
    };
    if (lanes == 2) {
      look(std::integral_constant<Integer, 2>{});
    } else if (lanes == 4) {
      look(std::integral_constant<Integer, 4>{});
    } else if (lanes == 8) {
      look(std::integral_constant<Integer, 8>{});
    } else {
      look(std::integral_constant<Integer, 0>{});
    }
    const Water& water = found.water;
    if (found.largest > 0) {
      examples.moved[i] = 1;
      double gained = 0, squares = 0;
      for (Integer a = 0; a < some; ++a) {
        gained -= G[a] * change[a];
        squares += change[a] * change[a];
        beta[a] += change[a];
        stored[places[a]] = beta[a];
      }
      sweep.ascent += gained - 0.5 * squared_norm * squares;
      if (A > 0) add_to_some(row, w, rows.columns, places, some, block);  // 4
    } else if (water.above == 1 && is_ahead(G, some, steps.held)) {
      continue;
    }
    // Classes that are far below the level are not looked at for a while. One other has to remain.
    const double lowest = water.level - steps.held_class;
    for (Integer a = some - 1; a > 0 && some > 2; --a) {
      if (beta[a] != 0 || !(D[a] < lowest) || !(A > 0)) continue;
      --some;
      std::swap(places[a], places[some]);
      beta[a] = beta[some];
      D[a] = D[some];
    }
    examples.sizes[i] = static_cast<std::int32_t>(some);
    order[sweep.active++] = i;
    if (watch.spend(2 * row.size() * some)) break;
  }
  while (position < count) order[sweep.active++] = order[position++];
  return sweep;
}

}  // namespace

ClassSweep crammer_singer(const StoredRows& rows, const ClassExamples& examples, std::span<Integer> order,
                          const ClassWeights& w, const ClassSteps& steps, Watch& watch) {
  return std::visit([&](const auto& kind) { return sweep_over(kind, examples, order, w, steps, watch); },
                    rows);
}

void class_scores(const StoredRows& rows, std::span<const Integer> codes, const ClassWeights& w,
                  double* out, const Budget& budget) {
  std::visit(
      [&](const auto& kind) {
        const Integer threads = budget.threads_for(kind.stored() * w.classes);
        std::vector<std::vector<double>> each(static_cast<std::size_t>(threads));
        for (std::vector<double>& own : each) own.resize(static_cast<std::size_t>(w.stride));
        in_parallel(threads, kind.count, [&](Integer thread, Integer i, Integer last) {
          double* const scores = each[thread].data();
          for (; i < last; ++i) {
            all_scores(kind[i], w, kind.columns, scores);
            double* to = out + i * (w.classes - 1);
            const double own = scores[codes[i]];
            for (Integer k = 0; k < w.classes; ++k) {
              if (k != codes[i]) *to++ = own - scores[k];
            }
          }
        });
      },
      rows);
}

void class_combine(const StoredRows& rows, std::span<const Integer> codes, const double* alpha,
                   Integer classes, double constant, std::span<double> out, const Budget& budget) {
  std::visit(
      [&](const auto& kind) {
        const Integer most = budget.threads_for(kind.stored() * classes);
        std::vector<std::vector<Integer>> lists(static_cast<std::size_t>(most));
        std::vector<std::vector<double>> each(lists.size());
        for (std::size_t t = 0; t < lists.size(); ++t) {
          lists[t].reserve(static_cast<std::size_t>(classes));
          each[t].resize(static_cast<std::size_t>(classes));
        }
        accumulate(kind, out, budget, [&](Integer thread, Integer i, Integer last, double* target) {
          const ClassWeights w{target, classes, classes, constant};
          double* const beta = each[thread].data();
          for (; i < last; ++i) {
            const double* from = alpha + i * (classes - 1);
            double own = 0;
            bool any = false;
            for (Integer k = 0; k < classes; ++k) {
              if (k == codes[i]) continue;
              any |= *from != 0;
              beta[k] = -*from;
              own += *from++;
            }
            beta[codes[i]] = own;
            if (any) add_to_classes(kind[i], w, kind.columns, beta, lists[thread]);
          }
        });
      },
      rows);
}

}  // namespace maxmargin
