// SPDX-License-Identifier: BSD-3-Clause
// Monomials, written out.

#include <nanobind/stl/vector.h>

#include "bindings/data.hpp"
#include "bindings/modules.hpp"
#include "features/monomials.hpp"

namespace maxmargin {
namespace {

using Output = nb::ndarray<nb::c_contig, nb::device::cpu>;

// The place for results of type T, with its size checked.
template <class T>
T* place_for(const Output& out, Integer count) {
  require(out.dtype() == nb::dtype<T>() && length(out) == count,
          "a place of the right type is needed for every monomial");
  return static_cast<T*>(out.data());
}

template <class Rows>
void expand_dense(const Monomials& monomials, const Rows& rows, const Output& out, const Budget& budget) {
  if constexpr (requires { rows.stride; }) {
    using Value = std::decay_t<decltype(*rows.values)>;
    Value* values = place_for<Value>(out, rows.count * monomials.size());
    nb::gil_scoped_release unlocked;
    expand_dense(monomials, rows, values, budget);
  } else {
    throw std::invalid_argument("dense rows are needed");
  }
}

template <class Rows, class Index>
void expand_sparse(const Monomials& monomials, const Rows& rows, std::span<const Index> offsets,
                   const Output& to_indices, const Output& to_values, const Budget& budget) {
  if constexpr (requires { rows.offsets; }) {
    using Value = std::decay_t<decltype(*rows.values)>;
    require(fits(monomials, rows, offsets), "offsets must be those of the expansion");
    Index* indices = place_for<Index>(to_indices, static_cast<Integer>(offsets.back()));
    Value* values = place_for<Value>(to_values, static_cast<Integer>(offsets.back()));
    nb::gil_scoped_release unlocked;
    expand_sparse(monomials, rows, offsets, indices, values, budget);
  } else {
    throw std::invalid_argument("sparse rows are needed");
  }
}

}  // namespace

void bind_features(nb::module_& m) {
  nb::class_<Monomials>(m, "Monomials")
      .def(nb::init<Integer, Integer, std::vector<double>, bool, bool>(), "columns"_a, "lowest"_a,
           "scales"_a, "once"_a, "shared_repeats"_a)
      .def_prop_ro("size", &Monomials::size)
      .def(
          "expand_dense",
          [](const Monomials& self, const Data& data, Output out, const Budget& budget) {
            require(data.columns() == self.columns(), "rows with as many columns are needed");
            data.visit([&](const auto& rows) { expand_dense(self, rows, out, budget); });
          },
          "data"_a, "out"_a, "budget"_a)
      .def(
          "expand_sparse",
          [](const Monomials& self, const Data& data, AnyArray offsets, Output indices, Output values,
             const Budget& budget) {
            require(data.columns() == self.columns(), "rows with as many columns are needed");
            require(data.sorted(), "columns in order are needed");
            require(offsets.ndim() == 1 && contiguous(offsets), "offsets must be contiguous");
            const auto with = [&]<class Index>(Index) {
              require(offsets.dtype() == nb::dtype<Index>(), "offsets must be int32 or int64");
              const std::span<const Index> all{static_cast<const Index*>(offsets.data()), offsets.size()};
              data.visit(
                  [&](const auto& rows) { expand_sparse(self, rows, all, indices, values, budget); });
            };
            offsets.dtype() == nb::dtype<std::int32_t>() ? with(std::int32_t{}) : with(std::int64_t{});
          },
          "data"_a, "offsets"_a, "indices"_a, "values"_a, "budget"_a);
}

}  // namespace maxmargin
