// SPDX-License-Identifier: BSD-3-Clause
// Rows that are left out, one at a time.

#include "linear/left_out.hpp"

#include <nanobind/stl/string.h>

#include <vector>

#include "bindings/data.hpp"
#include "bindings/losses.hpp"
#include "bindings/modules.hpp"
#include "linear/points.hpp"

namespace maxmargin {
namespace {

// The arrays of groups, kept alive.
struct BoundFollowers {
  BoundFollowers(const ConstIndices& rows, const ConstVector& labels, const ConstVector& down,
                 const ConstVector& up, const ConstVector& beyond, const ConstVector& slopes,
                 const ConstTable& movements, const ConstTable& inverse, const ConstTable& between)
      : all{span(rows),   span(labels),    span(down),    span(up),     span(beyond),
            span(slopes), span(movements), span(inverse), span(between)},
        indices(rows),
        vectors{labels, down, up, beyond, slopes},
        tables{movements, inverse, between} {
    for (const ConstVector& each : vectors) per_row(each, length(rows));
    const std::size_t count = rows.size(), size = inverse.shape(0);
    require(inverse.shape(1) == size && movements.shape(1) == size, "a square matrix is needed");
    require(movements.shape(0) == count + 1, "a line for every group is needed");
    require(between.size() == 0 || (between.shape(0) == count && between.shape(1) == count + 1),
            "a line for every group, or none at all, is needed");
  }
  Followers all;
  ConstIndices indices;
  std::vector<ConstVector> vectors;
  std::vector<ConstTable> tables;
};

void leave_rows_out(const AnyData& data, const BoundFollowers& followers, const ConstVector& combined,
                    double off, const ConstVector& lengths, double bias, double reach, double intercept,
                    const ConstIndices& which, const ConstIndices& groups, const ConstTable& about,
                    Integer most_events, bool in_full, const Vector& multipliers, const Vector& gains,
                    const Table& points, const Budget& budget) {
  const Integer count = length(which), size = length(combined);
  data.row_numbers(which);
  data.row_numbers(followers.indices);
  data.require_columns(combined.size());
  require((size == data.columns()) == (bias == 0),
          "a place for the intercept is needed where there is one");
  require(static_cast<Integer>(followers.tables[1].shape(0)) == size, "a line for every column is needed");
  require(static_cast<Integer>(about.shape(0)) == count && about.shape(1) == 7, "seven numbers per row");
  require(most_events > 0, "one event at least is needed");
  const bool with_points = points.size() > 0;
  require(!with_points || (static_cast<Integer>(points.shape(0)) == count &&
                           static_cast<Integer>(points.shape(1)) == size),
          "a point for every row is needed");
  const Standpoint from{span(combined), off, data.per_row(lengths), bias, reach, intercept};
  const auto row_groups = per_row(groups, count);
  std::vector<Leaving> leaving(count);
  for (Integer i = 0; i < count; ++i) {
    const double* const a = about.data() + 7 * i;
    require(row_groups[i] < length(followers.indices), "an index of a group is out of range");
    leaving[i] = {which.data()[i], row_groups[i], a[0], a[1], a[2], a[3], a[4], a[5], a[6]};
  }
  std::vector<Departure> ends(count);
  leave_out(data.rows(), followers.all, from, leaving, most_events, in_full, ends,
            with_points ? std::span(points.data(), points.size()) : std::span<double>(), budget);
  for (Integer i = 0; i < count; ++i) {
    per_row(multipliers, count)[i] = ends[i].multiplier;
    per_row(gains, count)[i] = ends[i].gain;
  }
}

}  // namespace

void bind_left_out(nb::module_& m) {
  nb::class_<BoundFollowers>(m, "Followers")
      .def(nb::init<ConstIndices, ConstVector, ConstVector, ConstVector, ConstVector, ConstVector,
                    ConstTable, ConstTable, ConstTable>(),
           "rows"_a, "labels"_a, "down"_a, "up"_a, "beyond"_a, "slopes"_a, "movements"_a, "inverse"_a,
           "between"_a);
  define_loop(m, "leave_out",
              {"data", "followers", "combined", "off", "lengths", "bias", "reach", "intercept", "which",
               "groups", "about", "most_events", "in_full", "multipliers", "gains", "points", "budget"},
              &leave_rows_out);
  define_loop(
      m, "hinges_of_points",
      {"data", "labels", "costs", "margins", "width", "points", "left_out", "out", "crossings", "budget"},
      [](const AnyData& data, const ConstVector& labels, const ConstVector& costs,
         const ConstVector& margins, double width, const ConstTable& points, const ConstIndices& left_out,
         const Vector& out, const Vector& crossings, const Budget& budget) {
        data.require_columns(points.shape(0));
        require(points.shape(1) == left_out.size(), "a column for every point is needed");
        hinges_of_points(data.rows(), data.per_row(labels), data.per_row(costs), data.per_row(margins),
                         width, span(points), data.row_numbers(left_out), per_row(out, length(left_out)),
                         data.per_row(crossings), budget);
      });
  define_loop(
      m, "pulls_of_points",
      {"data", "loss", "labels", "costs", "lengths", "margins", "per_range", "among", "points", "left_out",
       "out", "sizes", "moved", "budget"},
      [](const AnyData& data, const std::string& loss, const ConstVector& labels, const ConstVector& costs,
         const ConstVector& lengths, const ConstVector& margins, const ConstVector& per_range,
         const ConstIndices& among, const ConstTable& points, const ConstIndices& left_out,
         const Table& out, const Vector& sizes, const Vector& moved, const Budget& budget) {
        data.require_columns(points.shape(0));
        require(points.shape(1) == left_out.size() && out.shape(0) == points.shape(0) &&
                    out.shape(1) == points.shape(1),
                "a column for every point is needed");
        const StartingRows about{data.per_row(labels), data.per_row(costs), data.per_row(lengths),
                                 data.per_row(margins), data.per_row(per_range)};
        const Integer count = length(left_out);
        pulls_of_points(data.rows(), any_loss(loss), about, data.row_numbers(among), span(points),
                        data.row_numbers(left_out), span(out), per_row(sizes, count), per_row(moved, count),
                        budget);
      });
  define_loop(m, "squared_lengths_through", {"data", "which", "table", "out", "budget"},
              [](const AnyData& data, const ConstIndices& which, const ConstTable& table, const Vector& out,
                 const Budget& budget) {
                data.require_columns(table.shape(0));
                require(table.shape(0) == table.shape(1), "a square matrix is needed");
                squared_lengths_through(data.rows(), data.row_numbers(which), span(table),
                                        static_cast<Integer>(table.shape(0)), per_row(out, length(which)),
                                        budget);
              });
}

}  // namespace maxmargin
