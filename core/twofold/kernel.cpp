// SPDX-License-Identifier: BSD-3-Clause
#include "twofold/kernel.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <variant>

#include "data/columns.hpp"

namespace maxmargin {
namespace {

// The error of a value of a kernel, in units of the lengths of both rows and for one column: 2^6 times what
// the operations of a sum can add up to, which covers the exponential as well.
constexpr double kValueError = 0x1p-100;

// Products need fused operations, which the oldest processors of an instruction set lack: a loop with this
// mark is compiled for both kinds, and the better one is taken when it is loaded. Rounding is the same.
#if defined(__x86_64__) && defined(__linux__) && defined(__GLIBC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__)
#define MAXMARGIN_FUSED [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define MAXMARGIN_FUSED
#endif

// Rows whose sums are formed side by side, so that none waits for the last addition to another.
constexpr std::size_t kSide = 8;

// Sums of one row with each of kSide others.
struct Sums {
  double high[kSide] = {}, low[kSide] = {};

  MAXMARGIN_INLINE Twofold operator[](std::size_t lane) const { return {high[lane], low[lane]}; }
  MAXMARGIN_INLINE void set(std::size_t lane, Twofold value) {
    high[lane] = value.high;
    low[lane] = value.low;
  }
  MAXMARGIN_INLINE void add(std::size_t lane, Twofold value) {
    Twofold sum = (*this)[lane];
    sum.add(value);
    set(lane, sum);
  }
};

MAXMARGIN_INLINE Twofold difference_of(double a, double b) {
  const double difference = a - b, part = difference - a;
  return {difference, (a - (difference - part)) - (b + part)};
}

// e^-x for x >= 0: x = n ln 2 + 256 r, Taylor's series for e^-r, squared eight times.
MAXMARGIN_INLINE Sums exponentials_of_minus(const Sums& x) {
  const Twofold ln2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
  double scale[kSide];
  Sums r, sum;
#pragma omp simd
  for (std::size_t lane = 0; lane < kSide; ++lane) {
    const bool vanishes = !(x.high[lane] < 700);  // below 1e-304
    // To the nearest whole number: so large a sum has no room for digits behind the point, and ends with
    // the bits of n.
    constexpr double kWhole = 0x1.8p52;
    const double large = (vanishes ? 0.0 : x.high[lane] / ln2.high) + kWhole, n = large - kWhole;
    // A series of what vanishes would end in numbers that are none, which no factor of 0 takes back.
    Twofold rest = vanishes ? Twofold{} : x[lane];
    rest.add(two_product(-n, ln2.high));
    rest.low -= n * ln2.low;
    r.set(lane, {-rest.high / 256, -rest.low / 256});
    sum.set(lane, {1, 0});
    scale[lane] =
        vanishes ? 0.0 : std::bit_cast<double>((1023 - std::bit_cast<std::uint64_t>(large)) << 52);
  }
  for (int k = 10; k > 0; --k) {
#pragma omp simd
    for (std::size_t lane = 0; lane < kSide; ++lane) {
      Twofold next = divided(r[lane] * sum[lane], k);
      next.add(1.0);
      const double rounded = next.rounded();
      sum.set(lane, {rounded, (next.high - rounded) + next.low});
    }
  }
  for (int k = 0; k < 8; ++k) {
#pragma omp simd
    for (std::size_t lane = 0; lane < kSide; ++lane) sum.set(lane, sum[lane] * sum[lane]);
  }
#pragma omp simd
  for (std::size_t lane = 0; lane < kSide; ++lane)
    sum.set(lane, {sum.high[lane] * scale[lane], sum.low[lane] * scale[lane]});
  return sum;
}

// The values of the kernel that the common sums make.
MAXMARGIN_INLINE Sums values_of(const KernelSum& kernel, const Sums& product, const Sums& square,
                                const Sums& distance) {
  Sums values;
  for (const Term& term : kernel.terms) {
    Sums one;
    for (std::size_t lane = 0; lane < kSide; ++lane) one.set(lane, {term.coefficient, 0});
    for (const Factor& factor : term.factors) {
      const Twofold gamma{factor.gamma, 0};
      if (factor.shape == Shape::exponential) {
        Sums exponents = factor.common == Common::product ? square : distance;
#pragma omp simd
        for (std::size_t lane = 0; lane < kSide; ++lane) exponents.set(lane, gamma * exponents[lane]);
        exponents = exponentials_of_minus(exponents);
#pragma omp simd
        for (std::size_t lane = 0; lane < kSide; ++lane) one.set(lane, one[lane] * exponents[lane]);
        continue;
      }
      Sums inner;
#pragma omp simd
      for (std::size_t lane = 0; lane < kSide; ++lane) {
        Twofold sum = gamma * product[lane];
        sum.add(factor.shift);
        inner.set(lane, sum);
      }
      for (int k = 0; k < factor.degree; ++k) {
#pragma omp simd
        for (std::size_t lane = 0; lane < kSide; ++lane) one.set(lane, one[lane] * inner[lane]);
      }
    }
#pragma omp simd
    for (std::size_t lane = 0; lane < kSide; ++lane) values.add(lane, one[lane]);
  }
  return values;
}

// sum_j coefficient_j k(x, x_j), with kSide rows j in each tile: tile[column * kSide + lane].
MAXMARGIN_FUSED Twofold score_of(const KernelSum& kernel, std::span<const double> x,
                                 std::span<const double> tiles, std::span<const double> coefficients,
                                 bool squares, bool distances) {
  Twofold score;
  const std::size_t size = x.size() * kSide;
  for (std::size_t first = 0; first < coefficients.size(); first += kSide) {
    const double* tile = tiles.data() + first / kSide * size;
    Sums product, square, distance;
    for (std::size_t k = 0; k < x.size(); ++k) {
#pragma omp simd
      for (std::size_t lane = 0; lane < kSide; ++lane) {
        product.add(lane, two_product(x[k], tile[k * kSide + lane]));
      }
    }
    for (std::size_t k = 0; k < x.size() && squares; ++k) {
#pragma omp simd
      for (std::size_t lane = 0; lane < kSide; ++lane) {
        const Twofold difference = difference_of(x[k], tile[k * kSide + lane]);
        square.add(lane, difference * difference);
      }
    }
    for (std::size_t k = 0; k < x.size() && distances; ++k) {
#pragma omp simd
      for (std::size_t lane = 0; lane < kSide; ++lane) {
        const Twofold difference = difference_of(x[k], tile[k * kSide + lane]);
        const double sign = difference.high < 0 ? -1.0 : 1.0;
        distance.add(lane, {sign * difference.high, sign * difference.low});
      }
    }
    const Sums values = values_of(kernel, product, square, distance);
    const std::size_t lanes = std::min(kSide, coefficients.size() - first);
    for (std::size_t lane = 0; lane < lanes; ++lane)
      score.add(Twofold{coefficients[first + lane], 0} * values[lane]);
  }
  return score;
}

}  // namespace

bool has_twofold(const KernelSum& kernel) {
  return std::ranges::all_of(kernel.terms, [](const Term& term) {
    return std::ranges::all_of(term.factors, [](const Factor& factor) {
      if (factor.shape == Shape::exponential)
        return factor.common == Common::product || factor.common == Common::minimum;
      return factor.shape == Shape::power && factor.common == Common::product;
    });
  });
}

TwofoldScores twofold_scores(const KernelSum& kernel, const StoredRows& rows,
                             std::span<const Integer> which, std::span<const double> coefficients,
                             std::span<const double> lengths) {
  const std::size_t count = which.size();
  const std::size_t columns =
      std::visit([](const auto& kind) { return static_cast<std::size_t>(kind.columns); }, rows);
  std::vector<double> used;  // the coefficients that are not 0
  for (const double coefficient : coefficients)
    if (coefficient != 0) used.push_back(coefficient);
  std::vector<double> dense(count * columns, 0.0);
  std::vector<double> tiles((used.size() + kSide - 1) / kSide * kSide * columns, 0.0);
  std::visit(
      [&](const auto& kind) {
        std::size_t place = 0;
        for (std::size_t i = 0; i < count; ++i) {
          double* tile = tiles.data() + place / kSide * kSide * columns + place % kSide;
          for_each_value(kind[which[i]], [&](Integer column, auto value) {
            dense[i * columns + column] = static_cast<double>(value);
            if (coefficients[i] != 0) tile[column * kSide] = static_cast<double>(value);
          });
          place += coefficients[i] != 0;
        }
      },
      rows);
  double degrees = 1;
  for (const Term& term : kernel.terms)
    for (const Factor& factor : term.factors) degrees += factor.degree + 1;
  double all_lengths = 0;
  for (std::size_t j = 0; j < count; ++j) all_lengths += std::abs(coefficients[j]) * lengths[j];
  const double wide = static_cast<double>(columns) + 16;
  const double relative = degrees * wide * wide * kValueError + twofold_error(static_cast<double>(count));
  TwofoldScores scores{std::vector<Twofold>(count), std::vector<double>(count)};
  Twofold squared_length;
  double off = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto row = std::span<const double>(dense).subspan(i * columns, columns);
    scores.values[i] =
        score_of(kernel, row, tiles, used, kernel.any_distances(), kernel.uses(Common::minimum));
    scores.off[i] = 1.01 * relative * lengths[i] * all_lengths + smallest_normal(count);
    squared_length.add(Twofold{coefficients[i], 0} * scores.values[i]);
    off += std::abs(coefficients[i]) * scores.off[i];
  }
  const double squared = squared_length.rounded();
  // What is not a number proves nothing.
  const double least = std::isnan(squared) ? INFINITY : std::max(0.0, squared);
  scores.squared_length = least * (1 + 16 * kUnit) + 1.01 * off +
                          twofold_error(static_cast<double>(count)) * all_lengths * all_lengths;
  return scores;
}

}  // namespace maxmargin
