// SPDX-License-Identifier: BSD-3-Clause
// Sums over margins and multipliers, and what they prove.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "bindings/arrays.hpp"
#include "bindings/data.hpp"
#include "bindings/losses.hpp"
#include "bindings/modules.hpp"
#include "loops/loops.hpp"
#include "passes/proof.hpp"
#include "passes/row_classes.hpp"
#include "passes/weighted_quantile.hpp"
#include "twofold/proof.hpp"

namespace maxmargin {
namespace {

Intercept intercept_of(const std::string& name) {
  require(name == "none" || name == "regularised" || name == "exact", "unknown form of the intercept");
  return name == "none" ? Intercept::fixed : name == "exact" ? Intercept::exact : Intercept::regularised;
}

// An objective, with the arrays it points into kept alive.
struct BoundObjective : Objective {
  BoundObjective(const std::string& loss, ConstVector labels, ConstVector costs,
                 const std::string& intercept, double number)
      : Objective{any_loss(loss), span(labels), span(costs), intercept_of(intercept), number},
        arrays{labels, costs} {
    require(labels.size() == costs.size(), "one number per row is needed");
  }
  template <class Array>
  auto rows(const Array& array) const {
    require(array.size() == costs.size(), "one number per row is needed");
    return span(array);
  }
  std::array<ConstVector, 2> arrays;
};

std::tuple<double, double, double> told(const BestIntercept& best) { return {best.b, best.low, best.high}; }

void bind_objective(nb::module_& m) {
  using Self = const BoundObjective&;
  using Released = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<TwofoldScores>(m, "TwofoldScores").def_ro("squared_length", &TwofoldScores::squared_length);
  nb::class_<BoundObjective>(m, "Objective")
      .def(nb::init<const std::string&, ConstVector, ConstVector, const std::string&, double>(), "loss"_a,
           "labels"_a, "costs"_a, "intercept"_a, "number"_a)
      .def(
          "loss_sum", [](Self self, ConstVector margins) { return self.loss_sum(self.rows(margins)); },
          "margins"_a, Released())
      .def(
          "multipliers",
          [](Self self, ConstVector margins, Vector out) {
            self.multipliers(self.rows(margins), self.rows(out).data());
          },
          "margins"_a, "out"_a, Released())
      .def(
          "primal",
          [](Self self, ConstVector margins, double b, double squared_length, ConstVector lengths,
             double per_length, double constant) {
            return self.primal(self.rows(margins), b, squared_length,
                               {per_length, self.rows(lengths), constant});
          },
          "margins"_a, "b"_a, "squared_length"_a, "lengths"_a, "per_length"_a, "constant"_a = 0.0,
          Released())
      .def(
          "dual",
          [](Self self, ConstVector alpha, double squared_length, double reach) {
            return self.dual(self.rows(alpha), squared_length, reach);
          },
          "alpha"_a, "squared_length"_a, "reach"_a, Released())
      .def(
          "reach", [](Self self, double upper, double largest) { return self.reach(upper, largest); },
          "upper"_a, "largest"_a, Released())
      .def(
          "twofold_primal",
          [](Self self, const TwofoldScores& scores, double b, Vector lacking) {
            require(scores.values.size() == self.costs.size(), "one score per row is needed");
            return twofold_primal(self, scores, b, self.rows(lacking));
          },
          "scores"_a, "b"_a, "lacking"_a, Released())
      .def(
          "twofold_dual",
          [](Self self, ConstVector alpha, double squared_length, double reach) {
            return twofold_dual(self, self.rows(alpha), squared_length, reach);
          },
          "alpha"_a, "squared_length"_a, "reach"_a, Released())
      .def(
          "make_feasible", [](Self self, Vector alpha) { self.make_feasible(self.rows(alpha)); }, "alpha"_a,
          Released())
      .def(
          "best_intercept",
          [](Self self, ConstVector scores) { return told(self.best_intercept(self.rows(scores))); },
          "scores"_a, Released())
      .def(
          "take_best_intercept",
          [](Self self, Vector scores) { return told(self.take_best_intercept(self.rows(scores))); },
          "scores"_a, Released())
      .def(
          "intercepts_without_loss",
          [](Self self, ConstVector scores) { return self.intercepts_without_loss(self.rows(scores)); },
          "scores"_a, Released())
      .def(
          "largest_violation",
          [](Self self, ConstVector margins, ConstVector alpha, double b) {
            return self.largest_violation(self.rows(margins), self.rows(alpha), b);
          },
          "margins"_a, "alpha"_a, "b"_a = 0.0, Released());
}

}  // namespace

void bind_passes(nb::module_& m) {
  bind_objective(m);
  m.def("relative_gap", &relative_gap, "primal"_a, "dual"_a);
  m.def("sum_rounding", &sum_rounding, "count"_a);
  m.def(
      "dot",
      [](ConstVector a, ConstVector b) {
        require(a.size() == b.size(), "vectors of one length are needed");
        return sum_of_products(span(a), span(b));
      },
      "a"_a, "b"_a);
  m.def(
      "row_classes",
      [](ConstVector margins, ConstVector alpha, ConstVector costs, bool by_margins, SignedBytes out) {
        for (const std::size_t size : {alpha.size(), costs.size(), out.size()}) {
          require(size == margins.size(), "one number per row is needed");
        }
        row_classes(span(margins), alpha.data(), costs.data(), by_margins, out.data());
      },
      "margins"_a, "alpha"_a, "costs"_a, "by_margins"_a, "out"_a);
  m.def(
      "weighted_quantile",
      [](ConstVector values, ConstVector weights, double level, double ridge) {
        require(values.size() == weights.size(), "one weight per value is needed");
        nb::gil_scoped_release unlocked;
        return weighted_quantile(span(values), span(weights), level, ridge);
      },
      "values"_a, "weights"_a, "level"_a, "ridge"_a);
}

}  // namespace maxmargin
