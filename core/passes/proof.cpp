// SPDX-License-Identifier: BSD-3-Clause
#include "passes/proof.hpp"

#include <algorithm>
#include <memory>
#include <variant>

#include "passes/best_intercept.hpp"
#include "passes/feasible.hpp"
#include "passes/passes.hpp"
#include "passes/weighted_quantile.hpp"

namespace maxmargin {
namespace {

template <class Visitor>
decltype(auto) visit(const Objective& objective, Visitor&& visitor) {
  return std::visit(std::forward<Visitor>(visitor), objective.loss);
}

}  // namespace

double Objective::loss_sum(std::span<const double> margins) const {
  return visit(*this, [&]<class Loss>(Loss) { return maxmargin::loss_sum<Loss>(margins, costs.data()); });
}

void Objective::multipliers(std::span<const double> margins, double* out) const {
  visit(*this, [&]<class Loss>(Loss) { multipliers_of<Loss>(margins, costs.data(), out); });
}

double Objective::primal(std::span<const double> margins, double b, double squared_length,
                         double score_error) const {
  double value = 0.5 * squared_length + loss_sum(margins);
  if (intercept == Intercept::regularised) value += 0.5 * (b / number) * (b / number);
  for (std::size_t i = 0; score_error > 0 && i < costs.size(); ++i) value += score_error * costs[i];
  return value;
}

double Objective::dual(std::span<const double> alpha, double squared_length) const {
  const double gain = visit(*this, [&]<class Loss>(Loss) { return dual_gain<Loss>(alpha, costs.data()); }) -
                      0.5 * squared_length;
  if (intercept == Intercept::exact || number == 0) return gain;
  const double excess = dot(alpha, labels);
  return gain - (intercept == Intercept::fixed ? number * excess : 0.5 * number * number * excess * excess);
}

void Objective::make_feasible(std::span<double> alpha) const {
  visit(*this, [&]<class Loss>(Loss) {
    clip_to_box<Loss>(alpha, costs.data());
    if (intercept == Intercept::exact) balance_classes<Loss>(alpha, labels.data(), costs.data());
  });
}

BestIntercept Objective::best_intercept(std::span<const double> scores) const {
  const auto [low, high] = best_intercepts(scores);
  return {middle_of(low, high), low, high};
}

BestIntercept Objective::take_best_intercept(std::span<double> scores) const {
  const BestIntercept best = best_intercept(scores);
#pragma omp simd
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = labels[i] * (scores[i] + best.b);
  return best;
}

std::pair<double, double> Objective::best_intercepts(std::span<const double> scores) const {
  if (intercept == Intercept::fixed) return {number, number};
  const double ridge = intercept == Intercept::regularised ? 1 / (number * number) : 0;
  return visit(*this, [&]<class Loss>(Loss) -> std::pair<double, double> {
    if constexpr (requires { Loss::kKink; }) {
      // The losses' slope by b is a step function that rises by C_i at row i's kink.
      const auto kinks = std::make_unique_for_overwrite<double[]>(scores.size());
      double positive = 0;
#pragma omp simd reduction(+ : positive)
      for (std::size_t i = 0; i < scores.size(); ++i) {
        kinks[i] = Loss::kKink * labels[i] - scores[i];
        positive += labels[i] > 0 ? costs[i] : 0.0;
      }
      return weighted_quantile({kinks.get(), scores.size()}, costs, positive, ridge);
    } else {
      const double b = maxmargin::best_intercept<Loss>(scores, labels.data(), costs.data(), ridge);
      if (!std::is_same_v<Loss, SquaredHinge> || ridge > 0 || some_have_losses(scores, b)) return {b, b};
      const auto [low, high] = intercepts_without_loss(scores);
      return low < high ? std::pair{low, high} : std::pair{b, b};
    }
  });
}

std::pair<double, double> Objective::intercepts_without_loss(std::span<const double> scores) const {
  double low = -INFINITY, high = INFINITY;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (!(costs[i] > 0)) continue;
    if (labels[i] > 0)
      low = std::max(low, 1 - scores[i]);
    else
      high = std::min(high, -1 - scores[i]);
  }
  return {low, high};
}

double Objective::largest_violation(std::span<const double> margins, std::span<const double> alpha,
                                    double b) const {
  const double worst = visit(*this, [&]<class Loss>(Loss) {
    return maxmargin::largest_violation<Loss>(margins, alpha.data(), costs.data());
  });
  if (intercept != Intercept::regularised) return worst;
  return std::max(worst, std::abs(b / number - number * dot(alpha, labels)));
}

bool Objective::some_have_losses(std::span<const double> scores, double b) const {
  for (std::size_t i = 0; i < scores.size(); i += scores.size() / 256 + 1) {
    if (costs[i] > 0 && !(labels[i] * (scores[i] + b) > 0.999)) return true;
  }
  return false;
}

Proof prove(const Objective& objective, std::span<const double> alpha, std::span<double> scores) {
  double squared_length = 0;
#pragma omp simd reduction(+ : squared_length)
  for (std::size_t i = 0; i < alpha.size(); ++i)
    squared_length += alpha[i] * objective.labels[i] * scores[i];
  const BestIntercept best = objective.take_best_intercept(scores);
  return {best, objective.primal(scores, best.b, squared_length), objective.dual(alpha, squared_length)};
}

}  // namespace maxmargin
