// SPDX-License-Identifier: BSD-3-Clause
// The smooth functions of one margin each, m_i = y_i (<w, x_i> + b), that a second-order method adds up:
// their multipliers -piece'(m), their curvatures, and the best step along a line. No row is read here.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "data/rows.hpp"
#include "machine/budget.hpp"
#include "machine/threads.hpp"
#include "passes/losses.hpp"

namespace maxmargin {

// A smooth loss as it is.
template <class Loss>
struct SmoothPiece {
  const double* costs;

  double loss(Integer i, double m) const { return costs[i] * Loss::value(m); }
  double multiplier(Integer i, double m) const { return -costs[i] * Loss::derivative(m); }
  double curvature(Integer i, double m) const { return costs[i] * Loss::curvature(m); }
  double largest_curvature(Integer) const { return INFINITY; }
};

// The hinge with its kink rounded off around centre_i: the augmented Lagrangian of u_i = 1 - m_i. Its slope
// rises from 0 to C_i over a stretch of 1 / stiffness in m.
struct AugmentedHinge {
  const double* costs;
  const double* centre;
  double stiffness;

  double target(Integer i, double m) const { return centre[i] + stiffness * costs[i] * (1 - m); }
  double loss(Integer i, double m) const { return costs[i] * Hinge::value(m); }
  double multiplier(Integer i, double m) const { return std::min(std::max(target(i, m), 0.0), costs[i]); }
  double curvature(Integer i, double m) const {
    const double t = target(i, m);
    return t > 0 && t < costs[i] ? stiffness * costs[i] : 0;
  }
  double largest_curvature(Integer i) const { return stiffness * costs[i]; }
};

inline constexpr Integer kOperationsPerRow = 8;

// Of a row that has lost its curvature in this step, so much still counts in the next: where a row may
// come back at once, a step that takes it for gone goes much too far and has to be cut short.
inline constexpr double kFade = 0.3;

struct Refreshed {
  double loss = 0;         // sum_i C_i loss(m_i)
  double multipliers = 0;  // sum_i a_i
  double balance = 0;      // sum_i a_i y_i
  double supporting = 0;   // rows whose multiplier is not 0
  double changed = 0;      // rows whose multiplier is another one than before
};

// Multipliers and curvatures at the margins, and by how much the multipliers differ from the last ones
// (times y_i): most rows of a late step keep theirs, and a sum over rows then changes by a few of them
// only.
template <class Piece>
Refreshed refresh(const Piece& piece, std::span<const double> margins, const double* labels,
                  double* multipliers, double* multiplier_changes, double* curvatures,
                  const Budget& budget) {
  const Integer count = static_cast<Integer>(margins.size());
  const Integer threads = budget.threads_for(count * kOperationsPerRow);
  std::vector<Refreshed> parts(static_cast<std::size_t>(threads));
  in_parallel(threads, count, [&](Integer thread, Integer begin, Integer end) {
    double loss = 0, sum = 0, balance = 0, supporting = 0, changed = 0;
#pragma omp simd reduction(+ : loss, sum, balance, supporting, changed)
    for (Integer i = begin; i < end; ++i) {
      const double multiplier = piece.multiplier(i, margins[i]);
      // Only what had its full curvature a step ago fades: there is no second time.
      const bool fades = curvatures[i] > 0.5 * piece.largest_curvature(i);
      const double faded = fades ? kFade * curvatures[i] : 0.0;
      const double curvature = std::max(piece.curvature(i, margins[i]), faded);
      loss += piece.loss(i, margins[i]);
      sum += multiplier;
      balance += labels[i] * multiplier;
      supporting += multiplier != 0 ? 1.0 : 0.0;
      changed += multiplier != multipliers[i] ? 1.0 : 0.0;
      multiplier_changes[i] = labels[i] * (multiplier - multipliers[i]);
      multipliers[i] = multiplier;
      curvatures[i] = curvature;
    }
    parts[thread] = {loss, sum, balance, supporting, changed};
  });
  Refreshed total;
  for (const Refreshed& part : parts) {
    total.loss += part.loss;
    total.multipliers += part.multipliers;
    total.balance += part.balance;
    total.supporting += part.supporting;
    total.changed += part.changed;
  }
  return total;
}

// The step s > 0 that minimises  slope s + curvature / 2 s^2 + sum_i piece_i(m_i + s change_i): Newton's
// method on the derivative, which rises with s, inside a bracket that each look makes smaller.
template <class Piece>
double line_search(const Piece& piece, std::span<const double> margins, const double* changes, double slope,
                   double curvature, const Budget& budget) {
  struct Derivatives {
    double first, second;
  };
  const Integer count = static_cast<Integer>(margins.size());
  const Integer threads = budget.threads_for(count * kOperationsPerRow);
  std::vector<Derivatives> parts(static_cast<std::size_t>(threads));
  const auto at = [&](double s) {
    in_parallel(threads, count, [&](Integer thread, Integer begin, Integer end) {
      double first = 0, second = 0;
#pragma omp simd reduction(+ : first, second)
      for (Integer i = begin; i < end; ++i) {
        const double m = margins[i] + s * changes[i];
        first -= piece.multiplier(i, m) * changes[i];
        second += piece.curvature(i, m) * changes[i] * changes[i];
      }
      parts[thread] = {first, second};
    });
    Derivatives sum{slope + s * curvature, curvature};
    for (const Derivatives& part : parts) {
      sum.first += part.first;
      sum.second += part.second;
    }
    return sum;
  };
  constexpr double kAccuracy = 1e-2;
  const double start = at(0).first;
  if (!(start < 0)) return 0;  // no descent left beyond rounding
  double low = 0, high = INFINITY, s = 1;
  for (int look = 0; look < 60; ++look) {
    const Derivatives here = at(s);
    if (std::abs(here.first) <= -kAccuracy * start) break;
    (here.first > 0 ? high : low) = s;
    const double newton = here.second > 0 ? s - here.first / here.second : high;
    if (low < newton && newton < high) {
      s = newton;
    } else {
      s = high < INFINITY ? (low + high) / 2 : 2 * s;
    }
  }
  return s;
}

}  // namespace maxmargin
