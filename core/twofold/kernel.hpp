// SPDX-License-Identifier: BSD-3-Clause
// Kernels in twofold precision, value by value: for few rows whose kernel loses its digits in float64.
#pragma once

#include <span>

#include "kernel/kernels.hpp"
#include "twofold/proof.hpp"

namespace maxmargin {

// Powers of inner products, Gaussians, Laplacians, and their sums and products.
bool has_twofold(const KernelSum& kernel);

// Of w = sum_i coefficient_i phi(x_i) over these rows; |k(x_i, x_j)| is at most the product of two lengths.
TwofoldScores twofold_scores(const KernelSum& kernel, const StoredRows& rows,
                             std::span<const Integer> which, std::span<const double> coefficients,
                             std::span<const double> lengths);

}  // namespace maxmargin
