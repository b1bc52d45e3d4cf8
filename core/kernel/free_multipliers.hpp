// SPDX-License-Identifier: BSD-3-Clause
// The end of a kernel problem whose matrix is at hand: Newton's method on the multipliers that are free.
//
// Once it is known which multipliers rest on a wall, the others F solve a linear system: f = K beta - y is
// to be the same number on all of them, and their sum is not to change,
//
//   K_FF u + nu 1 = -f_F,      sum u = 0.
//
// The step u is cut where the first multiplier meets its wall; that one leaves F, and the rest goes on.
// The same in NumPy: end_game.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernel/kernel_dual.hpp"

namespace maxmargin {

class FreeMultipliers {
 public:
  // Looks which ones are free; returns how many.
  Integer find(const KernelDual& dual) {
    free_.clear();
    for (Integer i = 0; i < static_cast<Integer>(dual.beta.size()); ++i) {
      if (dual.may_grow(i) && dual.may_fall(i)) free_.push_back(i);
    }
    return static_cast<Integer>(free_.size());
  }

  // Moves them to where the system leads, inside their walls; returns the number of systems solved. f is
  // brought up to date on the free ones only.
  Integer move(const double* matrix, Integer stride, KernelDual dual) {
    constexpr Integer kMostCuts = 64;
    Integer solved = 0;
    while (solved < kMostCuts && free_.size() >= 2 && direction(matrix, stride, dual)) {
      ++solved;
      double step = 1;
      for (std::size_t a = 0; a < free_.size(); ++a) step = std::min(step, steps_to_wall(dual, a));
      for (std::size_t a = 0; a < free_.size(); ++a) {
        const Integer i = free_[a];
        const bool at_wall = step < 1 && steps_to_wall(dual, a) <= step;
        const double wall = u_[a] > 0 ? dual.high[i] : dual.low[i];
        moved_[a] = at_wall ? wall : std::clamp(dual.beta[i] + step * u_[a], dual.low[i], dual.high[i]);
      }
      // With a wall as its end, a change is not quite step u: f follows what is really done.
      for (std::size_t a = 0; a < free_.size(); ++a) u_[a] = moved_[a] - dual.beta[free_[a]];
      for (const Integer i : free_) {
        const double* row = matrix + i * stride;
        double sum = 0;
        for (std::size_t c = 0; c < free_.size(); ++c) sum += row[free_[c]] * u_[c];
        dual.f[i] += sum;
      }
      for (std::size_t a = 0; a < free_.size(); ++a) dual.beta[free_[a]] = moved_[a];
      if (step == 1) break;
      std::erase_if(free_, [&](Integer i) { return !dual.may_grow(i) || !dual.may_fall(i); });
    }
    return solved;
  }

 private:
  double steps_to_wall(const KernelDual& dual, std::size_t a) const {
    const Integer i = free_[a];
    if (u_[a] == 0) return 1;
    return ((u_[a] > 0 ? dual.high[i] : dual.low[i]) - dual.beta[i]) / u_[a];
  }

  // u of the system above; false where K_FF is not positive definite.
  bool direction(const double* matrix, Integer stride, const KernelDual& dual) {
    const std::size_t count = free_.size();
    lower_.resize(count * count);
    for (auto* array : {&one_, &u_, &moved_}) array->resize(count);
    double trace = 0;
    for (const Integer i : free_) trace += matrix[i * stride + i];
    const double ridge = kRidge * trace / static_cast<double>(count);  // equal rows make K_FF singular
    for (std::size_t a = 0; a < count; ++a) {
      const double* row = matrix + free_[a] * stride;
      for (std::size_t c = 0; c <= a; ++c) lower_[a * count + c] = row[free_[c]];
      lower_[a * count + a] += ridge;
      one_[a] = 1;
      u_[a] = dual.f[free_[a]];
    }
    if (!factor(count)) return false;
    solve(one_);
    solve(u_);
    double ones = 0, sum = 0;
    for (std::size_t a = 0; a < count; ++a) {
      ones += one_[a];
      sum += u_[a];
    }
    if (!(ones > 0) || !std::isfinite(sum)) return false;
    double excess = 0;
    for (std::size_t a = 0; a < count; ++a) excess += u_[a] = sum / ones * one_[a] - u_[a];
    for (double& change : u_) change -= excess / static_cast<double>(count);
    return true;
  }

  // lower_ = L with L L' = what it was, row by row.
  bool factor(std::size_t count) {
    for (std::size_t a = 0; a < count; ++a) {
      double* row = lower_.data() + a * count;
      for (std::size_t c = 0; c <= a; ++c) {
        const double* other = lower_.data() + c * count;
        double sum = 0;
#pragma omp simd reduction(+ : sum)
        for (std::size_t k = 0; k < c; ++k) sum += row[k] * other[k];
        if (c < a) {
          row[c] = (row[c] - sum) / other[c];
        } else if (const double pivot = row[a] - sum; pivot > 0) {
          row[a] = std::sqrt(pivot);
        } else {
          return false;
        }
      }
    }
    return true;
  }

  // x = (L L')^-1 x
  void solve(std::vector<double>& x) const {
    const std::size_t count = x.size();
    for (std::size_t a = 0; a < count; ++a) {
      const double* row = lower_.data() + a * count;
      double sum = 0;
      for (std::size_t k = 0; k < a; ++k) sum += row[k] * x[k];
      x[a] = (x[a] - sum) / row[a];
    }
    for (std::size_t a = count; a-- > 0;) {
      const double* row = lower_.data() + a * count;
      x[a] /= row[a];
      for (std::size_t k = 0; k < a; ++k) x[k] -= x[a] * row[k];
    }
  }

  static constexpr double kRidge = 1e-12;  // of the mean of the diagonal
  std::vector<Integer> free_;
  std::vector<double> lower_, one_, u_, moved_;
};

}  // namespace maxmargin
