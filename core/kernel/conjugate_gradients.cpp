// SPDX-License-Identifier: BSD-3-Clause
#include "kernel/conjugate_gradients.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace maxmargin {
namespace {

constexpr double kInnerShare = 0.1;        // residuals are brought down to this share on one face
constexpr int kHalvings = 100;             // of an interval, until its ends are neighbours
constexpr double kLeastCurvature = 1e-14;  // of the squared length of a direction: below, it is rounding

}  // namespace

ConjugateGradients::ConjugateGradients(AnyKernelMatrix& matrix) : matrix_(matrix) {
  const std::size_t n = static_cast<std::size_t>(matrix.count());
  for (auto* array : {&direction_, &image_, &moved_, &moved_image_}) array->assign(n, 0.0);
}

Integer ConjugateGradients::run(KernelDual& dual, Integer steps, const Budget& budget, Watch& watch) {
  if (!find_face(dual)) return 0;
  for (auto* array : {&direction_, &moved_, &moved_image_}) std::fill(array->begin(), array->end(), 0.0);
  double squared = take_residuals(dual);
  first_ = residuals_;
  for (std::size_t a = 0; a < rows_.size(); ++a) direction_[rows_[a]] = residuals_[a];
  const double enough = kInnerShare * kInnerShare * squared;
  Integer products = 0;
  while (products < steps && squared > enough) {
    if (!matrix_.multiply(direction_, image_, budget, watch)) return 0;
    ++products;
    double curvature = 0, length = 0, slope = 0;
    for (std::size_t a = 0; a < rows_.size(); ++a) {
      const double p = direction_[rows_[a]];
      curvature += p * image_[rows_[a]];
      length += p * p;
      slope += p * residuals_[a];
    }
    if (!(curvature > kLeastCurvature * length)) break;  // no kernel, or nothing but equal rows
    const double step = slope / curvature;
    for (std::size_t i = 0; i < image_.size(); ++i) {
      moved_[i] += step * direction_[i];
      moved_image_[i] += step * image_[i];
    }
    std::swap(before_, residuals_);
    const double left = take_residuals(dual);
    double turned = left;
    for (std::size_t a = 0; a < rows_.size(); ++a) turned -= residuals_[a] * before_[a];
    const double share = std::max(0.0, turned / squared);
    for (std::size_t a = 0; a < rows_.size(); ++a) {
      double& p = direction_[rows_[a]];
      p = residuals_[a] + share * p;
    }
    squared = left;
  }
  if (leaves_box(dual)) return return_to_box(dual, budget, watch) ? products + 1 : 0;
  move(dual, 1.0);
  return products;
}

bool ConjugateGradients::find_face(const KernelDual& dual) {
  const Integer n = dual.count();
  double sum = 0;
  Integer free = 0;
  for (Integer i = 0; i < n; ++i) {
    if (!dual.is_free(i)) continue;
    sum += dual.f[i];
    ++free;
  }
  const double middle = free > 0 ? sum / static_cast<double>(free) : dual.state.ends[0].middle();
  rows_.clear();
  for (Integer i = 0; i < n; ++i) {
    const bool gains = (dual.may_grow(i) && dual.f[i] < middle) || (dual.may_fall(i) && dual.f[i] > middle);
    if (gains || dual.is_free(i)) rows_.push_back(i);
  }
  return rows_.size() >= 2;
}

double ConjugateGradients::take_residuals(const KernelDual& dual) {
  residuals_.resize(rows_.size());
  double sum = 0, squared = 0;
  for (std::size_t a = 0; a < rows_.size(); ++a) {
    residuals_[a] = dual.f[rows_[a]] + moved_image_[rows_[a]];
    sum += residuals_[a];
  }
  const double middle = sum / static_cast<double>(rows_.size());
  for (double& residual : residuals_) {
    residual = middle - residual;
    squared += residual * residual;
  }
  return squared;
}

bool ConjugateGradients::leaves_box(const KernelDual& dual) const {
  return std::ranges::any_of(rows_, [&](Integer i) {
    const double there = dual.beta[i] + moved_[i];
    return there < dual.low[i] || there > dual.high[i];
  });
}

bool ConjugateGradients::return_to_box(KernelDual& dual, const Budget& budget, Watch& watch) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double total = 0, least = infinity, most = -infinity, to_wall = 1;
  for (const Integer i : rows_) {
    const double beta = dual.beta[i], u = moved_[i];
    total += beta;
    least = std::min(least, beta + u - dual.high[i]);
    most = std::max(most, beta + u - dual.low[i]);
    if (u != 0) to_wall = std::min(to_wall, ((u > 0 ? dual.high[i] : dual.low[i]) - beta) / u);
  }
  // The nearest point is that of one shift for all, cut at the walls.
  const auto end = [&](Integer i, double shift) {
    return std::clamp(dual.beta[i] + moved_[i] - shift, dual.low[i], dual.high[i]);
  };
  for (int halving = 0; halving < kHalvings; ++halving) {
    const double shift = 0.5 * (least + most);
    double sum = 0;
    for (const Integer i : rows_) sum += end(i, shift);
    (sum > total ? least : most) = shift;
  }
  double slope = 0;
  for (std::size_t a = 0; a < rows_.size(); ++a) {
    const Integer i = rows_[a];
    direction_[i] = end(i, 0.5 * (least + most)) - dual.beta[i];
    slope += first_[a] * direction_[i];
  }
  if (!(slope > 0)) {  // u itself gains, up to the first wall
    move(dual, std::max(to_wall, 0.0));
    return true;
  }
  if (!matrix_.multiply(direction_, image_, budget, watch)) return false;
  double curvature = 0;
  for (const Integer i : rows_) curvature += direction_[i] * image_[i];
  std::swap(moved_, direction_);
  std::swap(moved_image_, image_);
  move(dual, slope < curvature ? slope / curvature : 1.0);
  return true;
}

void ConjugateGradients::move(KernelDual& dual, double share) {
  for (const Integer i : rows_)
    dual.beta[i] = std::clamp(dual.beta[i] + share * moved_[i], dual.low[i], dual.high[i]);
  for (std::size_t i = 0; i < moved_image_.size(); ++i) dual.f[i] += share * moved_image_[i];
}

}  // namespace maxmargin
