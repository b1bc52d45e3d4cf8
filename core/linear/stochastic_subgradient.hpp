// SPDX-License-Identifier: BSD-3-Clause
// Stochastic subgradient steps on mini-batches. A step costs O(nonzeros of its rows), never O(d):
// w is kept as scale times v, and the running sum of all w as mass times v minus u.
#pragma once

#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "data/rows.hpp"
#include "machine/budget.hpp"
#include "passes/any_loss.hpp"

namespace maxmargin {

// w = scale v and, over the iterates counted so far, sum w = mass v - u.
struct Iterate {
  std::span<double> v;
  std::span<double> u;  // empty when no average is asked for
  double scale = 1;
  double mass = 0;
  double counted = 0;
  double squared_norm = 0;  // |v|^2, kept only when the steps are projected
  double beta = 0;          // coefficient of the bias feature, so that b = feature * beta
  double beta_sum = 0;

  void count() {
    mass += scale;
    beta_sum += beta;
    counted += 1;
  }
  template <class R>
  void add(const R& row, double amount) {
    const double coefficient = amount / scale;
    row.add_to(v.data(), coefficient);
    if (!u.empty()) row.add_to(u.data(), coefficient * mass);
  }
  // Puts scale back to 1: O(d), but only after it has shrunk by a factor of 1e9.
  void rescale() {
    for (std::size_t j = 0; j < u.size(); ++j) u[j] -= mass * v[j];
    for (double& value : v) value *= scale;
    squared_norm *= scale * scale;
    mass = 0;
    scale = 1;
  }
};

struct Bias {
  double feature = 0;    // value of the constant feature; 0: no intercept
  bool shrinks = false;  // regularised like the other coordinates, or free
  double pace = 1;       // factor on its steps
};

// The stopping rule of lecture 001: the last steps together are shorter than a threshold.
struct RecentSteps {
  RecentSteps(std::size_t count, double threshold) : count(count), threshold(threshold) {}

  std::size_t count;            // t0; 0: no rule
  std::vector<double> lengths;  // ring of the last t0 lengths, or of as many as there were
  double threshold;
  std::size_t next = 0;
  bool finished = false;

  void add(double length) {
    if (lengths.size() < count) {
      lengths.push_back(length);
    } else {
      lengths[next] = length;
      next = (next + 1) % count;
    }
    finished = lengths.size() == count && std::accumulate(lengths.begin(), lengths.end(), 0.0) < threshold;
  }
};

// What the steps are taken on, beside the rows.
struct Examples {
  AnyLoss loss;
  std::span<const double> labels;
  std::span<const double> weights;  // C_i over their mean
  std::span<const double> norms;    // |x_i|^2
};

// What all steps of a call have in common.
struct StepRule {
  Integer batch;
  double lambda;
  double radius;  // of the ball that w is projected to; infinite: it is not
  Bias bias;
};

// <v, x_i>, in a function of its own: not every step needs it.
template <class Rows>
[[gnu::noinline]] double product_of(const Rows& rows, Integer i, std::span<const double> v) {
  return rows[i].dot(v.data());
}

// |sum_k pulls_k x_k|^2 over the rows of a step; `together` is 0 before and after.
template <class Rows>
[[gnu::noinline]] double squared_length(const Rows& rows, const Integer* rows_of_step,
                                        std::span<const double> pulls, std::span<double> together) {
  const std::size_t batch = pulls.size();
  double squared = 0;
  for (std::size_t k = 0; k < batch; ++k) rows[rows_of_step[k]].add_to(together.data(), pulls[k]);
  for (std::size_t k = 0; k < batch; ++k) squared += pulls[k] * product_of(rows, rows_of_step[k], together);
  for (std::size_t k = 0; k < batch; ++k) rows[rows_of_step[k]].clear(together.data());
  return std::max(squared, 0.0);
}

// Lecture 001, lines 10-18, on batches of consecutive entries of `order`, one for each step size. Returns
// the number of steps taken.
template <class Rows>
Integer stochastic_subgradient(const Rows& rows, const Examples& examples, const StepRule& rule,
                               std::span<const Integer> order, std::span<const double> steps,
                               Iterate& iterate, RecentSteps& recent, Watch& watch) {
  const AnyLoss loss = examples.loss;
  const double* const labels = examples.labels.data();
  const double* const weights = examples.weights.data();
  const double* const norms = examples.norms.data();
  const auto [batch, lambda, radius, bias] = rule;
  const bool projects = std::isfinite(radius);
  std::vector<double> pulls(static_cast<std::size_t>(batch));
  std::vector<double> together(recent.count == 0 ? 0 : iterate.v.size());
  Integer taken = 0;
  for (const double eta : steps) {
    const Integer* rows_of_step = order.data() + taken * batch;
    if ((taken + 2) * batch < static_cast<Integer>(order.size())) {
      rows.prefetch(rows_of_step[2 * batch]);
    }
    if (!iterate.u.empty()) iterate.count();
    Integer work = 0;
    double product = 0;  // <v, x> of the last row, all that a projection needs when batch is 1
    for (Integer k = 0; k < batch; ++k) {
      const Integer i = rows_of_step[k];
      const auto row = rows[i];
      product = row.dot(iterate.v.data());
      const double margin = labels[i] * (iterate.scale * product + bias.feature * iterate.beta);
      pulls[k] = -derivative(loss, margin) * weights[i] * labels[i] / static_cast<double>(batch);
      work += 2 * row.size();
    }
    const double shrink = 1 - eta * lambda;
    if (shrink == 0) {
      // w_1 = 0 makes the first step of Pegasos a whole replacement: v has to forget, not to scale.
      if (!iterate.u.empty()) iterate.rescale();
      for (double& value : iterate.v) value = 0;
      iterate.squared_norm = 0;
      iterate.scale = 1;
      product = 0;
    } else {
      iterate.scale *= shrink;
    }
    if (bias.shrinks) iterate.beta *= 1 - bias.pace * eta * lambda;
    for (Integer k = 0; k < batch; ++k) {
      if (pulls[k] == 0) continue;
      const Integer i = rows_of_step[k];
      const auto row = rows[i];
      if (projects) {
        if (batch > 1) product = product_of(rows, i, iterate.v);
        const double c = eta * pulls[k] / iterate.scale;
        iterate.squared_norm += c * (2 * product + c * norms[i]);
      }
      iterate.add(row, eta * pulls[k]);
      iterate.beta += bias.pace * eta * pulls[k] * bias.feature;
    }
    if (projects) {
      const double squared = iterate.scale * iterate.scale * iterate.squared_norm +
                             (bias.shrinks ? iterate.beta * iterate.beta : 0);
      if (squared > radius * radius) {
        const double factor = radius / std::sqrt(squared);
        iterate.scale *= factor;
        if (bias.shrinks) iterate.beta *= factor;
      }
    }
    if (std::abs(iterate.scale) < 1e-9) iterate.rescale();
    ++taken;
    if (recent.count > 0) {
      recent.add(eta * std::sqrt(squared_length(rows, rows_of_step, pulls, together)));
      if (recent.finished) break;
      work += static_cast<Integer>(recent.lengths.size());
    }
    if (watch.spend(work)) break;
  }
  return taken;
}

}  // namespace maxmargin
