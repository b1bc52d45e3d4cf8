// SPDX-License-Identifier: BSD-3-Clause
// Rows of any kind that the loops of core/loops run over.
#pragma once

#include <cstdint>
#include <variant>

#include "data/rows.hpp"
#include "features/monomial_rows.hpp"

namespace maxmargin {

// The last but one are those of core/data/private_columns.hpp, where their columns are few.
using AnyRows = std::variant<DenseRows<float>, DenseRows<double>, SparseRows<float>, SparseRows<double>,
                             SparseRows<float, std::uint16_t>, MonomialRows>;

}  // namespace maxmargin
