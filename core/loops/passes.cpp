// SPDX-License-Identifier: BSD-3-Clause
#include "passes/passes.hpp"

#include "data/zeros.hpp"
#include "loops/loops.hpp"

namespace maxmargin {
namespace {

// One run over all values, however short the rows are.
template <class Index>
bool all_below(std::span<const Index> indices, Integer columns) {
  using Bits = std::make_unsigned_t<Index>;
  const Bits last = static_cast<Bits>(columns - 1);
  Bits seen = 0;  // its highest bit, the sign, is set where a column is below 0 or above the last one
  for (const Index column : indices) seen |= static_cast<Bits>(column) | (last - static_cast<Bits>(column));
  return static_cast<Index>(seen) >= 0;
}

}  // namespace

bool are_columns(std::span<const std::int32_t> indices, Integer columns) {
  return all_below(indices, columns);
}
bool are_columns(std::span<const std::int64_t> indices, Integer columns) {
  return all_below(indices, columns);
}

bool are_in_order(const std::int32_t* indices, std::span<const Integer> offsets) {
  // How often a column does not exceed the one before: in sorted rows, nowhere but where a row begins.
  Integer falls = 0;
  for (Integer k = 1; k < offsets.back(); ++k) falls += indices[k - 1] >= indices[k];
  for (std::size_t i = 0; i + 1 < offsets.size(); ++i) {
    const Integer begin = offsets[i];
    if (begin == 0 || begin == offsets[i + 1]) continue;
    falls -= indices[begin - 1] >= indices[begin];
  }
  return falls == 0;
}

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
