// SPDX-License-Identifier: BSD-3-Clause
// Subgradients, the perceptron, and coordinate descent and ascent.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "bindings/coordinates.hpp"
#include "bindings/data.hpp"
#include "bindings/losses.hpp"
#include "bindings/modules.hpp"
#include "linear/column_jump.hpp"
#include "linear/momentum.hpp"
#include "loops/loops.hpp"

namespace maxmargin {
namespace {

// Examples, with the arrays they point into kept alive.
struct BoundExamples : Examples {
  BoundExamples(const std::string& loss, const ConstVector& labels, const ConstVector& weights,
                const ConstVector& norms)
      : Examples{any_loss(loss), span(labels), per_row(weights, length(labels)),
                 per_row(norms, length(labels))},
        arrays{labels, weights, norms} {}
  std::array<ConstVector, 3> arrays;
};

}  // namespace

void bind_first_order(nb::module_& m) {
  define_loop(
      m, "subgradient", {"data", "loss", "labels", "costs", "w", "b", "gradient", "budget"},
      [](const AnyData& data, const std::string& loss, const ConstVector& labels, const ConstVector& costs,
         const ConstVector& w, double b, const Vector& gradient, const Budget& budget) {
        const LossSum sum = subgradient(data.rows(), any_loss(loss), data.per_row(labels).data(),
                                        data.per_row(costs).data(), data.per_column(w).data(), b,
                                        data.per_column(gradient), budget);
        return std::make_pair(sum.loss, sum.bias);
      });

  m.def(
      "dual_coordinate_ascent",
      [](const AnyData& data, bool squared, const Table& coordinates, const Indices& order, const Vector& w,
         double bias, double bias_curvature, double relaxation, double above, double below, bool pairs,
         const Budget& budget) {
        const std::span<Coordinate> all = coordinates_of(coordinates, data.count());
        const std::span<Integer> visits = data.row_numbers(order);
        require(!pairs || data.count() % 2 == 0, "pairs need an even number of rows");
        double* const weights = data.per_column(w).data();
        const SweepOptions options{squared, bias, bias_curvature, relaxation, {above, below}, pairs};
        const Sweep sweep = interruptibly(budget, [&](Watch& watch) {
          return dual_coordinate_ascent(data.rows(), all, visits, weights, options, watch);
        });
        return std::make_tuple(sweep.active, sweep.bias, sweep.largest, sweep.smallest, sweep.ascent,
                               sweep.gap);
      },
      "data"_a, "squared"_a, "coordinates"_a, "order"_a, "w"_a, nb::kw_only(), "bias"_a, "bias_curvature"_a,
      "relaxation"_a, "above"_a, "below"_a, "pairs"_a = false, "budget"_a, Released());

  m.def(
      "go_on",
      [](const AnyData& data, bool squared, const Table& coordinates, const ConstIndices& order,
         const Vector& w, double bias, double bias_curvature, const Vector& alpha_before,
         const Vector& w_before) {
        const Before before{data.per_row(alpha_before).data(), data.per_column(w_before)};
        const double gain =
            go_on(data.rows(), squared, coordinates_of(coordinates, data.count()), data.row_numbers(order),
                  data.per_column(w), bias, bias_curvature, before);
        return std::make_pair(bias, gain);
      },
      "data"_a, "squared"_a, "coordinates"_a, "order"_a, "w"_a, nb::kw_only(), "bias"_a, "bias_curvature"_a,
      "alpha_before"_a, "w_before"_a, Released());

  m.def(
      "descend_on_products",
      [](const ConstTable& products, const Vector& gradient, const Vector& z, const ConstVector& thresholds,
         const Indices& order, Integer sweeps, double enough, const Budget& budget) {
        const Integer size = length(gradient);
        require(products.shape(0) == gradient.size() && products.shape(1) == gradient.size(),
                "a product of every two columns is needed");
        ProductsModel model{products.data(), size, gradient.data(), per_column(z, size).data(),
                            per_column(thresholds, size).data()};
        const std::span<Integer> visits = row_numbers(order, size);
        const Descent descent = interruptibly(budget, [&](Watch& watch) {
          return descend_on_products(model, visits, sweeps, enough, watch);
        });
        return std::make_pair(descent.sweeps, descent.violation);
      },
      "products"_a, "gradient"_a, "z"_a, "thresholds"_a, "order"_a, nb::kw_only(), "sweeps"_a, "enough"_a,
      "budget"_a, Released());

  m.def(
      "descend_on_columns",
      [](const AnyData& columns, const ConstVector& gradient, const ConstVector& curvatures,
         const ConstVector& mixed, const Vector& z, const Vector& residuals, const Indices& order, double b,
         double slope, double curvature, double threshold, Integer sweeps, double share, double enough,
         const Budget& budget) {
        AnyColumnsModel model{columns.per_row(gradient).data(),     columns.per_row(curvatures).data(),
                              columns.per_row(mixed).data(),        columns.per_row(z).data(),
                              columns.per_column(residuals).data(), {0, b, slope, curvature, threshold}};
        const std::span<Integer> visits = columns.row_numbers(order);
        const Descent descent = interruptibly(budget, [&](Watch& watch) {
          return descend_on_columns(columns.rows(), model, visits, sweeps, share, enough, watch);
        });
        return std::make_tuple(descent.gain, descent.violation, model.intercept.value);
      },
      "columns"_a, "gradient"_a, "curvatures"_a, "mixed"_a, "z"_a, "residuals"_a, "order"_a, nb::kw_only(),
      "b"_a, "slope"_a, "curvature"_a, "threshold"_a, "sweeps"_a, "share"_a, "enough"_a, "budget"_a,
      Released());

  nb::class_<Iterate>(m, "Iterate")
      .def(
          "__init__",
          [](Iterate* self, const Vector& v, const Vector& u) { new (self) Iterate{span(v), span(u)}; },
          "v"_a, "u"_a, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def("rescale", &Iterate::rescale)
      .def_rw("scale", &Iterate::scale)
      .def_rw("mass", &Iterate::mass)
      .def_rw("counted", &Iterate::counted)
      .def_rw("squared_norm", &Iterate::squared_norm)
      .def_rw("beta", &Iterate::beta)
      .def_rw("beta_sum", &Iterate::beta_sum);

  nb::class_<BoundExamples>(m, "Examples")
      .def(nb::init<const std::string&, ConstVector, ConstVector, ConstVector>(), "loss"_a, "labels"_a,
           "weights"_a, "norms"_a);

  nb::class_<RecentSteps>(m, "RecentSteps")
      .def(nb::init<std::size_t, double>(), "count"_a, "threshold"_a)
      .def_ro("finished", &RecentSteps::finished);

  m.def(
      "stochastic_subgradient",
      [](const AnyData& data, const BoundExamples& examples, const ConstIndices& order,
         const ConstVector& steps, Iterate& iterate, RecentSteps& recent, Integer batch, double lambda,
         double radius, double bias_feature, bool bias_shrinks, double bias_pace, const Budget& budget) {
        data.per_row(examples.labels);
        data.per_column(iterate.v);
        require(iterate.u.empty() || iterate.u.size() == iterate.v.size(),
                "u must be as long as v, or empty");
        const std::span<const Integer> visits = data.row_numbers(order);
        require(batch > 0 && visits.size() >= steps.size() * static_cast<std::size_t>(batch),
                "one batch of rows per step is needed");
        const StepRule rule{batch, lambda, radius, {bias_feature, bias_shrinks, bias_pace}};
        return interruptibly(budget, [&](Watch& watch) {
          return stochastic_subgradient(data.rows(), examples, rule, visits, span(steps), iterate, recent,
                                        watch);
        });
      },
      "data"_a, "examples"_a, "order"_a, "steps"_a, "iterate"_a, "recent"_a, nb::kw_only(), "batch"_a,
      "lambda_"_a, "radius"_a, "bias_feature"_a, "bias_shrinks"_a, "bias_pace"_a, "budget"_a, Released());

  m.def(
      "perceptron",
      [](const AnyData& data, const ConstVector& labels, const ConstIndices& order, const Vector& w,
         const Vector& mistakes, double bias_feature, double beta, const Budget& budget) {
        const double* const y = data.per_row(labels).data();
        double *const weights = data.per_column(w).data(), *const counts = data.per_row(mistakes).data();
        const std::span<const Integer> visits = data.row_numbers(order);
        const PerceptronPass pass = interruptibly(budget, [&](Watch& watch) {
          return perceptron(data.rows(), y, visits, weights, counts, bias_feature, beta, watch);
        });
        return std::make_tuple(pass.visited, pass.mistakes, pass.beta);
      },
      "data"_a, "labels"_a, "order"_a, "w"_a, "mistakes"_a, nb::kw_only(), "bias_feature"_a, "beta"_a,
      "budget"_a, Released());

  define_loop(m, "conjugate_gradients_on_columns",
              {"columns", "some", "diagonal", "roots", "left", "step", "image", "most", "enough", "budget"},
              [](const AnyData& columns, const ConstIndices& some, const ConstVector& diagonal,
                 const ConstVector& roots, const Vector& left, const Vector& step, const Vector& image,
                 Integer most, double enough, const Budget& budget) {
                const Integer size = length(left);
                const JumpSystem system{columns.row_numbers(some), per_row(diagonal, size),
                                        columns.per_column(roots)};
                require(size == length(some) || size == length(some) + 1,
                        "a number for each column is needed, and perhaps one for the intercept");
                conjugate_gradients(columns.rows(), system, span(left), per_row(step, size),
                                    columns.per_column(image), most, enough, budget);
              });
}

}  // namespace maxmargin
