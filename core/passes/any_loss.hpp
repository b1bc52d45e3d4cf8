// SPDX-License-Identifier: BSD-3-Clause
// A loss that is known when a loop runs. Loops over rows are compiled for the hinge, which is asked for
// most, and once more for all the others together: not for each of them, once for each kind of rows.
#pragma once

#include <utility>
#include <variant>

#include "passes/losses.hpp"

namespace maxmargin {

using AnyLoss = std::variant<Hinge, SquaredHinge, Logistic, Perceptron>;

template <class Loss>
double value(Loss, double m) {
  return Loss::value(m);
}
inline double value(const AnyLoss& loss, double m) {
  return std::visit([m](auto kind) { return kind.value(m); }, loss);
}

template <class Loss>
double derivative(Loss, double m) {
  return Loss::derivative(m);
}
inline double derivative(const AnyLoss& loss, double m) {
  return std::visit([m](auto kind) { return kind.derivative(m); }, loss);
}

// Calls visitor(loss), with the hinge as a type of its own.
template <class Visitor>
decltype(auto) visit_loss(const AnyLoss& loss, Visitor&& visitor) {
  return std::holds_alternative<Hinge>(loss) ? visitor(Hinge{}) : visitor(loss);
}

}  // namespace maxmargin
