// SPDX-License-Identifier: BSD-3-Clause
// The end of a kernel problem: Newton's method on the multipliers that are free.
//
// Once it is known which multipliers rest on a wall, the others F solve a linear system: the slope f is to
// be the same number on all of them, and their sum is not to change,
//
//   K_FF u + nu 1 = -f_F,      sum u = 0,
//
// or with a number nu and a sum for each side, where multipliers of each sign have their own total.
// The step u is cut where the first multiplier meets its wall; that one leaves F, and the rest goes on.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <vector>

#include "kernel/kernel_dual.hpp"
#include "machine/dense_factor.hpp"

namespace maxmargin {

class FreeMultipliers {
 public:
  // Looks which ones are free; returns how many.
  Integer find(const KernelDual& dual) {
    rows_.clear();
    for (Integer i = 0; i < dual.count(); ++i) {
      if (dual.is_free(i)) rows_.push_back(i);
    }
    return static_cast<Integer>(rows_.size());
  }
  std::span<const Integer> rows() const { return rows_; }

  // Where the systems lead the rows that were found, inside their walls. Row a of them has line and column
  // places[a] in the matrix. Ends after `most` systems; returns how many were solved.
  Integer solve(const double* matrix, Integer stride, std::span<const Integer> places,
                const KernelDual& dual, Integer most) {
    inside_.resize(rows_.size());
    std::iota(inside_.begin(), inside_.end(), Integer{0});
    target_.resize(rows_.size());
    f_.resize(rows_.size());
    side_.resize(rows_.size());
    for (std::size_t a = 0; a < rows_.size(); ++a) {
      target_[a] = dual.beta[rows_[a]];
      side_[a] = dual.side_of(rows_[a]);
      f_[a] = dual.slope_up(rows_[a]);
    }
    Integer solved = 0;
    while (solved < most && inside_.size() >= 2 && find_direction(matrix, stride, places)) {
      ++solved;
      if (move(matrix, stride, places, dual)) break;
    }
    return solved;
  }
  std::span<const double> targets() const { return target_; }

 private:
  static constexpr double kRidge = 1e-12;  // of the mean of the diagonal: equal rows make K_FF singular

  // u of the system above; false where K_FF is not positive definite.
  bool find_direction(const double* matrix, Integer stride, std::span<const Integer> places) {
    const std::size_t count = inside_.size();
    lower_.resize(count * count);
    u_.resize(count);
    zeros_.assign(count, 0.0);
    for (auto& ones : ones_) ones.assign(count, 0.0);
    double trace = 0;
    for (std::size_t a = 0; a < count; ++a) {
      const double* row = matrix + places[inside_[a]] * stride;
      for (std::size_t c = 0; c <= a; ++c) lower_[a * count + c] = row[places[inside_[c]]];
      trace += lower_[a * count + a];
      u_[a] = f_[inside_[a]];
      ones_[side_[inside_[a]]][a] = 1;
    }
    DenseFactor factor(static_cast<Integer>(count));
    if (!factor.factor(lower_, zeros_, kRidge * trace / static_cast<double>(count))) return false;
    for (auto& ones : ones_) factor.solve(ones);
    factor.solve(u_);
    // What each side's part of the solutions adds up to: one equation for each side's number.
    double sum[2] = {}, all[2][2] = {}, members[2] = {}, excess[2] = {};
    for (std::size_t a = 0; a < count; ++a) {
      const int side = side_[inside_[a]];
      members[side] += 1;
      sum[side] += u_[a];
      for (int other : {0, 1}) all[side][other] += ones_[other][a];
    }
    for (int side : {0, 1}) {
      if (members[side] == 0) all[side][side] = 1;
    }
    const double determinant = all[0][0] * all[1][1] - all[0][1] * all[1][0];
    if (!(determinant > 0) || !std::isfinite(sum[0] + sum[1])) return false;
    const double number[2] = {(sum[0] * all[1][1] - sum[1] * all[0][1]) / determinant,
                              (sum[1] * all[0][0] - sum[0] * all[1][0]) / determinant};
    for (std::size_t a = 0; a < count; ++a) {
      u_[a] = number[0] * ones_[0][a] + number[1] * ones_[1][a] - u_[a];
      excess[side_[inside_[a]]] += u_[a];
    }
    for (std::size_t a = 0; a < count; ++a) {
      const int side = side_[inside_[a]];
      u_[a] -= excess[side] / members[side];
    }
    return true;
  }

  // Goes along u, up to the first wall; true where there is none on the way.
  bool move(const double* matrix, Integer stride, std::span<const Integer> places, const KernelDual& dual) {
    const auto wall = [&](std::size_t a) {
      const Integer i = rows_[inside_[a]];
      return u_[a] > 0 ? dual.ceiling(i) : dual.floor(i);
    };
    const auto steps_to_wall = [&](std::size_t a) {
      return u_[a] == 0 ? 1.0 : (wall(a) - target_[inside_[a]]) / u_[a];
    };
    double step = 1;
    for (std::size_t a = 0; a < u_.size(); ++a) step = std::min(step, steps_to_wall(a));
    for (std::size_t a = 0; a < u_.size(); ++a) {
      double& target = target_[inside_[a]];
      const Integer i = rows_[inside_[a]];
      const bool at_wall = step < 1 && steps_to_wall(a) <= step;
      const double moved =
          at_wall ? wall(a) : std::clamp(target + step * u_[a], dual.floor(i), dual.ceiling(i));
      u_[a] = moved - target;  // with a wall as its end not quite step u; f follows what is really done
      target = moved;
    }
    if (step == 1) return true;
    for (const Integer a : inside_) {
      const double* row = matrix + places[a] * stride;
      double sum = 0;
      for (std::size_t c = 0; c < u_.size(); ++c) sum += row[places[inside_[c]]] * u_[c];
      f_[a] += sum;
    }
    std::erase_if(inside_, [&](Integer a) {
      return !(target_[a] > dual.floor(rows_[a]) && target_[a] < dual.ceiling(rows_[a]));
    });
    return false;
  }

  std::vector<Integer> rows_, inside_;  // numbers of rows; and, of these, the places of those still free
  std::vector<double> target_, f_;      // of all of `rows_`
  std::vector<int> side_;               // too
  std::vector<double> lower_, zeros_, ones_[2], u_;  // of those inside; ones for each side
};

}  // namespace maxmargin
