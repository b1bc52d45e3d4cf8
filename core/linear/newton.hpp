// SPDX-License-Identifier: BSD-3-Clause
// What Newton's method needs of a sum  1/2 v'Rv + sum_i piece_i(m_i)  with m_i = y_i (<w, x_i> + b):
// the multipliers -piece'(m), the curvatures, the Hessian sum_i h_i x_i x_i', and the best step on a line.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "data/rows.hpp"
#include "machine/dense_factor.hpp"
#include "passes/losses.hpp"
#include "passes/passes.hpp"

namespace maxmargin {

// A smooth loss as it is.
template <class Loss>
struct SmoothPiece {
  const double* costs;

  double loss(Integer i, double m) const { return costs[i] * Loss::value(m); }
  double multiplier(Integer i, double m) const { return -costs[i] * Loss::derivative(m); }
  double curvature(Integer i, double m) const { return costs[i] * Loss::curvature(m); }
  double largest_curvature(Integer) const { return INFINITY; }
};

// The hinge with its kink rounded off around centre_i: the augmented Lagrangian of u_i = 1 - m_i. Its slope
// rises from 0 to C_i over a stretch of 1 / stiffness in m.
struct AugmentedHinge {
  const double* costs;
  const double* centre;
  double stiffness;

  double target(Integer i, double m) const { return centre[i] + stiffness * costs[i] * (1 - m); }
  double loss(Integer i, double m) const { return costs[i] * Hinge::value(m); }
  double multiplier(Integer i, double m) const { return std::min(std::max(target(i, m), 0.0), costs[i]); }
  double curvature(Integer i, double m) const {
    const double t = target(i, m);
    return t > 0 && t < costs[i] ? stiffness * costs[i] : 0;
  }
  double largest_curvature(Integer i) const { return stiffness * costs[i]; }
};

inline constexpr Integer kOperationsPerRow = 8;

// Of a row that has lost its curvature in this step, so much still counts in the next: where a row may
// come back at once, a step that takes it for gone goes much too far and has to be cut short.
inline constexpr double kFade = 0.3;

struct Refreshed {
  double loss = 0;         // sum_i C_i loss(m_i)
  double multipliers = 0;  // sum_i a_i
  double balance = 0;      // sum_i a_i y_i
};

// Multipliers and curvatures at the margins, and by how much the multipliers differ from the last ones
// (times y_i): most rows of a late step keep theirs, and a sum over rows then changes by a few of them
// only.
template <class Piece>
Refreshed refresh(const Piece& piece, std::span<const double> margins, const double* labels,
                  double* multipliers, double* multiplier_changes, double* curvatures,
                  const Budget& budget) {
  const Integer count = static_cast<Integer>(margins.size());
  const Integer threads = budget.threads_for(count * kOperationsPerRow);
  std::vector<Refreshed> parts(static_cast<std::size_t>(threads));
  in_parallel(threads, count, [&](Integer thread, Integer begin, Integer end) {
    double loss = 0, sum = 0, balance = 0;
#pragma omp simd reduction(+ : loss, sum, balance)
    for (Integer i = begin; i < end; ++i) {
      const double multiplier = piece.multiplier(i, margins[i]);
      // Only what had its full curvature a step ago fades: there is no second time.
      const bool fades = curvatures[i] > 0.5 * piece.largest_curvature(i);
      const double faded = fades ? kFade * curvatures[i] : 0.0;
      const double curvature = std::max(piece.curvature(i, margins[i]), faded);
      loss += piece.loss(i, margins[i]);
      sum += multiplier;
      balance += labels[i] * multiplier;
      multiplier_changes[i] = labels[i] * (multiplier - multipliers[i]);
      multipliers[i] = multiplier;
      curvatures[i] = curvature;
    }
    parts[thread] = {loss, sum, balance};
  });
  Refreshed total;
  for (const Refreshed& part : parts) {
    total.loss += part.loss;
    total.multipliers += part.multipliers;
    total.balance += part.balance;
  }
  return total;
}

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

// lower += sum_i c_i z_i z_i', the lower triangle of a matrix of `size` columns; z_i = x_i, or (x_i, 1)
// where there is one more column than the data have. Rows with c_i = 0 cost nothing.
template <class Rows>
void add_outer_products(const Rows& rows, const double* coefficients, std::span<double> lower, Integer size,
                        const Budget& budget) {
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
  in_parallel(threads, rows.count, [&](Integer thread, Integer i, Integer last) {
    double* target = lower.data();
    if (thread > 0) {
      own[thread - 1].assign(lower.size(), 0.0);
      target = own[thread - 1].data();
    }
    const auto add = [&](Integer k) {
      add_outer_product(written_out(rows[k], rooms[thread]), coefficients[k], target, size);
    };
    std::array<Integer, 4> waiting;
    std::size_t count = 0;
    for (; i < last; ++i) {
      const double c = coefficients[i];
      if (c == 0) continue;
      if (bias) {
        double* border = target + rows.columns * size;
        rows[i].add_to(border, c);
        border[rows.columns] += c;
      }
      if constexpr (!kDense<Rows>) {
        add(i);
      } else {
        waiting[count++] = i;
        if (count < waiting.size()) continue;
        count = 0;
        const auto [k, l, m, n] = waiting;
        add_outer_products_of_four(std::array{rows[k], rows[l], rows[m], rows[n]},
                                   {coefficients[k], coefficients[l], coefficients[m], coefficients[n]},
                                   target, size);
      }
    }
    for (std::size_t k = 0; k < count; ++k) add(waiting[k]);
  });
  for (const std::vector<double>& part : own) {
    for (std::size_t k = 0; k < lower.size(); ++k) lower[k] += part[k];
  }
}

// x = -(H + diag(r))^-1 x for a small matrix, given by its lower triangle. False where its values are
// beyond what can be squared. Where rounding has eaten the diagonal, as little as helps is added to it: any
// positive definite matrix gives a direction of descent.
inline bool newton_direction(std::span<const double> lower, std::span<const double> regulariser,
                             std::span<double> x) {
  const Integer size = static_cast<Integer>(x.size());
  DenseFactor triangle(size);
  double largest = -INFINITY;
  std::vector<double> diagonal(regulariser.begin(), regulariser.end());
  for (Integer i = 0; i < size; ++i) {
    const double own = lower[i * size + i];
    largest = std::max(largest, own);
    // Where no row has a say in an exact intercept, any scale will do for it.
    if (own + diagonal[i] <= 0) diagonal[i] = 1 - own;
  }
  for (double ridge = 0; std::isfinite(largest) && std::isfinite(ridge);
       ridge = std::max(100 * ridge, 1e-15 * largest)) {
    if (!triangle.factor(lower, diagonal, ridge)) continue;
    triangle.solve(x);
    for (double& value : x) value = -value;
    return true;
  }
  return false;
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

// out_kl = <x_first(k), x_second(l)>, by rows.
template <class Rows>
void inner_products(const Rows& rows, std::span<const Integer> first, std::span<const Integer> second,
                    double* out, const Budget& budget) {
  Integer stored = 0;
  for (const Integer i : second) stored += rows[i].size();
  const Integer count = static_cast<Integer>(first.size());
  const Integer threads = std::min(budget.threads_for(stored * count), std::max<Integer>(count, 1));
  std::vector<std::vector<double>> spread(static_cast<std::size_t>(threads));
  for (std::vector<double>& own : spread) own.reserve(static_cast<std::size_t>(rows.columns));
  in_parallel(threads, count, [&](Integer thread, Integer k, Integer last) {
    std::vector<double>& x = spread[thread];
    x.assign(static_cast<std::size_t>(rows.columns), 0.0);
    for (; k < last; ++k) {
      const auto row = rows[first[k]];
      row.add_to(x.data(), 1);
      double* target = out + k * static_cast<Integer>(second.size());
      for (std::size_t l = 0; l < second.size(); ++l) target[l] = rows[second[l]].dot(x.data());
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

// The step s > 0 that minimises  slope s + curvature / 2 s^2 + sum_i piece_i(m_i + s change_i): Newton's
// method on the derivative, which rises with s, inside a bracket that each look makes smaller.
template <class Piece>
double line_search(const Piece& piece, std::span<const double> margins, const double* changes, double slope,
                   double curvature, const Budget& budget) {
  struct Derivatives {
    double first, second;
  };
  const Integer count = static_cast<Integer>(margins.size());
  const Integer threads = budget.threads_for(count * kOperationsPerRow);
  std::vector<Derivatives> parts(static_cast<std::size_t>(threads));
  const auto at = [&](double s) {
    in_parallel(threads, count, [&](Integer thread, Integer begin, Integer end) {
      double first = 0, second = 0;
#pragma omp simd reduction(+ : first, second)
      for (Integer i = begin; i < end; ++i) {
        const double m = margins[i] + s * changes[i];
        first -= piece.multiplier(i, m) * changes[i];
        second += piece.curvature(i, m) * changes[i] * changes[i];
      }
      parts[thread] = {first, second};
    });
    Derivatives sum{slope + s * curvature, curvature};
    for (const Derivatives& part : parts) {
      sum.first += part.first;
      sum.second += part.second;
    }
    return sum;
  };
  constexpr double kAccuracy = 1e-2;
  const double start = at(0).first;
  if (!(start < 0)) return 0;  // no descent left beyond rounding
  double low = 0, high = INFINITY, s = 1;
  for (int look = 0; look < 60; ++look) {
    const Derivatives here = at(s);
    if (std::abs(here.first) <= -kAccuracy * start) break;
    (here.first > 0 ? high : low) = s;
    const double newton = here.second > 0 ? s - here.first / here.second : high;
    if (low < newton && newton < high) {
      s = newton;
    } else {
      s = high < INFINITY ? (low + high) / 2 : 2 * s;
    }
  }
  return s;
}

}  // namespace maxmargin
