// SPDX-License-Identifier: BSD-3-Clause
// Losses of the margin m = y (<w, x> + b): value, one subgradient and, where the loss is smooth,
// curvature. The same as losses.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

namespace maxmargin {

struct Hinge {
  static double value(double m) { return std::max(0.0, 1 - m); }
  static double derivative(double m) { return m < 1 ? -1 : 0; }
};

struct SquaredHinge {
  static double value(double m) {
    const double slack = std::max(0.0, 1 - m);
    return slack * slack;
  }
  static double derivative(double m) { return -2 * std::max(0.0, 1 - m); }
  static double curvature(double m) { return m < 1 ? 2 : 0; }
};

struct Logistic {
  // log(1 + exp(-m)) without overflow for large |m|.
  static double value(double m) { return std::max(0.0, -m) + std::log1p(std::exp(-std::abs(m))); }
  static double derivative(double m) {
    const double e = std::exp(-std::abs(m));
    return m > 0 ? -e / (1 + e) : -1 / (1 + e);
  }
  static double curvature(double m) {
    const double e = std::exp(-std::abs(m));
    return e / ((1 + e) * (1 + e));
  }
};

struct Perceptron {
  static double value(double m) { return std::max(0.0, -m); }
  static double derivative(double m) { return m < 0 ? -1 : 0; }
};

// sum_i C_i loss(m_i)
template <class Loss>
double loss_sum(std::span<const double> margins, const double* costs) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::size_t i = 0; i < margins.size(); ++i) sum += costs[i] * Loss::value(margins[i]);
  return sum;
}

}  // namespace maxmargin
