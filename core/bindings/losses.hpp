// SPDX-License-Identifier: BSD-3-Clause
// Losses by their names.
#pragma once

#include <string>

#include "bindings/arrays.hpp"
#include "passes/any_loss.hpp"

namespace maxmargin {

inline AnyLoss any_loss(const std::string& name) {
  if (name == "hinge") return Hinge{};
  if (name == "squared_hinge") return SquaredHinge{};
  if (name == "logistic") return Logistic{};
  require(name == "perceptron", "unknown loss");
  return Perceptron{};
}

}  // namespace maxmargin
