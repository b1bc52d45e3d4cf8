// SPDX-License-Identifier: BSD-3-Clause
#include "loops/loops.hpp"

namespace maxmargin {

LossSum subgradient(const AnyRows& rows, AnyLoss loss, const double* labels, const double* costs,
                    const double* w, double b, std::span<double> gradient, const Budget& budget) {
  return visit_loss(loss, [&](auto its) {
    return rows.visit(
        [&](const auto& kind) { return subgradient(kind, its, labels, costs, w, b, gradient, budget); });
  });
}

Sweep dual_coordinate_ascent(const AnyRows& rows, std::span<Coordinate> coordinates,
                             std::span<Integer> order, double* w, const SweepOptions& options,
                             Watch& watch) {
  return rows.visit([&](const auto& kind) {
    const auto [squared, bias, bias_curvature, relaxation, walls] = options;
    return squared ? dual_coordinate_ascent<true>(kind, coordinates, order, w, bias, bias_curvature,
                                                  relaxation, walls, watch)
                   : dual_coordinate_ascent<false>(kind, coordinates, order, w, bias, bias_curvature,
                                                   relaxation, walls, watch);
  });
}

double go_on(const AnyRows& rows, bool squared, std::span<Coordinate> coordinates,
             std::span<const Integer> order, std::span<double> w, double& bias, double bias_curvature,
             Before before) {
  return rows.visit([&](const auto& kind) {
    return go_on(kind, squared, coordinates, order, w, bias, bias_curvature, before);
  });
}

Integer stochastic_subgradient(const AnyRows& rows, const Examples& examples, const StepRule& rule,
                               std::span<const Integer> order, std::span<const double> steps,
                               Iterate& iterate, RecentSteps& recent, Watch& watch) {
  return visit_loss(examples.loss, [&](auto loss) {
    return rows.visit([&](const auto& kind) {
      return stochastic_subgradient(kind, loss, examples, rule, order, steps, iterate, recent, watch);
    });
  });
}

PerceptronPass perceptron(const AnyRows& rows, const double* labels, std::span<const Integer> order,
                          double* w, double* counts, double bias_feature, double beta, Watch& watch) {
  return rows.visit([&](const auto& kind) {
    return perceptron(kind, labels, order, w, counts, bias_feature, beta, watch);
  });
}

}  // namespace maxmargin
