// SPDX-License-Identifier: BSD-3-Clause
// Subgradients and dual coordinate ascent.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "bindings/data.hpp"
#include "bindings/losses.hpp"
#include "bindings/modules.hpp"
#include "linear/dual_coordinate_ascent.hpp"
#include "linear/momentum.hpp"
#include "linear/stochastic_subgradient.hpp"
#include "linear/subgradient.hpp"

namespace maxmargin {
namespace {

template <class AnyRows>
auto swept(const AnyRows& data, bool squared, Table coordinates, Indices order, Vector w, double bias,
           double bias_curvature, double relaxation, double above, double below, const Budget& budget) {
  require(coordinates.shape(1) == sizeof(Coordinate) / sizeof(double), "a coordinate has five numbers");
  data.require_lengths(coordinates.shape(0), w.size());
  data.require_rows(span(ConstIndices(order)));
  const std::span<Coordinate> all{reinterpret_cast<Coordinate*>(coordinates.data()), coordinates.shape(0)};
  const Sweep sweep = interruptibly(budget, [&](Watch& watch) {
    return data.visit([&](const auto& rows) {
      const Walls walls{above, below};
      return squared ? dual_coordinate_ascent<true>(rows, all, span(order), w.data(), bias, bias_curvature,
                                                    relaxation, walls, watch)
                     : dual_coordinate_ascent<false>(rows, all, span(order), w.data(), bias, bias_curvature,
                                                     relaxation, walls, watch);
    });
  });
  return std::make_tuple(sweep.active, sweep.bias, sweep.largest, sweep.smallest, sweep.ascent, sweep.gap);
}

template <class AnyRows>
auto gone_on(const AnyRows& data, bool squared, Table coordinates, ConstIndices order, Vector w,
             double bias, double bias_curvature, Vector alpha_before, Vector w_before) {
  require(coordinates.shape(1) == sizeof(Coordinate) / sizeof(double), "a coordinate has five numbers");
  data.require_lengths(coordinates.shape(0), w.size());
  data.require_lengths(alpha_before.size(), w_before.size());
  data.require_rows(span(order));
  const std::span<Coordinate> all{reinterpret_cast<Coordinate*>(coordinates.data()), coordinates.shape(0)};
  nb::gil_scoped_release unlocked;
  const double gain = data.visit([&](const auto& rows) {
    const Before before{alpha_before.data(), span(w_before)};
    return go_on(rows, squared, all, span(order), span(w), bias, bias_curvature, before);
  });
  return std::make_pair(bias, gain);
}

template <class AnyRows>
void bind_solvers_over(nb::module_& m) {
  m.def("subgradient",
        [](const AnyRows& data, const std::string& loss, ConstVector labels, ConstVector costs,
           ConstVector w, double b, Vector gradient, const Budget& budget) {
          data.require_lengths(labels.size(), w.size());
          data.require_lengths(costs.size(), gradient.size());
          nb::gil_scoped_release unlocked;
          const LossSum sum = data.visit([&](const auto& rows) {
            return subgradient(rows, any_loss(loss), labels.data(), costs.data(), w.data(), b,
                               span(gradient), budget);
          });
          return std::make_tuple(sum.loss, sum.bias);
        });

  m.def("dual_coordinate_ascent", &swept<AnyRows>);
  m.def("go_on", &gone_on<AnyRows>);

  m.def("stochastic_subgradient", [](const AnyRows& data, const std::string& loss, ConstVector labels,
                                     ConstVector weights, ConstVector norms, ConstIndices order,
                                     Integer batch, ConstVector steps, double lambda, double radius,
                                     double bias_feature, bool bias_shrinks, Iterate& iterate,
                                     Vector lengths, Integer next, double threshold, const Budget& budget) {
    data.require_lengths(labels.size(), iterate.v.size());
    data.require_lengths(weights.size(), iterate.v.size());
    data.require_lengths(norms.size(), iterate.v.size());
    require(iterate.u.empty() || iterate.u.size() == iterate.v.size(), "u must be as long as v, or empty");
    require(batch > 0 && order.size() >= steps.size() * static_cast<std::size_t>(batch),
            "one batch of rows per step is needed");
    data.require_rows(span(order));
    RecentSteps recent{span(lengths), next, threshold};
    bool finished = false;
    const Integer taken = interruptibly(budget, [&](Watch& watch) {
      return data.visit([&](const auto& rows) {
        return stochastic_subgradient(rows, any_loss(loss), labels.data(), weights.data(), norms.data(),
                                      span(order), batch, span(steps), lambda, radius,
                                      Bias{bias_feature, bias_shrinks}, iterate, recent, finished, watch);
      });
    });
    return std::make_tuple(taken, recent.next, finished);
  });
}

}  // namespace

void bind_first_order(nb::module_& m) {
  nb::class_<Iterate>(m, "Iterate")
      .def(
          "__init__", [](Iterate* self, Vector v, Vector u) { new (self) Iterate{span(v), span(u)}; },
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def("rescale", &Iterate::rescale)
      .def_rw("scale", &Iterate::scale)
      .def_rw("mass", &Iterate::mass)
      .def_rw("counted", &Iterate::counted)
      .def_rw("squared_norm", &Iterate::squared_norm)
      .def_rw("beta", &Iterate::beta)
      .def_rw("beta_sum", &Iterate::beta_sum);

  bind_solvers_over<Data>(m);
  bind_solvers_over<MonomialData>(m);
  m.def("dual_coordinate_ascent", &swept<CompactData>);
  m.def("go_on", &gone_on<CompactData>);
}

}  // namespace maxmargin
