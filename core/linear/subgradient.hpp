// SPDX-License-Identifier: BSD-3-Clause
// The losses' part of the objective and of its subgradient, in one pass over the data.
#pragma once

#include "passes/any_loss.hpp"
#include "passes/passes.hpp"

namespace maxmargin {

struct LossSum {
  double loss = 0;  // sum_i C_i loss(m_i)
  double bias = 0;  // sum_i C_i loss'(m_i) y_i, the derivative by the intercept
};

// gradient = sum_i C_i loss'(m_i) y_i x_i,  m_i = y_i (<w, x_i> + b)
template <class Rows>
LossSum subgradient(const Rows& rows, AnyLoss loss, const double* labels, const double* costs,
                    const double* w, double b, std::span<double> gradient, const Budget& budget) {
  std::vector<LossSum> sums(static_cast<std::size_t>(budget.threads_for(rows.stored())));
  accumulate(rows, gradient, budget, [&](Integer thread, Integer i, Integer last, double* target) {
    LossSum sum;
    for (; i < last; ++i) {
      const auto row = rows[i];
      const double margin = labels[i] * (row.dot(w) + b);
      sum.loss += costs[i] * value(loss, margin);
      const double slope = costs[i] * derivative(loss, margin) * labels[i];
      if (slope != 0) {
        row.add_to(target, slope);
        sum.bias += slope;
      }
    }
    sums[thread] = sum;
  });
  LossSum total;
  for (const LossSum& sum : sums) {
    total.loss += sum.loss;
    total.bias += sum.bias;
  }
  return total;
}

}  // namespace maxmargin
