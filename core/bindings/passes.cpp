// SPDX-License-Identifier: BSD-3-Clause
// Passes over rows, and sums over margins and multipliers.

#include "passes/passes.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "bindings/arrays.hpp"
#include "bindings/losses.hpp"
#include "bindings/modules.hpp"
#include "passes/best_intercept.hpp"
#include "passes/feasible.hpp"
#include "passes/row_classes.hpp"
#include "passes/weighted_quantile.hpp"

namespace maxmargin {
void bind_passes(nb::module_& m) {
  m.def("dot", [](ConstVector a, ConstVector b) {
    require(a.size() == b.size(), "vectors of one length are needed");
    return dot(span(a), span(b));
  });
  m.def("loss_sum", [](const std::string& loss, ConstVector margins, ConstVector costs) {
    require(margins.size() == costs.size(), "one number per row is needed");
    nb::gil_scoped_release unlocked;
    return with_loss(loss,
                     [&](auto kind) { return loss_sum<decltype(kind)>(span(margins), costs.data()); });
  });
  m.def("multipliers", [](const std::string& loss, ConstVector margins, ConstVector costs, Vector out) {
    require(margins.size() == costs.size() && margins.size() == out.size(), "one number per row is needed");
    nb::gil_scoped_release unlocked;
    with_loss(loss,
              [&](auto kind) { multipliers_of<decltype(kind)>(span(margins), costs.data(), out.data()); });
  });
  m.def("dual_gain", [](const std::string& loss, ConstVector alpha, ConstVector costs) {
    require(alpha.size() == costs.size(), "one number per row is needed");
    nb::gil_scoped_release unlocked;
    return with_loss(loss, [&](auto kind) { return dual_gain<decltype(kind)>(span(alpha), costs.data()); });
  });
  m.def("largest_violation",
        [](const std::string& loss, ConstVector margins, ConstVector alpha, ConstVector costs) {
          require(margins.size() == costs.size() && margins.size() == alpha.size(),
                  "one number per row is needed");
          nb::gil_scoped_release unlocked;
          return with_loss(loss, [&](auto kind) {
            return largest_violation<decltype(kind)>(span(margins), alpha.data(), costs.data());
          });
        });
  m.def("row_classes",
        [](ConstVector margins, ConstVector alpha, ConstVector costs, bool by_margins, SignedBytes out) {
          for (const std::size_t size : {alpha.size(), costs.size(), out.size()}) {
            require(size == margins.size(), "one number per row is needed");
          }
          row_classes(span(margins), alpha.data(), costs.data(), by_margins, out.data());
        });
  m.def("make_feasible", [](Vector alpha, ConstVector labels, ConstVector upper, bool balanced) {
    require(alpha.size() == labels.size() && alpha.size() == upper.size(), "one number per row is needed");
    nb::gil_scoped_release unlocked;
    clip_to_box(span(alpha), upper.data());
    if (balanced) balance_classes(span(alpha), labels.data(), upper.data());
  });
  m.def("best_intercept", [](const std::string& loss, ConstVector scores, ConstVector labels,
                             ConstVector costs, double ridge) {
    require(scores.size() == labels.size() && scores.size() == costs.size(),
            "one number per row is needed");
    require(loss == "squared_hinge" || loss == "logistic", "a smooth loss is needed");
    nb::gil_scoped_release unlocked;
    const auto find = loss == "logistic" ? best_intercept<Logistic> : best_intercept<SquaredHinge>;
    return find(span(scores), labels.data(), costs.data(), ridge);
  });
  m.def("weighted_quantile", [](ConstVector values, ConstVector weights, double level, double ridge) {
    require(values.size() == weights.size(), "one weight per value is needed");
    nb::gil_scoped_release unlocked;
    return weighted_quantile(span(values), span(weights), level, ridge);
  });
}

}  // namespace maxmargin
