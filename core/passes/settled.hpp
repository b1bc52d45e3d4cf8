// SPDX-License-Identifier: BSD-3-Clause
// Rows that are far from the margin of a point: with the hinge, each of them keeps its multiplier, 0 or
// C_i, at all points that are near enough, and its loss is a line.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "passes/passes.hpp"

namespace maxmargin {

// What is asked of rows: their margins at (w, b), and whether these are farther from 1 than a width.
struct Settling {
  const double *labels, *costs, *w;
  double b, width;
};

struct SettledRows {
  std::vector<Integer> near;  // the others
  double costs = 0;           // sum_i C_i over settled rows with a loss
  double balance = 0;         // sum_i C_i y_i
};

// The multipliers of settled rows, C_i or 0, and the sum of C_i y_i x_i; those of the others are -1. All in
// one visit of each row.
template <class Rows>
SettledRows settle_rows(const Rows& rows, const Settling& by, std::span<double> multipliers,
                        std::span<double> sum, const Budget& budget) {
  struct Part {
    Integer near = 0;
    double costs = 0, balance = 0;
  };
  const ScoresOfBlock<Rows> scores_of_block(rows, by.w);
  std::vector<Part> parts(static_cast<std::size_t>(budget.threads_for(rows.stored())));
  accumulate(rows, sum, budget, [&](Integer thread, Integer i, Integer last, double* target) {
    const View<Rows> view = rows;
    Part own;
    std::array<double, kRowsOfBlock> scores, pulls;
    for (Integer some = 0; i < last; i += some) {
      some = std::min(kRowsOfBlock, last - i);
      scores_of_block(view, i, some, scores.data());
      double near = 0, costs = 0, balance = 0;
#pragma omp simd reduction(+ : near, costs, balance)
      for (Integer k = 0; k < some; ++k) {
        const double cost = by.costs[i + k], y = by.labels[i + k], off = y * (scores[k] + by.b) - 1;
        const bool is_near = !(std::abs(off) > by.width);
        const double multiplier = off < 0 ? cost : 0.0, settled = is_near ? 0.0 : multiplier;
        multipliers[i + k] = is_near ? -1.0 : multiplier;
        pulls[k] = settled * y;
        near += is_near ? 1.0 : 0.0;
        costs += settled;
        balance += settled * y;
      }
      own.near += static_cast<Integer>(near);
      own.costs += costs;
      own.balance += balance;
      add_block(view, i, some, pulls.data(), target);
    }
    parts[thread] = own;
  });
  SettledRows found;
  Integer near = 0;
  for (const Part& part : parts) {
    near += part.near;
    found.costs += part.costs;
    found.balance += part.balance;
  }
  found.near.reserve(static_cast<std::size_t>(near));
  for (Integer i = 0; i < rows.count; ++i) {
    if (multipliers[i] < 0) found.near.push_back(i);
  }
  return found;
}

}  // namespace maxmargin
