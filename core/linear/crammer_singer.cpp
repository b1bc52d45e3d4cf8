// SPDX-License-Identifier: BSD-3-Clause
#include "linear/crammer_singer.hpp"

#include <cmath>
#include <limits>
#include <variant>
#include <vector>

#include "passes/passes.hpp"

namespace maxmargin {
namespace {

constexpr double kNothing = 1e-15;  // what rounding leaves of a change, in units of the scores

// The numbers of one row, for all classes and lanes.
struct Block {
  explicit Block(Integer stride)
      : scores(static_cast<std::size_t>(stride)), heights(scores.size()), changes(scores.size()) {
    changed.reserve(scores.size());
  }

  std::vector<double> scores;   // G_k = <w_k, x> + [k != y]
  std::vector<double> heights;  // D_k, of which the projection takes the tops
  std::vector<double> changes;
  std::vector<Integer> changed;
};

struct Water {
  double level;  // theta, where sum_k max(0, D_k - theta) = volume
  double above;  // how many D_k are above it
};

// The level by Michelot's method: what is below the level of those that are left cannot be above the last.
MAXMARGIN_INLINE Water level_of(const double* heights, Integer classes, double highest, double volume) {
  double level = highest - volume, above = -1;
  for (;;) {
    double sum = 0, count = 0;
#pragma omp simd reduction(+ : sum, count)
    for (Integer k = 0; k < classes; ++k) {
      const bool is_above = heights[k] > level;
      sum += is_above ? heights[k] - highest : 0.0;
      count += is_above ? 1.0 : 0.0;
    }
    if (count == above || count == 0) return {level, std::max(above, 1.0)};
    above = count;
    const double next = highest + (sum - volume) / count;
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

template <class Rows>
ClassSweep sweep_over(Rows rows, const ClassExamples& examples, std::span<Integer> order,
                      const ClassWeights& w, double relaxation, double held, Watch& watch) {
  constexpr Integer kAhead = 2;  // rows that are on their way from memory
  const Integer count = static_cast<Integer>(order.size()), classes = w.classes;
  Block block(w.stride);
  double *const G = block.scores.data(), *const D = block.heights.data(),
                *const change = block.changes.data();
  ClassSweep sweep;
  Integer position = 0;
  while (position < count) {
    if (position + kAhead < count) {
      rows.prefetch(order[position + kAhead]);
      MAXMARGIN_PREFETCH(&examples.multipliers[order[position + kAhead] * classes]);
    }
    const Integer i = order[position++];  // 1
    const auto row = rows[i];
    const Integer y = examples.codes[i];
    const double squared_norm = examples.squared_norms[i], C = examples.costs[i];
    // A step that looks ahead is exact for a curvature that is smaller.
    const double A = squared_norm / relaxation;
    double* const beta = &examples.multipliers[i * classes];
    all_scores(row, w, rows.columns, G);  // 2
    const double own_score = G[y];
    double share = 0, size = 1;
#pragma omp simd reduction(max : size) reduction(+ : share)
    for (Integer k = 0; k < classes; ++k) {
      const double score = G[k] + 1;
      G[k] = score;
      D[k] = score - A * beta[k];
      share += beta[k] * score;
      size = std::max(size, std::abs(score));
    }
    share -= beta[y];  // the own class has no 1 to be ahead by
    G[y] = own_score;
    D[y] = own_score + A * (C - beta[y]);
    double largest = own_score, least = beta[y] < C ? own_score : INFINITY, highest = D[y];
#pragma omp simd reduction(max : largest, highest) reduction(min : least)
    for (Integer k = 0; k < classes; ++k) {
      largest = std::max(largest, G[k]);
      highest = std::max(highest, D[k]);
      least = std::min(least, beta[k] < 0 ? G[k] : INFINITY);  // what it has, it can give back
    }
    sweep.gap += std::max(0.0, C * (largest - own_score) + share);
    sweep.violation = std::max(sweep.violation, least < INFINITY ? largest - least : 0.0);
    const Water water = level_of(D, classes, highest, A * C);  // 3
    const double inverse = A > 0 ? 1 / A : 0.0, nothing = kNothing * size * inverse;
    const double nearly_all = -C * (1 - 16 * kNothing);  // all but for rounding
    double own = 0, moved = 0;
#pragma omp simd reduction(+ : own) reduction(max : moved)
    for (Integer k = 0; k < classes; ++k) {
      const double step = std::min(0.0, (water.level - D[k]) * inverse);
      const double target = k == y ? 0.0 : step < nearly_all ? -C : step;
      const double difference = k == y ? 0.0 : target - beta[k];
      const bool counts = std::abs(difference) > nothing || target == 0;
      change[k] = counts ? difference : 0.0;
      moved = std::max(moved, std::abs(change[k]));
      own -= k == y ? 0.0 : beta[k] + change[k];
    }
    if (!(A > 0) && C > 0) {
      // An empty row is worth the same whatever class has its multipliers, as long as all are given.
      const double each = C / static_cast<double>(classes - 1);
      moved = 0;
      for (Integer k = 0; k < classes; ++k) {
        change[k] = k == y ? 0.0 : -each - beta[k];
        moved = std::max(moved, std::abs(change[k]));
      }
      own = C;
    }
    if (moved > 0) {
      change[y] = own - beta[y];
      double gained = 0, squares = 0;
#pragma omp simd reduction(+ : gained, squares)
      for (Integer k = 0; k < classes; ++k) {
        gained -= G[k] * change[k];
        squares += change[k] * change[k];
        beta[k] += change[k];
      }
      sweep.ascent += gained - 0.5 * squared_norm * squares;
      if (A > 0) add_to_classes(row, w, rows.columns, change, block.changed);  // 4
    } else if (water.above == 1 && is_ahead(G, classes, held)) {
      continue;
    }
    order[sweep.active++] = i;
    if (watch.spend(2 * row.size() * classes)) break;
  }
  while (position < count) order[sweep.active++] = order[position++];
  return sweep;
}

}  // namespace

ClassSweep crammer_singer(const StoredRows& rows, const ClassExamples& examples, std::span<Integer> order,
                          const ClassWeights& w, double relaxation, double held, Watch& watch) {
  return std::visit(
      [&](const auto& kind) { return sweep_over(kind, examples, order, w, relaxation, held, watch); },
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
