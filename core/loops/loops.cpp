// SPDX-License-Identifier: BSD-3-Clause
#include "loops/loops.hpp"

#include "linear/outer_products.hpp"
#include "passes/passes.hpp"

namespace maxmargin {

template <class Index>
bool are_columns(std::span<const Index> indices, Integer columns) {
  // One run over all values, however short the rows are.
  using Bits = std::make_unsigned_t<Index>;
  const Bits last = static_cast<Bits>(columns - 1);
  Bits seen = 0;  // its highest bit, the sign, is set where a column is below 0 or above the last one
  for (const Index column : indices) seen |= static_cast<Bits>(column) | (last - static_cast<Bits>(column));
  return static_cast<Index>(seen) >= 0;
}
template bool are_columns(std::span<const std::int32_t>, Integer);
template bool are_columns(std::span<const std::int64_t>, Integer);

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

void scores_at(const AnyRows& rows, std::span<const double> points, double* out, std::span<double> norms,
               const Budget& budget) {
  rows.visit([&](const auto& kind) { scores_at(kind, points, out, norms, budget); });
}

void projected_lengths(const AnyRows& rows, const double* directions, const double* shifts,
                       std::span<double> out) {
  rows.visit([&]<class Kind>(const Kind& kind) {
    if constexpr (kDense<Kind>) {
      using Value = std::remove_cvref_t<decltype(kind.values[0])>;
      const std::vector<Value> own(directions, directions + kDirections * kind.columns);
      const std::vector<Value> shift(shifts, shifts + kDirections);
      projected_lengths(kind, own.data(), shift.data(), out.data());
    }
  });
}

void combine_groups(const AnyRows& rows, const double* coefficients, const Integer* groups,
                    std::span<double> out, const Budget& budget) {
  rows.visit([&](const auto& kind) { combine_groups(kind, coefficients, groups, out, budget); });
}

void fold_rows(const AnyRows& rows, const Folding& by, double* vectors, double* sums) {
  rows.visit([&](const auto& kind) { fold_rows(kind, by, vectors, sums); });
}

void add_multipliers(const AnyRows& rows, const TwoClasses& of, const PointsOfPass& at,
                     double length_rounding, std::span<double> losses, std::span<double> margins,
                     MultiplierSums& sums) {
  rows.visit(
      [&](const auto& kind) { add_multipliers(kind, of, at, length_rounding, losses, margins, sums); });
}

void sort_rows(const AnyRows& rows, const TwoClasses& of, const PointsOfPass& at, double length_rounding,
               const Sorting& by, std::span<double> losses, std::span<double> all_margins,
               SortedRows& found) {
  rows.visit(
      [&](const auto& kind) { sort_rows(kind, of, at, length_rounding, by, losses, all_margins, found); });
}

SettledRows settle_rows(const AnyRows& rows, const Settling& by, std::span<double> multipliers,
                        std::span<double> sum, const Budget& budget) {
  return rows.visit([&](const auto& kind) { return settle_rows(kind, by, multipliers, sum, budget); });
}

void add_rows(const AnyRows& rows, std::span<const Integer> order, const double* coefficients, double* w) {
  rows.visit([&](const auto& kind) { add_rows(kind, order, coefficients, w); });
}

void squared_norms(const AnyRows& rows, std::span<double> out, const Budget& budget) {
  rows.visit([&](const auto& kind) { squared_norms(kind, out, budget); });
}

template std::optional<SparseCopy<float>> without_zeros(const DenseRows<float>&, const Budget&);
template std::optional<SparseCopy<double>> without_zeros(const DenseRows<double>&, const Budget&);

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

LossSum subgradient(const AnyRows& rows, AnyLoss loss, const double* labels, const double* costs,
                    const double* w, double b, std::span<double> gradient, const Budget& budget) {
  return rows.visit(
      [&](const auto& kind) { return subgradient(kind, loss, labels, costs, w, b, gradient, budget); });
}

Sweep dual_coordinate_ascent(const AnyRows& rows, std::span<Coordinate> coordinates,
                             std::span<Integer> order, double* w, const SweepOptions& options,
                             Watch& watch) {
  const auto [squared, bias, bias_curvature, relaxation, walls, pairs] = options;
  const auto sweep = [&]<bool kSquared>(const auto& kind) {
    return pairs ? dual_coordinate_ascent_of_pairs<kSquared>(kind, coordinates, order, w, bias,
                                                             bias_curvature, relaxation, walls, watch)
                 : dual_coordinate_ascent<kSquared>(kind, coordinates, order, w, bias, bias_curvature,
                                                    relaxation, walls, watch);
  };
  return rows.visit([&](const auto& kind) {
    return squared ? sweep.template operator()<true>(kind) : sweep.template operator()<false>(kind);
  });
}

Descent descend_on_products(ProductsModel& model, std::span<Integer> order, Integer most, double enough,
                            Watch& watch) {
  return descend(model, order, most, enough, watch);
}

Descent descend_on_columns(const AnyRows& columns, AnyColumnsModel& given, std::span<Integer> order,
                           Integer most, double share, double enough, Watch& watch) {
  return columns.visit([&]<class Columns>(const Columns& kind) {
    const auto& [gradient, curvatures, mixed, z, residuals, intercept] = given;
    ColumnsModel<View<Columns>> model{kind, gradient, curvatures, mixed, z, residuals, intercept};
    const Descent descent = share > 0 ? descend_worst_first(model, order, most, share, enough, watch)
                                      : descend(model, order, most, enough, watch);
    given.intercept = model.intercept;
    return descent;
  });
}

Integer stochastic_subgradient(const AnyRows& rows, const Examples& examples, const StepRule& rule,
                               std::span<const Integer> order, std::span<const double> steps,
                               Iterate& iterate, RecentSteps& recent, Watch& watch) {
  return rows.visit([&](const auto& kind) {
    return stochastic_subgradient(kind, examples, rule, order, steps, iterate, recent, watch);
  });
}

PerceptronPass perceptron(const AnyRows& rows, const double* labels, std::span<const Integer> order,
                          double* w, double* counts, double bias_feature, double beta, Watch& watch) {
  return rows.visit([&](const auto& kind) {
    return perceptron(kind, labels, order, w, counts, bias_feature, beta, watch);
  });
}

}  // namespace maxmargin
