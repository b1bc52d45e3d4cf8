// SPDX-License-Identifier: BSD-3-Clause
// Arrays from Python and back, and how a loop of the core is bound and run: its arguments have names, and
// it runs without the interpreter's lock and open to Ctrl-C.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "data/rows.hpp"
#include "machine/budget.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace maxmargin {

using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;
using Vector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstVector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<Integer, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstIndices = nb::ndarray<const Integer, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using SignedBytes = nb::ndarray<std::int8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ConstTable = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Array>
auto span(const Array& array) {
  return std::span(array.data(), array.size());
}
template <class Array>
Integer length(const Array& array) {
  return static_cast<Integer>(array.size());
}

inline bool contiguous(const AnyArray& array) { return array.size() < 2 || array.stride(0) == 1; }

inline void require(bool holds, const char* message) {
  if (!holds) throw std::invalid_argument(message);
}

// Arrays whose lengths, or whose numbers of rows, have been checked: the loops trust them.
template <class Array>
auto per_row(const Array& array, Integer rows) {
  require(length(array) == rows, "one number per row is needed");
  return span(array);
}
template <class Array>
auto per_column(const Array& array, Integer columns) {
  require(length(array) == columns, "one number per column is needed");
  return span(array);
}
template <class Array>
auto numbers_below(const Array& array, Integer count, const char* message) {
  const auto numbers = span(array);
  Integer low = 0, high = -1;
  for (const Integer i : numbers) {
    low = std::min(low, i);
    high = std::max(high, i);
  }
  require(low >= 0 && high < count, message);
  return numbers;
}
template <class Array>
auto row_numbers(const Array& array, Integer rows) {
  return numbers_below(array, rows, "an index of a row is out of range");
}

// Calls visit<T>() with the one of the types that the values of an array have.
template <class T, class... Others, class Visit>
auto with_type(const AnyArray& array, const char* message, const Visit& visit) {
  const bool found = array.dtype() == nb::dtype<T>();
  if constexpr (sizeof...(Others) > 0) {
    if (!found) return with_type<Others...>(array, message, visit);
  }
  require(found, message);
  return visit.template operator()<T>();
}

// Binds a function of a module, or a method of a class, under a name and with names for its arguments.
template <class Scope, std::size_t count, class Function, class... Extra>
void define(Scope& scope, const char* name, const char* const (&arguments)[count], const Function& function,
            const Extra&... extra) {
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    scope.def(name, function, nb::arg(arguments[k])..., extra...);
  }(std::make_index_sequence<count>{});
}
// The same for one that runs without the interpreter's lock: it touches no Python object, and takes arrays
// by reference, so that none is given back without the lock.
using Released = nb::call_guard<nb::gil_scoped_release>;
template <class Scope, std::size_t count, class Function>
void define_loop(Scope& scope, const char* name, const char* const (&arguments)[count],
                 const Function& function) {
  define(scope, name, arguments, function, Released());
}

// Runs a kernel, which has no lock, and lets Ctrl-C through: Python's handler runs on the way, and what it
// raises is raised here once the kernel has left its data in a consistent state.
template <class Kernel>
auto interruptibly(const Budget& budget, const Kernel& kernel) {
  bool raised = false;
  const auto interrupted = [](void* who) {
    nb::gil_scoped_acquire lock;
    return *static_cast<bool*>(who) = PyErr_CheckSignals() != 0;
  };
  Watch watch(budget, interrupted, &raised);
  auto result = kernel(watch);
  if (raised) {
    nb::gil_scoped_acquire lock;
    throw nb::python_error();
  }
  return result;
}

// An array of an object that Python holds, seen in place; a property's lives as long as the object.
inline auto shown(std::span<double> values) {
  return nb::ndarray<nb::numpy, double, nb::ndim<1>>(values.data(), {values.size()});
}

// An array that is made here, for Python to keep.
template <class T>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

template <class T>
Array<T> as_array(std::vector<T>&& values) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  const std::size_t size = owned->size();
  return Array<T>(owned->data(), {size}, owner);
}

template <class T, class Deleter>
Array<T> as_array(std::unique_ptr<T[], Deleter>&& values, Integer count) {
  using Owned = std::unique_ptr<T[], Deleter>;
  auto* owned = new Owned(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<Owned*>(p); });
  const std::size_t size = static_cast<std::size_t>(count);
  return Array<T>(owned->get(), {size}, owner);
}

}  // namespace maxmargin
