// SPDX-License-Identifier: BSD-3-Clause
// The coordinates of dual coordinate ascent, six numbers each, as Python holds them.
#pragma once

#include <span>

#include "bindings/arrays.hpp"
#include "linear/dual_coordinate_ascent.hpp"

namespace maxmargin {

inline std::span<Coordinate> coordinates_of(const Table& table, Integer rows) {
  require(table.shape(1) == sizeof(Coordinate) / sizeof(double), "a coordinate has six numbers");
  require(static_cast<Integer>(table.shape(0)) == rows, "one number per row is needed");
  return {reinterpret_cast<Coordinate*>(table.data()), table.shape(0)};
}

}  // namespace maxmargin
