// SPDX-License-Identifier: BSD-3-Clause
// Losses by their names.
#pragma once

#include <string>
#include <utility>

#include "bindings/arrays.hpp"
#include "passes/any_loss.hpp"

namespace maxmargin {

template <class Visitor>
decltype(auto) with_loss(const std::string& name, Visitor&& visitor) {
  if (name == "hinge") return visitor(Hinge{});
  if (name == "squared_hinge") return visitor(SquaredHinge{});
  if (name == "logistic") return visitor(Logistic{});
  require(name == "perceptron", "unknown loss");
  return visitor(Perceptron{});
}

inline AnyLoss any_loss(const std::string& name) {
  return with_loss(name, [](auto kind) { return AnyLoss(kind); });
}

}  // namespace maxmargin
