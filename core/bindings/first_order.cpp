// SPDX-License-Identifier: BSD-3-Clause
// Subgradients, the perceptron and dual coordinate ascent.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "bindings/coordinates.hpp"
#include "bindings/data.hpp"
#include "bindings/losses.hpp"
#include "bindings/modules.hpp"
#include "loops/loops.hpp"

namespace maxmargin {
namespace {

// Examples, with the arrays they point into kept alive.
struct BoundExamples : Examples {
  BoundExamples(const std::string& loss, ConstVector labels, ConstVector weights, ConstVector norms)
      : Examples{any_loss(loss), span(labels), span(weights), span(norms)}, arrays{labels, weights, norms} {
    require(labels.size() == weights.size() && labels.size() == norms.size(),
            "one number per row is needed");
  }
  std::array<ConstVector, 3> arrays;
};

}  // namespace

void bind_first_order(nb::module_& m) {
  m.def(
      "subgradient",
      [](const AnyData& data, const std::string& loss, ConstVector labels, ConstVector costs, ConstVector w,
         double b, Vector gradient, const Budget& budget) {
        data.require_lengths(labels.size(), w.size());
        data.require_lengths(costs.size(), gradient.size());
        const AnyLoss kind = any_loss(loss);
        nb::gil_scoped_release unlocked;
        const LossSum sum = subgradient(data.rows(), kind, labels.data(), costs.data(), w.data(), b,
                                        span(gradient), budget);
        return std::make_pair(sum.loss, sum.bias);
      },
      "data"_a, "loss"_a, "labels"_a, "costs"_a, "w"_a, "b"_a, "gradient"_a, "budget"_a);

  m.def(
      "dual_coordinate_ascent",
      [](const AnyData& data, bool squared, Table coordinates, Indices order, Vector w, double bias,
         double bias_curvature, double relaxation, double above, double below, const Budget& budget) {
        const std::span<Coordinate> all = coordinates_of(coordinates);
        data.require_lengths(all.size(), w.size());
        data.require_rows(span(order));
        const SweepOptions options{squared, bias, bias_curvature, relaxation, {above, below}};
        const Sweep sweep = interruptibly(budget, [&](Watch& watch) {
          return dual_coordinate_ascent(data.rows(), all, span(order), w.data(), options, watch);
        });
        return std::make_tuple(sweep.active, sweep.bias, sweep.largest, sweep.smallest, sweep.ascent,
                               sweep.gap);
      },
      "data"_a, "squared"_a, "coordinates"_a, "order"_a, "w"_a, nb::kw_only(), "bias"_a, "bias_curvature"_a,
      "relaxation"_a, "above"_a, "below"_a, "budget"_a);

  m.def(
      "go_on",
      [](const AnyData& data, bool squared, Table coordinates, ConstIndices order, Vector w, double bias,
         double bias_curvature, Vector alpha_before, Vector w_before) {
        const std::span<Coordinate> all = coordinates_of(coordinates);
        data.require_lengths(all.size(), w.size());
        data.require_lengths(alpha_before.size(), w_before.size());
        data.require_rows(span(order));
        nb::gil_scoped_release unlocked;
        const double gain = go_on(data.rows(), squared, all, span(order), span(w), bias, bias_curvature,
                                  {alpha_before.data(), span(w_before)});
        return std::make_pair(bias, gain);
      },
      "data"_a, "squared"_a, "coordinates"_a, "order"_a, "w"_a, nb::kw_only(), "bias"_a, "bias_curvature"_a,
      "alpha_before"_a, "w_before"_a);

  nb::class_<Iterate>(m, "Iterate")
      .def(
          "__init__", [](Iterate* self, Vector v, Vector u) { new (self) Iterate{span(v), span(u)}; },
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
      [](const AnyData& data, const BoundExamples& examples, ConstIndices order, ConstVector steps,
         Iterate& iterate, RecentSteps& recent, Integer batch, double lambda, double radius,
         double bias_feature, bool bias_shrinks, double bias_pace, const Budget& budget) {
        data.require_lengths(examples.labels.size(), iterate.v.size());
        data.require_rows(span(order));
        require(iterate.u.empty() || iterate.u.size() == iterate.v.size(),
                "u must be as long as v, or empty");
        require(batch > 0 && order.size() >= steps.size() * static_cast<std::size_t>(batch),
                "one batch of rows per step is needed");
        const StepRule rule{batch, lambda, radius, {bias_feature, bias_shrinks, bias_pace}};
        return interruptibly(budget, [&](Watch& watch) {
          return stochastic_subgradient(data.rows(), examples, rule, span(order), span(steps), iterate,
                                        recent, watch);
        });
      },
      "data"_a, "examples"_a, "order"_a, "steps"_a, "iterate"_a, "recent"_a, nb::kw_only(), "batch"_a,
      "lambda_"_a, "radius"_a, "bias_feature"_a, "bias_shrinks"_a, "bias_pace"_a, "budget"_a);

  m.def(
      "perceptron",
      [](const AnyData& data, ConstVector labels, ConstIndices order, Vector w, Vector mistakes,
         double bias_feature, double beta, const Budget& budget) {
        data.require_lengths(labels.size(), w.size());
        data.require_lengths(mistakes.size(), w.size());
        data.require_rows(span(order));
        const PerceptronPass pass = interruptibly(budget, [&](Watch& watch) {
          return perceptron(data.rows(), labels.data(), span(order), w.data(), mistakes.data(),
                            bias_feature, beta, watch);
        });
        return std::make_tuple(pass.visited, pass.mistakes, pass.beta);
      },
      "data"_a, "labels"_a, "order"_a, "w"_a, "mistakes"_a, nb::kw_only(), "bias_feature"_a, "beta"_a,
      "budget"_a);
}

}  // namespace maxmargin
