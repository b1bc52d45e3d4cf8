// SPDX-License-Identifier: BSD-3-Clause
// Rows as Python holds them: of every kind that is read, with the arrays they point into kept alive.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/arrays.hpp"
#include "data/any_rows.hpp"

namespace maxmargin {

// Rows of any kind, with what keeps them alive in the classes below.
class AnyData {
 public:
  explicit AnyData(AnyRows rows) : rows_(std::move(rows)) {}

  const AnyRows& rows() const { return rows_; }
  Integer count() const { return rows_.count; }
  Integer columns() const { return rows_.columns; }
  Integer stored() const { return rows_.stored; }
  // The most values that a row can have.
  Integer longest() const;

  void require_lengths(std::size_t per_row, std::size_t per_column) const;
  void require_rows(std::span<const Integer> order) const;

 private:
  AnyRows rows_;
};

struct CompactRows;
template <class Value>
struct SparseCopy;
struct KernelMemo;

// The copy of core/data/private_columns.hpp, which only dual coordinate ascent sweeps.
class CompactData : public AnyData {
 public:
  explicit CompactData(CompactRows&& rows);

 private:
  explicit CompactData(std::shared_ptr<const CompactRows> rows);

  std::shared_ptr<const CompactRows> rows_;
};

// Rows of any kind that is read, with the arrays they point into kept alive.
//
// Sparse rows have columns of 32 bits and offsets of 64, whatever was given: every kind of rows is one more
// version of every loop. Offsets are few; columns of 64 bits are copied.
class Data : public AnyData {
 public:
  static Data dense(AnyArray values);
  static Data sparse(AnyArray values, AnyArray indices, AnyArray offsets, Integer columns);
  template <class Value>
  static Data owning(SparseCopy<Value>&& copy, Integer columns);

  // The same rows without their zeros, or nothing where that would not pay.
  std::optional<Data> without_zeros(const Budget& budget) const;

  // A copy of some rows, in the order given.
  Data take(ConstIndices order) const;

  // Whether no row has its columns out of order or twice; kernels need that.
  bool sorted() const { return sorted_; }

  template <class Visitor>
  decltype(auto) visit(Visitor&& visitor) const {
    return std::visit(std::forward<Visitor>(visitor), stored_rows_);
  }
  const StoredRows& stored_rows() const { return stored_rows_; }
  // What kernels found out about these rows, for all copies of them.
  KernelMemo& memo() const { return *memo_; }

 private:
  Data(StoredRows rows, std::vector<AnyArray> arrays, std::shared_ptr<const void> owned = nullptr);

  template <class Value, class Index>
  static Data sparse_of(AnyArray values, AnyArray indices, AnyArray offsets, Integer columns);

  StoredRows stored_rows_;
  std::vector<AnyArray> arrays_;
  std::shared_ptr<const void> owned_;  // memory of copies made here
  bool sorted_ = true;
  std::shared_ptr<KernelMemo> memo_;
};

// Monomials that are formed on the way, of sparse rows that are kept alive.
class MonomialData : public AnyData {
 public:
  MonomialData(const Data& base, Integer lowest, const std::vector<double>& scales, bool once,
               bool shared_repeats);

 private:
  Data base_;
};

}  // namespace maxmargin
