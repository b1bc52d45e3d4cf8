// SPDX-License-Identifier: BSD-3-Clause
// Sweeps of coordinate descent on a quadratic model with an l1 penalty:
//
//   minimise over z, c   <q, z - w> + 1/2 sum_i h_i (<z - w, x_i> + c - b)^2 + sum_j t_j |z_j| + what c
//   costs
//
// The numbers 1 to 4 are those of `descend` in src/maxmargin/solvers/coordinate_descent.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "data/rows.hpp"
#include "machine/budget.hpp"

namespace maxmargin {

// The minimiser of  g s + 1/2 h s^2 + t |z + s|  over s, and how far z is from being it: the distance of 0
// from the slopes at z.
struct Move {
  double step, violation;
};
inline Move best_move(double z, double g, double h, double t) {
  const double violation = z == 0 ? std::max(0.0, std::abs(g) - t) : std::abs(g + (z > 0 ? t : -t));
  if (violation == 0 || !(h > 0)) return {0, violation};
  const double goal = h * z - g;
  const double moved = goal > t ? (goal - t) / h : goal < -t ? (goal + t) / h : 0.0;
  return {moved - z, violation};
}

// The model by its second derivatives, a symmetric matrix. `gradient` follows every move.
struct ProductsModel {
  const double* products;
  Integer size;
  double *gradient, *z;
  const double* thresholds;

  double slope(Integer j) const { return gradient[j]; }
  double curvature(Integer j) const { return products[j * size + j]; }
  double threshold(Integer j) const { return thresholds[j]; }
  Integer work(Integer) const { return size; }
  void move(Integer j, double step) {
    const double* const line = products + j * size;
    const Integer count = size;
    double* const all = gradient;
#pragma omp simd
    for (Integer l = 0; l < count; ++l) all[l] += step * line[l];
  }
};

// The intercept of a model by columns, which moves after every column does.
struct ModelIntercept {
  double value = 0;      // c - b
  double start = 0;      // b
  double gradient = 0;   // of the model by c, at the start
  double curvature = 0;  // sum_i h_i; 0 without intercept
  double threshold = 0;  // 1 / s where it is penalised, else 0
};

// The model by its columns: of every column, `columns` has the values times the roots of h.
template <class Columns>
struct ColumnsModel {
  Columns columns;
  const double *gradient, *curvatures;
  const double* mixed;  // sum_i h_i x_ij, with an intercept
  double *z, *residuals;
  ModelIntercept intercept;
  double pulled = 0;  // what the columns add to the intercept's slope

  double slope(Integer j) const {
    return columns[j].dot(residuals, gradient[j] + intercept.value * mixed[j]);
  }
  // A free intercept follows every column at once, which takes from its curvature.
  double curvature(Integer j) const {
    constexpr double kLeast =
        1e-12;  // of a curvature, which rounding leaves where it is all the intercept's
    if (!(intercept.curvature > 0) || intercept.threshold > 0) return curvatures[j];
    const double taken = mixed[j] * mixed[j] / intercept.curvature;
    return std::max(curvatures[j] - taken, kLeast * curvatures[j]);
  }
  double threshold(Integer) const { return 1; }
  Integer work(Integer j) const { return 2 * columns[j].size(); }
  void move(Integer j, double step) {
    columns[j].add_to(residuals, step);
    if (!(intercept.curvature > 0)) return;
    pulled += step * mixed[j];
    settle();
  }
  // The best intercept for the columns as they are.
  void settle() {
    const auto& [value, start, gradient, curvature, threshold] = intercept;
    const double slope = gradient + pulled + value * curvature;
    intercept.value +=
        threshold > 0 ? best_move(start + value, slope, curvature, threshold).step : -slope / curvature;
  }
};

struct Descent {
  Integer sweeps = 0;
  double violation = 0;  // the largest that the last sweep over all columns has seen
  double gain = 0;       // what the model has fallen by
};

// Lines 3 and 4 for one column; how far it was from optimal.
template <class Model>
double visit(Model& model, Integer j, double& gain) {
  const double z = model.z[j], g = model.slope(j), h = model.curvature(j), t = model.threshold(j);
  const auto [step, violation] = best_move(z, g, h, t);
  if (step != 0) {
    model.move(j, step);
    model.z[j] = z + step;
    gain -= step * (g + 0.5 * h * step) + t * (std::abs(z + step) - std::abs(z));
  }
  return violation;
}

// Sweeps over `order` until none of its columns is off by more than `enough`, or so many sweeps. Between
// those over all columns, only such are visited as were not at 0 when they were seen last; `order`
// changes places within itself.
template <class Model>
Descent descend(Model& model, std::span<Integer> order, Integer most, double enough, Watch& watch) {
  constexpr double kMuch = 0.1;  // of the violation of all columns: those that are not 0 go on until it
  Descent descent;
  std::size_t visited = order.size();  // 1
  double goal = enough;
  while (descent.sweeps < most) {
    double largest = 0;
    std::size_t kept = 0;
    for (std::size_t k = 0; k < visited; ++k) {  // 2
      const Integer j = order[k];
      largest = std::max(largest, visit(model, j, descent.gain));
      if (model.z[j] != 0) std::swap(order[kept++], order[k]);
      if (watch.spend(model.work(j))) {
        descent.violation = largest;
        return descent;
      }
    }
    ++descent.sweeps;
    const bool all = visited == order.size();
    if (all) {
      descent.violation = largest;
      if (!(largest > enough)) break;
      goal = std::max(enough, kMuch * largest);
      visited = kept;
      if (kept == 0) visited = order.size();
    } else if (!(largest > goal)) {
      visited = order.size();
    } else {
      visited = kept > 0 ? kept : order.size();
    }
  }
  return descent;
}

// Sweeps over `order`, until one of them gains no more than `share` of what all have gained, or none of the
// columns is off by more than `enough`, or so many sweeps. After each of them those that were off most are
// visited again, in turn, until they are off by half as much as the least of them was: as a rule these are
// a few columns that nearly depend on each other, and all others wait for them. That may cost as much as
// the sweep itself.
template <class Model>
Descent descend_worst_first(Model& model, std::span<const Integer> order, Integer most, double share,
                            double enough, Watch& watch) {
  constexpr double kWorst = 0.3;  // of the violation of all columns
  constexpr double kBetter = 0.5;
  Descent descent;
  std::vector<double> violations(order.size());
  std::vector<Integer> worst;
  while (descent.sweeps < most) {
    const double before = descent.gain;
    double largest = 0;
    Integer work = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {  // 2
      const Integer j = order[k], spent = model.work(j);
      violations[k] = visit(model, j, descent.gain);
      largest = std::max(largest, violations[k]);
      work += spent;
      if (watch.spend(spent)) {
        descent.violation = largest;
        return descent;
      }
    }
    ++descent.sweeps;
    descent.violation = largest;
    if (!(largest > enough)) break;
    worst.clear();
    for (std::size_t k = 0; k < order.size(); ++k) {
      if (violations[k] > kWorst * largest) worst.push_back(order[k]);
    }
    double left = largest;
    while (left > kBetter * kWorst * largest && work > 0) {
      left = 0;
      for (const Integer j : worst) {
        left = std::max(left, visit(model, j, descent.gain));
        work -= model.work(j);
        if (watch.spend(model.work(j))) return descent;
      }
    }
    if (!(descent.gain - before > share * descent.gain)) break;
  }
  return descent;
}

}  // namespace maxmargin
