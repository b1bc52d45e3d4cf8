// SPDX-License-Identifier: BSD-3-Clause
// Rows as kernels take them, and the cheapest way to hold them.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "data/columns.hpp"
#include "kernel/kernels.hpp"

namespace maxmargin {

enum class Holding { bits, bytes, dense, sparse, given };

// How rows can be held; see `encoding_for`.
struct Encoding {
  Holding holding;
  double unit = 1;  // of bytes
};

// Rows of multiples 0 .. 255 of one number, one after the other; copies share them.
class ByteRows {
 public:
  template <class Rows>
  ByteRows(const Rows& rows, std::span<const Integer> which, double unit)
      : count(static_cast<Integer>(which.size())), columns(rows.columns), squared_unit(unit * unit) {
    auto held = std::make_shared<Held>();
    held->values.assign(which.size() * static_cast<std::size_t>(4 * quads()), 0);
    held->sums.assign(which.size(), 0);
    held->squares.assign(which.size(), 0);
    for (std::size_t i = 0; i < which.size(); ++i) {
      std::uint8_t* row = held->values.data() + i * static_cast<std::size_t>(4 * quads());
      double off = 0;
      for_each_value(rows[which[i]], [&](Integer column, auto value) {
        const std::int32_t multiple = static_cast<std::uint8_t>(static_cast<double>(value) / unit + 0.5);
        row[column] = static_cast<std::uint8_t>(multiple);
        held->sums[i] += multiple;
        held->squares[i] += multiple * multiple;
        const double lost = static_cast<double>(value) - unit * multiple;
        off += lost * lost;
      });
      const double length = unit * std::sqrt(static_cast<double>(held->squares[i]));
      if (off > 0) held->share_off = std::max(held->share_off, std::sqrt(off) / length);
      held->off = std::max(held->off, std::sqrt(off));
    }
    held_ = std::move(held);
  }

  static constexpr Integer kMostColumns = 1 << 15;  // 2^15 * 255 * 128 < 2^31

  Integer quads() const { return (columns + 3) / 4; }
  const std::uint8_t* row(Integer i) const { return held_->values.data() + i * 4 * quads(); }
  std::int32_t sum(Integer row) const { return held_->sums[row]; }
  double squared_norm(Integer row) const { return squared_unit * static_cast<double>(held_->squares[row]); }
  // The largest distance of a row from its multiples, and the largest one as a share of the row's length:
  // as little as the type of the values allows.
  double off() const { return held_->off; }
  double share_off() const { return held_->share_off; }

  Integer count, columns;
  double squared_unit;

 private:
  struct Held {
    std::vector<std::uint8_t> values;  // [row][quad][4]
    std::vector<std::int32_t> sums;
    std::vector<std::int64_t> squares;
    double off = 0, share_off = 0;
  };
  std::shared_ptr<const Held> held_;
};

// Rows as a kernel takes them: those that are stored, or bytes that were read from them before.
using KernelRows =
    std::variant<DenseRows<float>, DenseRows<double>, SparseRows<float>, SparseRows<double>, ByteRows>;

inline Integer columns_of(const KernelRows& rows) {
  return std::visit([](const auto& typed) { return typed.columns; }, rows);
}

// The cheapest way to hold these rows for a kernel, if all of them are to be held alike.
Encoding encoding_for(std::initializer_list<const StoredRows*> all, const KernelSum& kernel);

// The largest squared length of a row, where all values are whole numbers; infinity where some is not.
double largest_of_whole_numbers(const StoredRows& rows);

// All of the rows, as multiples of `unit`.
ByteRows byte_rows(const StoredRows& rows, double unit);

}  // namespace maxmargin
