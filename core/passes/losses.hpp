// SPDX-License-Identifier: BSD-3-Clause
// Losses of the margin m = y (<w, x> + b): value, one subgradient and, where the loss is smooth,
// curvature; and of the multiplier a: the upper end of its box, what it is worth there, -C loss*(-a / C),
// and how far m and a are from complementary slackness. The same as losses.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>

#include "passes/exponentials.hpp"
#include "passes/sums.hpp"

namespace maxmargin {

struct Hinge {
  static constexpr double kKink = 1;  // the margin at which the slope jumps, by 1
  static double upper(double C) { return C; }
  static double value(double m) { return std::max(0.0, 1 - m); }
  static double derivative(double m) { return m < 1 ? -1 : 0; }
  static double dual_gain(double a, double) { return a; }
  static double violation(double m, double a, double C) {
    const double slack = 1 - m;
    return std::max(a < C ? slack : 0.0, a > 0 ? -slack : 0.0);
  }
};

struct SquaredHinge {
  static double upper(double C) { return C > 0 ? INFINITY : 0.0; }
  static double value(double m) {
    const double slack = std::max(0.0, 1 - m);
    return slack * slack;
  }
  static double derivative(double m) { return -2 * std::max(0.0, 1 - m); }
  static double curvature(double m) { return m < 1 ? 2 : 0; }
  static double dual_gain(double a, double C) { return C > 0 ? a - a * a / (4 * C) : a; }
  static double violation(double m, double a, double C) {
    if (!(C > 0)) return 0;
    const double derivative = 1 - m - a / (2 * C);
    return a > 0 ? std::abs(derivative) : derivative;
  }
};

struct Logistic {
  static double upper(double C) { return C; }
  // log(1 + exp(-m)) without overflow for large |m|.
  static double value(double m) { return std::max(0.0, -m) + log_of_1_plus(exp_of_negative(-std::abs(m))); }
  static double derivative(double m) {
    const double e = exp_of_negative(-std::abs(m));
    return m > 0 ? -e / (1 + e) : -1 / (1 + e);
  }
  static double curvature(double m) {
    const double e = exp_of_negative(-std::abs(m));
    return e / ((1 + e) * (1 + e));
  }
  // C times the entropy of a / C and its complement. C - a is exact where a is near C, and the logarithm of
  // the larger share, which is next to 0, comes from the smaller one.
  static double dual_gain(double a, double C) {
    const double less = std::min(a, C - a), share = less / C;
    const double gain = -(less * log_of_share(share) + (C - less) * log_of_1_minus(share));
    return less > 0 ? gain : 0.0;
  }
  // In units of a / C: the derivative of the dual is infinite at the walls of the box.
  static double violation(double m, double a, double C) {
    return C > 0 ? std::abs(a / C + derivative(m)) : 0.0;
  }
};

struct Perceptron {
  static constexpr double kKink = 0;
  static double upper(double C) { return C; }
  static double value(double m) { return std::max(0.0, -m); }
  static double derivative(double m) { return m < 0 ? -1 : 0; }
  static double dual_gain(double, double) { return 0; }
  static double violation(double m, double a, double C) {
    return std::max(a < C ? -m : 0.0, a > 0 ? m : 0.0);
  }
};

// sum_i C_i loss(m_i)
template <class Loss>
double loss_sum(std::span<const double> margins, const double* costs) {
  return sum_in_blocks(margins.size(), [&](std::size_t i) { return costs[i] * Loss::value(margins[i]); });
}

// out_i = -C_i loss'(m_i)
template <class Loss>
void multipliers_of(std::span<const double> margins, const double* costs, double* out) {
#pragma omp simd
  for (std::size_t i = 0; i < margins.size(); ++i) out[i] = -costs[i] * Loss::derivative(margins[i]);
}

// out_i = C_i loss''(m_i), by which a model of all losses is made: each is a parabola with the loss's own
// slope. No loss is below 0. A parabola of the logistic loss is, where a row is on the wrong side by much:
// there the loss is all slope, and the model falls without end. Lifted, it has the least curvature with
// which it does not fall below 0: a_i^2 / (2 C_i loss). That of a squared hinge touches 0 as it is.
template <bool lifted>
void model_curvatures(Logistic, std::span<const double> margins, const double* costs, double* out) {
  // The least curvature of a row, as a share of its multiplier: a loss that is all slope has none of its
  // own. One that is nearly 0 has as much as it has slope, however little that is.
  constexpr double kLeastShare = 1e-8;
#pragma omp simd
  for (std::size_t i = 0; i < margins.size(); ++i) {
    const double share = -Logistic::derivative(margins[i]), left = 1 - share;
    const double loss = Logistic::value(margins[i]);
    // Where rounding hides a loss it is the share, of which it is never less.
    const double least = lifted ? 0.5 * share / (loss > share ? loss : share) : kLeastShare;
    const double factor = left > kLeastShare ? left : kLeastShare;
    out[i] = costs[i] * share * (factor > least ? factor : least);
  }
}
template <bool lifted>
void model_curvatures(SquaredHinge, std::span<const double> margins, const double* costs, double* out) {
#pragma omp simd
  for (std::size_t i = 0; i < margins.size(); ++i) out[i] = costs[i] * SquaredHinge::curvature(margins[i]);
}

// The largest violation of complementary slackness; 0 where there is none.
template <class Loss>
double largest_violation(std::span<const double> margins, const double* multipliers, const double* costs) {
  double worst = 0, unknown = 0;
#pragma omp simd reduction(max : worst) reduction(+ : unknown)
  for (std::size_t i = 0; i < margins.size(); ++i) {
    const double margin = margins[i], multiplier = multipliers[i], both = margin + multiplier;
    unknown += both == both ? 0.0 : 1.0;  // what is not a number, a comparison would not see
    const double own = Loss::violation(margin, multiplier, costs[i]);
    worst = worst > own ? worst : own;
  }
  if (unknown > 0) return NAN;
  return worst;
}

}  // namespace maxmargin
