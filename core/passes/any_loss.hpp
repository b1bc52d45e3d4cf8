// SPDX-License-Identifier: BSD-3-Clause
// A loss that is known when a loop runs. Loops over rows ask for it at each row: compiled for each loss,
// there would be one of them for each loss and kind of rows.
#pragma once

#include <variant>

#include "passes/losses.hpp"

namespace maxmargin {

using AnyLoss = std::variant<Hinge, SquaredHinge, Logistic, Perceptron>;

inline double value(const AnyLoss& loss, double m) {
  return std::visit([m](auto kind) { return kind.value(m); }, loss);
}

inline double derivative(const AnyLoss& loss, double m) {
  return std::visit([m](auto kind) { return kind.derivative(m); }, loss);
}

}  // namespace maxmargin
