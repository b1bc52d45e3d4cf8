// SPDX-License-Identifier: BSD-3-Clause
#include "linear/small_system.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "loops/loops.hpp"
#include "machine/threads.hpp"

namespace maxmargin {

void SmallSystem::scores(std::span<const double> p, std::span<double> out, const Budget& budget) {
  maxmargin::scores(rows_, p.data(), out, budget);
  if (p.size() == columns_) return;
  const double b = p[columns_];
  for_each_row(budget, out.size(), [&](std::size_t i) { out[i] += b; });
}

void SmallSystem::combine(std::span<const double> c, std::span<double> out, const Budget& budget) {
  maxmargin::combine(rows_, c.data(), out.first(columns_), budget);
  if (out.size() == columns_) return;
  const Integer count = static_cast<Integer>(c.size()), threads = budget.threads_for(count);
  std::vector<double> parts(static_cast<std::size_t>(threads));
  in_parallel(threads, count, [&](Integer thread, Integer begin, Integer end) {
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Integer i = begin; i < end; ++i) sum += c[i];
    parts[thread] = sum;
  });
  out[columns_] = std::accumulate(parts.begin(), parts.end(), 0.0);
}

bool SmallSystem::solve(std::span<const double> h, std::span<double> x, const Budget& budget) {
  const Integer size = static_cast<Integer>(x.size());
  hessian_.update(h, budget, [&](std::span<const double> c, std::span<double> lower) {
    add_outer_products(rows_, c.data(), lower, size, budget);
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
  // A ridge of the diagonal's own size makes anything definite that is so but for rounding.
  constexpr int kRidges = 12;
  double ridge = 0;
  for (int tries = 0; tries < kRidges && std::isfinite(largest) && std::isfinite(ridge); ++tries) {
    if (tries > 0) ridge = std::max(100 * ridge, 1e-15 * (largest > 0 ? largest : 1.0));
    if (!factor_.factor(lower, diagonal_, ridge)) continue;
    factor_.solve(x);
    for (double& value : x) value = -value;
    return true;
  }
  return false;
}

}  // namespace maxmargin
