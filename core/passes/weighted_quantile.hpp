// SPDX-License-Identifier: BSD-3-Clause
// Where the sum of weights, taken in the order of their values, crosses a level: O(n) by selection.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <utility>

namespace maxmargin {

// The values of some points. They may follow from other numbers: then no memory is needed for them, since
// they are read block by block.
struct PointValues {
  static constexpr std::size_t kBlock = 512;

  std::size_t count;
  std::function<void(std::size_t first, std::span<double> out)> read;

  // Calls use(first, values of the block that begins there).
  template <class Use>
  void for_each_block(const Use& use) const {
    double block[kBlock];
    for (std::size_t first = 0; first < count; first += kBlock) {
      const std::span<double> some(block, std::min(kBlock, count - first));
      read(first, some);
      use(first, std::span<const double>(some));
    }
  }
};

// All t that minimise  ridge / 2 t^2 + sum_i weight_i max(0, t - value_i) - level t, as an
// interval. Without the ridge this is a weighted quantile, and may be a whole interval, with an infinite
// end where the level is 0 or that of all weights. It is soon found where it lies inside `likely`.
std::pair<double, double> weighted_quantile(const PointValues& values, std::span<const double> weights,
                                            double level, double ridge,
                                            std::pair<double, double> likely = {-INFINITY, INFINITY});

// The same of values that are stored.
inline std::pair<double, double> weighted_quantile(std::span<const double> values,
                                                   std::span<const double> weights, double level,
                                                   double ridge) {
  const auto read = [values](std::size_t first, std::span<double> out) {
    std::copy_n(values.begin() + first, out.size(), out.begin());
  };
  return weighted_quantile({values.size(), read}, weights, level, ridge);
}

// The middle of such an interval; its finite end where it has only one, and 0 where it has none.
inline double middle_of(double low, double high) {
  if (std::isinf(low) && std::isinf(high)) return 0;
  if (std::isinf(low)) return high;
  return std::isinf(high) ? low : 0.5 * (low + high);
}

}  // namespace maxmargin
