// SPDX-License-Identifier: BSD-3-Clause
// Several classes in one problem: the sweep, and the passes of its proof.

#include "linear/crammer_singer.hpp"

#include <nanobind/stl/tuple.h>

#include "bindings/data.hpp"
#include "bindings/modules.hpp"
#include "linear/class_momentum.hpp"

namespace maxmargin {
namespace {

using ClassPlaces = nb::ndarray<std::int32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Marks = nb::ndarray<std::int8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ClassSizes = nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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
         const ConstVector& costs, const Table& multipliers, const ClassPlaces& places,
         const ClassSizes& sizes, const Marks& moved, const Indices& order, const Table& w, double constant,
         double relaxation, double held, double held_class, const Budget& budget) {
        const Integer classes = static_cast<Integer>(multipliers.shape(1));
        const Integer columns = all_columns(data, constant), stride = class_stride(classes);
        const auto all = codes_of(data, codes, classes);
        require(static_cast<Integer>(multipliers.shape(0)) == data.count(), "one line per row is needed");
        require(static_cast<Integer>(w.shape(0)) == columns && static_cast<Integer>(w.shape(1)) == stride,
                "a line with a lane for every class is needed for every column");
        require(places.size() == multipliers.size(), "a place for every class of every row is needed");
        require(are_classes(span(places), classes), "a class is out of range");
        for (const std::int32_t size : data.per_row(sizes)) {
          require(size >= 2 && size <= classes, "two classes of a row are looked at, at least");
        }
        const ClassExamples examples{
            all,         data.per_row(squared_norms), data.per_row(costs), span(multipliers), span(places),
            span(sizes), data.per_row(moved)};
        const ClassWeights weights{w.data(), classes, stride, constant};
        const auto visits = data.row_numbers(order);
        const ClassSweep sweep = interruptibly(budget, [&](Watch& watch) {
          return crammer_singer(data.stored_rows(), examples, visits, weights,
                                {relaxation, held, held_class}, watch);
        });
        return std::make_tuple(sweep.active, sweep.violation, sweep.ascent, sweep.gap);
      },
      "data"_a, "codes"_a, "squared_norms"_a, "costs"_a, "multipliers"_a, "places"_a, "sizes"_a, "moved"_a,
      "order"_a, "w"_a, nb::kw_only(), "constant"_a, "relaxation"_a, "held"_a, "held_class"_a, "budget"_a,
      Released());
  m.def(
      "go_on_with_classes",
      [](const Data& data, const ConstIndices& codes, const ConstVector& costs, const Table& multipliers,
         const Marks& moved, const Table& w, double constant, const Table& multipliers_before,
         const Table& w_before) {
        const Integer classes = static_cast<Integer>(multipliers.shape(1));
        const Integer columns = all_columns(data, constant), stride = class_stride(classes);
        const auto all = codes_of(data, codes, classes);
        require(static_cast<Integer>(multipliers.shape(0)) == data.count(), "one line per row is needed");
        require(static_cast<Integer>(w.shape(0)) == columns && static_cast<Integer>(w.shape(1)) == stride,
                "a line with a lane for every class is needed for every column");
        require(multipliers_before.size() == multipliers.size() && w_before.size() == w.size(),
                "the state before has to be as large as the one now");
        return go_on(data.stored_rows(), {all, data.per_row(costs), span(multipliers), data.per_row(moved)},
                     {w.data(), classes, stride, constant}, {span(multipliers_before), span(w_before)});
      },
      "data"_a, "codes"_a, "costs"_a, "multipliers"_a, "moved"_a, "w"_a, nb::kw_only(), "constant"_a,
      "multipliers_before"_a, "w_before"_a, Released());
}

}  // namespace maxmargin
