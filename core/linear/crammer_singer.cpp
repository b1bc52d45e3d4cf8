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
      : scores(static_cast<std::size_t>(stride)), heights(scores.size()), changes(scores.size()) {}

  std::vector<double> scores;   // G_k = <w_k, x> + [k != y]
  std::vector<double> heights;  // D_k, of which the projection takes the tops
  std::vector<double> changes;
  std::vector<Integer> changed;
};

struct Water {
  double level;   // theta, where sum_k max(0, D_k - theta) = volume
  Integer above;  // how many D_k are above it
};

// The level by Michelot's method: what is below the level of those that are left cannot be above the last.
Water level_of(std::span<const double> heights, double highest, double volume) {
  double level = highest - volume;
  Integer above = -1;
  for (;;) {
    double sum = 0;
    Integer count = 0;
    for (const double height : heights) {
      sum += height > level ? height - highest : 0.0;
      count += height > level;
    }
    if (count == above || count == 0) return {level, std::max<Integer>(above, 1)};
    above = count;
    const double next = highest + (sum - volume) / static_cast<double>(count);
    if (!(next > level)) return {level, count};
    level = next;
  }
}

template <class Rows>
ClassSweep sweep_over(Rows rows, const ClassExamples& examples, std::span<Integer> order,
                      const ClassWeights& w, double held, Watch& watch) {
  constexpr Integer kAhead = 2;  // rows that are on their way from memory
  const Integer count = static_cast<Integer>(order.size()), classes = w.classes;
  Block block(w.stride);
  const std::span<double> heights(block.heights.data(), static_cast<std::size_t>(classes));
  double *const G = block.scores.data(), *const change = block.changes.data();
  ClassSweep sweep;
  Integer position = 0;
  while (position < count) {
    if (position + kAhead < count) rows.prefetch(order[position + kAhead]);
    const Integer i = order[position++];  // 1
    const auto row = rows[i];
    const Integer y = examples.codes[i];
    const double A = examples.squared_norms[i], C = examples.costs[i];
    double* const beta = &examples.multipliers[i * classes];
    all_scores(row, w, rows.columns, G);  // 2
    for (Integer k = 0; k < classes; ++k) G[k] += 1;
    G[y] -= 1;
    double largest = G[0], least = INFINITY, share = 0, size = 1;
    for (Integer k = 0; k < classes; ++k) {
      largest = std::max(largest, G[k]);
      least = std::min(least, beta[k] < (k == y ? C : 0.0) ? G[k] : INFINITY);
      share += beta[k] * G[k];
      size = std::max(size, std::abs(G[k]));
      heights[k] = G[k] - A * beta[k];
    }
    sweep.gap += std::max(0.0, C * (largest - G[y]) + share);
    sweep.violation = std::max(sweep.violation, least < INFINITY ? largest - least : 0.0);
    heights[y] += A * C;
    double highest = heights[0];
    for (Integer k = 1; k < classes; ++k) highest = std::max(highest, heights[k]);
    const Water water = level_of(heights, highest, A * C);  // 3
    bool moves = false;
    double own = 0, gained = 0, squares = 0;
    for (Integer k = 0; k < classes; ++k) {
      // An empty row is worth the same whatever class has its multipliers, as long as all are given.
      const double target =
          !(A > 0) ? -C / static_cast<double>(classes - 1) : std::min(0.0, (water.level - heights[k]) / A);
      change[k] = 0;
      if (k == y) continue;
      if (target != beta[k] &&
          (std::abs(target - beta[k]) * A > kNothing * size || target == 0 || !(A > 0))) {
        change[k] = target - beta[k];
        beta[k] = target;
        moves = true;
      }
      own -= beta[k];
    }
    if (moves) {
      change[y] = own - beta[y];
      beta[y] = own;
      for (Integer k = 0; k < classes; ++k) {
        gained -= G[k] * change[k];
        squares += change[k] * change[k];
      }
      sweep.ascent += gained - 0.5 * A * squares;
      if (A > 0) add_to_classes(row, w, rows.columns, change, block.changed);  // 4
    } else if (water.above == 1) {
      // All multipliers are with the class of the highest score.
      double second = -INFINITY;
      Integer first = 0;
      for (Integer k = 1; k < classes; ++k) {
        if (G[k] > G[first]) first = k;
      }
      for (Integer k = 0; k < classes; ++k) second = k == first ? second : std::max(second, G[k]);
      if (G[first] - second > held) continue;
    }
    order[sweep.active++] = i;
    if (watch.spend(2 * row.size() * classes)) break;
  }
  while (position < count) order[sweep.active++] = order[position++];
  return sweep;
}

}  // namespace

ClassSweep crammer_singer(const StoredRows& rows, const ClassExamples& examples, std::span<Integer> order,
                          const ClassWeights& w, double held, Watch& watch) {
  return std::visit([&](const auto& kind) { return sweep_over(kind, examples, order, w, held, watch); },
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
