// SPDX-License-Identifier: BSD-3-Clause
// Newton's method and the augmented Lagrangian.

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/data.hpp"
#include "bindings/losses.hpp"
#include "bindings/modules.hpp"
#include "linear/augmented_lagrangian.hpp"
#include "linear/newton.hpp"
#include "linear/small_classes.hpp"
#include "linear/small_newton.hpp"

namespace maxmargin {
namespace {

template <class Visitor>
decltype(auto) with_piece(const std::string& loss, ConstVector costs, ConstVector centre, double stiffness,
                          Visitor&& visitor) {
  if (loss == "squared_hinge") return visitor(SmoothPiece<SquaredHinge>{costs.data()});
  if (loss == "logistic") return visitor(SmoothPiece<Logistic>{costs.data()});
  require(loss == "hinge" && centre.size() == costs.size(), "a centre for every row is needed");
  return visitor(AugmentedHinge{costs.data(), centre.data(), stiffness});
}

// The arrays of newton_step.py's Iterate, and of its Hessian.
template <class AnyRows>
SmallIterate small_iterate(const AnyRows& data, ConstVector costs, ConstVector labels,
                           ConstVector regulariser, Vector v, Vector margins, Vector multipliers,
                           Vector combined, Vector curvatures, Table lower, Vector counted, Vector peaks) {
  const std::size_t n = margins.size(), size = v.size(), d = static_cast<std::size_t>(data.columns());
  for (const std::size_t other :
       {costs.size(), labels.size(), multipliers.size(), curvatures.size(), counted.size()}) {
    require(other == n, "one number per row is needed");
  }
  data.require_lengths(n, d);
  require(size > 0 && (size == d || size == d + 1), "a place for every column is needed");
  require(regulariser.size() == size && combined.size() == size && peaks.size() == size,
          "one number per column is needed");
  require(lower.shape(0) == size && lower.shape(1) == size, "a row for every column is needed");
  return {span(labels),
          span(regulariser),
          span(v),
          span(margins),
          span(multipliers),
          span(combined),
          span(curvatures),
          {lower.data(), lower.size()},
          span(counted),
          span(peaks),
          {}};
}

template <class AnyRows>
auto small_newton_steps(const AnyRows& data, const std::string& loss, ConstVector costs, ConstVector centre,
                        double stiffness, ConstVector labels, ConstVector regulariser, Vector v,
                        Vector margins, Vector multipliers, Vector combined, Vector curvatures, Table lower,
                        Vector counted, Vector peaks, Integer most, double until, const Budget& budget) {
  SmallIterate at = small_iterate(data, costs, labels, regulariser, v, margins, multipliers, combined,
                                  curvatures, lower, counted, peaks);
  nb::gil_scoped_release unlocked;
  const auto [taken, length] = with_piece(loss, costs, centre, stiffness, [&](const auto& piece) {
    return small_steps(data, piece, at, most, until, budget);
  });
  return std::make_tuple(taken, length, at.sums.loss, at.sums.multipliers, at.sums.balance);
}

template <class AnyRows>
auto small_augmented_lagrangian_steps(const AnyRows& data, ConstVector costs, Vector alpha,
                                      double stiffness, bool begun, double raise_by, double small_part,
                                      ConstVector labels, ConstVector regulariser, Vector v, Vector margins,
                                      Vector multipliers, Vector combined, Vector curvatures, Table lower,
                                      Vector counted, Vector peaks, Standing& standing, Vector best_v,
                                      Vector best_multipliers, bool exact, Integer most, double until,
                                      const Budget& budget) {
  SmallIterate at = small_iterate(data, costs, labels, regulariser, v, margins, multipliers, combined,
                                  curvatures, lower, counted, peaks);
  require(alpha.size() == costs.size() && best_multipliers.size() == costs.size(),
          "one number per row is needed");
  require(best_v.size() == v.size(), "one number per column is needed");
  Smoothing smoothing{costs.data(), span(alpha), stiffness, begun, raise_by, small_part};
  Values values;
  nb::gil_scoped_release unlocked;
  const Integer taken = small_augmented_lagrangian(data, smoothing, at, standing, values, span(best_v),
                                                   span(best_multipliers), exact, most, until, budget);
  return std::make_tuple(taken, smoothing.stiffness, smoothing.begun, values.primal, values.dual,
                         values.imbalance);
}

auto solve_small_classes_of(const Data& data, bool squared, ConstTable labels, ConstTable costs,
                            ConstVector regulariser, Table v, Table multipliers, Indices steps,
                            Integer sweeps, double relaxation, double bias_reach, double first_part,
                            double stiffness, double raise_by, double small_part, Integer most,
                            double until, std::uint64_t seed, const Budget& budget) {
  const std::size_t count = labels.shape(0), n = labels.shape(1), size = v.shape(1);
  const std::size_t d = static_cast<std::size_t>(data.columns());
  data.require_lengths(n, d);
  require(costs.shape(0) == count && costs.shape(1) == n && multipliers.shape(0) == count &&
              multipliers.shape(1) == n && v.shape(0) == count && steps.size() == count,
          "a row for every class is needed");
  require(size > 0 && (size == d || size == d + 1) && regulariser.size() == size,
          "a place for every column is needed");
  std::vector<SmallClass> classes;
  for (std::size_t k = 0; k < count; ++k) {
    classes.push_back({{labels.data() + k * n, n},
                       {costs.data() + k * n, n},
                       span(regulariser),
                       {v.data() + k * size, size},
                       {multipliers.data() + k * n, n}});
  }
  const SmallOptions options{sweeps,   relaxation, bias_reach, first_part, stiffness,
                             raise_by, small_part, most,       until};
  return interruptibly(budget, [&](Watch& watch) {
    solve_small_classes(data, squared, options, classes, seed, budget, watch);
    std::vector<bool> finished;
    for (std::size_t k = 0; k < count; ++k) {
      steps.data()[k] = classes[k].steps;
      finished.push_back(classes[k].finished);
    }
    return finished;
  });
}

template <class AnyRows>
void multiplied(const AnyRows& data, ConstIndices first, ConstIndices second, Table out,
                const Budget& budget) {
  data.require_rows(span(first));
  data.require_rows(span(second));
  require(out.shape(0) == first.size() && out.shape(1) == second.size(),
          "a place for every pair is needed");
  nb::gil_scoped_release unlocked;
  data.visit(
      [&](const auto& rows) { inner_products(rows, span(first), span(second), out.data(), budget); });
}

template <class AnyRows>
void scored(const AnyRows& data, ConstIndices order, ConstVector w, Vector out, const Budget& budget) {
  data.require_rows(span(order));
  require(order.size() == out.size(), "one number per row is needed");
  require(static_cast<Integer>(w.size()) == data.columns(), "one number per column is needed");
  nb::gil_scoped_release unlocked;
  data.visit([&](const auto& rows) { scores_of(rows, span(order), w.data(), out.data(), budget); });
}

template <class AnyRows>
void bind_newton_over(nb::module_& m) {
  m.def("small_newton_steps", &small_newton_steps<AnyRows>);
  m.def("small_augmented_lagrangian_steps", &small_augmented_lagrangian_steps<AnyRows>);
  m.def("add_outer_products", [](const AnyRows& data, ConstVector coefficients, Table lower,
                                 const Budget& budget) {
    const Integer size = static_cast<Integer>(lower.shape(0));
    require(lower.shape(0) == lower.shape(1), "a square matrix is needed");
    require(size == data.columns() || size == data.columns() + 1, "a row for every column is needed");
    require(static_cast<Integer>(coefficients.size()) == data.count(), "one number per row is needed");
    nb::gil_scoped_release unlocked;
    data.visit([&](const auto& rows) {
      add_outer_products(rows, coefficients.data(), {lower.data(), lower.size()}, size, budget);
    });
  });
  m.def("curvature_product", [](const AnyRows& data, ConstVector curvatures, ConstVector p, double bias,
                                Vector out, const Budget& budget) {
    data.require_lengths(curvatures.size(), p.size());
    data.require_lengths(curvatures.size(), out.size());
    nb::gil_scoped_release unlocked;
    return data.visit([&](const auto& rows) {
      return curvature_product(rows, curvatures.data(), p.data(), bias, span(out), budget);
    });
  });
  m.def("inner_products", &multiplied<AnyRows>);
  m.def("scores_of", &scored<AnyRows>);
  m.def("gather", [](const AnyRows& data, ConstIndices order, ConstVector factors, Table out,
                     const Budget& budget) {
    const Integer size = static_cast<Integer>(out.shape(1));
    data.require_rows(span(order));
    require(size == data.columns() || size == data.columns() + 1, "a place for every column is needed");
    require(order.size() == factors.size() && order.size() == out.shape(0), "one number per row is needed");
    nb::gil_scoped_release unlocked;
    data.visit(
        [&](const auto& rows) { gather(rows, span(order), factors.data(), out.data(), size, budget); });
  });
}

}  // namespace

void bind_second_order(nb::module_& m) {
  nb::class_<Standing>(m, "Standing")
      .def(nb::init<>())
      .def_rw("primal", &Standing::primal)
      .def_rw("dual", &Standing::dual)
      .def_rw("best_imbalance", &Standing::best_imbalance)
      .def_rw("relative_gap", &Standing::relative_gap)
      .def_rw("finished", &Standing::finished)
      .def("remember", [](Standing& self, double primal, double dual, double imbalance, double balancing,
                          ConstVector v, ConstVector multipliers, Vector best_v, Vector best_multipliers) {
        require(v.size() > 0 && v.size() == best_v.size(), "one number per column is needed");
        require(multipliers.size() == best_multipliers.size(), "one number per row is needed");
        self.remember({primal, dual, imbalance}, balancing, span(v), span(multipliers), span(best_v),
                      span(best_multipliers));
      });
  m.def("cost_of_balancing",
        [](double imbalance, double stiffness, ConstVector multipliers, ConstVector costs) {
          require(multipliers.size() == costs.size(), "one number per row is needed");
          return cost_of_balancing(imbalance, stiffness, span(multipliers), costs.data());
        });
  bind_newton_over<Data>(m);
  bind_newton_over<MonomialData>(m);
  m.def("inner_products", &multiplied<CompactData>);
  m.def("scores_of", &scored<CompactData>);
  m.def("solve_small_classes", &solve_small_classes_of);
  m.def("refresh", [](const std::string& loss, ConstVector costs, ConstVector centre, double stiffness,
                      ConstVector margins, ConstVector labels, Vector multipliers,
                      Vector multiplier_changes, Vector curvatures, const Budget& budget) {
    for (const std::size_t size :
         {costs.size(), labels.size(), multipliers.size(), multiplier_changes.size(), curvatures.size()}) {
      require(size == margins.size(), "one number per row is needed");
    }
    nb::gil_scoped_release unlocked;
    const Refreshed sums = with_piece(loss, costs, centre, stiffness, [&](const auto& piece) {
      return refresh(piece, span(margins), labels.data(), multipliers.data(), multiplier_changes.data(),
                     curvatures.data(), budget);
    });
    return std::make_tuple(sums.loss, sums.multipliers, sums.balance);
  });
  m.def("line_search",
        [](const std::string& loss, ConstVector costs, ConstVector centre, double stiffness,
           ConstVector margins, ConstVector changes, double slope, double curvature, const Budget& budget) {
          require(costs.size() == margins.size() && changes.size() == margins.size(),
                  "one number per row is needed");
          nb::gil_scoped_release unlocked;
          return with_piece(loss, costs, centre, stiffness, [&](const auto& piece) {
            return line_search(piece, span(margins), changes.data(), slope, curvature, budget);
          });
        });
}

}  // namespace maxmargin
