// SPDX-License-Identifier: BSD-3-Clause
// One sweep of dual coordinate ascent. The numbers 1 to 4 are those of the algorithm's statement in
// src/maxmargin/solvers/dual_coordinate_ascent.py.
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "data/rows.hpp"
#include "machine/budget.hpp"

namespace maxmargin {

// All that a visit needs besides the row itself, in one place in memory.
struct Coordinate {
  double alpha;
  double inverse_curvature;  // 1 / (|x_i|^2 + bias_curvature + diagonal)
  double cost;               // C_i
  double diagonal;           // what alpha_i alone adds to its derivative, per unit of alpha_i
  double label;
  double target = 1;  // p_i
};

// A row at a wall of its box is left out of later sweeps while its derivative holds it there by
// more than this (Hsieh et al. 2008, section 3.2).
struct Walls {
  double above = std::numeric_limits<double>::infinity();   // for alpha_i = 0
  double below = -std::numeric_limits<double>::infinity();  // for alpha_i = C_i
};

struct Sweep {
  Integer active = 0;  // order[0 .. active) holds the rows to visit next time
  double bias = 0;     // the intercept that goes with w
  double largest = 0;  // projected derivatives seen
  double smallest = 0;
  double ascent = 0;  // by how much the dual value grew
  double gap = 0;     // sum over visited rows of C loss(m) + C loss*(-alpha / C) + alpha m
};

// What one visit of a row does to its multiplier, but for the change of w.
template <bool kSquared>
struct Visit {
  // Lines 2 and 3, where <w, x_i> + b is `score`.
  Visit(Coordinate& c, double score, double relaxation, Sweep& sweep) : alpha(c.alpha) {
    // Line 3 asks for alpha - g step; written as `rest - pull (<w, x> + b)`, because each visit
    // waits for the one before: what is between the product and the change of w bounds the speed on
    // short rows.
    const double step = relaxation * c.inverse_curvature;
    const double alone = c.diagonal * alpha - c.target;
    moved = std::max((alpha - step * alone) - (step * c.label) * score, 0.0);
    if constexpr (!kSquared) moved = std::min(moved, c.cost);
    derivative = c.label * score + alone;
    if constexpr (kSquared) {
      const double slack = alpha / (2 * c.cost) - derivative;
      const double loss = std::max(slack, 0.0);
      sweep.gap += c.cost * loss * loss - alpha * (slack - alpha / (4 * c.cost));
    } else {
      sweep.gap += alpha * derivative - c.cost * std::min(derivative, 0.0);
    }
  }
  bool moves() const { return moved != alpha; }
  double pull(const Coordinate& c) const { return moved * c.label - alpha * c.label; }
  void keep(Coordinate& c, Sweep& sweep) const {
    const double change = moved - alpha;
    c.alpha = moved;
    sweep.ascent -= change * (derivative + 0.5 * change / c.inverse_curvature);
    sweep.largest = std::max(sweep.largest, derivative);
    sweep.smallest = std::min(sweep.smallest, derivative);
  }
  bool is_held(const Walls& walls) const {
    return (derivative > walls.above && alpha == 0) || (derivative < walls.below && alpha != 0);
  }

  double alpha, moved, derivative;
};

// Rows are a view, taken by value: behind a reference, where they lie would be read again at every visit.
template <bool kSquared, class Rows>
Sweep dual_coordinate_ascent(Rows rows, std::span<Coordinate> coordinates, std::span<Integer> order,
                             double* w, double bias, double bias_curvature, double relaxation, Walls walls,
                             Watch& watch) {
  constexpr Integer kAhead = 2;  // rows that are on their way from memory
  const Integer count = static_cast<Integer>(order.size());
  Sweep sweep;
  sweep.bias = bias;
  Integer position = 0;
  while (position < count) {
    if (position + kAhead < count) {
      rows.prefetch(order[position + kAhead]);
      MAXMARGIN_PREFETCH(&coordinates[order[position + kAhead]]);
    }
    const Integer i = order[position++];  // 1
    const auto row = rows[i];
    Coordinate& c = coordinates[i];
    const Visit<kSquared> visit(c, row.dot(w, sweep.bias), relaxation, sweep);  // 2, 3
    if (visit.moves()) {
      const double pull = visit.pull(c);
      row.add_to(w, pull);  // 4
      sweep.bias += bias_curvature * pull;
      visit.keep(c, sweep);
    } else if (visit.is_held(walls)) {
      continue;
    }
    order[sweep.active++] = i;
    if (watch.spend(2 * row.size())) break;
  }
  while (position < count) order[sweep.active++] = order[position++];
  return sweep;
}

// The same where the rows 2k and 2k + 1 have the same values, and follow each other in the order: what the
// first of them does to the score of the other is known without reading these again.
template <bool kSquared, class Rows>
Sweep dual_coordinate_ascent_of_pairs(Rows rows, std::span<Coordinate> coordinates,
                                      std::span<Integer> order, double* w, double bias,
                                      double bias_curvature, double relaxation, Walls walls, Watch& watch) {
  constexpr Integer kAhead = 4;
  const Integer count = static_cast<Integer>(order.size());
  Sweep sweep;
  sweep.bias = bias;
  Integer position = 0;
  while (position + 1 < count) {
    if (position + kAhead < count) {
      rows.prefetch(order[position + kAhead]);
      MAXMARGIN_PREFETCH(&coordinates[order[position + kAhead]]);
    }
    const Integer i = order[position] & ~Integer{1};  // 1
    position += 2;
    const auto row = rows[i];
    const double score = row.dot(w, sweep.bias);
    // First the one whose multiplier is not 0: the other can leave 0 when that has come to it.
    const Integer first = coordinates[i].alpha == 0 && coordinates[i + 1].alpha != 0 ? i + 1 : i;
    double pull = 0;
    for (const Integer k : {first, first ^ 1}) {
      Coordinate& c = coordinates[k];
      // |x_i|^2 is a part of the curvature.
      const double now = score + pull * (1 / c.inverse_curvature - c.diagonal);
      const Visit<kSquared> visit(c, now, relaxation, sweep);  // 2, 3
      if (visit.moves()) {
        pull += visit.pull(c);
        visit.keep(c, sweep);
      } else if (visit.is_held(walls)) {
        continue;
      }
      order[sweep.active++] = k;
    }
    if (pull != 0) {
      row.add_to(w, pull);  // 4
      sweep.bias += bias_curvature * pull;
    }
    if (watch.spend(2 * row.size())) break;
  }
  while (position < count) order[sweep.active++] = order[position++];
  return sweep;
}

}  // namespace maxmargin
