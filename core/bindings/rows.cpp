// SPDX-License-Identifier: BSD-3-Clause
// Passes over rows.

#include "bindings/data.hpp"
#include "bindings/modules.hpp"
#include "loops/loops.hpp"

namespace maxmargin {

void bind_rows(nb::module_& m) {
  define_loop(m, "scores", {"data", "w", "out", "budget"},
              [](const AnyData& data, ConstVector w, Vector out, const Budget& budget) {
                scores(data.rows(), data.per_column(w).data(), data.per_row(out), budget);
              });
  define_loop(m, "combine", {"data", "coefficients", "out", "budget"},
              [](const AnyData& data, ConstVector coefficients, Vector out, const Budget& budget) {
                combine(data.rows(), data.per_row(coefficients).data(), data.per_column(out), budget);
              });
  define_loop(m, "add_rows", {"data", "order", "coefficients", "w"},
              [](const AnyData& data, ConstIndices order, ConstVector coefficients, Vector w) {
                const auto some = data.row_numbers(order);
                add_rows(data.rows(), some, per_row(coefficients, length(some)).data(),
                         data.per_column(w).data());
              });
  define_loop(m, "squared_norms", {"data", "out", "budget"},
              [](const AnyData& data, Vector out, const Budget& budget) {
                squared_norms(data.rows(), data.per_row(out), budget);
              });
}

}  // namespace maxmargin
