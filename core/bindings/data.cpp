// SPDX-License-Identifier: BSD-3-Clause
// Rows, budgets, random order, and the weighted quantile.

#include "bindings/data.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "bindings/modules.hpp"
#include "machine/random.hpp"
#include "passes/weighted_quantile.hpp"

namespace maxmargin {

void bind_data(nb::module_& m) {
  nb::class_<Data>(m, "Data")
      .def_static("dense", &Data::dense, "values"_a)
      .def_static("sparse", &Data::sparse, "values"_a, "indices"_a, "offsets"_a, "columns"_a)
      .def("without_zeros", &Data::without_zeros, "budget"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("take", &Data::take, "order"_a)
      .def_prop_ro("sorted", &Data::sorted)
      .def_prop_ro("count", &Data::count)
      .def_prop_ro("columns", &Data::columns)
      .def_prop_ro("stored", &Data::stored);

  nb::class_<CompactData>(m, "CompactData")
      .def_prop_ro("count", &CompactData::count)
      .def_prop_ro("columns", &CompactData::columns)
      .def_prop_ro("stored", &CompactData::stored);

  nb::class_<MonomialData>(m, "MonomialData")
      .def(nb::init<const Data&, Integer, const std::vector<double>&, bool, bool>(), "base"_a, "lowest"_a,
           "scales"_a, "once"_a, "shared_repeats"_a)
      .def_prop_ro("count", &MonomialData::count)
      .def_prop_ro("columns", &MonomialData::columns)
      .def_prop_ro("stored", &MonomialData::stored);

  nb::class_<Budget>(m, "Budget")
      .def(nb::init<double, Integer>(), "seconds"_a, "threads"_a)
      .def("stop", &Budget::stop)
      .def("part", &Budget::part, "seconds"_a)
      .def_prop_ro("seconds_left", &Budget::seconds_left)
      .def_prop_ro("stopped", &Budget::stopped)
      .def_prop_ro("spent", &Budget::spent);

  m.def("shuffle", [](Indices order, std::uint64_t state) {
    Random random(state);
    shuffle(span(order), random);
    return random.state();
  });
  m.def("draw", [](Indices order, Integer bound, std::uint64_t state) {
    require(bound > 0, "bound must be positive");
    Random random(state);
    draw(span(order), bound, random);
    return random.state();
  });
  m.def("weighted_quantile", [](ConstVector values, ConstVector weights, double level, double ridge) {
    require(values.size() == weights.size(), "one weight per value is needed");
    nb::gil_scoped_release unlocked;
    return weighted_quantile(span(values), span(weights), level, ridge);
  });
}

}  // namespace maxmargin
