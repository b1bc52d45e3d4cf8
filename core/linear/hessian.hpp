// SPDX-License-Identifier: BSD-3-Clause
// The Hessian of a second-order method, kept up to date from step to step.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "machine/budget.hpp"
#include "machine/large_array.hpp"

namespace maxmargin {

// sum_i h_i z_i z_i', the lower triangle, from step to step: a row whose curvature h_i stays costs nothing.
class Hessian {
 public:
  Hessian(std::size_t count, std::span<const double> regulariser)
      : regulariser_(regulariser.begin(), regulariser.end()),
        lower_(regulariser.size() * regulariser.size()),
        counted_(count),
        changes_(count),
        peaks_(regulariser.size()) {}

  // For these curvatures: add(c, lower) adds sum_i c_i z_i z_i' for the rows that changed, or for all of
  // them where these are fewer.
  using Add = std::function<void(std::span<const double> c, std::span<double> lower)>;
  void update(std::span<const double> curvatures, const Budget& budget, const Add& add);
  // Has a given matrix stand for that of any curvatures.
  void assume(std::span<const double> lower) {
    std::copy(lower.begin(), lower.end(), lower_.begin());
    given_ = true;
  }
  // Prepares for curvatures that are all so many times the last ones.
  void scale(double factor);
  void clear();
  std::size_t count() const { return counted_.size(); }
  std::span<double> lower() { return lower_; }
  std::span<const double> regulariser() const { return regulariser_; }

 private:
  bool is_worn();

  std::vector<double> regulariser_, lower_;
  NumbersOfRows counted_, changes_;  // the curvatures that the matrix is of, and how they change
  std::vector<double> peaks_;        // of the diagonal, since it was last added up anew
  bool given_ = false;
};

}  // namespace maxmargin
