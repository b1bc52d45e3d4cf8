// SPDX-License-Identifier: BSD-3-Clause
#include "twofold/kernel.hpp"

#include <algorithm>
#include <cmath>
#include <variant>

#include "data/columns.hpp"

namespace maxmargin {
namespace {

// The error of a value of a kernel, in units of the lengths of both rows and for one column: 2^6 times what
// the operations of a sum can add up to, which covers the exponential as well.
constexpr double kValueError = 0x1p-100;

// e^-x for x >= 0: x = n ln 2 + 256 r, Taylor's series for e^-r, squared eight times.
Twofold exponential_of_minus(Twofold x) {
  if (!(x.high < 700)) return {};  // below 1e-304
  const Twofold ln2{0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56};
  const double n = std::nearbyint(x.high / ln2.high);
  Twofold rest = x;
  rest.add(two_product(-n, ln2.high));
  rest.low -= n * ln2.low;
  const Twofold r{-rest.high / 256, -rest.low / 256};
  Twofold sum{1, 0};
  for (int k = 10; k > 0; --k) {
    Twofold next = divided(r * sum, k);
    next.add(1.0);
    sum = {next.rounded(), 0};
    sum.low = (next.high - sum.high) + next.low;
  }
  for (int k = 0; k < 8; ++k) sum = sum * sum;
  return {std::ldexp(sum.high, -static_cast<int>(n)), std::ldexp(sum.low, -static_cast<int>(n))};
}

Twofold value_of(const KernelSum& kernel, std::span<const double> x, std::span<const double> z) {
  Twofold product, square, distance;
  for (std::size_t k = 0; k < x.size(); ++k) {
    product.add(two_product(x[k], z[k]));
    Twofold difference{x[k], 0};
    difference.add(-z[k]);
    square.add(difference * difference);
    distance.add(difference.high < 0 ? Twofold{-difference.high, -difference.low} : difference);
  }
  Twofold value;
  for (const Term& term : kernel.terms) {
    Twofold one{term.coefficient, 0};
    for (const Factor& factor : term.factors) {
      const Twofold gamma{factor.gamma, 0};
      if (factor.shape == Shape::exponential) {
        one = one * exponential_of_minus(gamma * (factor.common == Common::product ? square : distance));
        continue;
      }
      Twofold inner = gamma * product;
      inner.add(factor.shift);
      for (int k = 0; k < factor.degree; ++k) one = one * inner;
    }
    value.add(one);
  }
  return value;
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
  std::vector<double> dense(count * columns, 0.0);
  std::visit(
      [&](const auto& kind) {
        for (std::size_t i = 0; i < count; ++i)
          for_each_value(kind[which[i]], [&](Integer column, auto value) {
            dense[i * columns + column] = static_cast<double>(value);
          });
      },
      rows);
  const auto row = [&](std::size_t i) {
    return std::span<const double>(dense).subspan(i * columns, columns);
  };
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
    for (std::size_t j = 0; j < count; ++j) {
      if (coefficients[j] == 0) continue;
      const Twofold value = value_of(kernel, row(i), row(j));
      scores.values[i].add(Twofold{coefficients[j], 0} * value);
    }
    scores.off[i] = 1.01 * relative * lengths[i] * all_lengths + smallest_normal(count);
    squared_length.add(Twofold{coefficients[i], 0} * scores.values[i]);
    off += std::abs(coefficients[i]) * scores.off[i];
  }
  scores.squared_length = std::max(0.0, squared_length.rounded()) * (1 + 16 * kUnit) + 1.01 * off +
                          twofold_error(static_cast<double>(count)) * all_lengths * all_lengths;
  return scores;
}

}  // namespace maxmargin
