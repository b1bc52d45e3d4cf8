// SPDX-License-Identifier: BSD-3-Clause
#include "passes/weighted_quantile.hpp"

#include <algorithm>
#include <vector>

namespace maxmargin {
namespace {

struct WeightedPoint {
  double value, weight;
  friend bool operator<(const WeightedPoint& a, const WeightedPoint& b) { return a.value < b.value; }
};

// The points of a bracket, in any order, and what lies below it.
struct Bracketed {
  std::vector<WeightedPoint> inside;
  double below = 0;  // their weight
};

Bracketed points_in(const PointValues& values, std::span<const double> weights, double low, double high) {
  constexpr std::size_t kTogether = 8;  // of which hardly any is inside, as a rule
  Bracketed found;
  values.for_each_block([&](std::size_t first, std::span<const double> some) {
    const std::size_t size = some.size();
    const double *const value = some.data(), *const weight = &weights[first];
    double held[PointValues::kBlock];  // the weights of those that are inside
    double below = 0;
    // Each condition by itself: GCC makes branches of one inside the other, and half of them are mistaken.
#pragma omp simd reduction(+ : below)
    for (std::size_t i = 0; i < size; ++i) {
      const double own = weight[i], at = value[i];
      const double counted = own > 0 ? own : 0.0;
      const double left = at < low ? counted : 0.0;
      const double upto = at <= high ? counted : 0.0;
      below += left;
      held[i] = upto - left;  // one of them, or none
    }
    found.below += below;
    std::fill(held + size, held + (size + kTogether - 1) / kTogether * kTogether, 0.0);
    for (std::size_t i = 0; i < size; i += kTogether) {
      double some = 0;
#pragma omp simd reduction(+ : some)
      for (std::size_t k = 0; k < kTogether; ++k) some += held[i + k];
      if (some == 0) continue;
      for (std::size_t k = i; k < i + kTogether; ++k) {
        if (held[k] > 0) found.inside.push_back({value[k], held[k]});
      }
    }
  });
  return found;
}

// The largest value below a place, of those that count.
double last_below(const PointValues& values, std::span<const double> weights, double place) {
  double last = -INFINITY;
  values.for_each_block([&](std::size_t first, std::span<const double> value) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (weights[first + i] > 0 && value[i] < place) last = std::max(last, value[i]);
    }
  });
  return last;
}

// A bracket around the place where  ridge t + (weights up to t)  crosses the level, as a sample of a
// thousand points or more sees it. It may miss: whoever uses it has to look.
std::pair<double, double> sampled_bracket(const PointValues& values, std::span<const double> weights,
                                          double level, double ridge, double total) {
  // n^(2/3) points take about as long to sort as those to select from that are left between them.
  const double root = std::cbrt(static_cast<double>(values.count));
  const std::size_t wanted = std::max<std::size_t>(1024, static_cast<std::size_t>(root * root));
  // Five standard deviations of a rank.
  const std::size_t either_side = static_cast<std::size_t>(2.5 * std::sqrt(static_cast<double>(wanted)));
  const std::size_t stride = values.count / wanted;
  if (stride < 4) return {-INFINITY, INFINITY};
  std::vector<WeightedPoint> sample;
  sample.reserve(wanted + stride);
  double sampled = 0;
  for (std::size_t i = 0; i < values.count; i += stride) {
    if (weights[i] <= 0) continue;
    WeightedPoint point{0, weights[i]};
    values.read(i, std::span(&point.value, 1));
    sample.push_back(point);
    sampled += point.weight;
  }
  if (sample.empty()) return {-INFINITY, INFINITY};
  std::sort(sample.begin(), sample.end());
  double before = 0;
  std::size_t place = 0;
  for (; place < sample.size(); ++place) {
    if (ridge * sample[place].value + before * (total / sampled) > level) break;
    before += sample[place].weight;
  }
  return {place > either_side ? sample[place - either_side].value : -INFINITY,
          place + either_side < sample.size() ? sample[place + either_side].value : INFINITY};
}

}  // namespace

std::pair<double, double> weighted_quantile(const PointValues& values, std::span<const double> weights,
                                            double level, double ridge, std::pair<double, double> likely) {
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (std::size_t i = 0; i < weights.size(); ++i) total += std::max(weights[i], 0.0);
  const double rounding = 1e-13 * total;  // sums of the same weights in another order differ by this
  const bool is_told = likely.first > -INFINITY && likely.second < INFINITY;
  auto [low, high] = is_told ? likely : sampled_bracket(values, weights, level, ridge, total);
  Bracketed found = points_in(values, weights, low, high);
  double weight = found.below;
  for (const WeightedPoint& point : found.inside) weight += point.weight;
  const bool too_high = low > -INFINITY && !(ridge * low + found.below <= level + rounding);
  const bool too_low = high < INFINITY && !(ridge * high + weight > level + rounding);
  if (too_high || too_low) {
    low = -INFINITY;
    found = points_in(values, weights, low, INFINITY);
  }
  if (found.inside.empty())
    return ridge > 0 ? std::pair{0.0, 0.0} : std::pair<double, double>{-INFINITY, INFINITY};
  std::vector<WeightedPoint>& points = found.inside;
  auto begin = points.begin();
  auto end = points.end();
  double before = found.below;  // weight of all points left of begin
  while (end - begin > 1) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end);
    double left = 0;
    for (auto point = begin; point != middle; ++point) left += point->weight;
    if (ridge * middle->value + before + left > level + rounding) {
      end = middle;
    } else {
      before += left;
      begin = middle;
    }
  }
  // The slope is not positive just left of this point, or this is the first point of all.
  const double at = begin->value;
  const auto left = [&, low = low] {
    return begin == points.begin() ? last_below(values, weights, low)
                                   : std::max_element(points.begin(), begin)->value;
  };
  if (ridge > 0) {
    // Between two points the place is a quotient of differences, whose rounding must not lead beyond them.
    if (ridge * at + before > level) {
      const double place = std::clamp((level - before) / ridge, left(), at);
      return {place, place};
    }
    double right = end == points.end() ? INFINITY : end->value;
    for (auto point = end; point != points.end(); ++point) right = std::min(right, point->value);
    const double place = std::clamp((level - before - begin->weight) / ridge, at, right);
    return {place, place};
  }
  if (end == points.end() && before + begin->weight <= level + rounding) return {at, INFINITY};
  if (before < level - rounding) return {at, at};
  return {left(), at};
}

}  // namespace maxmargin
