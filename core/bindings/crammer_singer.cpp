// SPDX-License-Identifier: BSD-3-Clause
// Several classes in one problem: the sweep, and the passes of its proof.

#include "linear/crammer_singer.hpp"

#include <nanobind/stl/tuple.h>

#include "bindings/data.hpp"
#include "bindings/modules.hpp"

namespace maxmargin {
namespace {

std::span<const Integer> codes_of(const Data& data, const ConstIndices& codes, Integer classes) {
  require(classes > 1, "two classes are needed at least");
  data.per_row(codes);
  return numbers_below(codes, classes, "a class is out of range");
}

// How many weights there are in all: of every column, and of the constant feature.
Integer all_columns(const Data& data, double constant) { return data.columns() + (constant != 0 ? 1 : 0); }

}  // namespace

void bind_crammer_singer(nb::module_& m) {
  m.def("class_stride", &class_stride, "classes"_a);
  define_loop(m, "class_scores", {"data", "codes", "classes", "constant", "w", "out", "budget"},
              [](const Data& data, const ConstIndices& codes, Integer classes, double constant,
                 const ConstVector& w, const Vector& out, const Budget& budget) {
                const auto all = codes_of(data, codes, classes);
                per_column(w, all_columns(data, constant) * classes);
                per_row(out, data.count() * (classes - 1));
                std::vector<double> lanes = with_lanes(span(w), classes);
                const ClassWeights weights{lanes.data(), classes, class_stride(classes), constant};
                class_scores(data.stored_rows(), all, weights, out.data(), budget);
              });
  define_loop(m, "class_combine", {"data", "codes", "classes", "constant", "alpha", "out", "budget"},
              [](const Data& data, const ConstIndices& codes, Integer classes, double constant,
                 const ConstVector& alpha, const Vector& out, const Budget& budget) {
                const auto all = codes_of(data, codes, classes);
                per_row(alpha, data.count() * (classes - 1));
                const auto weights = per_column(out, all_columns(data, constant) * classes);
                class_combine(data.stored_rows(), all, alpha.data(), classes, constant, weights, budget);
              });
  m.def(
      "crammer_singer",
      [](const Data& data, const ConstIndices& codes, const ConstVector& squared_norms,
         const ConstVector& costs, const Table& multipliers, const Indices& order, const Table& w,
         double constant, double relaxation, double held, const Budget& budget) {
        const Integer classes = static_cast<Integer>(multipliers.shape(1));
        const Integer columns = all_columns(data, constant), stride = class_stride(classes);
        const auto all = codes_of(data, codes, classes);
        require(static_cast<Integer>(multipliers.shape(0)) == data.count(), "one line per row is needed");
        require(static_cast<Integer>(w.shape(0)) == columns && static_cast<Integer>(w.shape(1)) == stride,
                "a line with a lane for every class is needed for every column");
        const ClassExamples examples{all, data.per_row(squared_norms), data.per_row(costs),
                                     span(multipliers)};
        const ClassWeights weights{w.data(), classes, stride, constant};
        const auto visits = data.row_numbers(order);
        const ClassSweep sweep = interruptibly(budget, [&](Watch& watch) {
          return crammer_singer(data.stored_rows(), examples, visits, weights, relaxation, held, watch);
        });
        return std::make_tuple(sweep.active, sweep.violation, sweep.ascent, sweep.gap);
      },
      "data"_a, "codes"_a, "squared_norms"_a, "costs"_a, "multipliers"_a, "order"_a, "w"_a, nb::kw_only(),
      "constant"_a, "relaxation"_a, "held"_a, "budget"_a, Released());
}

}  // namespace maxmargin
