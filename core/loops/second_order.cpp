// SPDX-License-Identifier: BSD-3-Clause
#include "linear/outer_products.hpp"
#include "loops/loops.hpp"

namespace maxmargin {

void add_outer_products(const AnyRows& rows, const double* coefficients, std::span<double> lower,
                        Integer size, const Budget& budget) {
  rows.visit([&](const auto& kind) { add_outer_products(kind, coefficients, lower, size, budget); });
}

double curvature_product(const AnyRows& rows, const double* curvatures, const double* p, double bias,
                         std::span<double> out, const Budget& budget) {
  return rows.visit(
      [&](const auto& kind) { return curvature_product(kind, curvatures, p, bias, out, budget); });
}

void inner_products(const AnyRows& rows, std::span<const Integer> first, std::span<const Integer> second,
                    double* out, const Budget& budget) {
  rows.visit([&](const auto& kind) { inner_products(kind, first, second, out, budget); });
}

void scores_of(const AnyRows& rows, std::span<const Integer> order, const double* w, double* out,
               const Budget& budget) {
  rows.visit([&](const auto& kind) { scores_of(kind, order, w, out, budget); });
}

void gather(const AnyRows& rows, std::span<const Integer> order, const double* factors, double* out,
            Integer size, const Budget& budget) {
  rows.visit([&](const auto& kind) { gather(kind, order, factors, out, size, budget); });
}

double line_search(const AnyPiece& piece, std::span<const double> margins, const double* changes,
                   double slope, double curvature, const Budget& budget) {
  return std::visit(
      [&](const auto& kind) { return line_search(kind, margins, changes, slope, curvature, budget); },
      piece);
}

}  // namespace maxmargin
