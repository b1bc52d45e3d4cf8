// SPDX-License-Identifier: BSD-3-Clause
// Rows that meet the weights of all classes at once. The weights of a column lie side by side, one for
// each class, so that a value of a row is multiplied with all of them by a few wide instructions.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "data/columns.hpp"
#include "data/rows.hpp"
#include "machine/budget.hpp"

namespace maxmargin {

// Weights of some columns and, after them, those of a constant feature, if there is one.
struct ClassWeights {
  double* values;
  Integer classes;
  Integer stride;   // from one column to the next: whole blocks of lanes, those beyond the classes hold 0
  double constant;  // the value of the constant feature; 0: there is none
};

// How far apart the weights of two columns are: a multiple of what a block of lanes is.
inline Integer class_stride(Integer classes) {
  if (classes <= 4) return 4;
  return (classes + 7) / 8 * 8;
}

// scores_k = sum_j x_j w_jk for the classes of one block, by two sums each: one would wait for itself.
template <Integer kLanes, class OneRow>
MAXMARGIN_INLINE void block_scores(const OneRow& row, const ClassWeights& w, Integer columns, Integer first,
                                   double* scores) {
  double even[kLanes] = {}, odd[kLanes] = {};
  const double* const block = w.values + first;
  const Integer stride = w.stride, size = row.size();
  const auto add = [&](Integer column, double x, double* sums) {
    const double* const weights = block + column * stride;
#pragma omp simd
    for (Integer k = 0; k < kLanes; ++k) sums[k] += x * weights[k];
  };
  Integer j = 0;
  for (; j + 2 <= size; j += 2) {
    add(column_of(row, j), static_cast<double>(row.values[j]), even);
    add(column_of(row, j + 1), static_cast<double>(row.values[j + 1]), odd);
  }
  if (j < size) add(column_of(row, j), static_cast<double>(row.values[j]), even);
  if (w.constant != 0) add(columns, w.constant, odd);
#pragma omp simd
  for (Integer k = 0; k < kLanes; ++k) scores[first + k] = even[k] + odd[k];
}

// <w_k, x> of all classes; there is room for `stride` scores.
template <class OneRow>
MAXMARGIN_INLINE void all_scores(const OneRow& row, const ClassWeights& w, Integer columns,
                                 double* scores) {
  Integer first = 0;
  for (; first + 32 <= w.stride; first += 32) block_scores<32>(row, w, columns, first, scores);
  if (first + 16 <= w.stride) {
    block_scores<16>(row, w, columns, first, scores);
    first += 16;
  }
  if (first + 8 <= w.stride) {
    block_scores<8>(row, w, columns, first, scores);
    first += 8;
  }
  if (first < w.stride) block_scores<4>(row, w, columns, first, scores);
}

// w_k += change_k x for all classes, most of whose changes are 0 as a rule.
template <class OneRow>
MAXMARGIN_INLINE void add_to_classes(const OneRow& row, const ClassWeights& w, Integer columns,
                                     const double* changes, std::vector<Integer>& changed) {
  changed.clear();
  for (Integer k = 0; k < w.classes; ++k) {
    if (changes[k] != 0) changed.push_back(k);
  }
  const Integer stride = w.stride, count = static_cast<Integer>(changed.size());
  const auto add = [&](Integer column, double x) {
    double* const weights = w.values + column * stride;
    if (3 * count > stride) {
#pragma omp simd
      for (Integer k = 0; k < stride; ++k) weights[k] += x * changes[k];
    } else {
      for (const Integer k : changed) weights[k] += x * changes[k];
    }
  };
  for_each_value(row, [&](Integer column, auto value) { add(column, static_cast<double>(value)); });
  if (w.constant != 0) add(columns, w.constant);
}

// Weights as a proof holds them, without lanes that no class has, copied to where loops can use them.
inline std::vector<double> with_lanes(std::span<const double> w, Integer classes) {
  const std::size_t stride = static_cast<std::size_t>(class_stride(classes));
  const std::size_t own = static_cast<std::size_t>(classes), columns = w.size() / own;
  std::vector<double> out(columns * stride, 0.0);
  for (std::size_t j = 0; j < columns; ++j) std::copy_n(&w[j * own], own, &out[j * stride]);
  return out;
}

}  // namespace maxmargin
