// SPDX-License-Identifier: BSD-3-Clause
// The line numbers are those of src/maxmargin/solvers/momentum.py.
#include "linear/momentum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "passes/passes.hpp"

namespace maxmargin {
namespace {

// The dual value L along one direction: how it begins to grow, and by how much its slope falls.
struct Parabola {
  double slope = 0;
  double curvature = 0;
  double labels = 0;  // sum_i change_i y_i: what the intercept feels
  double terms = 0;   // of the slope, without their signs: rounding is in proportion to them

  void add(const Coordinate& c, double change, double bias) {
    const double term = change * (c.target - c.diagonal * c.alpha - bias * c.label);
    slope += term;
    terms += std::abs(term);
    curvature += c.diagonal * change * change;
    labels += change * c.label;
  }
  void add(std::span<const double> w, std::span<const double> change, double bias_curvature) {
    const double squared = dot(change, change);
    slope -= dot(w, change);
    terms += std::sqrt(squared * dot(w, w));
    curvature += squared + bias_curvature * labels * labels;
  }
  bool rises() const { return slope > kRounding * terms && curvature > 0; }
  double best() const { return slope / curvature; }

 private:
  static constexpr double kRounding = 1e-9;
};

}  // namespace

// Rows are visited where they are added: few of them are, and the rest need not be compiled for each kind.
double go_on(const AnyRows& rows, bool squared, std::span<Coordinate> coordinates,
             std::span<const Integer> order, std::span<double> w, double& bias, double bias_curvature,
             Before before) {
  // What w is off by for alpha is in v as well: moves that grew from sweep to sweep would make it grow.
  constexpr double kFarthest = 1;
  const auto upper = [squared](const Coordinate& c) {
    return squared ? std::numeric_limits<double>::infinity() : c.cost;
  };
  double* const change = before.alpha;
  const std::span<double> v = before.w;
  const auto add = [&](Integer i, double amount) {
    rows.visit([&](const auto& kind) { kind[i].add_to(v.data(), amount); });
  };
  for (std::size_t j = 0; j < w.size(); ++j) v[j] = w[j] - v[j];
  Parabola straight;
  std::vector<Integer> moving;
  moving.reserve(order.size());
  for (const Integer i : order) {  // 1
    const Coordinate& c = coordinates[i];
    const double moved = c.alpha - change[i];
    if (moved == 0) continue;
    moving.push_back(i);
    change[i] = moved;
    if (c.alpha <= 0 || c.alpha >= upper(c)) {
      add(i, -moved * c.label);
      change[i] = 0;
    } else {
      straight.add(c, moved, bias);
    }
  }
  straight.add(w, v, bias_curvature);
  Parabola inside;
  if (straight.rises()) {
    const double length = std::min(straight.best(), kFarthest);  // 2
    for (double& value : v) value *= length;
    for (const Integer i : moving) {  // 3
      if (change[i] == 0) continue;
      const Coordinate& c = coordinates[i];
      const double target = c.alpha + length * change[i];
      const double clipped = std::clamp(target, 0.0, upper(c));
      if (clipped != target) add(i, (clipped - target) * c.label);
      change[i] = clipped - c.alpha;
      inside.add(c, change[i], bias);
    }
    inside.add(w, v, bias_curvature);
  }
  const double length = inside.rises() ? std::min(1.0, inside.best()) : 0.0;  // 4
  for (const Integer i : moving) {
    Coordinate& c = coordinates[i];
    const double here = c.alpha;
    if (length > 0) c.alpha = std::clamp(here + length * change[i], 0.0, upper(c));
    change[i] = here;
  }
  for (std::size_t j = 0; j < w.size(); ++j) {
    const double here = w[j];
    if (length > 0) w[j] += length * v[j];
    v[j] = here;
  }
  if (length == 0) return 0;
  bias += bias_curvature * length * inside.labels;
  return length * (inside.slope - 0.5 * length * inside.curvature);
}

}  // namespace maxmargin
