// SPDX-License-Identifier: BSD-3-Clause
// The system of a second-order method on few columns: the matrix itself and its factor, with no call that
// would cost more than they do.
#pragma once

#include <span>
#include <vector>

#include "data/any_rows.hpp"
#include "linear/hessian.hpp"
#include "linear/newton.hpp"
#include "machine/dense_factor.hpp"

namespace maxmargin {

class SmallSystem final : public System {
 public:
  SmallSystem(const AnyRows& rows, std::span<const double> regulariser)
      : rows_(rows),
        columns_(static_cast<std::size_t>(rows.columns)),
        hessian_(static_cast<std::size_t>(rows.count), regulariser),
        factor_(static_cast<Integer>(regulariser.size())),
        diagonal_(regulariser.size()) {}

  void scores(std::span<const double> p, std::span<double> out, const Budget& budget) override;
  void combine(std::span<const double> c, std::span<double> out, const Budget& budget) override;
  // Where rounding has eaten the diagonal, as little as helps is added to it: any positive definite matrix
  // gives a direction of descent.
  bool solve(std::span<const double> h, std::span<double> x, const Budget& budget) override;
  void scale(double factor) override { hessian_.scale(factor); }
  // Has a given matrix stand for that of any curvatures.
  void assume(std::span<const double> lower) { hessian_.assume(lower); }
  // Forgets the curvatures of another problem on the same rows.
  void clear() { hessian_.clear(); }

 private:
  const AnyRows& rows_;
  std::size_t columns_;
  Hessian hessian_;
  DenseFactor factor_;
  std::vector<double> diagonal_;
};

}  // namespace maxmargin
