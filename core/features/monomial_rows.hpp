// SPDX-License-Identifier: BSD-3-Clause
// Rows of monomials up to degree 2 that are never written out: products are formed from the few values of a
// sparse row when they are needed. The columns are those of core/features/monomials.hpp: 1, x_0, x_1, ..,
// x_0^2, x_0 x_1, ..
//
// The weight of x_i x_j lies at pairs_of(i) + j, so a visit computes where everything is and reads nothing
// but the row and the weights. With s_1, s_2 and s_square the scales of x_i, x_i x_j and x_i^2,
//
//     <w, phi(x)> = s_0 w_0 + sum_i x_i (s_1 w_i + s_square x_i W_ii + s_2 sum_{j > i} x_j W_ij):
//
// one multiply-add per product, as over stored values, since the scales stay outside the inner sum.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "data/rows.hpp"
#include "passes/passes.hpp"

namespace maxmargin {

// Which monomials there are, where they lie and what they are multiplied by.
struct Degree2 {
  // scales[k] multiplies the monomials of degree k; those of a degree below `lowest` are left out. `once`:
  // no squares. `shared_repeats`: squares are divided by sqrt(2), as the polynomial kernel needs it.
  Degree2(Integer columns, Integer lowest, std::span<const double> scales, bool once, bool shared_repeats)
      : columns(columns), has_one(lowest == 0), has_linear(lowest <= 1), has_squares(!once) {
    if (scales.size() != 3 || lowest < 0 || lowest > 2 || columns < 0 || columns > kMostColumns) {
      throw std::invalid_argument("three scales, for the degrees 0 to 2, and 32-bit columns are needed");
    }
    // pairs_of(0) would lie before the first column.
    if (once && lowest == 2) throw std::invalid_argument("without squares, degree 1 is needed");
    for (const double scale : scales) {
      if (!std::isfinite(scale)) throw std::invalid_argument("scales must be finite");
    }
    const Integer longest = columns - once;  // pairs that column 0 begins
    twice_ = 2 * longest - 1;
    pairs_begin_ = has_one + has_linear * columns - once;
    one = scales[0];
    linear = scales[1];
    product = scales[2];
    square = shared_repeats ? scales[2] / std::sqrt(2.0) : scales[2];
  }

  Integer size() const { return size_of_row(columns); }
  Integer size_of_row(Integer stored) const {
    return has_one + has_linear * stored + stored * (stored - 1) / 2 + has_squares * stored;
  }

  // x_i is column linear_begin() + i.
  Integer linear_begin() const { return has_one; }
  // x_i x_j, i <= j, is column pairs_of(i) + j: the columns i, or i + 1, .. d - 1 follow those of the pairs
  // of 0 .. i - 1.
  Integer pairs_of(Integer i) const { return pairs_begin_ + i * (twice_ - i) / 2; }

  Integer columns;  // of the data
  bool has_one, has_linear, has_squares;
  double one, linear, product, square;  // scales

 private:
  static constexpr Integer kMostColumns = INT32_MAX;  // so that no count of monomials overflows

  Integer twice_, pairs_begin_;
};

// step(0), step(1), .. step(count - 1), written one after the other: a loop would be made of gathers.
template <Integer count, class Step>
inline void unrolled(const Step& step) {
  [&]<Integer... r>(std::integer_sequence<Integer, r...>) {
    (step(std::integral_constant<Integer, r>{}), ...);
  }(std::make_integer_sequence<Integer, count>{});
}

class MonomialRow {
 public:
  MonomialRow(const SparseRow<double, std::int32_t>& base, const Degree2& all) : base_(base), all_(all) {}

  const SparseRow<double, std::int32_t>& base() const { return base_; }
  const Degree2& monomials() const { return all_; }
  Integer size() const { return all_.size_of_row(base_.count); }

  double dot(const double* w, double sum = 0) const {
    if (all_.has_one) sum += all_.one * w[0];
    Integer k = 0;
    for (; k + kTogether <= base_.count; k += kTogether) sum += dot_some<kTogether>(w, k);
    for (; k < base_.count; ++k) sum += dot_some<1>(w, k);
    return sum;
  }
  void add_to(double* target, double scale) const {
    if (all_.has_one) target[0] += scale * all_.one;
    Integer k = 0;
    for (; k + kTogether <= base_.count; k += kTogether) add_some<kTogether>(target, scale, k);
    for (; k < base_.count; ++k) add_some<1>(target, scale, k);
  }
  void clear(double* target) const {
    for_each([target](Integer column, double) { target[column] = 0; });
  }
  // From the sums of x_j^2 before each i: the number of products does not matter.
  double squared_norm() const {
    double before = 0, fourth = 0, pairs = 0;
    for (Integer k = 0; k < base_.count; ++k) {
      const double squared = base_.values[k] * base_.values[k];
      pairs += squared * before;
      before += squared;
      fourth += squared * squared;
    }
    double sum = all_.product * all_.product * pairs;
    if (all_.has_squares) sum += all_.square * all_.square * fourth;
    if (all_.has_linear) sum += all_.linear * all_.linear * before;
    if (all_.has_one) sum += all_.one * all_.one;
    return sum;
  }
  // visit(column, value) in the order of the columns.
  template <class Visitor>
  void for_each(const Visitor& visit) const {
    if (all_.has_one) visit(Integer{0}, all_.one);
    for (Integer k = 0; all_.has_linear && k < base_.count; ++k) {
      visit(all_.linear_begin() + base_.columns[k], all_.linear * base_.values[k]);
    }
    for (Integer k = 0; k < base_.count; ++k) {
      const Integer pairs = all_.pairs_of(base_.columns[k]);
      const double x = base_.values[k];
      if (all_.has_squares) visit(pairs + base_.columns[k], all_.square * x * x);
      for (Integer l = k + 1; l < base_.count; ++l) {
        visit(pairs + base_.columns[l], all_.product * x * base_.values[l]);
      }
    }
  }

 private:
  // So many x_i share each x_j that is read, and their sums do not wait for each other. Gathers of AVX-512
  // took 1.8 times as long on rows of 14 values.
  static constexpr Integer kTogether = 4;

  // What the pairs that begin with stored values k .. k + width - 1 add to the product, and their x_i and
  // x_i^2.
  template <Integer width>
  double dot_some(const double* w, Integer k) const {
    const double* const values = base_.values;
    const std::int32_t* const columns = base_.columns;
    const double* pairs[width];
    double inner[width] = {};
    unrolled<width>([&](auto r) { pairs[r] = w + all_.pairs_of(columns[k + r]); });
    for (Integer l = k + width; l < base_.count; ++l) {
      const double x = values[l];
      const Integer j = columns[l];
      unrolled<width>([&](auto r) { inner[r] += x * pairs[r][j]; });
    }
    double sum = 0;
    unrolled<width>([&](auto r) {
      unrolled<width - r - 1>([&](auto s) {
        const Integer l = k + r + 1 + s;
        inner[r] += values[l] * pairs[r][columns[l]];
      });
      const double x = values[k + r];
      const Integer i = columns[k + r];
      double factor = all_.product * inner[r];
      if (all_.has_linear) factor += all_.linear * w[all_.linear_begin() + i];
      if (all_.has_squares) factor += all_.square * x * pairs[r][i];
      sum += x * factor;
    });
    return sum;
  }

  template <Integer width>
  void add_some(double* target, double scale, Integer k) const {
    const double* const values = base_.values;
    const std::int32_t* const columns = base_.columns;
    double* pairs[width];
    double factors[width];
    unrolled<width>([&](auto r) {
      const double x = values[k + r];
      const Integer i = columns[k + r];
      pairs[r] = target + all_.pairs_of(i);
      factors[r] = scale * all_.product * x;
      if (all_.has_linear) target[all_.linear_begin() + i] += scale * all_.linear * x;
      if (all_.has_squares) pairs[r][i] += scale * all_.square * x * x;
      unrolled<width - r - 1>([&](auto s) {
        const Integer l = k + r + 1 + s;
        pairs[r][columns[l]] += factors[r] * values[l];
      });
    });
    for (Integer l = k + width; l < base_.count; ++l) {
      const double x = values[l];
      const Integer j = columns[l];
      unrolled<width>([&](auto r) { pairs[r][j] += factors[r] * x; });
    }
  }

  SparseRow<double, std::int32_t> base_;
  const Degree2& all_;
};

static_assert(Row<MonomialRow>);

// The monomials of sparse rows whose columns are in order.
struct MonomialRows {
  MonomialRows(const SparseRows<double>& sparse, const Degree2& monomials)
      : base(sparse), all(monomials), count(sparse.count), columns(monomials.size()) {
    if (sparse.columns != monomials.columns) {
      throw std::invalid_argument("rows with as many columns are needed");
    }
    for (Integer i = 0; i < count; ++i) {
      const Integer size = all.size_of_row(base[i].count);
      stored_ += size;
      longest = std::max(longest, size);
    }
  }

  SparseRows<double> base;
  Degree2 all;
  Integer count;
  Integer columns;
  Integer longest = 0;  // monomials of one row

  Integer stored() const { return stored_; }
  MonomialRow operator[](Integer i) const { return {base[i], all}; }
  void prefetch(Integer i) const { base.prefetch(i); }

 private:
  Integer stored_ = 0;
};

// <phi(x), phi(z)> from t = <x, z> and q = sum_i x_i^2 z_i^2, since 2 sum_{i < j} x_i z_i x_j z_j = t^2 -
// q: the products of a pair cost what the stored values cost. The kernel's scales leave q out.
inline double inner_product(const Degree2& all, double t, double q) {
  const double product = all.product * all.product, square = all.square * all.square;
  double sum = 0.5 * product * t * t + ((all.has_squares ? square : 0) - 0.5 * product) * q;
  if (all.has_linear) sum += all.linear * all.linear * t;
  if (all.has_one) sum += all.one * all.one;
  return sum;
}

// <phi(x), phi(z)>, where z is a row and x is spread out over all columns.
inline double spread_product(const MonomialRow& row, const double* x) {
  double t = 0, q = 0;
  for (Integer j = 0; j < row.base().count; ++j) {
    const double product = x[row.base().columns[j]] * row.base().values[j];
    t += product;
    q += product * product;
  }
  return inner_product(row.monomials(), t, q);
}

inline const SparseRows<double>& spread_rows(const MonomialRows& rows) { return rows.base; }

template <class Visit>
void for_each_value(const MonomialRow& row, const Visit& visit) {
  row.for_each(visit);
}

// Room for one row, written out.
struct WrittenOut {
  std::vector<double> values;
  std::vector<Integer> columns;
};

inline WrittenOut room_for_a_row(const MonomialRows& rows) {
  const std::size_t size = static_cast<std::size_t>(rows.longest);
  return {std::vector<double>(size), std::vector<Integer>(size)};
}
inline SparseRow<double, Integer> written_out(const MonomialRow& row, WrittenOut& room) {
  Integer count = 0;
  row.for_each([&](Integer column, double value) {
    room.columns[count] = column;
    room.values[count++] = value;
  });
  return {room.values.data(), room.columns.data(), count};
}

}  // namespace maxmargin
