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

AnyPiece piece_of(const std::string& loss, const ConstVector& costs, const ConstVector& centre,
                  double stiffness) {
  if (loss == "squared_hinge") return SmoothPiece<SquaredHinge>{costs.data()};
  if (loss == "logistic") return SmoothPiece<Logistic>{costs.data()};
  require(loss == "hinge" && centre.size() == costs.size(), "a centre for every row is needed");
  return AugmentedHinge{costs.data(), centre.data(), stiffness};
}

// An array shown in place, which lives as long as the call that it is an argument of.
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
    const nb::gil_scoped_release unlocked;
    copy(budget, {answer.data(), out.size()}, out);
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

using Targets = std::optional<ConstVector>;

Terms terms_of(const ConstVector& y, const ConstVector& C, const ConstVector& R, const Targets& p) {
  Terms terms{span(y), per_row(C, length(y)), span(R)};
  if (p) terms.targets = per_row(*p, length(y));
  return terms;
}

// Binds a constructor that ends with the arrays of terms: these are not converted, and are kept alive.
template <class Class, class Make, class... First>
void define_with_terms(Class& type, const Make& make, const First&... first) {
  constexpr std::size_t y = 2 + sizeof...(First);
  type.def("__init__", make, first..., "labels"_a.noconvert(), "costs"_a.noconvert(),
           "regulariser"_a.noconvert(), "targets"_a.noconvert() = nb::none(), nb::keep_alive<1, y>(),
           nb::keep_alive<1, y + 1>(), nb::keep_alive<1, y + 2>(), nb::keep_alive<1, y + 3>());
}

void place(SecondOrderMethod& method, const ConstVector& v, const ConstVector& margins) {
  const Terms& terms = method.at.terms;
  method.at.place(per_column(v, length(terms.regulariser)), per_row(margins, length(terms.labels)));
}

std::span<const double> known(const std::optional<ConstVector>& array, std::size_t size) {
  if (!array) return {};
  require(array->size() == size, "a number for every row and column is needed");
  return span(*array);
}

void bind_methods(nb::module_& m) {
  using Method = SecondOrderMethod;
  nb::class_<Method> method(m, "SecondOrderMethod");
  define(method, "steps", {"system", "most", "until", "budget"},
         [](Method& self, nb::handle system, Integer most, double until, const Budget& budget) {
           return with_system(system, [&](System& s) { return self.steps(s, most, until, budget); });
         });
  method.def_prop_ro("relative_gap", &Method::relative_gap)
      .def_prop_ro("finished", &Method::finished)
      .def_prop_ro("primal", [](const Method& self) { return self.at.primal(); })
      .def_prop_ro("v", [](Method& self) { return shown(self.at.v); })
      .def_prop_ro("margins", [](Method& self) { return shown(self.at.margins); })
      .def_prop_ro("multipliers", [](Method& self) { return shown(self.at.multipliers); })
      .def_prop_ro("combined", [](Method& self) { return shown(self.at.combined); })
      .def_prop_ro("curvatures", [](Method& self) { return shown(self.at.curvatures); });

  nb::class_<NewtonMethod, Method> newton(m, "NewtonMethod");
  const auto make_newton = [](NewtonMethod* self, const std::string& loss, const ConstVector& y,
                              const ConstVector& C, const ConstVector& R, const Targets& p) {
    require(loss == "squared_hinge" || loss == "logistic", "a smooth loss is needed");
    const NewtonMethod::Loss logistic = Logistic{}, squared = SquaredHinge{};
    new (self) NewtonMethod(loss == "logistic" ? logistic : squared, terms_of(y, C, R, p));
  };
  define_with_terms(newton, make_newton, "loss"_a);
  define(newton, "begin", {"system", "v", "margins", "budget"},
         [](NewtonMethod& self, nb::handle system, const ConstVector& v, const ConstVector& margins,
            const Budget& budget) {
           place(self, v, margins);
           with_system(system, [&](System& s) { self.begin(s, budget); });
         });

  nb::class_<LagrangianOptions>(m, "LagrangianOptions")
      .def(
          "__init__",
          [](LagrangianOptions* self, double stiffness, double raise_by, double small_part,
             double stiffest) { new (self) LagrangianOptions{stiffness, raise_by, small_part, stiffest}; },
          nb::kw_only(), "stiffness"_a, "raise_by"_a, "small_part"_a, "stiffest"_a = 1e7)
      .def_rw("stiffness", &LagrangianOptions::stiffness);
  using Lagrangian = AugmentedLagrangian;
  nb::class_<Lagrangian, Method> lagrangian(m, "AugmentedLagrangian");
  const auto make_lagrangian = [](Lagrangian* self, const LagrangianOptions& options, const ConstVector& y,
                                  const ConstVector& C, const ConstVector& R, const Targets& p) {
    new (self) Lagrangian(options, terms_of(y, C, R, p));
  };
  define_with_terms(lagrangian, make_lagrangian, "options"_a);
  lagrangian
      .def(
          "begin",
          [](Lagrangian& self, nb::handle system, const ConstVector& v, const ConstVector& margins,
             const std::optional<ConstVector>& alpha, const std::optional<ConstVector>& combined,
             const Budget& budget) {
            place(self, v, margins);
            const auto multipliers = known(alpha, margins.size()), sums = known(combined, v.size());
            with_system(system, [&](System& s) { self.begin(s, multipliers, sums, budget); });
          },
          "system"_a, "v"_a, "margins"_a, "alpha"_a.none(), "combined"_a.none(), "budget"_a)
      .def(
          "settle",
          [](Lagrangian& self, const ConstVector& sums, double costs) {
            const auto own = per_column(sums, length(self.at.terms.regulariser));
            self.at.settled.assign(own.begin(), own.end());
            self.at.settled_costs = costs;
          },
          "sums"_a, "costs"_a)
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
    data.per_row(one->multipliers);
    data.require_columns(one->v.size());
    require(!one->v.empty(), "a place for every column is needed");
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
  nb::class_<SmallClass> one(m, "SmallClass");
  define_with_terms(one,
                    [](SmallClass* self, const ConstVector& y, const ConstVector& C, const ConstVector& R,
                       const Targets& p) { new (self) SmallClass(terms_of(y, C, R, p)); });
  one.def_prop_ro("v", [](SmallClass& self) { return shown(self.v); })
      .def_prop_ro("multipliers", [](SmallClass& self) { return shown(self.multipliers); })
      .def_ro("steps", &SmallClass::steps)
      .def_ro("finished", &SmallClass::finished);
  define_loop(m, "solve_small_classes", {"data", "loss", "classes", "options", "budget"}, &solve_classes);
}

void bind_systems(nb::module_& m) {
  nb::class_<System>(m, "SmallSystem").def("scale", &System::scale, "factor"_a);
  nb::class_<Hessian> hessian(m, "Hessian");
  define(hessian, "__init__", {"count", "regulariser"},
         [](Hessian* self, std::size_t count, const ConstVector& regulariser) {
           new (self) Hessian(count, span(regulariser));
         });
  define(hessian, "update", {"curvatures", "budget", "add"},
         [](Hessian& self, const ConstVector& curvatures, const Budget& budget, const nb::callable& add) {
           self.update(per_row(curvatures, static_cast<Integer>(self.count())), budget,
                       [&](std::span<const double> c, auto) { add(argument(c)); });
         });
  hessian.def("scale", &Hessian::scale, "factor"_a).def_prop_ro("lower", [](Hessian& self) {
    const std::size_t size = self.regulariser().size();
    return nb::ndarray<nb::numpy, double, nb::ndim<2>>(self.lower().data(), {size, size});
  });
}

void bind_products(nb::module_& m) {
  m.def(
      "small_system",
      [](const AnyData& data, const ConstVector& regulariser,
         const std::optional<ConstTable>& lower) -> System* {
        const std::size_t size = regulariser.size();
        data.require_columns(size);
        require(size > 0, "a place for every column is needed");
        require(!lower || (lower->shape(0) == size && lower->shape(1) == size),
                "a square matrix is needed");
        auto* const system = new SmallSystem(data.rows(), span(regulariser));
        if (lower) system->assume(span(*lower));
        return system;
      },
      "data"_a, "regulariser"_a, "lower"_a = nb::none(), nb::keep_alive<0, 1>());
  define_loop(
      m, "add_outer_products", {"data", "coefficients", "lower", "budget"},
      [](const AnyData& data, const ConstVector& coefficients, const Table& lower, const Budget& budget) {
        require(lower.shape(0) == lower.shape(1), "a square matrix is needed");
        data.require_columns(lower.shape(0));
        add_outer_products(data.rows(), data.per_row(coefficients).data(), span(lower),
                           static_cast<Integer>(lower.shape(0)), budget);
      });
  define_loop(m, "curvature_product", {"data", "curvatures", "p", "bias", "out", "budget"},
              [](const AnyData& data, const ConstVector& curvatures, const ConstVector& p, double bias,
                 const Vector& out, const Budget& budget) {
                return curvature_product(data.rows(), data.per_row(curvatures).data(),
                                         data.per_column(p).data(), bias, data.per_column(out), budget);
              });
  define_loop(m, "inner_products", {"data", "first", "second", "out", "budget"},
              [](const AnyData& data, const ConstIndices& first, const ConstIndices& second,
                 const Table& out, const Budget& budget) {
                require(out.shape(0) == first.size() && out.shape(1) == second.size(),
                        "a place for every pair is needed");
                inner_products(data.rows(), data.row_numbers(first), data.row_numbers(second), out.data(),
                               budget);
              });
  define_loop(m, "scores_of", {"data", "order", "w", "out", "budget"},
              [](const AnyData& data, const ConstIndices& order, const ConstVector& w, const Vector& out,
                 const Budget& budget) {
                const auto some = data.row_numbers(order);
                scores_of(data.rows(), some, data.per_column(w).data(), per_row(out, length(some)).data(),
                          budget);
              });
  define_loop(m, "gather", {"data", "order", "factors", "out", "budget"},
              [](const AnyData& data, const ConstIndices& order, const ConstVector& factors,
                 const Table& out, const Budget& budget) {
                const auto some = data.row_numbers(order);
                data.require_columns(out.shape(1));
                require(some.size() == out.shape(0), "one number per row is needed");
                gather(data.rows(), some, per_row(factors, length(some)).data(), out.data(),
                       static_cast<Integer>(out.shape(1)), budget);
              });
  define_loop(
      m, "line_search",
      {"loss", "costs", "centre", "stiffness", "margins", "changes", "slope", "curvature", "budget"},
      [](const std::string& loss, const ConstVector& costs, const ConstVector& centre, double stiffness,
         const ConstVector& margins, const ConstVector& changes, double slope, double curvature,
         const Budget& budget) {
        const Integer rows = length(margins);
        per_row(costs, rows);
        return line_search(piece_of(loss, costs, centre, stiffness), span(margins),
                           per_row(changes, rows).data(), slope, curvature, budget);
      });
}

}  // namespace

void bind_second_order(nb::module_& m) {
  bind_methods(m);
  bind_small_classes(m);
  bind_systems(m);
  bind_products(m);
}

}  // namespace maxmargin
