// SPDX-License-Identifier: BSD-3-Clause
// The factor of a symmetric, positive definite matrix of up to a few thousand rows.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "data/rows.hpp"
#include "machine/vectors.hpp"

namespace maxmargin {

// The lower triangle L of A + diag(r) = L'L, by rows from the last to the first, eight at a time. Unlike
// LL', whose rows begin with the first one, it is made of whole rows: none is read by columns.
class DenseFactor {
 public:
  explicit DenseFactor(Integer size)
      : size_(size), stride_((size + kRows - 1) / kRows * kRows), lines_(stride_ * stride_ / kRows) {}

  // From the lower triangle of A, by rows, and what is added to its diagonal: r_k + ridge. False where the
  // sum is not positive definite.
  bool factor(std::span<const double> lower, std::span<const double> r, double ridge) {
    for (Integer k = 0; k < stride_; ++k) {
      double* at = row(k);
      if (k < size_) std::copy_n(&lower[k * size_], k + 1, at);
      at[k] = k < size_ ? at[k] + r[k] + ridge : 1.0;
    }
    for (Integer end = stride_, begin; end > 0; end = begin) {
      begin = std::max<Integer>(end - kBlock, 0);
      for (Integer below = end; below < stride_; below += kBlock) take_off_block(begin, end, below);
      for (Integer first = end - kRows; first >= begin; first -= kRows) {
        for (Integer j = first; j < first + kRows; j += kLanes<double>)
          put(first, j, take_off(first, j, first + kRows, end));
        if (!finish_corner(first)) return false;
        for (Integer j = 0; j < first; j += kLanes<double>) finish(first, j, end);
      }
    }
    return true;
  }

  // x = (L'L)^-1 x
  void solve(std::span<double> x) const {
    for (Integer k = size_ - 1; k >= 0; --k) {
      const double* at = row(k);
      const double solved = x[k] /= at[k];
#pragma omp simd
      for (Integer j = 0; j < k; ++j) x[j] -= solved * at[j];
    }
    for (Integer k = 0; k < size_; ++k) {
      const double* at = row(k);
      double sum = 0;
#pragma omp simd reduction(+ : sum)
      for (Integer j = 0; j < k; ++j) sum += at[j] * x[j];
      x[k] = (x[k] - sum) / at[k];
    }
  }

 private:
  static constexpr Integer kRows = 8;
  // Rows that are worked on together. What a block of them takes from another, 512 kB, stays in the second
  // cache for all columns: without blocks, 3,000 rows take three times as long.
  static constexpr Integer kBlock = 256;
  using Rows = std::array<Lanes<double>, kRows>;
  struct alignas(kRows * sizeof(double)) Line {
    std::array<double, kRows> values;
  };

  double* row(Integer k) { return lines_.data()->values.data() + k * stride_; }
  const double* row(Integer k) const { return lines_.data()->values.data() + k * stride_; }

  // One register of each of the rows from `first` on, less what the rows from `begin` to `end` add to L'L
  // there.
  Rows take_off(Integer first, Integer j, Integer begin, Integer end) const {
    Rows rows;
    for (Integer k = 0; k < kRows; ++k) rows[k] = load(row(first + k) + j);
    const double* below = row(begin);
    for (Integer m = begin; m < end; ++m, below += stride_) {
      const Lanes<double> values = load(below + j);
      for (Integer k = 0; k < kRows; ++k) rows[k] -= below[first + k] * values;
    }
    return rows;
  }
  // The same for all rows from `begin` to `end` and a block of finished rows from `below` on.
  void take_off_block(Integer begin, Integer end, Integer below) {
    const Integer last = std::min(below + kBlock, stride_);
    for (Integer j = 0; j < end; j += kLanes<double>) {
      for (Integer first = std::max(begin, j / kRows * kRows); first < end; first += kRows)
        put(first, j, take_off(first, j, below, last));
    }
  }
  void put(Integer first, Integer j, const Rows& rows) {
    for (Integer k = 0; k < kRows; ++k) store(row(first + k) + j, rows[k]);
  }
  // Where the rows from `first` on meet the columns of the same numbers.
  bool finish_corner(Integer first) {
    for (Integer k = kRows - 1; k >= 0; --k) {
      double* at = row(first + k) + first;
      if (!(at[k] > 0 && at[k] < INFINITY)) return false;
      inverse_[k] = 1 / std::sqrt(at[k]);
#pragma omp simd
      for (Integer j = 0; j < kRows; ++j) at[j] *= inverse_[k];
      for (Integer m = 0; m < k; ++m) {
        double* above = row(first + m) + first;
#pragma omp simd
        for (Integer j = 0; j < kRows; ++j) above[j] -= at[m] * at[j];
      }
    }
    return true;
  }
  // To the left of the corner.
  void finish(Integer first, Integer j, Integer end) {
    Rows rows = take_off(first, j, first + kRows, end);
    const double* corner = row(first) + first;
#pragma GCC unroll 8
    for (Integer k = kRows - 1; k >= 0; --k) {
#pragma GCC unroll 8
      for (Integer m = kRows - 1; m > k; --m) rows[k] -= corner[m * stride_ + k] * rows[m];
      rows[k] *= inverse_[k];
    }
    put(first, j, rows);
  }

  Integer size_, stride_;
  std::vector<Line> lines_;
  std::array<double, kRows> inverse_{};
};

}  // namespace maxmargin
