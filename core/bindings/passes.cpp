// SPDX-License-Identifier: BSD-3-Clause
// Passes over rows, and sums over margins and multipliers.

#include "passes/passes.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "bindings/data.hpp"
#include "bindings/losses.hpp"
#include "bindings/modules.hpp"
#include "passes/proof.hpp"

namespace maxmargin {
namespace {

template <class AnyRows>
void combined(const AnyRows& data, ConstVector coefficients, Vector out, const Budget& budget) {
  data.require_lengths(coefficients.size(), out.size());
  nb::gil_scoped_release unlocked;
  data.visit([&](const auto& rows) { combine(rows, coefficients.data(), span(out), budget); });
}

template <class AnyRows>
void add_some(const AnyRows& data, ConstIndices order, ConstVector coefficients, Vector w) {
  data.require_rows(span(order));
  require(order.size() == coefficients.size(), "one number per row is needed");
  require(static_cast<Integer>(w.size()) == data.columns(), "one number per column is needed");
  nb::gil_scoped_release unlocked;
  data.visit([&](const auto& rows) { add_rows(rows, span(order), coefficients.data(), w.data()); });
}

template <class AnyRows>
void bind_passes_over(nb::module_& m) {
  m.def("scores", [](const AnyRows& data, ConstVector w, Vector out, const Budget& budget) {
    data.require_lengths(out.size(), w.size());
    nb::gil_scoped_release unlocked;
    data.visit([&](const auto& rows) { scores(rows, w.data(), span(out), budget); });
  });
  m.def("combine", &combined<AnyRows>);
  m.def("add_rows", &add_some<AnyRows>);
  m.def("squared_norms", [](const AnyRows& data, Vector out, const Budget& budget) {
    data.require_lengths(out.size(), static_cast<std::size_t>(data.columns()));
    nb::gil_scoped_release unlocked;
    data.visit([&](const auto& rows) { squared_norms(rows, span(out), budget); });
  });
}

Intercept intercept_of(const std::string& name) {
  require(name == "none" || name == "regularised" || name == "exact", "unknown form of the intercept");
  return name == "none" ? Intercept::fixed : name == "exact" ? Intercept::exact : Intercept::regularised;
}

// An objective, with the arrays it points into kept alive.
struct BoundObjective : Objective {
  BoundObjective(const std::string& loss, ConstVector labels, ConstVector costs,
                 const std::string& intercept, double number)
      : Objective{with_loss(loss, [](auto kind) -> AnyLoss { return kind; }), span(labels), span(costs),
                  intercept_of(intercept), number},
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
  nb::class_<BoundObjective>(m, "Objective")
      .def(nb::init<const std::string&, ConstVector, ConstVector, const std::string&, double>(), "loss"_a,
           "labels"_a, "costs"_a, "intercept"_a, "number"_a)
      .def(
          "loss_sum", [](Self self, ConstVector margins) { return self.loss_sum(self.rows(margins)); },
          Released())
      .def(
          "multipliers",
          [](Self self, ConstVector margins, Vector out) {
            self.multipliers(self.rows(margins), self.rows(out).data());
          },
          Released())
      .def(
          "primal",
          [](Self self, ConstVector margins, double b, double squared_length, double score_error) {
            return self.primal(self.rows(margins), b, squared_length, score_error);
          },
          "margins"_a, "b"_a, "squared_length"_a, "score_error"_a = 0.0, Released())
      .def(
          "dual",
          [](Self self, ConstVector alpha, double squared_length) {
            return self.dual(self.rows(alpha), squared_length);
          },
          "alpha"_a, "squared_length"_a, Released())
      .def(
          "make_feasible", [](Self self, Vector alpha) { self.make_feasible(self.rows(alpha)); },
          Released())
      .def(
          "best_intercept",
          [](Self self, ConstVector scores) { return told(self.best_intercept(self.rows(scores))); },
          Released())
      .def(
          "take_best_intercept",
          [](Self self, Vector scores) { return told(self.take_best_intercept(self.rows(scores))); },
          Released())
      .def(
          "intercepts_without_loss",
          [](Self self, ConstVector scores) { return self.intercepts_without_loss(self.rows(scores)); },
          Released())
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
  m.def("dot", [](ConstVector a, ConstVector b) {
    require(a.size() == b.size(), "vectors of one length are needed");
    return dot(span(a), span(b));
  });
  m.def("row_classes",
        [](ConstVector margins, ConstVector alpha, ConstVector costs, bool by_margins, SignedBytes out) {
          for (const std::size_t size : {alpha.size(), costs.size(), out.size()}) {
            require(size == margins.size(), "one number per row is needed");
          }
          row_classes(span(margins), alpha.data(), costs.data(), by_margins, out.data());
        });
  bind_passes_over<Data>(m);
  bind_passes_over<MonomialData>(m);
  m.def("combine", &combined<CompactData>);
  m.def("add_rows", &add_some<CompactData>);
  m.def("without_private_columns", [](const Data& data, const Budget& budget) -> nb::object {
    auto compact = [&] {
      nb::gil_scoped_release unlocked;
      return data.visit([&](const auto& rows) { return without_private_columns(rows, budget); });
    }();
    if (!compact) return nb::none();
    nb::object diagonal = as_array(std::move(compact->diagonal));
    return nb::make_tuple(CompactData(std::move(*compact)), diagonal);
  });
}

}  // namespace maxmargin
