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
  double below = 0;         // their weight
  double last = -INFINITY;  // the largest of their values
};

Bracketed points_in(std::span<const double> values, std::span<const double> weights, double low,
                    double high) {
  Bracketed found;
  double below = 0, last = -INFINITY;
  std::size_t inside = 0;
#pragma omp simd reduction(+ : below, inside) reduction(max : last)
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool counts = weights[i] > 0, left = counts && values[i] < low;
    below += left ? weights[i] : 0.0;
    last = std::max(last, left ? values[i] : -INFINITY);
    inside += counts && !left && values[i] <= high ? 1 : 0;
  }
  found.below = below;
  found.last = last;
  found.inside.resize(inside + 1);  // every point is written, and the next one over it if it is outside
  WeightedPoint* next = found.inside.data();
  for (std::size_t i = 0; i < values.size(); ++i) {
    *next = {values[i], weights[i]};
    next += (weights[i] > 0) & !(values[i] < low) & (values[i] <= high);  // without a branch
  }
  found.inside.resize(inside);
  return found;
}

// A bracket around the place where  ridge t + (weights up to t)  crosses the level, as a sample of about a
// thousand points sees it. It may miss: whoever uses it has to look.
std::pair<double, double> sampled_bracket(std::span<const double> values, std::span<const double> weights,
                                          double level, double ridge, double total) {
  constexpr std::size_t kSample = 1024, kEitherSide = 80;  // five standard deviations of a rank
  const std::size_t stride = values.size() / kSample;
  if (stride < 4) return {-INFINITY, INFINITY};
  std::vector<WeightedPoint> sample;
  sample.reserve(kSample + stride);
  double sampled = 0;
  for (std::size_t i = 0; i < values.size(); i += stride) {
    if (weights[i] <= 0) continue;
    sample.push_back({values[i], weights[i]});
    sampled += weights[i];
  }
  if (sample.empty()) return {-INFINITY, INFINITY};
  std::sort(sample.begin(), sample.end());
  double before = 0;
  std::size_t place = 0;
  for (; place < sample.size(); ++place) {
    if (ridge * sample[place].value + before * (total / sampled) > level) break;
    before += sample[place].weight;
  }
  return {place > kEitherSide ? sample[place - kEitherSide].value : -INFINITY,
          place + kEitherSide < sample.size() ? sample[place + kEitherSide].value : INFINITY};
}

}  // namespace

std::pair<double, double> weighted_quantile(std::span<const double> values, std::span<const double> weights,
                                            double level, double ridge, std::pair<double, double> likely) {
  double total = 0;
#pragma omp simd reduction(+ : total)
  for (std::size_t i = 0; i < weights.size(); ++i) total += std::max(weights[i], 0.0);
  const double rounding = 1e-13 * total;  // sums of the same weights in another order differ by this
  const bool is_told = likely.first > -INFINITY && likely.second < INFINITY;
  const auto [low, high] = is_told ? likely : sampled_bracket(values, weights, level, ridge, total);
  Bracketed found = points_in(values, weights, low, high);
  double weight = found.below;
  for (const WeightedPoint& point : found.inside) weight += point.weight;
  const bool too_high = low > -INFINITY && !(ridge * low + found.below <= level + rounding);
  const bool too_low = high < INFINITY && !(ridge * high + weight > level + rounding);
  if (too_high || too_low) found = points_in(values, weights, -INFINITY, INFINITY);
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
  const double left = begin == points.begin() ? found.last : std::max_element(points.begin(), begin)->value;
  if (ridge > 0) {
    // Between two points the place is a quotient of differences, whose rounding must not lead beyond them.
    if (ridge * at + before > level) {
      const double place = std::clamp((level - before) / ridge, left, at);
      return {place, place};
    }
    double right = end == points.end() ? INFINITY : end->value;
    for (auto point = end; point != points.end(); ++point) right = std::min(right, point->value);
    const double place = std::clamp((level - before - begin->weight) / ridge, at, right);
    return {place, place};
  }
  if (end == points.end() && before + begin->weight <= level + rounding) return {at, INFINITY};
  if (before < level - rounding) return {at, at};
  return {left, at};
}

}  // namespace maxmargin
