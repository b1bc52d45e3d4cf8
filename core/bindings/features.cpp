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

void into_dense(const Monomials& monomials, const Data& data, const Output& out, const Budget& budget) {
  require(data.columns() == monomials.columns(), "rows with as many columns are needed");
  data.visit([&]<class Rows>(const Rows& rows) {
    if constexpr (kDense<Rows>) {
      using Value = std::decay_t<decltype(*rows.values)>;
      expand_dense(monomials, rows, place_for<Value>(out, rows.count * monomials.size()), budget);
    } else {
      throw std::invalid_argument("dense rows are needed");
    }
  });
}

void into_sparse(const Monomials& monomials, const Data& data, const AnyArray& offsets,
                 const Output& indices, const Output& values, const Budget& budget) {
  require(data.columns() == monomials.columns(), "rows with as many columns are needed");
  require(data.sorted(), "columns in order are needed");
  require(offsets.ndim() == 1 && contiguous(offsets), "offsets must be contiguous");
  const auto expand = [&]<class Index, class Rows>(std::span<const Index> all, const Rows& rows) {
    if constexpr (!kDense<Rows>) {
      require(fits(monomials, rows, all), "offsets must be those of the expansion");
      const Integer size = static_cast<Integer>(all.back());
      using Value = std::decay_t<decltype(*rows.values)>;
      expand_sparse(monomials, rows, all, place_for<Index>(indices, size), place_for<Value>(values, size),
                    budget);
    } else {
      throw std::invalid_argument("sparse rows are needed");
    }
  };
  with_type<std::int32_t, std::int64_t>(offsets, "offsets must be int32 or int64", [&]<class Index>() {
    const std::span all{static_cast<const Index*>(offsets.data()), offsets.size()};
    data.visit([&](const auto& rows) { expand(all, rows); });
  });
}

}  // namespace

void bind_features(nb::module_& m) {
  nb::class_<Monomials> monomials(m, "Monomials");
  monomials
      .def(nb::init<Integer, Integer, std::vector<double>, bool, bool>(), "columns"_a, "lowest"_a,
           "scales"_a, "once"_a, "shared_repeats"_a)
      .def_prop_ro("size", &Monomials::size);
  define_loop(monomials, "expand_dense", {"data", "out", "budget"}, &into_dense);
  define_loop(monomials, "expand_sparse", {"data", "offsets", "indices", "values", "budget"}, &into_sparse);
}

}  // namespace maxmargin
