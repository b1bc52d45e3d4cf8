// SPDX-License-Identifier: BSD-3-Clause
// Newton's method and the augmented Lagrangian.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>

#include "bindings/data.hpp"
#include "bindings/modules.hpp"
#include "linear/augmented_lagrangian.hpp"
#include "linear/hessian.hpp"
#include "linear/newton.hpp"
#include "linear/small_classes.hpp"
#include "linear/small_system.hpp"
#include "loops/loops.hpp"

namespace maxmargin {
namespace {

AnyPiece piece_of(const std::string& loss, ConstVector costs, ConstVector centre, double stiffness) {
  if (loss == "squared_hinge") return SmoothPiece<SquaredHinge>{costs.data()};
  if (loss == "logistic") return SmoothPiece<Logistic>{costs.data()};
  require(loss == "hinge" && centre.size() == costs.size(), "a centre for every row is needed");
  return AugmentedHinge{costs.data(), centre.data(), stiffness};
}

// Arrays shown in place: what is returned lives as long as its owner, an argument as long as the call.
auto shown(std::span<double> values) {
  return nb::ndarray<nb::numpy, double, nb::ndim<1>>(values.data(), {values.size()});
}
nb::object argument(std::span<const double> values) {
  const nb::ndarray<nb::numpy, const double, nb::ndim<1>> array(values.data(), {values.size()});
  return nb::cast(array, nb::rv_policy::reference);
}

// A system that a Python object offers, by methods of the same names.
class PythonSystem final : public System {
 public:
  explicit PythonSystem(nb::handle object) : object_(object) {}

  void scores(std::span<const double> p, std::span<double> out, const Budget& budget) override {
    ask("scores", out, budget, p);
  }
  void combine(std::span<const double> c, std::span<double> out, const Budget& budget) override {
    ask("combine", out, budget, c);
  }
  bool solve(std::span<const double> h, std::span<double> x, const Budget& budget) override {
    ask("solve", x, budget, h, x);
    return true;
  }
  void scale(double factor) override {
    const nb::gil_scoped_acquire lock;
    object_.attr("scale")(factor);
  }

 private:
  template <class... Arrays>
  void ask(const char* name, std::span<double> out, const Budget& budget, Arrays... arrays) {
    const nb::gil_scoped_acquire lock;
    const auto answer = nb::cast<ConstVector>(object_.attr(name)(argument(arrays)..., nb::find(budget)));
    require(answer.size() == out.size(), "a system must answer with arrays of the right lengths");
    std::copy_n(answer.data(), out.size(), out.begin());
  }

  nb::handle object_;
};

// Calls visitor(system) without the interpreter's lock.
template <class Visitor>
auto with_system(nb::handle object, const Visitor& visitor) {
  PythonSystem in_python(object);
  System& system = nb::isinstance<System>(object) ? nb::cast<System&>(object) : in_python;
  const nb::gil_scoped_release unlocked;
  return visitor(system);
}

// Terms point into arrays: these are not converted, and live as long as whoever has the terms.
const auto labels = "labels"_a.noconvert(), costs = "costs"_a.noconvert(),
           regulariser = "regulariser"_a.noconvert();

Terms terms_of(ConstVector y, ConstVector C, ConstVector R) {
  require(y.size() == C.size(), "one number per row is needed");
  return {span(y), span(C), span(R)};
}

void place(SecondOrderMethod& method, ConstVector v, ConstVector margins) {
  require(v.size() == method.at.terms.regulariser.size(), "one number per column is needed");
  require(margins.size() == method.at.terms.labels.size(), "one number per row is needed");
  method.at.place(span(v), span(margins));
}

std::span<const double> known(const std::optional<ConstVector>& array, std::size_t size) {
  if (!array) return {};
  require(array->size() == size, "a number for every row and column is needed");
  return span(*array);
}

void bind_methods(nb::module_& m) {
  using Method = SecondOrderMethod;
  nb::class_<Method>(m, "SecondOrderMethod")
      .def(
          "steps",
          [](Method& self, nb::handle system, Integer most, double until, const Budget& budget) {
            return with_system(system, [&](System& s) { return self.steps(s, most, until, budget); });
          },
          "system"_a, "most"_a, "until"_a, "budget"_a)
      .def_prop_ro("relative_gap", &Method::relative_gap)
      .def_prop_ro("finished", &Method::finished)
      .def_prop_ro("primal", [](const Method& self) { return self.at.primal(); })
      .def_prop_ro("v", [](Method& self) { return shown(self.at.v); })
      .def_prop_ro("margins", [](Method& self) { return shown(self.at.margins); })
      .def_prop_ro("multipliers", [](Method& self) { return shown(self.at.multipliers); })
      .def_prop_ro("combined", [](Method& self) { return shown(self.at.combined); })
      .def_prop_ro("curvatures", [](Method& self) { return shown(self.at.curvatures); });

  nb::class_<NewtonMethod, Method>(m, "NewtonMethod")
      .def(
          "__init__",
          [](NewtonMethod* self, const std::string& loss, ConstVector y, ConstVector C, ConstVector R) {
            require(loss == "squared_hinge" || loss == "logistic", "a smooth loss is needed");
            const NewtonMethod::Loss logistic = Logistic{}, squared = SquaredHinge{};
            new (self) NewtonMethod(loss == "logistic" ? logistic : squared, terms_of(y, C, R));
          },
          "loss"_a, labels, costs, regulariser, nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(),
          nb::keep_alive<1, 5>())
      .def(
          "begin",
          [](NewtonMethod& self, nb::handle system, ConstVector v, ConstVector margins,
             const Budget& budget) {
            place(self, v, margins);
            with_system(system, [&](System& s) { self.begin(s, budget); });
          },
          "system"_a, "v"_a, "margins"_a, "budget"_a);

  nb::class_<LagrangianOptions>(m, "LagrangianOptions")
      .def(
          "__init__",
          [](LagrangianOptions* self, double stiffness, double raise_by, double small_part) {
            new (self) LagrangianOptions{stiffness, raise_by, small_part};
          },
          nb::kw_only(), "stiffness"_a, "raise_by"_a, "small_part"_a)
      .def_rw("stiffness", &LagrangianOptions::stiffness);
  using Lagrangian = AugmentedLagrangian;
  nb::class_<Lagrangian, Method>(m, "AugmentedLagrangian")
      .def(
          "__init__",
          [](Lagrangian* self, const LagrangianOptions& options, ConstVector y, ConstVector C,
             ConstVector R) { new (self) Lagrangian(options, terms_of(y, C, R)); },
          "options"_a, labels, costs, regulariser, nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(),
          nb::keep_alive<1, 5>())
      .def(
          "begin",
          [](Lagrangian& self, nb::handle system, ConstVector v, ConstVector margins,
             std::optional<ConstVector> alpha, std::optional<ConstVector> combined, const Budget& budget) {
            place(self, v, margins);
            const auto multipliers = known(alpha, margins.size()), sums = known(combined, v.size());
            with_system(system, [&](System& s) { self.begin(s, multipliers, sums, budget); });
          },
          "system"_a, "v"_a, "margins"_a, "alpha"_a.none(), "combined"_a.none(), "budget"_a)
      .def_rw("options", &Lagrangian::options)
      .def_ro("stiffness", &Lagrangian::stiffness)
      .def_prop_ro("alpha", [](Lagrangian& self) { return shown(self.alpha); })
      .def_prop_ro("best_primal", [](const Lagrangian& self) { return self.standing.primal; })
      .def_prop_ro("best_dual", [](const Lagrangian& self) { return self.standing.dual; })
      .def_prop_ro("best_v", [](Lagrangian& self) { return shown(self.standing.v); })
      .def_prop_ro("best_multipliers", [](Lagrangian& self) { return shown(self.standing.multipliers); });
}

void solve_classes(const AnyData& data, const std::string& loss, const std::vector<SmallClass*>& classes,
                   const SmallOptions& options, const Budget& budget) {
  require(loss == "squared_hinge" || loss == "hinge", "the hinge or the squared hinge is needed");
  for (const SmallClass* one : classes) {
    const std::size_t d = static_cast<std::size_t>(data.columns()), size = one->v.size();
    data.require_lengths(one->multipliers.size(), d);
    require(size > 0 && (size == d || size == d + 1), "a place for every column is needed");
  }
  interruptibly(budget, [&](Watch& watch) {
    solve_small_classes(data.rows(), loss == "squared_hinge", options, classes, budget, watch);
    return true;
  });
}

void bind_small_classes(nb::module_& m) {
  nb::class_<SmallOptions>(m, "SmallOptions")
      .def(
          "__init__",
          [](SmallOptions* self, Integer sweeps, double relaxation, double bias_reach, double first_part,
             const LagrangianOptions& lagrangian, Integer most, double until, std::uint64_t seed) {
            new (self)
                SmallOptions{sweeps, relaxation, bias_reach, first_part, lagrangian, most, until, seed};
          },
          nb::kw_only(), "sweeps"_a = 0, "relaxation"_a = 1.0, "bias_reach"_a = 1.0, "first_part"_a = 1.0,
          "lagrangian"_a = LagrangianOptions{}, "most"_a, "until"_a, "seed"_a);
  nb::class_<SmallClass>(m, "SmallClass")
      .def(
          "__init__",
          [](SmallClass* self, ConstVector y, ConstVector C, ConstVector R) {
            new (self) SmallClass(terms_of(y, C, R));
          },
          labels, costs, regulariser, nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(),
          nb::keep_alive<1, 4>())
      .def_prop_ro("v", [](SmallClass& self) { return shown(self.v); })
      .def_prop_ro("multipliers", [](SmallClass& self) { return shown(self.multipliers); })
      .def_ro("steps", &SmallClass::steps)
      .def_ro("finished", &SmallClass::finished);
  m.def("solve_small_classes", &solve_classes, "data"_a, "loss"_a, "classes"_a, "options"_a, "budget"_a);
}

void bind_systems(nb::module_& m) {
  nb::class_<System>(m, "SmallSystem").def("scale", &System::scale, "factor"_a);
  nb::class_<Hessian>(m, "Hessian")
      .def(
          "__init__",
          [](Hessian* self, std::size_t count, ConstVector regulariser) {
            new (self) Hessian(count, span(regulariser));
          },
          "count"_a, "regulariser"_a)
      .def(
          "update",
          [](Hessian& self, ConstVector curvatures, const nb::callable& add) {
            require(curvatures.size() == self.count(), "one number per row is needed");
            self.update(span(curvatures), [&](std::span<const double> c, auto) { add(argument(c)); });
          },
          "curvatures"_a, "add"_a)
      .def("scale", &Hessian::scale, "factor"_a)
      .def_prop_ro("lower", [](Hessian& self) {
        const std::size_t size = self.regulariser().size();
        return nb::ndarray<nb::numpy, double, nb::ndim<2>>(self.lower().data(), {size, size});
      });
}

void bind_products(nb::module_& m) {
  m.def(
      "small_system",
      [](const AnyData& data, ConstVector regulariser) -> System* {
        const Integer size = static_cast<Integer>(regulariser.size());
        require(size > 0 && (size == data.columns() || size == data.columns() + 1),
                "a place for every column is needed");
        return new SmallSystem(data.rows(), span(regulariser));
      },
      "data"_a, "regulariser"_a, nb::keep_alive<0, 1>());
  m.def(
      "add_outer_products",
      [](const AnyData& data, ConstVector coefficients, Table lower, const Budget& budget) {
        const Integer size = static_cast<Integer>(lower.shape(0));
        require(lower.shape(0) == lower.shape(1), "a square matrix is needed");
        require(size == data.columns() || size == data.columns() + 1, "a row for every column is needed");
        require(static_cast<Integer>(coefficients.size()) == data.count(), "one number per row is needed");
        nb::gil_scoped_release unlocked;
        add_outer_products(data.rows(), coefficients.data(), {lower.data(), lower.size()}, size, budget);
      },
      "data"_a, "coefficients"_a, "lower"_a, "budget"_a);
  m.def(
      "curvature_product",
      [](const AnyData& data, ConstVector curvatures, ConstVector p, double bias, Vector out,
         const Budget& budget) {
        data.require_lengths(curvatures.size(), p.size());
        data.require_lengths(curvatures.size(), out.size());
        nb::gil_scoped_release unlocked;
        return curvature_product(data.rows(), curvatures.data(), p.data(), bias, span(out), budget);
      },
      "data"_a, "curvatures"_a, "p"_a, "bias"_a, "out"_a, "budget"_a);
  m.def(
      "inner_products",
      [](const AnyData& data, ConstIndices first, ConstIndices second, Table out, const Budget& budget) {
        data.require_rows(span(first));
        data.require_rows(span(second));
        require(out.shape(0) == first.size() && out.shape(1) == second.size(),
                "a place for every pair is needed");
        nb::gil_scoped_release unlocked;
        inner_products(data.rows(), span(first), span(second), out.data(), budget);
      },
      "data"_a, "first"_a, "second"_a, "out"_a, "budget"_a);
  m.def(
      "scores_of",
      [](const AnyData& data, ConstIndices order, ConstVector w, Vector out, const Budget& budget) {
        data.require_rows(span(order));
        require(order.size() == out.size(), "one number per row is needed");
        require(static_cast<Integer>(w.size()) == data.columns(), "one number per column is needed");
        nb::gil_scoped_release unlocked;
        scores_of(data.rows(), span(order), w.data(), out.data(), budget);
      },
      "data"_a, "order"_a, "w"_a, "out"_a, "budget"_a);
  m.def(
      "gather",
      [](const AnyData& data, ConstIndices order, ConstVector factors, Table out, const Budget& budget) {
        const Integer size = static_cast<Integer>(out.shape(1));
        data.require_rows(span(order));
        require(size == data.columns() || size == data.columns() + 1, "a place for every column is needed");
        require(order.size() == factors.size() && order.size() == out.shape(0),
                "one number per row is needed");
        nb::gil_scoped_release unlocked;
        gather(data.rows(), span(order), factors.data(), out.data(), size, budget);
      },
      "data"_a, "order"_a, "factors"_a, "out"_a, "budget"_a);
  m.def(
      "line_search",
      [](const std::string& loss, ConstVector costs, ConstVector centre, double stiffness,
         ConstVector margins, ConstVector changes, double slope, double curvature, const Budget& budget) {
        require(costs.size() == margins.size() && changes.size() == margins.size(),
                "one number per row is needed");
        const AnyPiece piece = piece_of(loss, costs, centre, stiffness);
        nb::gil_scoped_release unlocked;
        return line_search(piece, span(margins), changes.data(), slope, curvature, budget);
      },
      "loss"_a, "costs"_a, "centre"_a, "stiffness"_a, "margins"_a, "changes"_a, "slope"_a, "curvature"_a,
      "budget"_a);
}

}  // namespace

void bind_second_order(nb::module_& m) {
  bind_methods(m);
  bind_small_classes(m);
  bind_systems(m);
  bind_products(m);
}

}  // namespace maxmargin
