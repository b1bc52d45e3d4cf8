// SPDX-License-Identifier: BSD-3-Clause
// Some rows, and the same columns, of a symmetric matrix of kernel values that is at hand.
#pragma once

#include <algorithm>
#include <span>

#include "machine/budget.hpp"

namespace maxmargin {

class GivenMatrix {
 public:
  using Value = double;

  // `size` is that of the whole matrix, `order` has the rows.
  GivenMatrix(const double* values, Integer size, std::span<const Integer> order)
      : values_(values), size_(size), order_(order) {}

  Integer count() const { return static_cast<Integer>(order_.size()); }
  // As KernelMatrix has them: it is one block.
  Integer blocks() const { return 1; }
  Integer block_of(Integer) const { return 0; }
  Integer most_of_block() const { return count(); }

  // As KernelMatrix has it: f_j += sum_q changes_q K(which_q, j), and what that takes.
  void add(std::span<const Integer> which, std::span<const double> changes, double* f, const Budget&,
           bool = false) const {
    const Integer first = count() > 0 ? order_[0] : 0;
    bool neighbours = true;  // of which each follows the one before
    for (Integer j = 0; j < count(); ++j) neighbours = neighbours && order_[j] == first + j;
    for (std::size_t q = 0; q < which.size(); ++q) {
      const double* values = row(which[q]);
      const double change = changes[q];
      if (neighbours) {
#pragma omp simd
        for (Integer j = 0; j < count(); ++j) f[j] += change * values[first + j];
      } else {
#pragma omp simd
        for (Integer j = 0; j < count(); ++j) f[j] += change * values[order_[j]];
      }
    }
  }
  Integer work(std::span<const Integer> which) const {
    return count() * static_cast<Integer>(which.size());
  }

  // out[a][b] = K(which_a, which_b), in rows of `stride`. Half of the values are read: they lie far apart.
  void square(std::span<const Integer> which, double* out, Integer stride, const Budget&) const {
    constexpr Integer kTile = 32;
    const Integer size = static_cast<Integer>(which.size());
    for (Integer a = 0; a < size; ++a) {
      const double* values = row(which[a]);
      double* target = out + a * stride;
      for (Integer b = 0; b <= a; ++b) target[b] = values[order_[which[b]]];
    }
    for (Integer top = 0; top < size; top += kTile) {
      for (Integer left = top; left < size; left += kTile) {
        for (Integer a = top; a < std::min(top + kTile, size); ++a) {
          for (Integer b = std::max(left, a + 1); b < std::min(left + kTile, size); ++b)
            out[a * stride + b] = out[b * stride + a];
        }
      }
    }
  }

 private:
  const double* row(Integer i) const { return values_ + order_[i] * size_; }

  const double* values_;
  Integer size_;
  std::span<const Integer> order_;
};

}  // namespace maxmargin
