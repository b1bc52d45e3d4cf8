// SPDX-License-Identifier: BSD-3-Clause
// Arrays from Python and back, and how a loop of the core is run: without the interpreter's lock, and open
// to Ctrl-C.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
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

inline std::span<double> span(const Vector& v) { return {v.data(), v.size()}; }
inline std::span<const double> span(const ConstVector& v) { return {v.data(), v.size()}; }
inline std::span<Integer> span(const Indices& v) { return {v.data(), v.size()}; }
inline std::span<const Integer> span(const ConstIndices& v) { return {v.data(), v.size()}; }

inline bool contiguous(const AnyArray& array) { return array.size() < 2 || array.stride(0) == 1; }

inline void require(bool holds, const char* message) {
  if (!holds) throw std::invalid_argument(message);
}

// Runs a kernel without the interpreter's lock and lets Ctrl-C through: Python's handler runs on
// the way, and what it raises is raised here once the kernel has left its data in a consistent
// state.
template <class Kernel>
auto interruptibly(const Budget& budget, const Kernel& kernel) {
  bool raised = false;
  const auto interrupted = [](void* who) {
    nb::gil_scoped_acquire lock;
    return *static_cast<bool*>(who) = PyErr_CheckSignals() != 0;
  };
  Watch watch(budget, interrupted, &raised);
  auto result = [&] {
    nb::gil_scoped_release unlocked;
    return kernel(watch);
  }();
  if (raised) throw nb::python_error();
  return result;
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
