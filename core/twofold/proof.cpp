// SPDX-License-Identifier: BSD-3-Clause
#include "twofold/proof.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include "data/columns.hpp"

namespace maxmargin {
namespace {

constexpr double kAFew = 1 + 16 * kUnit;  // the factor that covers up to 16 roundings

// C loss, from above, of a margin that lacks so much for 1.
template <class Loss>
double loss_of(double lacking, double cost) {
  if (cost == 0) return 0;
  // The hinge and its square need no margin, whose rounding may be more than all that it lacks.
  const double slack = std::max(0.0, lacking), margin = 1 - lacking;
  if constexpr (std::is_same_v<Loss, Hinge>) return cost * slack * kAFew;
  if constexpr (std::is_same_v<Loss, SquaredHinge>) return cost * slack * slack * kAFew;
  return cost * Loss::value(margin - 2 * kUnit * (1 + std::abs(margin))) * kAFew;
}

}  // namespace

bool products_are_rounded() {
  // The square is 1 + 2^-26 + 2^-54, and its last term is lost in rounding. A compiler cannot know that.
  const volatile double root = 1 + 0x1p-27, rounded_square = 1 + 0x1p-26;
  const double factor = root, taken_off = rounded_square;
  return factor * factor - taken_off == 0;
}

TwofoldScores TwofoldScores::twinned() const {
  TwofoldScores both;
  both.squared_length = squared_length;
  both.magnitudes = magnitudes;
  for (std::size_t i = 0; i < values.size(); ++i) {
    both.values.insert(both.values.end(), 2, values[i]);
    both.off.insert(both.off.end(), 2, off[i]);
  }
  return both;
}

TwofoldScores twofold_scores(const StoredRows& rows, std::span<const double> w) {
  Twofold squares, magnitudes;
  for (const double weight : w) {
    squares.add(two_product(weight, weight));
    magnitudes.add(std::abs(weight));
  }
  return std::visit(
      [&](const auto& kind) {
        const std::size_t count = static_cast<std::size_t>(kind.count);
        TwofoldScores scores{std::vector<Twofold>(count), std::vector<double>(count)};
        for (std::size_t i = 0; i < count; ++i) {
          double magnitudes = 0, terms = 0;
          for_each_value(kind[static_cast<Integer>(i)], [&](Integer column, auto value) {
            const Twofold product = two_product(w[column], static_cast<double>(value));
            scores.values[i].add(product);
            magnitudes += std::abs(product.high);
            ++terms;
          });
          scores.off[i] = twofold_error(terms) * magnitudes;
        }
        scores.squared_length = squares.rounded() * kAFew;
        scores.magnitudes = magnitudes.rounded() * kAFew;
        return scores;
      },
      rows);
}

double twofold_squared_length(const StoredRows& rows, std::span<const double> coefficients) {
  return std::visit(
      [&](const auto& kind) {
        std::vector<Twofold> sum(static_cast<std::size_t>(kind.columns));
        double terms = 0, lengths = 0;
        for (Integer i = 0; i < kind.count; ++i) {
          if (coefficients[i] == 0) continue;
          double squared_norm = 0;
          for_each_value(kind[i], [&](Integer column, auto value) {
            const double x = static_cast<double>(value);
            sum[column].add(two_product(coefficients[i], x));
            squared_norm += x * x;
          });
          lengths += std::abs(coefficients[i]) * std::sqrt(squared_norm);
          ++terms;
        }
        Twofold squares;
        for (const Twofold& weight : sum) squares.add(weight.rounded() * weight.rounded());
        const double length = std::sqrt(squares.rounded()) * kAFew + twofold_error(terms) * 2 * lengths;
        return length * length * kAFew;
      },
      rows);
}

double twofold_largest(const StoredRows& rows, std::span<const double> coefficients) {
  return std::visit(
      [&](const auto& kind) {
        const auto columns = static_cast<std::size_t>(kind.columns);
        std::vector<Twofold> sums(columns);
        std::vector<double> magnitudes(columns), terms(columns);
        for (Integer i = 0; i < kind.count; ++i) {
          if (coefficients[i] == 0) continue;
          for_each_value(kind[i], [&](Integer column, auto value) {
            const Twofold product = two_product(coefficients[i], static_cast<double>(value));
            sums[column].add(product);
            magnitudes[column] += std::abs(product.high);
            ++terms[column];
          });
        }
        double largest = 0;
        for (std::size_t j = 0; j < columns; ++j) {
          const double off = twofold_error(terms[j]) * magnitudes[j];
          const double most = std::abs(sums[j].rounded()) * kAFew + off * kAFew;
          if (std::isnan(most)) return static_cast<double>(INFINITY);
          largest = std::max(largest, most);
        }
        return largest;
      },
      rows);
}

double twofold_primal(const Objective& objective, const TwofoldScores& scores, double b,
                      std::span<double> lacking, double shift) {
  for (std::size_t i = 0; i < lacking.size(); ++i) {
    const double y = objective.labels[i];
    Twofold slack = objective.target(i);
    const double target = slack.high;
    slack.add(-y * b);
    slack.add(-shift);
    slack.add(Twofold{-y * scores.values[i].high, -y * scores.values[i].low});
    const double rounded = slack.rounded();
    const double magnitudes =
        std::abs(target) + std::abs(b) + std::abs(shift) + std::abs(scores.values[i].high);
    lacking[i] =
        rounded + 2 * kUnit * std::abs(rounded) + scores.off[i] * kAFew + twofold_error(5) * magnitudes;
    if (std::isnan(lacking[i])) return INFINITY;  // no loss of it would say so
  }
  const bool l1 = objective.penalty == Penalty::l1;
  Twofold sum{objective.held(l1 ? scores.magnitudes : scores.squared_length, b), 0};
  std::visit(
      [&]<class Loss>(Loss) {
        const std::size_t group = static_cast<std::size_t>(objective.group);  // of them, the worst counts
        for (std::size_t i = 0; i < lacking.size(); i += group) {
          const auto own = lacking.subspan(i, group);
          sum.add(loss_of<Loss>(*std::max_element(own.begin(), own.end()), objective.costs[i]));
        }
      },
      objective.loss);
  const double upper = sum.rounded() * kAFew + smallest_normal(lacking.size());
  if (!objective.has_shift()) return upper;
  sum.add(two_product(objective.total, shift));
  return sum.rounded() + 16 * kUnit * upper + 2 * kUnit * std::abs(sum.rounded()) +
         smallest_normal(lacking.size());
}

double twofold_dual(const Objective& objective, std::span<const double> alpha, double size, double reach) {
  Twofold gain;
  double magnitudes = 0;
  std::visit(
      [&]<class Loss>(Loss) {
        for (std::size_t i = 0; i < alpha.size(); ++i) {
          const double own = Loss::dual_gain(alpha[i], objective.costs[i]);
          gain.add(own);
          magnitudes += std::max(std::abs(own), alpha[i]);
          if (objective.targets.empty()) continue;
          const double beyond_1 = (objective.targets[i] - 1) * alpha[i];
          gain.add(beyond_1);
          magnitudes += std::abs(beyond_1) + alpha[i];  // which has room for a target's own rounding
        }
      },
      objective.loss);
  const bool l1 = objective.penalty == Penalty::l1;
  const double held = (l1 ? 0.0 : 0.5 * size) + objective.worth_of_excess(alpha, reach);
  const double value =
      gain.rounded() - held - 16 * kUnit * (magnitudes + std::abs(held)) - smallest_normal(alpha.size());
  return l1 ? value / objective.divisor(alpha, size) : value;
}

}  // namespace maxmargin
