// SPDX-License-Identifier: BSD-3-Clause
#include "passes/passes.hpp"

#include "data/zeros.hpp"
#include "loops/loops.hpp"

namespace maxmargin {

double sum_of_products(std::span<const double> a, std::span<const double> b) { return dot(a, b); }

void scores(const AnyRows& rows, const double* w, std::span<double> out, const Budget& budget) {
  rows.visit([&](const auto& kind) { scores(kind, w, out, budget); });
}

void combine(const AnyRows& rows, const double* coefficients, std::span<double> out, const Budget& budget) {
  rows.visit([&](const auto& kind) { combine(kind, coefficients, out, budget); });
}

void add_rows(const AnyRows& rows, std::span<const Integer> order, const double* coefficients, double* w) {
  rows.visit([&](const auto& kind) { add_rows(kind, order, coefficients, w); });
}

void squared_norms(const AnyRows& rows, std::span<double> out, const Budget& budget) {
  rows.visit([&](const auto& kind) { squared_norms(kind, out, budget); });
}

template <class Value>
std::optional<SparseCopy<Value>> sparse_copy(const DenseRows<Value>& rows, const Budget& budget) {
  return without_zeros(rows, budget);
}
template std::optional<SparseCopy<float>> sparse_copy(const DenseRows<float>&, const Budget&);
template std::optional<SparseCopy<double>> sparse_copy(const DenseRows<double>&, const Budget&);

}  // namespace maxmargin
