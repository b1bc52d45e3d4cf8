// SPDX-License-Identifier: BSD-3-Clause
// The bounds of core/passes/proof.hpp in twofold precision: for data so badly scaled that the rounding of
// scores, times C, would be most of the gap. Four to eight times as slow as a plain pass.
#pragma once

#include <span>
#include <vector>

#include "passes/proof.hpp"
#include "twofold/arithmetic.hpp"

namespace maxmargin {

// Whether this code was compiled so that a product is rounded before something is added to it.
bool products_are_rounded();

struct TwofoldScores {
  std::vector<Twofold> values;  // <w, x_i>
  std::vector<double> off;      // how far each can be from the exact one
  double squared_length = 0;    // at least |w|^2
  double magnitudes = 0;        // at least |w|_1

  // Those of two rows in turn for each one.
  TwofoldScores twinned() const;
};

// Of a w that is given.
TwofoldScores twofold_scores(const StoredRows& rows, std::span<const double> w);

// An upper bound on the squared length of sum_i coefficient_i x_i.
double twofold_squared_length(const StoredRows& rows, std::span<const double> coefficients);

// An upper bound on the largest magnitude of an entry of sum_i coefficient_i x_i.
double twofold_largest(const StoredRows& rows, std::span<const double> coefficients);

// An upper bound of P(w, b), and for every row what its margin lacks for 1.
double twofold_primal(const Objective& objective, const TwofoldScores& scores, double b,
                      std::span<double> lacking, double shift = 0);

// A lower bound of the best value: of D(alpha), for an alpha in its box whose w(alpha) is at most of this
// size, as Objective::dual has it. `reach` bounds the intercept of the optimum where that is exact.
double twofold_dual(const Objective& objective, std::span<const double> alpha, double size, double reach);

// What k sums in twofold precision are off by, in units of the sum of the magnitudes; twice the bound, for
// the rounding of the magnitudes themselves.
inline double twofold_error(double terms) { return 2 * (terms + 4) * (terms + 4) * kUnit * kUnit; }

}  // namespace maxmargin
