// SPDX-License-Identifier: BSD-3-Clause
#include "twofold/pairs.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "twofold/proof.hpp"

namespace maxmargin {
namespace {

// Whether s_i - s_j < top, exactly: the difference and its rounding error are two doubles.
MAXMARGIN_INLINE bool is_below(double upper, double lower, double top) {
  const double difference = upper - lower, part = difference - upper;
  if (difference != top) return difference < top;
  return (upper - (difference - part)) - (lower + part) < 0;
}

MAXMARGIN_INLINE Twofold minus(Twofold a, Twofold b) {
  a.add(Twofold{-b.high, -b.low});
  return a;
}

MAXMARGIN_INLINE Twofold sum_of(double a, double b) {
  Twofold sum{a, 0};
  sum.add(b);
  return sum;
}

// a - (b - c)
MAXMARGIN_INLINE Twofold without(double a, double b, double c) {
  Twofold difference = sum_of(-b, c);
  difference.add(a);
  return difference;
}

MAXMARGIN_INLINE Twofold times(double a, Twofold b) { return Twofold{a, 0} * b; }

}  // namespace

RankedPairs::RankedPairs(std::vector<std::int64_t> order, std::vector<std::int64_t> levels,
                         std::span<const std::int64_t> queries, std::span<const double> weights)
    : order_(std::move(order)), levels_(levels.begin(), levels.end()), degrees_(order_.size()) {
  for (const std::int64_t row : order_) weights_.push_back(weights[static_cast<std::size_t>(row)]);
  // What is still to be merged: where each block of a query begins, and the end of its last one.
  std::vector<std::vector<std::size_t>> open;
  for (std::size_t q = 0; q + 1 < queries.size(); ++q) {
    const auto first = levels_.begin() + queries[q], last = levels_.begin() + queries[q + 1] + 1;
    double sum = 0;
    for (std::size_t at = *first; at < *(last - 1); ++at) sum += weights_[at];
    largest_weight_sum_ = std::max(largest_weight_sum_, sum * (1 + 1e-6));
    if (last - first > 2) open.emplace_back(first, last);
  }
  while (!open.empty()) {
    std::vector<Block>& round = merges_.emplace_back();
    std::vector<std::vector<std::size_t>> next;
    for (const auto& begins : open) {
      std::vector<std::size_t> merged;
      for (std::size_t k = 0; k + 1 < begins.size(); k += 2) {
        merged.push_back(begins[k]);
        if (k + 2 < begins.size()) round.push_back({begins[k], begins[k + 1], begins[k + 2]});
      }
      merged.push_back(begins.back());
      if (merged.size() > 2) next.push_back(std::move(merged));
    }
    open = std::move(next);
  }
  sorted_.resize(merges_.size());
}

double RankedPairs::twofold_share() const { return twofold_error(2.0 * static_cast<double>(rows()) + 64); }

BoundedSum RankedPairs::count() const {
  Twofold all;
  for (const auto& round : merges_) {
    for (const Block& block : round) {
      Twofold lower, upper;
      for (std::size_t at = block.begin; at < block.middle; ++at) lower.add(weights_[at]);
      for (std::size_t at = block.middle; at < block.end; ++at) upper.add(weights_[at]);
      all.add(lower * upper);
    }
  }
  return {all.rounded(), 8 * kUnit * all.rounded()};
}

void RankedPairs::sort(std::span<const double> scores) {
  if (merges_.empty()) return;
  std::vector<Place>& leaves = sorted_[0];
  leaves.resize(rows());
  for (std::size_t at = 0; at < rows(); ++at) {
    const double score = scores[static_cast<std::size_t>(order_[at])];
    leaves[at] = {score, static_cast<std::int64_t>(at)};
  }
  const auto is_before = [](const Place& a, const Place& b) {
    return a.score != b.score ? a.score < b.score : a.at < b.at;
  };
  const auto place = [](std::vector<Place>& places, std::size_t at) {
    return places.begin() + static_cast<std::ptrdiff_t>(at);
  };
  for (std::size_t level = 0; level + 1 < levels_.size(); ++level) {
    std::sort(place(leaves, levels_[level]), place(leaves, levels_[level + 1]), is_before);
  }
  for (std::size_t round = 0; round + 1 < merges_.size(); ++round) {
    sorted_[round + 1] = sorted_[round];
    for (const auto& [begin, middle, end] : merges_[round]) {
      std::merge(place(sorted_[round], begin), place(sorted_[round], middle), place(sorted_[round], middle),
                 place(sorted_[round], end), place(sorted_[round + 1], begin), is_before);
    }
  }
}

void RankedPairs::take_prefix_sums(const Place* places, std::size_t count, int powers, double reference) {
  for (int power = 0; power <= powers; ++power)
    sums_[power].resize(std::max(sums_[power].size(), count + 1));
  Twofold sums[3];
  for (std::size_t k = 0; k <= count; ++k) {
    for (int power = 0; power <= powers; ++power) sums_[power][k] = sums[power];
    if (k == count) break;
    const double weight = weights_[static_cast<std::size_t>(places[k].at)];
    const Twofold score = sum_of(places[k].score, -reference);
    sums[0].add(weight);
    if (powers > 0) sums[1].add(times(weight, score));
    if (powers > 1) sums[2].add(times(weight, score * score));
  }
}

double RankedPairs::spread_of(const Place* places, const Block& block) {
  const auto [begin, middle, end] = block;
  const double low = std::min(places[begin].score, places[middle].score);
  return std::max(places[middle - 1].score, places[end - 1].score) - low;
}

BoundedSum RankedPairs::sum(double top, int power) {
  Twofold all;
  double all_weights = 0, spread = 0;
  for (std::size_t round = 0; round < merges_.size(); ++round) {
    const Place* const places = sorted_[round].data();
    for (const Block& block : merges_[round]) {
      const auto [begin, middle, end] = block;
      const std::size_t lower = middle - begin;
      const double reference = places[begin].score;
      spread = std::max(spread, spread_of(places, block));
      take_prefix_sums(places + begin, lower, power, reference);
      std::size_t first = 0;  // of the lower rows whose margin is below the top
      for (std::size_t k = middle; k < end; ++k) {
        const double score = places[k].score, weight = weights_[static_cast<std::size_t>(places[k].at)];
        while (first < lower && !is_below(score, places[begin + first].score, top)) ++first;
        if (first == lower) break;
        const Twofold weights = minus(sums_[0][lower], sums_[0][first]),
                      own = without(top, score, reference);
        Twofold part = weights;
        if (power > 0) {
          const Twofold scores = minus(sums_[1][lower], sums_[1][first]);
          part = weights * own;
          part.add(scores);
          if (power > 1) {
            // own^2 weights + 2 own scores + squares = own (own weights + 2 scores) + squares
            part.add(scores);
            part = part * own;
            part.add(minus(sums_[2][lower], sums_[2][first]));
          }
        }
        all.add(times(weight, part));
        all_weights += weight;
      }
    }
  }
  const double size = std::abs(top) + 2 * spread;
  const double per_pair = power == 0 ? 1 : power == 1 ? size : 4 * size * size;
  const double value = std::max(all.rounded(), 0.0);
  const double lost = twofold_share() * per_pair * largest_weight_sum() * 4 * all_weights;
  return {value, 16 * kUnit * value + lost};
}

BoundedSum RankedPairs::multipliers(const Ramp& ramp, std::span<double> signed_sums, std::span<double> mass,
                                    double& slack) {
  std::fill(signed_sums.begin(), signed_sums.end(), 0.0);
  std::fill(mass.begin(), mass.end(), 0.0);
  Twofold all;
  double all_weights = 0, spread = 0;
  const auto [top, bottom, slope] = ramp;
  for (std::size_t round = 0; round < merges_.size(); ++round) {
    const Place* const places = sorted_[round].data();
    // What the pairs of a row are worth: those below the ramp, and those on it.
    const auto take = [&](const Place& place, double sign, Twofold below, Twofold on, Twofold own,
                          Twofold scores) {
      if (below.high == 0 && on.high == 0) return;
      const std::size_t at = static_cast<std::size_t>(place.at);
      Twofold sloped = on * own;
      sloped.add(scores);
      Twofold part = times(slope, sloped);
      part.add(below);
      part = times(weights_[at], part);
      const double value = std::max(part.rounded(), 0.0);
      const std::size_t row = static_cast<std::size_t>(order_[at]);
      signed_sums[row] += sign * value;
      mass[row] += value;
      if (sign > 0) {
        all.add(part);
        all_weights += weights_[at];
      }
    };
    for (const Block& block : merges_[round]) {
      const auto [begin, middle, end] = block;
      const std::size_t lower = middle - begin, upper = end - middle;
      const double reference = places[begin].score;
      spread = std::max(spread, spread_of(places, block));
      take_prefix_sums(places + begin, lower, 1, reference);
      std::size_t on = 0, below = 0;  // the first of the lower rows that are at most on the ramp, or below
      for (std::size_t k = middle; k < end; ++k) {
        const double score = places[k].score;
        while (on < lower && !is_below(score, places[begin + on].score, top)) ++on;
        below = std::max(below, on);
        while (below < lower && !is_below(score, places[begin + below].score, bottom)) ++below;
        take(places[k], 1.0, minus(sums_[0][lower], sums_[0][below]), minus(sums_[0][below], sums_[0][on]),
             without(top, score, reference), minus(sums_[1][below], sums_[1][on]));
      }
      take_prefix_sums(places + middle, upper, 1, reference);
      on = below = 0;  // how many of the upper rows are at most on the ramp, or below
      for (std::size_t k = begin; k < middle; ++k) {
        const double score = places[k].score;
        while (below < upper && is_below(places[middle + below].score, score, bottom)) ++below;
        on = std::max(below, on);
        while (on < upper && is_below(places[middle + on].score, score, top)) ++on;
        take(places[k], -1.0, sums_[0][below], minus(sums_[0][on], sums_[0][below]),
             without(top, reference, score), minus(sums_[1][below], sums_[1][on]));
      }
    }
  }
  const double size = std::abs(top) + 2 * spread;
  const double rounds = static_cast<double>(merges_.size());
  slack = twofold_share() * 4 * (slope * size + 1) * largest_weight_sum() * rounds;
  const double value = std::max(all.rounded(), 0.0);
  return {value, 16 * kUnit * value + slack * all_weights};
}

void RankedPairs::hold(const Ramp& ramp) {
  const auto [top, bottom, slope] = ramp;
  slope_ = slope;
  windows_.resize(merges_.size());
  std::fill(degrees_.begin(), degrees_.end(), 0.0);
  const auto narrow = [](std::size_t at) { return static_cast<std::uint32_t>(at); };
  for (std::size_t round = 0; round < merges_.size(); ++round) {
    const Place* const places = sorted_[round].data();
    std::vector<Window>& windows = windows_[round];
    windows.assign(rows(), {0, 0});
    const auto keep = [&](std::size_t k, std::size_t first, std::size_t last, const Twofold* sums) {
      windows[k] = {narrow(first), narrow(last)};
      const std::size_t at = static_cast<std::size_t>(places[k].at);
      degrees_[at] += slope * weights_[at] * minus(sums[last], sums[first]).rounded();
    };
    for (const auto& [begin, middle, end] : merges_[round]) {
      const std::size_t lower = middle - begin, upper = end - middle;
      take_prefix_sums(places + begin, lower, 0, 0);
      std::size_t on = 0, below = 0;
      for (std::size_t k = middle; k < end; ++k) {
        const double score = places[k].score;
        while (on < lower && !is_below(score, places[begin + on].score, top)) ++on;
        below = std::max(below, on);
        while (below < lower && !is_below(score, places[begin + below].score, bottom)) ++below;
        keep(k, on, below, sums_[0].data());
      }
      take_prefix_sums(places + middle, upper, 0, 0);
      on = below = 0;
      for (std::size_t k = begin; k < middle; ++k) {
        const double score = places[k].score;
        while (below < upper && is_below(places[middle + below].score, score, bottom)) ++below;
        on = std::max(below, on);
        while (on < upper && is_below(places[middle + on].score, score, top)) ++on;
        keep(k, below, on, sums_[0].data());
      }
    }
  }
}

void RankedPairs::product(std::span<const double> values, std::size_t columns, std::span<double> out) {
  for (std::size_t at = 0; at < rows(); ++at) {
    const std::size_t row = static_cast<std::size_t>(order_[at]) * columns;
    for (std::size_t c = 0; c < columns; ++c) out[row + c] = degrees_[at] * values[row + c];
  }
  const auto row_at = [&](const Place& place) {
    return static_cast<std::size_t>(order_[static_cast<std::size_t>(place.at)]) * columns;
  };
  for (std::size_t round = 0; round < merges_.size(); ++round) {
    const Place* const places = sorted_[round].data();
    const Window* const windows = windows_[round].data();
    // Takes what the rows of one part of a block are worth from the sums over the other one.
    const auto pull = [&](std::size_t first, std::size_t last, std::size_t others, std::size_t end) {
      column_sums_.resize(std::max(column_sums_.size(), (end - others + 1) * columns));
      double* const sums = column_sums_.data();
      std::fill(sums, sums + columns, 0.0);
      for (std::size_t k = others; k < end; ++k) {
        const double weight = weights_[static_cast<std::size_t>(places[k].at)];
        const double* const row = values.data() + row_at(places[k]);
        const double* const from = sums + (k - others) * columns;
        double* const to = sums + (k - others + 1) * columns;
        for (std::size_t c = 0; c < columns; ++c) to[c] = from[c] + weight * row[c];
      }
      for (std::size_t k = first; k < last; ++k) {
        const Window window = windows[k];
        if (window.begin == window.end) continue;
        const double factor = slope_ * weights_[static_cast<std::size_t>(places[k].at)];
        const double* const before = sums + window.begin * columns;
        const double* const until = sums + window.end * columns;
        double* const to = out.data() + row_at(places[k]);
        for (std::size_t c = 0; c < columns; ++c) to[c] -= factor * (until[c] - before[c]);
      }
    };
    for (const auto& [begin, middle, end] : merges_[round]) {
      pull(middle, end, begin, middle);
      pull(begin, middle, middle, end);
    }
  }
}

}  // namespace maxmargin
