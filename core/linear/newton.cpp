// SPDX-License-Identifier: BSD-3-Clause
#include "linear/newton.hpp"

namespace maxmargin {

SecondOrderMethod::~SecondOrderMethod() = default;

Integer SecondOrderMethod::steps(System& system, Integer most, double until, const Budget& budget) {
  Integer taken = 0;
  while (taken < most) {
    if (!step(system, budget)) return 0;
    ++taken;
    if (finished() || relative_gap() <= until || budget.spent()) break;
  }
  return taken;
}

void NewtonMethod::begin(System& system, const Budget& budget) {
  at.forget();
  std::visit([&]<class L>(L) { at.refresh(piece_of<L>(), system, budget); }, loss_);
  relative_gap_ = gap_of_point();
  finished_ = false;
}

// Multipliers of a smooth loss meet Fenchel's inequality with equality.
double NewtonMethod::gap_of_point() const {
  const double primal = std::abs(at.primal());
  return primal > 0 ? at.residual() / primal : 0.0;
}

bool NewtonMethod::step(System& system, const Budget& budget) {
  static constexpr double kRounding = 1e-15;  // a relative gap that float64 cannot tell from 0
  at.set_gradient();                          // 3
  const auto length =
      std::visit([&]<class L>(L) { return at.move(piece_of<L>(), system, budget); }, loss_);  // 4, 5, 2
  if (!length) return false;
  relative_gap_ = gap_of_point();
  finished_ = *length == 0 || relative_gap_ <= kRounding;
  return true;
}

}  // namespace maxmargin
