// SPDX-License-Identifier: BSD-3-Clause
// Sums over the pairs of rows of one query.

#include <nanobind/stl/tuple.h>

#include <cmath>
#include <tuple>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/modules.hpp"
#include "twofold/pairs.hpp"

namespace maxmargin {
namespace {

void require_rising(std::span<const Integer> places, Integer end) {
  require(!places.empty() && places.front() == 0 && places.back() == end, "places from 0 to the end");
  for (std::size_t k = 1; k < places.size(); ++k) {
    require(places[k - 1] < places[k], "rising places are needed");
  }
}

// What the loops trust is checked here.
class BoundRankedPairs : public RankedPairs {
 public:
  BoundRankedPairs(const ConstIndices& order, const ConstIndices& levels, const ConstIndices& queries,
                   const ConstVector& weights)
      : RankedPairs(checked(order, levels, queries, weights), copied(levels), span(queries),
                    span(weights)) {}

  void sort_checked(const ConstVector& scores) {
    const auto values = per_row(scores, static_cast<Integer>(rows()));
    for (const double score : values) require(std::isfinite(score), "finite scores are needed");
    sort(values);
    sorted = true;
  }
  void require_sorted() const { require(sorted, "sort comes first"); }
  void require_held() const { require(held, "hold comes first"); }

  bool sorted = false, held = false;

 private:
  // The order, once all arrays are known to fit.
  static std::vector<Integer> checked(const ConstIndices& order, const ConstIndices& levels,
                                      const ConstIndices& queries, const ConstVector& weights) {
    const Integer rows = length(order);
    row_numbers(order, rows);
    require(rows < (Integer{1} << 32), "there are too many rows");
    require_rising(span(levels), rows);
    require_rising(span(queries), length(levels) - 1);
    for (const double weight : per_row(weights, rows)) {
      require(std::isfinite(weight) && weight >= 0, "weights of at least 0 are needed");
    }
    return copied(order);
  }
  static std::vector<Integer> copied(const ConstIndices& indices) {
    return {indices.data(), indices.data() + indices.size()};
  }
};

std::tuple<double, double> told(const BoundedSum& sum) { return {sum.value, sum.error}; }

Ramp ramp_of(double top, double bottom, double slope) {
  require(std::isfinite(top) && bottom <= top && slope >= 0, "a ramp that falls is needed");
  return {top, bottom, slope};
}

}  // namespace

void bind_ranking(nb::module_& m) {
  nb::class_<BoundRankedPairs> pairs(m, "RankedPairs");
  pairs.def(nb::init<ConstIndices, ConstIndices, ConstIndices, ConstVector>(), "order"_a, "levels"_a,
            "queries"_a, "weights"_a);
  pairs.def("count", [](const BoundRankedPairs& self) { return told(self.count()); });
  define_loop(pairs, "sort", {"scores"},
              [](BoundRankedPairs& self, const ConstVector& scores) { self.sort_checked(scores); });
  define_loop(pairs, "sum", {"top", "power"}, [](BoundRankedPairs& self, double top, int power) {
    self.require_sorted();
    require(power >= 0 && power <= 2, "the power is 0, 1 or 2");
    return told(self.sum(top, power));
  });
  define_loop(pairs, "multipliers", {"top", "bottom", "slope", "signed_sums", "mass"},
              [](BoundRankedPairs& self, double top, double bottom, double slope, const Vector& signed_sums,
                 const Vector& mass) {
                self.require_sorted();
                const Integer rows = static_cast<Integer>(self.rows());
                double slack = 0;
                const BoundedSum all = self.multipliers(
                    ramp_of(top, bottom, slope), per_row(signed_sums, rows), per_row(mass, rows), slack);
                return std::tuple{all.value, all.error, self.off_by(), slack};
              });
  define_loop(pairs, "hold", {"top", "bottom", "slope"},
              [](BoundRankedPairs& self, double top, double bottom, double slope) {
                self.require_sorted();
                self.hold(ramp_of(top, bottom, slope));
                self.held = true;
              });
  define_loop(pairs, "product", {"values", "out"},
              [](BoundRankedPairs& self, const ConstTable& values, const Table& out) {
                self.require_held();
                require(values.shape(0) == self.rows() && out.shape(0) == self.rows() &&
                            values.shape(1) == out.shape(1),
                        "one line per row is needed");
                self.product(span(values), values.shape(1), span(out));
              });
}

}  // namespace maxmargin
