// SPDX-License-Identifier: BSD-3-Clause
// Loops over rows of any kind. They are compiled once for each instruction set, and see no Python;
// core/bindings, which calls them, is compiled once.
#pragma once

#include <optional>
#include <span>
#include <variant>

#include "data/any_rows.hpp"
#include "data/zeros.hpp"
#include "linear/coordinate_descent.hpp"
#include "linear/dual_coordinate_ascent.hpp"
#include "linear/perceptron.hpp"
#include "linear/pieces.hpp"
#include "linear/stochastic_subgradient.hpp"
#include "linear/subgradient.hpp"
#include "machine/budget.hpp"
#include "passes/settled.hpp"
#include "passes/share.hpp"

namespace maxmargin {

// What `dot` does, for who is compiled once.
double sum_of_products(std::span<const double> a, std::span<const double> b);

// What the functions of the same names in core/passes and core/linear do, for the kind of rows that is
// there.
void scores(const AnyRows& rows, const double* w, std::span<double> out, const Budget& budget);
void scores_at(const AnyRows& rows, std::span<const double> points, double* out, std::span<double> norms,
               const Budget& budget);
// Only of dense rows.
void projected_lengths(const AnyRows& rows, const double* directions, const double* shifts,
                       std::span<double> out);
void combine(const AnyRows& rows, const double* coefficients, std::span<double> out, const Budget& budget);
void combine_groups(const AnyRows& rows, const double* coefficients, const Integer* groups,
                    std::span<double> out, const Budget& budget);
void fold_rows(const AnyRows& rows, const Folding& by, double* vectors, double* sums);
void add_multipliers(const AnyRows& rows, const TwoClasses& of, const PointsOfPass& at,
                     double length_rounding, std::span<double> losses, std::span<double> margins,
                     MultiplierSums& sums);
void sort_rows(const AnyRows& rows, const TwoClasses& of, const PointsOfPass& at, double length_rounding,
               const Sorting& by, std::span<double> losses, std::span<double> all_margins,
               SortedRows& found);
SettledRows settle_rows(const AnyRows& rows, const Settling& by, std::span<double> multipliers,
                        std::span<double> sum, const Budget& budget);
void add_rows(const AnyRows& rows, std::span<const Integer> order, const double* coefficients, double* w);
void squared_norms(const AnyRows& rows, std::span<double> out, const Budget& budget);

// Whether all indices are those of columns 0 .. columns - 1.
template <class Index>
bool are_columns(std::span<const Index> indices, Integer columns);
// Whether no row has its columns out of order or twice.
bool are_in_order(const std::int32_t* indices, std::span<const Integer> offsets);
extern template std::optional<SparseCopy<float>> without_zeros(const DenseRows<float>&, const Budget&);
extern template std::optional<SparseCopy<double>> without_zeros(const DenseRows<double>&, const Budget&);

void add_outer_products(const AnyRows& rows, const double* coefficients, std::span<double> lower,
                        Integer size, const Budget& budget);
double curvature_product(const AnyRows& rows, const double* curvatures, const double* p, double bias,
                         std::span<double> out, const Budget& budget);
void inner_products(const AnyRows& rows, std::span<const Integer> first, std::span<const Integer> second,
                    double* out, const Budget& budget);
void scores_of(const AnyRows& rows, std::span<const Integer> order, const double* w, double* out,
               const Budget& budget);
void gather(const AnyRows& rows, std::span<const Integer> order, const double* factors, double* out,
            Integer size, const Budget& budget);

using AnyPiece = std::variant<SmoothPiece<SquaredHinge>, SmoothPiece<Logistic>, AugmentedHinge>;
double line_search(const AnyPiece& piece, std::span<const double> margins, const double* changes,
                   double slope, double curvature, const Budget& budget);

LossSum subgradient(const AnyRows& rows, AnyLoss loss, const double* labels, const double* costs,
                    const double* w, double b, std::span<double> gradient, const Budget& budget);

// A sweep's numbers beside its arrays.
struct SweepOptions {
  bool squared;  // the loss is the squared hinge
  double bias;
  double bias_curvature;
  double relaxation;
  Walls walls;
  bool pairs;  // rows come in pairs that share their values
};
Sweep dual_coordinate_ascent(const AnyRows& rows, std::span<Coordinate> coordinates,
                             std::span<Integer> order, double* w, const SweepOptions& options,
                             Watch& watch);

Descent descend_on_products(ProductsModel& model, std::span<Integer> order, Integer most, double enough,
                            Watch& watch);
// The model by columns, whose kind is that of the columns that are given.
struct AnyColumnsModel {
  const double *gradient, *curvatures, *mixed;
  double *z, *residuals;
  ModelIntercept intercept;
};
// With a share the worst columns come first; without one sweeps end where all columns are near enough.
Descent descend_on_columns(const AnyRows& columns, AnyColumnsModel& model, std::span<Integer> order,
                           Integer most, double share, double enough, Watch& watch);

Integer stochastic_subgradient(const AnyRows& rows, const Examples& examples, const StepRule& rule,
                               std::span<const Integer> order, std::span<const double> steps,
                               Iterate& iterate, RecentSteps& recent, Watch& watch);

PerceptronPass perceptron(const AnyRows& rows, const double* labels, std::span<const Integer> order,
                          double* w, double* counts, double bias_feature, double beta, Watch& watch);

}  // namespace maxmargin
