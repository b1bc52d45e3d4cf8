// SPDX-License-Identifier: BSD-3-Clause
// What a point is worth: the only place where primal and dual values of a proof are computed.
//
//   P(w, b)  = 1/2 |w|^2 + sum_i C_i loss(m_i) + r(b),      m_i = y_i (<w, x_i> + b)
//   D(alpha) = sum_i dual_gain(alpha_i, C_i) - 1/2 |w(alpha)|^2 - q(sum_i alpha_i y_i)
//
// with w(alpha) = sum_i alpha_i y_i x_i. For a b that is sought r = 0, and alpha is balanced, so that q is
// applied to 0; for a regularised one r(b) = b^2 / (2 s^2) and q(t) = s^2 t^2 / 2; for a fixed one r = 0
// and q(t) = b t. Rows come in only through scores <w, x_i> and squared lengths: they may be of any kind.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <span>
#include <utility>
#include <variant>

#include "passes/best_intercept.hpp"
#include "passes/feasible.hpp"
#include "passes/losses.hpp"
#include "passes/passes.hpp"
#include "passes/row_classes.hpp"
#include "passes/weighted_quantile.hpp"

namespace maxmargin {

using AnyLoss = std::variant<Hinge, SquaredHinge, Logistic, Perceptron>;

enum class Intercept { fixed, regularised, exact };

// The best intercepts for some w: any b between `low` and `high` is as good as `b`.
struct BestIntercept {
  double b, low, high;
};

// (primal - dual) / |primal|, and 0 where no gap is left. The primal value is infinite where a hard margin was
// asked for and (w, b) does not have one.
inline double relative_gap(double primal, double dual) {
  if (primal == INFINITY) return INFINITY;
  const double gap = primal - dual;
  if (gap <= 0) return 0;
  return primal != 0 ? gap / std::abs(primal) : INFINITY;
}

struct Proof {
  BestIntercept intercept;
  double primal, dual;
};

// What a problem asks of margins and multipliers, whatever its rows are.
struct Objective {
  AnyLoss loss;
  std::span<const double> labels, costs;
  Intercept intercept = Intercept::exact;
  double number = 0;  // b itself where it is fixed; s, the value of the constant feature, if regularised

  template <class Visitor>
  decltype(auto) visit(Visitor&& visitor) const {
    return std::visit(std::forward<Visitor>(visitor), loss);
  }

  double loss_sum(std::span<const double> margins) const {
    return visit([&]<class Loss>(Loss) { return maxmargin::loss_sum<Loss>(margins, costs.data()); });
  }
  void multipliers(std::span<const double> margins, double* out) const {
    visit([&]<class Loss>(Loss) { multipliers_of<Loss>(margins, costs.data(), out); });
  }

  // P, where the squared length of w is given and scores are known up to `score_error`: no loss rises
  // faster than its margin falls.
  double primal(std::span<const double> margins, double b, double squared_length,
                double score_error = 0) const {
    double value = 0.5 * squared_length + loss_sum(margins);
    if (intercept == Intercept::regularised) value += 0.5 * (b / number) * (b / number);
    for (std::size_t i = 0; score_error > 0 && i < costs.size(); ++i) value += score_error * costs[i];
    return value;
  }
  // D, where alpha is feasible and the squared length of w(alpha) is given.
  double dual(std::span<const double> alpha, double squared_length) const {
    const double gain = visit([&]<class Loss>(Loss) { return dual_gain<Loss>(alpha, costs.data()); }) -
                        0.5 * squared_length;
    if (intercept == Intercept::exact || number == 0) return gain;
    const double excess = dot(alpha, labels);
    return gain -
           (intercept == Intercept::fixed ? number * excess : 0.5 * number * number * excess * excess);
  }
  void make_feasible(std::span<double> alpha) const {
    visit([&]<class Loss>(Loss) {
      clip_to_box<Loss>(alpha, costs.data());
      if (intercept == Intercept::exact) balance_classes<Loss>(alpha, labels.data(), costs.data());
    });
  }

  // All b that minimise P for some w, and the one in their middle.
  BestIntercept best_intercept(std::span<const double> scores) const {
    const auto [low, high] = best_intercepts(scores);
    return {middle_of(low, high), low, high};
  }
  // The same, and scores become margins.
  BestIntercept take_best_intercept(std::span<double> scores) const {
    const BestIntercept best = best_intercept(scores);
#pragma omp simd
    for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = labels[i] * (scores[i] + best.b);
    return best;
  }
  // A point where the intercept is fixed or regularised, and as a rule for smooth losses. With one class
  // only an end may be infinite.
  std::pair<double, double> best_intercepts(std::span<const double> scores) const {
    if (intercept == Intercept::fixed) return {number, number};
    const double ridge = intercept == Intercept::regularised ? 1 / (number * number) : 0;
    return visit([&]<class Loss>(Loss) -> std::pair<double, double> {
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
  // The ends of the interval of all b with margins of at least 1; there is none if low > high.
  std::pair<double, double> intercepts_without_loss(std::span<const double> scores) const {
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

  // The largest violation of complementary slackness, and of what b is to be if it is regularised.
  double largest_violation(std::span<const double> margins, std::span<const double> alpha, double b) const {
    const double worst = visit([&]<class Loss>(Loss) {
      return maxmargin::largest_violation<Loss>(margins, alpha.data(), costs.data());
    });
    if (intercept != Intercept::regularised) return worst;
    return std::max(worst, std::abs(b / number - number * dot(alpha, labels)));
  }

 private:
  // A look at a few rows, which spares nearly all problems a pass.
  bool some_have_losses(std::span<const double> scores, double b) const {
    for (std::size_t i = 0; i < scores.size(); i += scores.size() / 256 + 1) {
      if (costs[i] > 0 && !(labels[i] * (scores[i] + b) > 0.999)) return true;
    }
    return false;
  }
};

// The proof of a feasible alpha and its own w(alpha), whose scores become margins.
inline Proof prove(const Objective& objective, std::span<const double> alpha, std::span<double> scores) {
  double squared_length = 0;
#pragma omp simd reduction(+ : squared_length)
  for (std::size_t i = 0; i < alpha.size(); ++i)
    squared_length += alpha[i] * objective.labels[i] * scores[i];
  const BestIntercept best = objective.take_best_intercept(scores);
  return {best, objective.primal(scores, best.b, squared_length), objective.dual(alpha, squared_length)};
}

}  // namespace maxmargin
