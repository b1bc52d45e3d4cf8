// SPDX-License-Identifier: BSD-3-Clause
// Products of rows with rows: the Hessian sum_i h_i z_i z_i' of a second-order method, and what its system
// needs where there are fewer rows than columns.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "data/rows.hpp"
#include "passes/passes.hpp"

namespace maxmargin {

template <class Value>
void add_outer_product(const DenseRow<Value>& row, double c, double* lower, Integer size) {
  for (Integer j = 0; j < row.columns; ++j) {
    const double scaled = c * static_cast<double>(row.values[j]);
    double* target = lower + j * size;
#pragma omp simd
    for (Integer l = 0; l <= j; ++l) target[l] += scaled * static_cast<double>(row.values[l]);
  }
}

// Four rows at once and two lines of the matrix at a time, so that what was read is used more than once.
template <class Value>
void add_outer_products_of_four(const std::array<DenseRow<Value>, 4>& rows, const std::array<double, 4>& c,
                                double* lower, Integer size) {
  const Value *x = rows[0].values, *y = rows[1].values, *z = rows[2].values, *u = rows[3].values;
  const Integer columns = rows[0].columns;
  const auto scaled = [&](Integer j) {
    return std::array{c[0] * x[j], c[1] * y[j], c[2] * z[j], c[3] * u[j]};
  };
  for (Integer j = 0; j < columns; j += 2) {
    double* target = lower + j * size;
    const std::array<double, 4> s = scaled(j);
    if (j + 1 == columns) {
#pragma omp simd
      for (Integer l = 0; l <= j; ++l) target[l] += s[0] * x[l] + s[1] * y[l] + s[2] * z[l] + s[3] * u[l];
      break;
    }
    double* next = target + size;
    const std::array<double, 4> t = scaled(j + 1);
#pragma omp simd
    for (Integer l = 0; l <= j; ++l) {
      const double a = x[l], b = y[l], d = z[l], e = u[l];
      target[l] += s[0] * a + s[1] * b + s[2] * d + s[3] * e;
      next[l] += t[0] * a + t[1] * b + t[2] * d + t[3] * e;
    }
    next[j + 1] += t[0] * x[j + 1] + t[1] * y[j + 1] + t[2] * z[j + 1] + t[3] * u[j + 1];
  }
}

template <class Value, class Index>
void add_outer_product(const SparseRow<Value, Index>& row, double c, double* lower, Integer size) {
  for (Integer k = 0; k < row.count; ++k) {
    const double scaled = c * static_cast<double>(row.values[k]);
    double* target = lower + static_cast<Integer>(row.columns[k]) * size;
    for (Integer l = 0; l <= k; ++l) {
      target[row.columns[l]] += scaled * static_cast<double>(row.values[l]);
    }
  }
}

// Where rows are stored, a row needs no room to be read value by value; core/features/monomial_rows.hpp has
// rows that do.
struct NoRoom {};
template <class Rows>
NoRoom room_for_a_row(const Rows&) {
  return {};
}
template <class Row>
const Row& written_out(const Row& row, NoRoom&) {
  return row;
}

// Sparse rows of which so many values are there that more than one product in eight of two columns is not
// 0: written out, four of them are added up as dense rows are.
template <class Rows>
bool is_nearly_dense(const Rows& rows) {
  if constexpr (kSparse<Rows>) {
    constexpr Integer kShare = 8;
    const Integer values = rows.stored() / std::max<Integer>(rows.count >> rows.shift, 1);
    return kShare * values * values >= rows.columns * rows.columns;
  }
  return false;
}

// Four rows of `size` columns as dense ones, in room that has a place for each of their values where they
// are sparse. Those that are written out end with 1 where there is one more column than the data have.
template <class Value>
std::array<DenseRow<Value>, 4> four_dense(const DenseRows<Value>& rows, const std::array<Integer, 4>& which,
                                          double*, Integer) {
  return {rows[which[0]], rows[which[1]], rows[which[2]], rows[which[3]]};
}
template <class Value, class Index>
std::array<DenseRow<double>, 4> four_dense(const SparseRows<Value, Index>& rows,
                                           const std::array<Integer, 4>& which, double* room,
                                           Integer size) {
  std::fill_n(room, 4 * size, rows.columns < size ? 1.0 : 0.0);
  std::array<DenseRow<double>, 4> dense;
  for (std::size_t k = 0; k < which.size(); ++k, room += size) {
    std::fill_n(room, rows.columns, 0.0);
    rows[which[k]].add_to(room, 1);
    dense[k] = {room, size};
  }
  return dense;
}

// lower += sum_i c_i z_i z_i', the lower triangle of a matrix of `size` columns; z_i = x_i, or (x_i, 1)
// where there is one more column than the data have. Rows with c_i = 0 cost nothing.
template <class Rows>
void add_outer_products(const Rows& rows, const double* coefficients, std::span<double> lower, Integer size,
                        const Budget& budget) {
  if constexpr (requires { rows.shift; }) {
    if (rows.shift == 1) {
      const NumbersOfRows sums = sums_of_twins(coefficients, rows.count, budget);
      return add_outer_products(without_twins(rows), sums.data(), lower, size, budget);
    }
  }
  const bool bias = size > rows.columns;
  Integer work = 0;
  for (Integer i = 0; i < rows.count; ++i) {
    if (coefficients[i] != 0) work += rows[i].size() * rows[i].size() / 2;
  }
  const Integer threads = size * size < work / 4 ? budget.threads_for(work) : 1;
  std::vector<std::vector<double>> own(static_cast<std::size_t>(threads - 1));
  for (std::vector<double>& part : own) part.reserve(lower.size());
  const std::size_t one_each = static_cast<std::size_t>(threads);
  std::vector<decltype(room_for_a_row(rows))> rooms(one_each, room_for_a_row(rows));
  const bool nearly_dense = is_nearly_dense(rows);
  std::vector<double> written(nearly_dense ? one_each * 4 * static_cast<std::size_t>(size) : 0);
  in_parallel(threads, rows.count, [&](Integer thread, Integer i, Integer last) {
    double* target = lower.data();
    if (thread > 0) {
      own[thread - 1].assign(lower.size(), 0.0);
      target = own[thread - 1].data();
    }
    const auto add_border = [&](Integer k) {
      double* border = target + rows.columns * size;
      rows[k].add_to(border, coefficients[k]);
      border[rows.columns] += coefficients[k];
    };
    const auto add = [&](Integer k) {
      if (bias) add_border(k);
      add_outer_product(written_out(rows[k], rooms[thread]), coefficients[k], target, size);
    };
    std::array<Integer, 4> waiting;
    std::size_t count = 0;
    for (; i < last; ++i) {
      if (coefficients[i] == 0) continue;
      if constexpr (kDense<Rows> || kSparse<Rows>) {
        if (kDense<Rows> || nearly_dense) {
          waiting[count++] = i;
          if (count < waiting.size()) continue;
          count = 0;
          const auto [k, l, m, n] = waiting;
          double* const room = written.data() + (nearly_dense ? thread * 4 * size : 0);
          const std::array c{coefficients[k], coefficients[l], coefficients[m], coefficients[n]};
          add_outer_products_of_four(four_dense(rows, waiting, room, size), c, target, size);
          if (kDense<Rows> && bias) std::for_each(waiting.begin(), waiting.end(), add_border);
          continue;
        }
      }
      add(i);
    }
    for (std::size_t k = 0; k < count; ++k) add(waiting[k]);
  });
  for (const std::vector<double>& part : own) {
    for (std::size_t k = 0; k < lower.size(); ++k) lower[k] += part[k];
  }
}

// out = sum_i h_i <p, x_i> x_i, reading each row once; rows with h_i = 0 cost nothing. `bias` is added to
// every <p, x_i>; returns sum_i h_i (<p, x_i> + bias).
template <class Rows>
double curvature_product(const Rows& rows, const double* curvatures, const double* p, double bias,
                         std::span<double> out, const Budget& budget) {
  std::vector<double> sums(static_cast<std::size_t>(budget.threads_for(rows.stored())));
  accumulate(rows, out, budget, [&](Integer thread, Integer i, Integer last, double* target) {
    for (; i < last; ++i) {
      if (curvatures[i] == 0) continue;
      const double scaled = curvatures[i] * rows[i].dot(p, bias);
      rows[i].add_to(target, scaled);
      sums[thread] += scaled;
    }
  });
  double sum = 0;
  for (const double part : sums) sum += part;
  return sum;
}

// The product of a row with one that is spread out over all columns. Of the rows of
// core/features/monomial_rows.hpp, the few values are spread out that monomials are formed from.
template <class Row>
MAXMARGIN_INLINE double spread_product(const Row& row, const double* x) {
  return row.dot(x);
}
template <class Rows>
const Rows& spread_rows(const Rows& rows) {
  return rows;
}

// Some rows by their columns: for each column the places of the rows that have a value there.
struct ByColumns {
  template <class Value, class Index>
  ByColumns(const SparseRows<Value, Index>& rows, std::span<const Integer> which, Integer stored)
      : begins(static_cast<std::size_t>(rows.columns) + 1),
        places(static_cast<std::size_t>(stored)),
        values(static_cast<std::size_t>(stored)) {
    const auto for_each = [&](const auto& work) {
      for (std::size_t place = 0; place < which.size(); ++place) {
        const SparseRow<Value, Index> row = rows[which[place]];
        for (Integer k = 0; k < row.count; ++k) work(place, row.columns[k], row.values[k]);
      }
    };
    for_each([&](std::size_t, Index column, Value) { ++begins[column]; });
    Integer begin = 0;
    for (Integer& count : begins) begin += std::exchange(count, begin);
    for_each([&](std::size_t place, Index column, Value value) {
      const Integer at = begins[column]++;
      places[at] = static_cast<std::int32_t>(place);
      values[at] = static_cast<double>(value);
    });
    // Each has become the begin of the next one.
    std::copy_backward(begins.begin(), begins.end() - 1, begins.end());
    begins[0] = 0;
  }

  // target_l = <x, x_l> for the places l of all these rows, of which there are `count`.
  template <class Value, class Index>
  void products(const SparseRow<Value, Index>& x, double* target, std::size_t count) const {
    std::fill_n(target, count, 0.0);
    for (Integer k = 0; k < x.count; ++k) {
      const double value = static_cast<double>(x.values[k]);
      const Integer end = begins[static_cast<std::size_t>(x.columns[k]) + 1];
      for (Integer at = begins[x.columns[k]]; at < end; ++at) target[places[at]] += value * values[at];
    }
  }

  std::vector<Integer> begins;
  std::vector<std::int32_t> places;
  std::vector<double> values;
};

// out_kl = <x_first(k), x_second(l)>, by rows.
template <class Rows>
void inner_products(const Rows& rows, std::span<const Integer> first, std::span<const Integer> second,
                    double* out, const Budget& budget) {
  const auto& spread = spread_rows(rows);
  Integer stored = 0;
  for (const Integer i : second) stored += spread[i].size();
  const Integer count = static_cast<Integer>(first.size());
  const Integer threads = std::min(budget.threads_for(stored * count), std::max<Integer>(count, 1));
  if constexpr (kSparse<Rows>) {
    // Two sparse rows have few columns in common, and a list of columns leads to no others. It takes a few
    // passes to make.
    constexpr Integer kPasses = 8;
    if (stored * count >= kPasses * (stored + rows.columns)) {
      const ByColumns columns(rows, second, stored);
      in_parallel(threads, count, [&](Integer, Integer k, Integer last) {
        for (; k < last; ++k) {
          double* target = out + k * static_cast<Integer>(second.size());
          columns.products(rows[first[k]], target, second.size());
        }
      });
      return;
    }
  }
  std::vector<std::vector<double>> own(static_cast<std::size_t>(threads));
  for (std::vector<double>& x : own) x.reserve(static_cast<std::size_t>(spread.columns));
  in_parallel(threads, count, [&](Integer thread, Integer k, Integer last) {
    std::vector<double>& x = own[thread];
    x.assign(static_cast<std::size_t>(spread.columns), 0.0);
    for (; k < last; ++k) {
      const auto row = spread[first[k]];
      row.add_to(x.data(), 1);
      double* target = out + k * static_cast<Integer>(second.size());
      for (std::size_t l = 0; l < second.size(); ++l) {
        target[l] = spread_product(rows[second[l]], x.data());
      }
      row.clear(x.data());
    }
  });
}

// out_k = <w, x_i> with i = order_k
template <class Rows>
void scores_of(const Rows& rows, std::span<const Integer> order, const double* w, double* out,
               const Budget& budget) {
  Integer stored = 0;
  for (const Integer i : order) stored += rows[i].size();
  const Integer count = static_cast<Integer>(order.size());
  in_parallel(budget.threads_for(stored), count, [&](Integer, Integer k, Integer last) {
    for (; k < last; ++k) {
      prefetch_ahead(rows, order, k);
      out[k] = rows[order[k]].dot(w);
    }
  });
}

// Row k of `out` = factor_k (x_i, 1) with i = order_k, without the 1 where `out` has no more columns than
// x.
template <class Rows>
void gather(const Rows& rows, std::span<const Integer> order, const double* factors, double* out,
            Integer size, const Budget& budget) {
  const Integer count = static_cast<Integer>(order.size());
  in_parallel(budget.threads_for(count * size), count, [&](Integer, Integer k, Integer last) {
    for (; k < last; ++k) {
      double* target = out + k * size;
      std::fill(target, target + size, 0.0);
      rows[order[k]].add_to(target, factors[k]);
      if (size > rows.columns) target[rows.columns] = factors[k];
    }
  });
}

}  // namespace maxmargin
