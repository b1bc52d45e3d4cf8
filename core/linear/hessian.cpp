// SPDX-License-Identifier: BSD-3-Clause
#include "linear/hessian.hpp"

#include <algorithm>
#include <cmath>

#include "machine/threads.hpp"

namespace maxmargin {

void Hessian::update(std::span<const double> curvatures, const Budget& budget, const Add& add) {
  if (given_) return;
  constexpr double kRounding = 1e-14;  // of curvatures that were multiplied by a factor
  struct Counts {
    Integer free = 0, changed = 0;
  };
  const Integer count = static_cast<Integer>(changes_.size()), threads = budget.threads_for(count);
  std::vector<Counts> parts(static_cast<std::size_t>(threads));
  in_parallel(threads, count, [&](Integer thread, Integer begin, Integer end) {
    Counts own;
    for (Integer i = begin; i < end; ++i) {
      const double h = curvatures[i];
      changes_[i] = std::abs(h - counted_[i]) > kRounding * h ? h - counted_[i] : 0.0;
      own.free += h != 0;
      own.changed += changes_[i] != 0;
    }
    parts[thread] = own;
  });
  Counts all;
  for (const Counts& part : parts) {
    all.free += part.free;
    all.changed += part.changed;
  }
  if (all.changed < all.free) {
    for_each_row(budget, changes_.size(), [&](std::size_t i) { counted_[i] += changes_[i]; });
    add(std::span<const double>(changes_), std::span(lower_));
    if (!is_worn()) return;
  }
  std::fill(lower_.begin(), lower_.end(), 0.0);
  std::fill(peaks_.begin(), peaks_.end(), 0.0);
  copy(budget, curvatures, counted_);
  add(curvatures, std::span(lower_));
  is_worn();
}

void Hessian::scale(double factor) {
  for (const std::span<double> array : {std::span(lower_), std::span(counted_), std::span(peaks_)}) {
    for (double& value : array) value *= factor;
  }
}

void Hessian::clear() {
  for (const std::span<double> array : {std::span(lower_), std::span(counted_), std::span(peaks_)}) {
    std::fill(array.begin(), array.end(), 0.0);
  }
}

// Whether what rounding leaves of rows that count no more could be seen beside the rows that do.
bool Hessian::is_worn() {
  constexpr double kMuch = 1e6;
  const std::size_t size = peaks_.size();
  bool worn = false;
  for (std::size_t j = 0; j < size; ++j) {
    const double diagonal = lower_[j * size + j];
    peaks_[j] = std::max(peaks_[j], diagonal);
    worn = worn || peaks_[j] > kMuch * (diagonal + regulariser_[j]);
  }
  return worn;
}

}  // namespace maxmargin
