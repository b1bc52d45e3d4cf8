// SPDX-License-Identifier: BSD-3-Clause
// A loss that is known when a loop runs, for loops whose rows cost more than the question which it is: they
// are compiled once for each kind of rows, not once more for each loss.
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
