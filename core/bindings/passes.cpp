// SPDX-License-Identifier: BSD-3-Clause
// Passes over rows; sums over margins and multipliers, and what they prove.

#if defined(__linux__)
#include <malloc.h>
#endif

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include "bindings/data.hpp"
#include "bindings/losses.hpp"
#include "bindings/modules.hpp"
#include "loops/loops.hpp"
#include "passes/best_length.hpp"
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

Penalty penalty_of(const std::string& name) {
  require(name == "l2" || name == "l1", "unknown penalty");
  return name == "l1" ? Penalty::l1 : Penalty::l2;
}

// An objective, with the arrays it points into kept alive.
struct BoundObjective : Objective {
  BoundObjective(const std::string& loss, const ConstVector& labels, const ConstVector& costs,
                 const std::string& intercept, double number, const std::optional<ConstVector>& targets,
                 const std::string& penalty, Integer group, std::optional<double> total,
                 const std::optional<ConstVector>& targets_rest)
      : Objective{any_loss(loss), span(labels), per_row(costs, length(labels)), intercept_of(intercept),
                  number},
        arrays{labels, costs, targets ? *targets : costs, targets_rest ? *targets_rest : costs} {
    this->penalty = penalty_of(penalty);
    if (targets) this->targets = per_row(*targets, length(labels));
    require(!targets_rest || targets, "a rest is one of targets");
    if (targets_rest) this->targets_rest = per_row(*targets_rest, length(labels));
    const bool plain = this->intercept == Intercept::fixed && std::holds_alternative<Hinge>(this->loss);
    require(group > 0 && length(labels) % group == 0, "every group needs all of its rows");
    require(group == 1 || plain, "only the hinge without an intercept has groups");
    this->group = group;
    require(!total || (targets && *total >= 0), "a shift needs targets, and a total of 0 or more");
    this->total = total.value_or(-1);
  }
  template <class Array>
  auto rows(const Array& array) const {
    return per_row(array, length(costs));
  }
  std::array<ConstVector, 4> arrays;
};

std::tuple<double, double, double, double> told(const BestIntercept& best) {
  return {best.b, best.low, best.high, best.shift};
}

void bind_objective(nb::module_& m) {
  using Self = const BoundObjective&;
  nb::class_<TwofoldScores>(m, "TwofoldScores")
      .def_ro("squared_length", &TwofoldScores::squared_length)
      .def("twinned", &TwofoldScores::twinned);
  nb::class_<BoundObjective> objective(m, "Objective");
  objective.def(nb::init<const std::string&, ConstVector, ConstVector, const std::string&, double,
                         std::optional<ConstVector>, const std::string&, Integer, std::optional<double>,
                         std::optional<ConstVector>>(),
                "loss"_a, "labels"_a, "costs"_a, "intercept"_a, "number"_a, "targets"_a = nb::none(),
                "penalty"_a = "l2", "group"_a = 1, "total"_a = nb::none(), "targets_rest"_a = nb::none());
  define_loop(objective, "loss_sum", {"margins"},
              [](Self self, const ConstVector& margins) { return self.loss_sum(self.rows(margins)); });
  define_loop(objective, "multipliers", {"margins", "out"},
              [](Self self, const ConstVector& margins, const Vector& out) {
                self.multipliers(self.rows(margins), self.rows(out).data());
              });
  define_loop(objective, "curvatures", {"margins", "lifted", "out"},
              [](Self self, const ConstVector& margins, bool lifted, const Vector& out) {
                self.curvatures(self.rows(margins), lifted, self.rows(out).data());
              });
  objective.def(
      "primal",
      [](Self self, const ConstVector& margins, double b, double size, const ConstVector& lengths,
         double per_length, double constant, double shift) {
        return self.primal(self.rows(margins), b, size, {per_length, self.rows(lengths), constant}, shift);
      },
      "margins"_a, "b"_a, "size"_a, "lengths"_a, "per_length"_a, "constant"_a = 0.0, "shift"_a = 0.0,
      Released());
  define_loop(objective, "dual", {"alpha", "size", "reach"},
              [](Self self, const ConstVector& alpha, double size, double reach) {
                return self.dual(self.rows(alpha), size, reach);
              });
  define_loop(objective, "divisor", {"alpha", "size"},
              [](Self self, const ConstVector& alpha, double size) {
                return self.divisor(self.rows(alpha), size);
              });
  define_loop(objective, "worth_of_excess", {"alpha", "reach"},
              [](Self self, const ConstVector& alpha, double reach) {
                return self.worth_of_excess(self.rows(alpha), reach);
              });
  define_loop(objective, "reach", {"upper", "largest"},
              [](Self self, double upper, double largest) { return self.reach(upper, largest); });
  define_loop(objective, "twofold_primal", {"scores", "b", "lacking", "shift"},
              [](Self self, const TwofoldScores& scores, double b, const Vector& lacking, double shift) {
                require(scores.values.size() == self.costs.size(), "one score per row is needed");
                return twofold_primal(self, scores, b, self.rows(lacking), shift);
              });
  define_loop(objective, "twofold_dual", {"alpha", "size", "reach"},
              [](Self self, const ConstVector& alpha, double size, double reach) {
                return twofold_dual(self, self.rows(alpha), size, reach);
              });
  define_loop(objective, "make_feasible", {"alpha"},
              [](Self self, const Vector& alpha) { self.make_feasible(self.rows(alpha)); });
  define_loop(objective, "best_intercept", {"scores"}, [](Self self, const ConstVector& scores) {
    return told(self.best_intercept(self.rows(scores)));
  });
  define_loop(objective, "take_best_intercept", {"scores"}, [](Self self, const Vector& scores) {
    return told(self.take_best_intercept(self.rows(scores)));
  });
  define_loop(objective, "intercepts_without_loss", {"scores"}, [](Self self, const ConstVector& scores) {
    return self.intercepts_without_loss(self.rows(scores));
  });
  objective.def(
      "largest_violation",
      [](Self self, const ConstVector& margins, const ConstVector& alpha, double b) {
        return self.largest_violation(self.rows(margins), self.rows(alpha), b);
      },
      "margins"_a, "alpha"_a, "b"_a = 0.0, Released());
}

// The rows of a problem for two classes, with the arrays it points into kept alive.
struct BoundClasses {
  BoundClasses(const AnyData& data, const std::string& loss, Bytes ours, double cost, double cost_of_others,
               std::optional<ConstVector> own_costs)
      : loss(any_loss(loss)),
        ours(std::move(ours)),
        own_costs(std::move(own_costs)),
        costs{cost_of_others, cost} {
    rows(data);
  }
  TwoClasses rows(const AnyData& data) const {
    const double* const own = own_costs ? data.per_row(*own_costs).data() : nullptr;
    return {loss, data.per_row(ours).data(), costs, own};
  }

  AnyLoss loss;
  Bytes ours;
  std::optional<ConstVector> own_costs;
  std::array<double, 2> costs;
};

PointsOfPass points_of(const AnyData& data, const ConstTable& points, const ConstVector& intercepts,
                       const ConstVector& errors) {
  const Integer count = length(intercepts);
  require(count > 0 && static_cast<Integer>(points.shape(0)) == count &&
              static_cast<Integer>(points.shape(1)) == data.columns(),
          "a number for every point and column is needed");
  return {span(points), span(intercepts), per_row(errors, count)};
}

void bind_rows(nb::module_& m) {
  m.def("products_are_rounded", &products_are_rounded);
  define_loop(m, "twofold_scores", {"data", "w"}, [](const Data& data, const ConstVector& w) {
    return twofold_scores(data.stored_rows(), data.per_column(w));
  });
  define_loop(m, "twofold_squared_length", {"data", "coefficients"},
              [](const Data& data, const ConstVector& coefficients) {
                return twofold_squared_length(data.stored_rows(), data.per_row(coefficients));
              });
  define_loop(m, "twofold_largest", {"data", "coefficients"},
              [](const Data& data, const ConstVector& coefficients) {
                return twofold_largest(data.stored_rows(), data.per_row(coefficients));
              });
  define_loop(m, "scores", {"data", "w", "out", "budget"},
              [](const AnyData& data, const ConstVector& w, const Vector& out, const Budget& budget) {
                scores(data.rows(), data.per_column(w).data(), data.per_row(out), budget);
              });
  // Large parts of a fit in passes are freed in pieces, from which the C library makes no room of one
  // piece.
  m.def(
      "give_memory_back",
      [] {
#if defined(__GLIBC__)
        malloc_trim(0);
#endif
      },
      Released());
  define_loop(m, "scores_at", {"data", "points", "out", "squared_norms", "budget"},
              [](const AnyData& data, const ConstTable& points, const Table& out, const Vector& norms,
                 const Budget& budget) {
                require(static_cast<Integer>(points.shape(1)) == data.columns(),
                        "a number for every column is needed");
                require(
                    out.shape(0) == points.shape(0) && static_cast<Integer>(out.shape(1)) == data.count(),
                    "a place for every point and row is needed");
                scores_at(data.rows(), span(points), out.data(), data.per_row(norms), budget);
              });
  define_loop(
      m, "projected_lengths", {"data", "directions", "shifts", "out"},
      [](const Data& data, const ConstTable& directions, const ConstVector& shifts, const Vector& out) {
        const bool dense =
            data.visit([]<class Rows>(const Rows& rows) { return kDense<Rows> && rows.shift == 0; });
        require(dense, "dense rows are needed");
        require(static_cast<Integer>(directions.shape(0)) == data.columns() &&
                    static_cast<Integer>(directions.shape(1)) == kDirections,
                "a number for every column and direction is needed");
        projected_lengths(data.rows(), directions.data(), per_row(shifts, kDirections).data(),
                          data.per_row(out));
      });
  define_loop(
      m, "combine", {"data", "coefficients", "out", "budget"},
      [](const AnyData& data, const ConstVector& coefficients, const Vector& out, const Budget& budget) {
        combine(data.rows(), data.per_row(coefficients).data(), data.per_column(out), budget);
      });
  define_loop(m, "combine_groups", {"data", "coefficients", "groups", "out", "budget"},
              [](const AnyData& data, const ConstVector& coefficients, const ConstIndices& groups,
                 const Table& out, const Budget& budget) {
                const Integer places = static_cast<Integer>(out.shape(0));
                require(static_cast<Integer>(out.shape(1)) == data.columns(),
                        "a place for every column is needed");
                numbers_below(groups, places, "a group has no place");
                combine_groups(data.rows(), data.per_row(coefficients).data(), data.per_row(groups).data(),
                               span(out), budget);
              });
  define_loop(m, "fold_rows",
              {"data", "labels", "costs", "margins", "lengths", "edges", "width", "vectors", "sums"},
              [](const AnyData& data, const ConstVector& labels, const ConstVector& costs,
                 const ConstVector& margins, const ConstVector& lengths, const ConstVector& edges,
                 double width, const Table& vectors, const Table& sums) {
                const Folding by{span(edges),
                                 width,
                                 data.per_row(labels).data(),
                                 data.per_row(costs).data(),
                                 data.per_row(margins).data(),
                                 data.per_row(lengths).data()};
                const std::size_t places = 2 * (by.edges.size() + 1);
                require(vectors.shape(0) == places && sums.shape(0) == places && sums.shape(1) == 3,
                        "a place for every label and bin is needed");
                require(static_cast<Integer>(vectors.shape(1)) == data.columns(),
                        "a place for every column is needed");
                fold_rows(data.rows(), by, span(vectors).data(), span(sums).data());
              });
  nb::class_<BoundClasses>(m, "TwoClasses")
      .def(
          nb::init<const AnyData&, const std::string&, Bytes, double, double, std::optional<ConstVector>>(),
          "data"_a, "loss"_a, "ours"_a, "cost"_a, "cost_of_others"_a, "own_costs"_a = nb::none());
  // Pairs are of label 1 and label -1.
  m.def(
      "add_multipliers",
      [](const AnyData& data, const BoundClasses& of, const ConstTable& points,
         const ConstVector& intercepts, const ConstVector& errors, double length_rounding,
         const Vector& losses, const Table& vectors, const Vector& margins) {
        MultiplierSums sums{span(vectors).data()};
        require(vectors.shape(0) == 2 && static_cast<Integer>(vectors.shape(1)) == data.columns(),
                "a place for every label and column is needed");
        require(margins.size() == 0 || length(margins) == data.count(), "one margin per row is needed");
        const PointsOfPass at = points_of(data, points, intercepts, errors);
        add_multipliers(data.rows(), of.rows(data), at, length_rounding, per_row(losses, at.count()),
                        span(margins), sums);
        return std::tuple{sums.gains[0],   sums.gains[1], sums.totals[0], sums.totals[1],
                          sums.totals_off, sums.lengths,  sums.terms,     sums.longest};
      },
      "data"_a, "of"_a, "points"_a, "intercepts"_a, "errors"_a, "length_rounding"_a, "losses"_a,
      "vectors"_a, "margins"_a, Released());
  m.def(
      "sort_rows",
      [](const AnyData& data, const BoundClasses& of, const ConstTable& points,
         const ConstVector& intercepts, const ConstVector& errors, double length_rounding,
         const ConstVector& edges, double width, const ConstVector& spreads, const Vector& losses,
         const Table& vectors, const Table& sums, const Table& slopes, const Vector& margins) {
        const auto no_or_all = [&](const auto& numbers) {
          require(numbers.size() == 0 || length(numbers) == data.count(), "one number per row is needed");
        };
        no_or_all(spreads);
        no_or_all(margins);
        const std::size_t columns = static_cast<std::size_t>(data.columns());
        const std::size_t places = 2 * (edges.size() + 1);
        require(vectors.shape(0) == places && sums.shape(0) == places && sums.shape(1) == 3 &&
                    vectors.shape(1) == columns,
                "a place for every label and bin is needed");
        const PointsOfPass at = points_of(data, points, intercepts, errors);
        require(slopes.shape(0) == 2 * intercepts.size() && slopes.shape(1) == columns + 1,
                "a place for every point and label is needed");
        SortedRows found{span(vectors).data(), span(sums).data(), span(slopes).data()};
        sort_rows(data.rows(), of.rows(data), at, length_rounding,
                  {span(edges), width, spreads.size() > 0 ? spreads.data() : nullptr},
                  per_row(losses, at.count()), span(margins), found);
        nb::gil_scoped_acquire lock;
        return nb::make_tuple(as_array(std::move(found.near)), as_array(std::move(found.near_margins)),
                              found.longest);
      },
      "data"_a, "of"_a, "points"_a, "intercepts"_a, "errors"_a, "length_rounding"_a, "edges"_a, "width"_a,
      "spreads"_a, "losses"_a, "vectors"_a, "sums"_a, "slopes"_a, "margins"_a, Released());
  m.def(
      "settle_rows",
      [](const AnyData& data, const ConstVector& labels, const ConstVector& costs, const ConstVector& w,
         double b, double width, const Vector& multipliers, const Vector& sum, const Budget& budget) {
        const Settling by{data.per_row(labels).data(), data.per_row(costs).data(),
                          data.per_column(w).data(), b, width};
        SettledRows found =
            settle_rows(data.rows(), by, data.per_row(multipliers), data.per_column(sum), budget);
        nb::gil_scoped_acquire lock;
        return nb::make_tuple(as_array(std::move(found.near)), found.costs, found.balance);
      },
      "data"_a, "labels"_a, "costs"_a, "w"_a, "b"_a, "width"_a, "multipliers"_a, "sum"_a, "budget"_a,
      Released());
  define_loop(
      m, "add_rows", {"data", "order", "coefficients", "w"},
      [](const AnyData& data, const ConstIndices& order, const ConstVector& coefficients, const Vector& w) {
        const auto some = data.row_numbers(order);
        add_rows(data.rows(), some, per_row(coefficients, length(some)).data(), data.per_column(w).data());
      });
  define_loop(m, "copy", {"values", "out", "budget"},
              [](const ConstVector& values, const Vector& out, const Budget& budget) {
                copy(budget, span(values), per_row(out, length(values)));
              });
  define_loop(m, "squared_norms", {"data", "out", "budget"},
              [](const AnyData& data, const Vector& out, const Budget& budget) {
                squared_norms(data.rows(), data.per_row(out), budget);
              });
}

}  // namespace

void bind_passes(nb::module_& m) {
  bind_rows(m);
  bind_objective(m);
  define(m, "relative_gap", {"primal", "dual"}, &relative_gap);
  define(m, "sum_rounding", {"count"}, &sum_rounding);
  define(m, "all_lengths", {"values", "lengths"},
         [](const ConstVector& values, const ConstVector& lengths) {
           require(values.size() == lengths.size(), "vectors of one length are needed");
           const Lengths found = all_lengths(span(values), span(lengths));
           return std::pair{found.sum, found.count};
         });
  define(m, "dot", {"a", "b"}, [](const ConstVector& a, const ConstVector& b) {
    require(a.size() == b.size(), "vectors of one length are needed");
    return sum_of_products(span(a), span(b));
  });
  define(m, "row_classes", {"margins", "alpha", "costs", "by_margins", "out"},
         [](const ConstVector& margins, const ConstVector& alpha, const ConstVector& costs, bool by_margins,
            const SignedBytes& out) {
           const Integer rows = length(margins);
           row_classes(span(margins), per_row(alpha, rows).data(), per_row(costs, rows).data(), by_margins,
                       per_row(out, rows).data());
         });
  define_loop(m, "best_length", {"margins", "costs", "held"},
              [](const ConstVector& margins, const ConstVector& costs, double held) {
                require(margins.size() == costs.size(), "one cost per margin is needed");
                return best_length(span(margins), span(costs), held);
              });
  define_loop(m, "weighted_quantile", {"values", "weights", "level", "ridge"},
              [](const ConstVector& values, const ConstVector& weights, double level, double ridge) {
                require(values.size() == weights.size(), "one weight per value is needed");
                return weighted_quantile(span(values), span(weights), level, ridge);
              });
}

}  // namespace maxmargin
