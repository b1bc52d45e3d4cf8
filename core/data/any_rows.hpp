// SPDX-License-Identifier: BSD-3-Clause
// Rows of any kind that the loops of core/loops run over.
#pragma once

#include <cstdint>
#include <utility>
#include <variant>

#include "data/rows.hpp"
#include "features/monomial_rows.hpp"

namespace maxmargin {

class AnyRows {
 public:
  // The last but one is that of core/data/private_columns.hpp, where the columns are few.
  using Kind = std::variant<DenseRows<float>, DenseRows<double>, SparseRows<float>, SparseRows<double>,
                            SparseRows<float, std::uint16_t>, MonomialRows>;

  template <class Rows>
  explicit AnyRows(Rows rows)
      : count(rows.count), columns(rows.columns), stored(rows.stored()), kind_(std::move(rows)) {}

  template <class Visitor>
  decltype(auto) visit(Visitor&& visitor) const {
    return std::visit(std::forward<Visitor>(visitor), kind_);
  }

  // The rows where they are of this kind, else null.
  template <class Rows>
  const Rows* get_if() const {
    return std::get_if<Rows>(&kind_);
  }

  Integer count, columns, stored;

 private:
  Kind kind_;
};

}  // namespace maxmargin
