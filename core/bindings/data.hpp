// SPDX-License-Identifier: BSD-3-Clause
// Rows as Python holds them: of every kind that is read, with the arrays they point into kept alive.
#pragma once

#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "bindings/arrays.hpp"
#include "data/any_rows.hpp"
#include "kernel/kernel_rows.hpp"

namespace maxmargin {

// Rows of any kind, with what keeps them alive.
class AnyData {
 public:
  AnyData(AnyRows rows, std::shared_ptr<const void> owner)
      : rows_(std::move(rows)), owner_(std::move(owner)) {}

  const AnyRows& rows() const { return rows_; }
  Integer count() const { return rows_.count; }
  Integer columns() const { return rows_.columns; }
  Integer stored() const { return rows_.stored; }
  // The most values that a row can have.
  Integer longest() const;
  const std::shared_ptr<const void>& owner() const { return owner_; }

  // Arrays that fit these rows.
  template <class Array>
  auto per_row(const Array& array) const {
    return maxmargin::per_row(array, count());
  }
  template <class Array>
  auto per_column(const Array& array) const {
    return maxmargin::per_column(array, columns());
  }
  template <class Array>
  auto row_numbers(const Array& array) const {
    return maxmargin::row_numbers(array, count());
  }
  // Whether there is a place for every column, and perhaps one more, for the intercept.
  void require_columns(std::size_t size) const {
    const Integer given = static_cast<Integer>(size);
    require(given == columns() || given == columns() + 1, "a place for every column is needed");
  }

 private:
  AnyRows rows_;
  std::shared_ptr<const void> owner_;
};

template <class Value>
struct SparseCopy;

// What kernels find out about rows once, for all that share them.
struct KernelMemo {
  std::mutex mutex;
  std::array<std::optional<Encoding>, 2> encodings;  // for kernels of other common sums, and of products
  std::optional<ByteRows> bytes;
};

// Rows of any kind that is read.
//
// Sparse rows have columns of 32 bits and offsets of 64, whatever was given: every kind of rows is one more
// version of every loop. Offsets are few; columns of 64 bits are copied.
class Data : public AnyData {
 public:
  static Data dense(const AnyArray& values);
  static Data sparse(const AnyArray& values, const AnyArray& indices, const AnyArray& offsets,
                     Integer columns);
  template <class Value>
  static Data owning(SparseCopy<Value>&& copy, Integer columns);

  // The same rows without their zeros, or nothing where that would not pay.
  std::optional<Data> without_zeros(const Budget& budget) const;

  // Two rows in turn for each one of these, which share its values.
  Data twinned() const;

  // The rows with values in single precision, which share all else with these; or nothing, where the values
  // are that already, or every row has one in every column.
  std::optional<Data> in_single_precision(const Budget& budget) const;

  // A copy of some rows, in the order given.
  Data take(const ConstIndices& order) const;

  // The columns as rows.
  Data transposed(const Budget& budget) const;

  // Some rows, every value times the factor of its column, without what becomes 0; in single precision
  // where that has room for them. Their squared lengths, and their products with the factors, go along.
  AnyData take_scaled(const ConstIndices& order, const ConstVector& factors, const Vector& squares,
                      const Vector& mixed, const Budget& budget) const;

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
  Data(StoredRows rows, std::shared_ptr<const void> owner, bool sorted = true);

  StoredRows stored_rows_;
  bool sorted_;
  std::shared_ptr<KernelMemo> memo_;
};

// Monomials that are formed on the way, of sparse rows that are kept alive.
class MonomialData : public AnyData {
 public:
  MonomialData(const Data& base, Integer lowest, const std::vector<double>& scales, bool once,
               bool shared_repeats);
};

}  // namespace maxmargin
