// SPDX-License-Identifier: BSD-3-Clause
// One row interface for dense and sparse data: every kernel is written once, over these.
#pragma once

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <type_traits>
#include <variant>

#if defined(__GNUC__)
#define MAXMARGIN_PREFETCH(address) __builtin_prefetch(address)
// For the few functions that a loop spends its time in: there are so many loops over rows that a compiler
// would call them in some.
#define MAXMARGIN_INLINE [[gnu::always_inline]] inline
#else
#define MAXMARGIN_PREFETCH(address) static_cast<void>(address)
#define MAXMARGIN_INLINE inline
#endif

namespace maxmargin {

using Integer = std::int64_t;

// A row x_i, read in place. Products are accumulated in double whatever the type of the values.
template <class R>
concept Row = requires(const R row, const double* w, double* target) {
  { row.dot(w, 0.0) } -> std::same_as<double>;  // 0 or another number to start the sum from
  { row.add_to(target, 1.0) } -> std::same_as<void>;
  { row.clear(target) } -> std::same_as<void>;  // zero where the row has values
  { row.squared_norm() } -> std::same_as<double>;
  { row.size() } -> std::same_as<Integer>;  // number of stored values: the cost of a visit
};

template <class Value>
struct DenseRow {
  const Value* values;
  Integer columns;

  MAXMARGIN_INLINE double dot(const double* w, double sum = 0) const {
#pragma omp simd reduction(+ : sum)
    for (Integer j = 0; j < columns; ++j) sum += static_cast<double>(values[j]) * w[j];
    return sum;
  }
  MAXMARGIN_INLINE void add_to(double* target, double scale) const {
#pragma omp simd
    for (Integer j = 0; j < columns; ++j) target[j] += scale * static_cast<double>(values[j]);
  }
  void clear(double* target) const { std::fill(target, target + columns, 0.0); }
  double squared_norm() const {
    // Local names: through the members the compiler sees no loop that it could do in registers.
    const Value* const x = values;
    const Integer size = columns;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Integer j = 0; j < size; ++j) sum += static_cast<double>(x[j]) * static_cast<double>(x[j]);
    return sum;
  }
  Integer size() const { return columns; }
};

template <class Value, class Index>
struct SparseRow {
  const Value* values;
  const Index* columns;
  Integer count;

  MAXMARGIN_INLINE double dot(const double* w, double sum0 = 0) const {
    // Four independent sums: the latency of one addition would otherwise bound the loop.
    double sum1 = 0, sum2 = 0, sum3 = 0;
    Integer k = 0;
    for (; k + 4 <= count; k += 4) {
      sum0 += static_cast<double>(values[k]) * w[columns[k]];
      sum1 += static_cast<double>(values[k + 1]) * w[columns[k + 1]];
      sum2 += static_cast<double>(values[k + 2]) * w[columns[k + 2]];
      sum3 += static_cast<double>(values[k + 3]) * w[columns[k + 3]];
    }
    for (; k < count; ++k) sum0 += static_cast<double>(values[k]) * w[columns[k]];
    return (sum0 + sum1) + (sum2 + sum3);
  }
  MAXMARGIN_INLINE void add_to(double* target, double scale) const {
    for (Integer k = 0; k < count; ++k) {
      target[columns[k]] += scale * static_cast<double>(values[k]);
    }
  }
  void clear(double* target) const {
    for (Integer k = 0; k < count; ++k) target[columns[k]] = 0;
  }
  double squared_norm() const {
    const Value* const x = values;  // as above
    const Integer size = count;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (Integer k = 0; k < size; ++k) sum += static_cast<double>(x[k]) * static_cast<double>(x[k]);
    return sum;
  }
  Integer size() const { return count; }
};

template <class Value>
struct DenseRows {
  const Value* values;
  Integer count;      // n
  Integer columns;    // d
  Integer stride;     // values from one stored row to the next
  Integer shift = 0;  // row i is the stored row i >> shift: with 1, two rows in turn share their values

  Integer stored() const { return (count >> shift) * columns; }
  DenseRow<Value> operator[](Integer i) const { return {values + (i >> shift) * stride, columns}; }
  void prefetch(Integer i) const { MAXMARGIN_PREFETCH(values + (i >> shift) * stride); }
};

template <class Rows>
inline constexpr bool kDense = false;
template <class Value>
inline constexpr bool kDense<DenseRows<Value>> = true;

template <class Value, class Index = std::int32_t>
struct SparseRows {
  const Value* values;
  const Index* indices;
  const Integer* offsets;  // stored row k holds values[offsets[k]] .. values[offsets[k + 1]]
  Integer count;
  Integer columns;
  Integer shift = 0;  // as above

  Integer stored() const { return offsets[count >> shift]; }
  SparseRow<Value, Index> operator[](Integer i) const {
    const Integer* const at = offsets + (i >> shift);
    return {values + at[0], indices + at[0], at[1] - at[0]};
  }
  // All of the row: rows are too short and too scattered for the processor to see a pattern.
  void prefetch(Integer i) const {
    const Integer* const at = offsets + (i >> shift);
    for (Integer k = at[0]; k < at[1]; k += 16) {
      MAXMARGIN_PREFETCH(values + k);
      MAXMARGIN_PREFETCH(indices + k);
    }
  }
};

template <class Rows>
inline constexpr bool kSparse = false;
template <class Value, class Index>
inline constexpr bool kSparse<SparseRows<Value, Index>> = true;

// Rows as a loop holds them: behind a reference, where they lie would be read again at every visit.
template <class Rows>
using View = std::conditional_t<std::is_trivially_copyable_v<Rows>, Rows, const Rows&>;

// Two rows in turn for each one of those given, which share its values.
template <class Rows>
Rows twinned(Rows rows) {
  rows.count *= 2;
  rows.shift += 1;
  return rows;
}
// The rows whose twins are given.
template <class Rows>
Rows without_twins(Rows rows) {
  rows.count >>= rows.shift;
  rows.shift = 0;
  return rows;
}

// Rows that are stored, of any kind that is read.
using StoredRows = std::variant<DenseRows<float>, DenseRows<double>, SparseRows<float>, SparseRows<double>>;

static_assert(Row<DenseRow<float>> && Row<SparseRow<double, std::int32_t>>);

}  // namespace maxmargin
