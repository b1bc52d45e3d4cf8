// SPDX-License-Identifier: BSD-3-Clause
#include "passes/proof.hpp"

#include <algorithm>
#include <array>
#include <variant>
#include <vector>

#include "passes/best_intercept.hpp"
#include "passes/best_length.hpp"
#include "passes/feasible.hpp"
#include "passes/groups.hpp"
#include "passes/passes.hpp"
#include "passes/weighted_quantile.hpp"

namespace maxmargin {
namespace {

// Signs of a sum in which all terms count as they are.
constexpr auto kOnes = [] {
  std::array<double, kSumBlock> ones{};
  ones.fill(1);
  return ones;
}();

template <class Visitor>
decltype(auto) visit(const Objective& objective, Visitor&& visitor) {
  return std::visit(std::forward<Visitor>(visitor), objective.loss);
}

}  // namespace

Lengths all_lengths(std::span<const double> values, std::span<const double> lengths) {
  Lengths all{0, 0};
  for (std::size_t first = 0; first < values.size(); first += kSumBlock) {
    const std::size_t last = std::min(values.size(), first + kSumBlock);
    double sum = 0, count = 0;
#pragma omp simd reduction(+ : sum, count)
    for (std::size_t i = first; i < last; ++i) {
      sum += std::abs(values[i]) * lengths[i];
      count += values[i] != 0 ? 1.0 : 0.0;
    }
    all.sum += sum;
    all.count += count;
  }
  return all;
}

template <class Margin>
double Objective::group_losses(std::size_t rows, const Margin& margin) const {
  const std::size_t each = static_cast<std::size_t>(group);
  return sum_in_blocks(rows / each, [&](std::size_t g) {
    double least = INFINITY, all = 0;
    for (std::size_t i = g * each; i < (g + 1) * each; ++i) {
      const double own = margin(i);
      least = std::min(least, own);
      all += 0 * own;  // which sees what a comparison does not: that a margin is not a number
    }
    return costs[g * each] * Hinge::value(least) + all;
  });
}

double Objective::loss_sum(std::span<const double> margins) const {
  if (group > 1) return group_losses(margins.size(), [&](std::size_t i) { return margins[i]; });
  return visit(*this, [&]<class Loss>(Loss) { return maxmargin::loss_sum<Loss>(margins, costs.data()); });
}

void Objective::multipliers(std::span<const double> margins, double* out) const {
  if (group > 1) return group_multipliers(margins, costs.data(), group, out);
  visit(*this, [&]<class Loss>(Loss) { multipliers_of<Loss>(margins, costs.data(), out); });
}

void Objective::curvatures(std::span<const double> margins, bool lifted, double* out) const {
  visit(*this, [&]<class Loss>(Loss loss) {
    if constexpr (std::is_same_v<Loss, Logistic> || std::is_same_v<Loss, SquaredHinge>) {
      if (lifted) return model_curvatures<true>(loss, margins, costs.data(), out);
      model_curvatures<false>(loss, margins, costs.data(), out);
    }
  });
}

double Objective::held(double size, double b) const {
  const double beta = intercept == Intercept::regularised ? b / number : 0.0;
  return penalty == Penalty::l1 ? size + std::abs(beta) : 0.5 * size + 0.5 * beta * beta;
}

double Objective::primal(std::span<const double> margins, double b, double size, const ScoreError& error,
                         double shift) const {
  if (!(error.per_length < INFINITY && error.constant < INFINITY)) return INFINITY;
  // The margins of w = 0 are those of b alone, and exact: no lengths are needed then.
  const bool off = error.per_length > 0 || !targets.empty();
  const double own = off ? 2 * kUnit : 0.0, per_length = error.per_length;
  const double* lengths = per_length > 0 ? error.lengths.data() : margins.data();
  // A target is added to the margin, and rounds it to its own digits; it may be rounded itself.
  const bool all_are_1 = targets.empty();
  const double unit = all_are_1 ? 0.0 : 5 * kUnit;
  const double* target = all_are_1 ? margins.data() : targets.data();
  const auto least = [&](std::size_t i) {
    return margins[i] - (per_length * lengths[i] + error.constant) - own * std::abs(margins[i]) -
           unit * (1 + std::abs(target[i]) + std::abs(shift));
  };
  // A loss does not see that a margin is not a number, but 0 times the margin does.
  const double losses =
      group > 1 ? group_losses(margins.size(), least) : visit(*this, [&]<class Loss>(Loss) {
        return sum_in_blocks(margins.size(), [&](std::size_t i) {
          const double margin = least(i);
          return costs[i] * Loss::value(margin) + 0 * margin;
        });
      });
  if (std::isnan(losses)) return INFINITY;
  const double both = held(size, b) + losses;
  if (both == 0 && shift == 0) return 0;
  const double upper = both * (1 + sum_rounding(margins.size())) + smallest_normal(margins.size());
  if (!has_shift()) return upper;
  const double pull = total * shift;  // may be negative, so that rounding counts by its size
  return upper + pull + 8 * kUnit * (upper + std::abs(pull));
}

double Objective::magnitudes_of(double gain, double sum) const {
  // Of the squared hinge, a gain is the difference of two numbers that are not negative.
  return std::holds_alternative<SquaredHinge>(loss) ? 2 * sum + std::abs(gain) : gain;
}

double Objective::dual(std::span<const double> alpha, double size, double reach) const {
  double gain = 0, sum = 0, beyond_1 = 0, size_beyond_1 = 0;
  SignedSum excess, all;
  // All sums are made block by block, as sum_in_blocks does: the next one finds the block in the cache.
  for (std::size_t first = 0; first < alpha.size(); first += kSumBlock) {
    const std::size_t last = std::min(alpha.size(), first + kSumBlock);
    double own_gain = 0, own_total = 0;
    visit(*this, [&]<class Loss>(Loss) {
#pragma omp simd reduction(+ : own_gain, own_total)
      for (std::size_t i = first; i < last; ++i) {
        own_gain += Loss::dual_gain(alpha[i], costs[i]);
        own_total += alpha[i];
      }
    });
    gain += own_gain;
    sum += own_total;
    if (!targets.empty()) {
      double own = 0, size = 0;
#pragma omp simd reduction(+ : own, size)
      for (std::size_t i = first; i < last; ++i) {
        const double term = (targets[i] - 1) * alpha[i];
        own += term;
        size += std::abs(term);
      }
      beyond_1 += own;
      size_beyond_1 += size + own_total;
    }
    if (excess_counts()) excess.add(&alpha[first], &labels[first], last - first);
    if (has_shift()) all.add(&alpha[first], kOnes.data(), last - first);
  }
  const double magnitudes = magnitudes_of(gain, sum) + size_beyond_1;
  gain += beyond_1;
  const bool l1 = penalty == Penalty::l1;
  const double held =
      (l1 ? 0.0 : 0.5 * size) + worth_of(excess.sum(), has_shift() ? all.sum() : Twofold{sum, 0}, reach);
  if (magnitudes == 0 && held == 0) return 0;
  if (!std::isfinite(gain - held)) return -INFINITY;
  const double value = gain - held - sum_rounding(alpha.size()) * (magnitudes + std::abs(held)) -
                       smallest_normal(alpha.size());
  return l1 ? value / divisor_of(excess.sum(), sum, size) : value;
}

std::array<Gains, 2> Objective::gains_of_sides(std::span<const double> alpha) const {
  double gain = 0, total = 0, other_gain = 0, other_total = 0;
  const double *const label = labels.data(), *const C = costs.data();
  for (std::size_t first = 0; first < alpha.size(); first += kSumBlock) {
    const std::size_t last = std::min(alpha.size(), first + kSumBlock);
    double own[4] = {};
    visit(*this, [&]<class Loss>(Loss) {
      double a = 0, b = 0, c = 0, d = 0;
#pragma omp simd reduction(+ : a, b, c, d)
      for (std::size_t i = first; i < last; ++i) {
        const double one = Loss::dual_gain(alpha[i], C[i]);
        a += label[i] > 0 ? one : 0.0;
        b += label[i] > 0 ? alpha[i] : 0.0;
        c += label[i] > 0 ? 0.0 : one;
        d += label[i] > 0 ? 0.0 : alpha[i];
      }
      own[0] = a, own[1] = b, own[2] = c, own[3] = d;
    });
    gain += own[0];
    total += own[1];
    other_gain += own[2];
    other_total += own[3];
  }
  const auto from_below = [&](double computed, double sum) -> double {
    if (computed == 0 && sum == 0) return 0;
    if (!std::isfinite(computed)) return -INFINITY;
    return computed - sum_rounding(alpha.size()) * magnitudes_of(computed, sum) -
           smallest_normal(alpha.size());
  };
  return {{{from_below(gain, total), total}, {from_below(other_gain, other_total), other_total}}};
}

double Objective::worth_of_excess(std::span<const double> alpha, double reach) const {
  SignedSum excess;
  Twofold sum;
  excess.add(alpha.data(), labels.data(), alpha.size());
  for (const double multiplier : alpha) sum.add(multiplier);
  return worth_of(excess.sum(), sum, reach);
}

double Objective::worth_of(const Twofold& excess, const Twofold& sum, double reach) const {
  const double lost = lost_in_sums(sum.rounded() + std::max(total, 0.0));
  double worth = 0;
  if (has_shift()) {
    Twofold beyond = sum;
    beyond.add(-total);
    worth = reach * (std::abs(beyond.rounded()) * (1 + 2 * kUnit) + lost);
  }
  if (!excess_counts()) return worth;
  const double off = 2 * kUnit * std::abs(excess.rounded()) + lost;
  const double most = std::abs(excess.rounded()) + off;
  if (intercept == Intercept::fixed) return worth + number * excess.rounded() + std::abs(number) * off;
  if (most == 0) return worth;
  if (intercept == Intercept::exact) return worth + reach * most;
  return worth + (penalty == Penalty::l1 ? 0.0 : 0.5 * (number * most) * (number * most));
}

double Objective::lost_in_sums(double magnitudes) const {
  const double terms = static_cast<double>(labels.size()) + 16;
  return 4 * terms * terms * kUnit * kUnit * magnitudes;
}

double Objective::divisor(std::span<const double> alpha, double size) const {
  SignedSum excess;
  excess.add(alpha.data(), labels.data(), alpha.size());
  const double sum = sum_in_blocks(alpha.size(), [&](std::size_t i) { return alpha[i]; });
  return divisor_of(excess.sum(), sum, size);
}

double Objective::divisor_of(const Twofold& excess, double sum, double size) const {
  double largest = size;
  if (intercept == Intercept::regularised) {
    const double most = std::abs(excess.rounded()) * (1 + 2 * kUnit) + lost_in_sums(sum);
    largest = std::max(largest, number * most);
  }
  // Rounded up by more than the division by it can round down.
  return largest <= 1 ? 1.0 : largest * (1 + 8 * kUnit);
}

double Objective::reach(double upper, double largest) const {
  const double length = has_shift()              ? largest * total
                        : penalty == Penalty::l1 ? upper
                                                 : std::sqrt(2 * upper);
  double reach = 1 + largest * length, most = 0;
  if (has_shift() && intercept == Intercept::fixed) reach += std::abs(number);
  for (const double target : targets) most = std::max(most, std::abs(target - 1));
  reach += most;
  if (std::holds_alternative<Logistic>(loss)) {
    const auto of_class = [&](double label) {
      return sum_in_blocks(costs.size(),
                           [&](std::size_t i) { return labels[i] == label ? costs[i] : 0.0; });
    };
    const double positive = of_class(1), negative = of_class(-1);
    if (positive > 0 && negative > 0) reach += std::abs(std::log(positive / negative));
  }
  return reach * (1 + 16 * kUnit);
}

void Objective::make_feasible(std::span<double> alpha) const {
  const auto run = [&]<class Loss>(Loss) {
    const double excess = clip_to_box<Loss>(alpha, labels.data(), costs.data());
    const bool exact = intercept == Intercept::exact;
    if (has_shift()) {
      for (const double sign : {1.0, -1.0}) {
        if (exact) reach_total<Loss>(alpha, labels.data(), costs.data(), sign, 0.5 * total);
      }
      if (!exact) reach_total<Loss>(alpha, labels.data(), costs.data(), 0, total);
    } else if (exact) {
      balance_classes<Loss>(alpha, labels.data(), costs.data(), excess);
    }
  };
  // The box of all other losses is that of the hinge.
  if (std::holds_alternative<SquaredHinge>(loss)) {
    run(SquaredHinge{});
  } else {
    run(Hinge{});
  }
  if (group > 1) share_costs(alpha, costs.data(), group);
}

namespace {

// Whether b = 0 is the best regularised one: rows pull up and down with their C_i, or hold it at a kink.
bool holds_zero(const PointValues& kinks, std::span<const double> labels, std::span<const double> costs) {
  double up = 0, down = 0, held_up = 0, held_down = 0;
  kinks.for_each_block([&](std::size_t first, std::span<const double> block) {
    for (std::size_t k = 0; k < block.size(); ++k) {
      const bool wants_more = labels[first + k] > 0;
      const double kink = block[k], cost = costs[first + k];
      up += wants_more && kink > 0 ? cost : 0.0;
      down += !wants_more && kink < 0 ? cost : 0.0;
      held_up += wants_more && kink == 0 ? cost : 0.0;
      held_down += !wants_more && kink == 0 ? cost : 0.0;
    }
  });
  return down <= up + held_up && up <= down + held_down;
}

// Where the kinks of rows with a free multiplier lie, and as far again: at an optimum they are all at b.
template <class Loss>
std::pair<double, double> among_free(const PointValues& kinks, std::span<const double> alpha,
                                     const double* costs) {
  if (alpha.empty()) return {-INFINITY, INFINITY};
  double low = INFINITY, high = -INFINITY;
  kinks.for_each_block([&](std::size_t first, std::span<const double> block) {
#pragma omp simd reduction(min : low) reduction(max : high)
    for (std::size_t k = 0; k < block.size(); ++k) {
      const double own = alpha[first + k];
      const bool free = own > 0 && own < Loss::upper(costs[first + k]);
      low = std::min(low, free ? block[k] : INFINITY);
      high = std::max(high, free ? block[k] : -INFINITY);
    }
  });
  if (!(low <= high)) return {-INFINITY, INFINITY};
  return {low - 0.5 * (high - low), high + 0.5 * (high - low)};
}

}  // namespace

BestIntercept Objective::best_intercept(std::span<const double> scores,
                                        std::span<const double> alpha) const {
  if (has_shift() && intercept == Intercept::exact) {
    // Rows of sign y see y b + e alone, so that each sign has its own level.
    const auto [least, most] = best_levels(scores, 1, 0.5 * total);
    const auto [low, high] = best_levels(scores, -1, 0.5 * total);
    const double above = middle_of(least, most), below = middle_of(low, high);
    return {0.5 * (above - below), 0.5 * (least - high), 0.5 * (most - low), 0.5 * (above + below)};
  }
  if (has_shift()) {
    const auto [low, high] = best_levels(scores, 0, total);
    return {number, number, number, middle_of(low, high)};
  }
  const auto [low, high] = best_intercepts(scores, alpha);
  return {middle_of(low, high), low, high};
}

BestIntercept Objective::take_best_intercept(std::span<double> scores,
                                             std::span<const double> alpha) const {
  const BestIntercept best = best_intercept(scores, alpha);
#pragma omp simd
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] = labels[i] * (scores[i] + best.b);
  if (targets.empty()) return best;
#pragma omp simd
  for (std::size_t i = 0; i < scores.size(); ++i) scores[i] += (1 - targets[i]) + best.shift;
  return best;
}

std::pair<double, double> Objective::best_intercepts(std::span<const double> scores,
                                                     std::span<const double> alpha) const {
  if (intercept == Intercept::fixed) return {number, number};
  const double ridge = intercept == Intercept::regularised ? 1 / (number * number) : 0;
  const double* target = targets.empty() ? nullptr : targets.data();
  return visit(*this, [&]<class Loss>(Loss) -> std::pair<double, double> {
    if constexpr (requires { Loss::kKink; }) {
      // The losses' slope by b is a step function that rises by C_i at row i's kink.
      const double* const label = labels.data();
      const auto read = [=](std::size_t first, std::span<double> out) {
        const double *const own = label + first, *const score = scores.data() + first;
        if (target == nullptr) {
#pragma omp simd
          for (std::size_t k = 0; k < out.size(); ++k) out[k] = Loss::kKink * own[k] - score[k];
        } else {
#pragma omp simd
          for (std::size_t k = 0; k < out.size(); ++k)
            out[k] = (Loss::kKink - 1 + target[first + k]) * own[k] - score[k];
        }
      };
      const PointValues kinks{scores.size(), read};
      const double* const cost = costs.data();
      double positive = 0;
#pragma omp simd reduction(+ : positive)
      for (std::size_t i = 0; i < scores.size(); ++i) {
        const double own = cost[i];  // read in any case: GCC makes a branch of what may not be read
        positive += label[i] > 0 ? own : 0.0;
      }
      // Where rows of neither sign pull at b = 0 it is best: a difference of sums might miss it.
      if (ridge > 0 && holds_zero(kinks, labels, costs)) return {0, 0};
      return weighted_quantile(kinks, costs, positive, ridge, among_free<Loss>(kinks, alpha, costs.data()));
    } else {
      if (target == nullptr) return smooth_intercepts<Loss>(scores);
      // With what a target adds to the score, the margin is y_i (score_i + b), as where all of them are 1.
      NumbersOfRows sums(scores.begin(), scores.end());
#pragma omp simd
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += labels[i] * (1 - target[i]);
      return smooth_intercepts<Loss>(sums);
    }
  });
}

std::pair<double, double> Objective::best_levels(std::span<const double> scores, double sign,
                                                 double total) const {
  // The slope of  total u + sum_i C_i max(0, kink_i - u)  rises by C_i at row i's kink.
  std::vector<double> kinks(scores.size()), weights(scores.size());
  const double b = intercept == Intercept::fixed ? number : 0;
  double all = 0;
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double target = targets.empty() ? 1 : targets[i];
    kinks[i] = target - labels[i] * (scores[i] + b);
    weights[i] = sign == 0 || labels[i] == sign ? costs[i] : 0.0;
    all += weights[i];
  }
  return weighted_quantile(kinks, weights, all - total, 0);
}

template <class Loss>
std::pair<double, double> Objective::smooth_intercepts(std::span<const double> scores) const {
  const bool regularised = intercept == Intercept::regularised, l1 = penalty == Penalty::l1;
  const double ridge = regularised && !l1 ? 1 / (number * number) : 0.0;
  const double threshold = regularised && l1 ? 1 / number : 0.0;
  const double b = maxmargin::best_intercept<Loss>(scores, labels.data(), costs.data(), ridge, threshold);
  if (!std::is_same_v<Loss, SquaredHinge> || regularised || some_have_losses(scores, b)) return {b, b};
  const auto [low, high] = intercepts_without_loss(scores);
  return low < high ? std::pair{low, high} : std::pair{b, b};
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
  if (group > 1) return group_violation(margins, alpha.data(), costs.data(), group);
  const double worst = visit(*this, [&]<class Loss>(Loss) {
    return maxmargin::largest_violation<Loss>(margins, alpha.data(), costs.data());
  });
  if (intercept != Intercept::regularised) return worst;
  const double pull = number * dot(alpha, labels);
  if (penalty == Penalty::l2) return std::max(worst, std::abs(b / number - pull));
  return std::max(worst, b == 0 ? std::abs(pull) - 1 : std::abs(pull - (b > 0 ? 1 : -1)));
}

bool Objective::some_have_losses(std::span<const double> scores, double b) const {
  for (std::size_t i = 0; i < scores.size(); i += scores.size() / 256 + 1) {
    if (costs[i] > 0 && !(labels[i] * (scores[i] + b) > 0.999)) return true;
  }
  return false;
}

namespace {

// The relative gap, and the share of it that rounding has in losses, from which a longer w is looked for.
constexpr double kVisible = 1e-9, kMostOfGap = 0.5;

// What rounding takes from w(alpha) in the span of rows of these lengths.
struct Span {
  double all_lengths;  // sum_j alpha_j |x_j|
  double per_length;   // a score is off by at most this times its row's length
  double most;         // an upper bound of the squared length

  Span(const Objective& objective, std::span<const double> alpha, std::span<const double> scores,
       std::span<const double> lengths, double value_error) {
    const std::size_t n = alpha.size();
    all_lengths = sum_in_blocks(n, [&](std::size_t i) { return alpha[i] * lengths[i]; });
    // Each score is a sum of n terms, one after the other, of at most alpha_j |x_i| |x_j|.
    per_length = (value_error + static_cast<double>(n + 4) * kUnit) * all_lengths;
    const double squared_length =
        sum_in_blocks(n, [&](std::size_t i) { return alpha[i] * objective.labels[i] * scores[i]; });
    most =
        squared_length + (per_length + sum_rounding(n) * all_lengths) * all_lengths * (1 + sum_rounding(n));
  }
};

Proof prove(const Objective& objective, std::span<const double> alpha, std::span<double> scores,
            std::span<const double> lengths, const Span& span) {
  const BestIntercept best = objective.take_best_intercept(scores, alpha);
  const double primal = objective.primal(scores, best.b, span.most, {span.per_length, lengths}, best.shift);
  const double largest = *std::max_element(lengths.begin(), lengths.end());
  return {best, primal, objective.dual(alpha, span.most, objective.reach(primal, largest))};
}

}  // namespace

Proof prove(const Objective& objective, std::span<const double> alpha, std::span<double> scores,
            std::span<const double> lengths, double value_error) {
  return prove(objective, alpha, scores, lengths, {objective, alpha, scores, lengths, value_error});
}

Proof prove_at_best_length(const Objective& objective, std::span<const double> alpha,
                           std::span<double> scores, std::span<const double> lengths, double value_error) {
  const Span span(objective, alpha, scores, lengths, value_error);
  std::vector<double> longer(scores.begin(), scores.end());
  const Proof proof = prove(objective, alpha, scores, lengths, span);
  const double gap = proof.primal - proof.dual;
  const double lost = proof.primal - (0.5 * span.most + objective.loss_sum(scores));
  if (!(gap > kVisible * proof.primal && lost > kMostOfGap * gap)) return proof;
  // The multipliers are rounded once more when they are made longer, and so are scores.
  const double per_length = span.per_length + 4 * kUnit * span.all_lengths;
  std::vector<double> least(scores.begin(), scores.end());
  for (std::size_t i = 0; i < least.size(); ++i)
    least[i] -= per_length * lengths[i] + 8 * kUnit * std::abs(least[i]);
  Proof other = proof;
  other.length = best_length(least, objective.costs, span.most);
  if (other.length == 1) return proof;
  for (double& score : longer) score *= other.length;
  other.intercept = objective.take_best_intercept(longer, alpha);
  const double squared = span.most + 4 * kUnit * span.all_lengths * span.all_lengths;
  other.primal =
      objective.primal(longer, other.intercept.b, other.length * other.length * squared * (1 + 8 * kUnit),
                       {other.length * per_length, lengths});
  if (!(other.primal < proof.primal)) return proof;
  std::copy(longer.begin(), longer.end(), scores.begin());
  return other;
}

}  // namespace maxmargin
