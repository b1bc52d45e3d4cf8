// SPDX-License-Identifier: BSD-3-Clause
// The system of a second-order method on few columns: the matrix itself and its factor, with no call that
// would cost more than they do. Rows come as `Data`, of which `visit` shows the kind.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "linear/hessian.hpp"
#include "linear/newton.hpp"
#include "machine/dense_factor.hpp"
#include "passes/passes.hpp"

namespace maxmargin {

template <class Data>
class SmallSystem final : public System {
 public:
  SmallSystem(const Data& data, std::span<const double> regulariser)
      : data_(data),
        columns_(static_cast<std::size_t>(data.columns())),
        hessian_(static_cast<std::size_t>(data.count()), regulariser),
        factor_(static_cast<Integer>(regulariser.size())),
        diagonal_(regulariser.size()) {}

  void scores(std::span<const double> p, std::span<double> out, const Budget& budget) override {
    data_.visit([&](const auto& rows) { maxmargin::scores(rows, p.data(), out, budget); });
    if (p.size() == columns_) return;
    for (double& score : out) score += p[columns_];
  }
  void combine(std::span<const double> c, std::span<double> out, const Budget& budget) override {
    data_.visit([&](const auto& rows) { maxmargin::combine(rows, c.data(), out.first(columns_), budget); });
    if (out.size() == columns_) return;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::size_t i = 0; i < c.size(); ++i) sum += c[i];
    out[columns_] = sum;
  }
  // Where rounding has eaten the diagonal, as little as helps is added to it: any positive definite matrix
  // gives a direction of descent.
  bool solve(std::span<const double> h, std::span<double> x, const Budget& budget) override {
    const Integer size = static_cast<Integer>(x.size());
    hessian_.update(h, [&](std::span<const double> c, std::span<double> lower) {
      data_.visit([&](const auto& rows) { add_outer_products(rows, c.data(), lower, size, budget); });
    });
    const std::span<const double> lower = hessian_.lower();
    double largest = -INFINITY;
    for (Integer j = 0; j < size; ++j) {
      const double own = lower[j * size + j];
      largest = std::max(largest, own);
      diagonal_[j] = hessian_.regulariser()[j];
      // Where no row has a say in an exact intercept, any scale will do for it.
      if (own + diagonal_[j] <= 0) diagonal_[j] = 1 - own;
    }
    for (double ridge = 0; std::isfinite(largest) && std::isfinite(ridge);
         ridge = std::max(100 * ridge, 1e-15 * largest)) {
      if (!factor_.factor(lower, diagonal_, ridge)) continue;
      factor_.solve(x);
      for (double& value : x) value = -value;
      return true;
    }
    return false;
  }
  void scale(double factor) override { hessian_.scale(factor); }
  // Forgets the curvatures of another problem on the same rows.
  void clear() { hessian_.clear(); }

 private:
  const Data& data_;
  std::size_t columns_;
  Hessian hessian_;
  DenseFactor factor_;
  std::vector<double> diagonal_;
};

}  // namespace maxmargin
