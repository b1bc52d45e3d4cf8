// SPDX-License-Identifier: BSD-3-Clause
// Passes over rows.

#include "bindings/data.hpp"
#include "bindings/modules.hpp"
#include "loops/loops.hpp"
#include "twofold/proof.hpp"

namespace maxmargin {

void bind_rows(nb::module_& m) {
  m.def(
      "twofold_scores",
      [](const Data& data, ConstVector w) {
        data.require_lengths(static_cast<std::size_t>(data.count()), w.size());
        nb::gil_scoped_release unlocked;
        return twofold_scores(data.stored_rows(), span(w));
      },
      "data"_a, "w"_a);
  m.def(
      "twofold_squared_length",
      [](const Data& data, ConstVector coefficients) {
        data.require_lengths(coefficients.size(), static_cast<std::size_t>(data.columns()));
        nb::gil_scoped_release unlocked;
        return twofold_squared_length(data.stored_rows(), span(coefficients));
      },
      "data"_a, "coefficients"_a);
  m.def(
      "scores",
      [](const AnyData& data, ConstVector w, Vector out, const Budget& budget) {
        data.require_lengths(out.size(), w.size());
        nb::gil_scoped_release unlocked;
        scores(data.rows(), w.data(), span(out), budget);
      },
      "data"_a, "w"_a, "out"_a, "budget"_a);
  m.def(
      "combine",
      [](const AnyData& data, ConstVector coefficients, Vector out, const Budget& budget) {
        data.require_lengths(coefficients.size(), out.size());
        nb::gil_scoped_release unlocked;
        combine(data.rows(), coefficients.data(), span(out), budget);
      },
      "data"_a, "coefficients"_a, "out"_a, "budget"_a);
  m.def(
      "add_rows",
      [](const AnyData& data, ConstIndices order, ConstVector coefficients, Vector w) {
        data.require_rows(span(order));
        require(order.size() == coefficients.size(), "one number per row is needed");
        require(static_cast<Integer>(w.size()) == data.columns(), "one number per column is needed");
        nb::gil_scoped_release unlocked;
        add_rows(data.rows(), span(order), coefficients.data(), w.data());
      },
      "data"_a, "order"_a, "coefficients"_a, "w"_a);
  m.def(
      "squared_norms",
      [](const AnyData& data, Vector out, const Budget& budget) {
        require(static_cast<Integer>(out.size()) == data.count(), "one number per row is needed");
        nb::gil_scoped_release unlocked;
        squared_norms(data.rows(), span(out), budget);
      },
      "data"_a, "out"_a, "budget"_a);
}

}  // namespace maxmargin
