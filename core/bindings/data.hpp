// SPDX-License-Identifier: BSD-3-Clause
// Rows as Python holds them: of every kind that is read, with the arrays they point into kept alive.
#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <type_traits>
#include <variant>
#include <vector>

#include "bindings/arrays.hpp"
#include "data/private_columns.hpp"
#include "data/taken_rows.hpp"
#include "data/zeros.hpp"
#include "features/monomial_rows.hpp"
#include "kernel/encoded.hpp"
#include "kernel/encodings.hpp"
#include "machine/large_array.hpp"

namespace maxmargin {

// Rows of one of several kinds.
template <class... Kinds>
class RowsOf {
 public:
  using Kind = std::variant<Kinds...>;
  explicit RowsOf(Kind kind) : kind_(kind) {}

  template <class Visitor>
  decltype(auto) visit(Visitor&& visitor) const {
    return std::visit(std::forward<Visitor>(visitor), kind_);
  }
  Integer count() const {
    return visit([](const auto& rows) { return rows.count; });
  }
  Integer columns() const {
    return visit([](const auto& rows) { return rows.columns; });
  }
  Integer stored() const {
    return visit([](const auto& rows) { return rows.stored(); });
  }
  void require_lengths(std::size_t per_row, std::size_t per_column) const {
    require(static_cast<Integer>(per_row) == count(), "one number per row is needed");
    require(static_cast<Integer>(per_column) == columns(), "one number per column is needed");
  }
  void require_rows(std::span<const Integer> order) const {
    Integer low = 0, high = -1;
    for (const Integer i : order) {
      low = std::min(low, i);
      high = std::max(high, i);
    }
    require(low >= 0 && high < count(), "an index of a row is out of range");
  }

 private:
  Kind kind_;
};

// The copy of core/data/private_columns.hpp, which only dual coordinate ascent sweeps.
class CompactData
    : public RowsOf<SparseRows<float, std::int32_t>, SparseRows<float, std::uint16_t, std::int32_t>> {
 public:
  explicit CompactData(CompactRows&& rows) : CompactData(std::make_shared<CompactRows>(std::move(rows))) {}

 private:
  explicit CompactData(std::shared_ptr<CompactRows> rows) : RowsOf(view(*rows)), rows_(std::move(rows)) {}

  static Kind view(const CompactRows& rows) {
    return std::visit(
        [&]<class Index>(const LargeArray<Index>& indices) -> Kind {
          return SparseRows<float, Index, std::int32_t>{
              rows.values.get(), indices.get(), rows.offsets.data(),
              static_cast<Integer>(rows.offsets.size()) - 1, rows.columns};
        },
        rows.indices);
  }

  std::shared_ptr<CompactRows> rows_;
};

// What was found out about rows once, for all that share them.
struct Memo {
  std::mutex mutex;
  std::array<std::optional<Encoding>, 2> encodings;  // for kernels of other common sums, and of products
  std::optional<ByteRows> bytes;
};

// Rows of any kind that is read, with the arrays they point into kept alive.
class Data : public RowsOf<DenseRows<float>, DenseRows<double>, SparseRows<float, std::int32_t>,
                           SparseRows<float, std::int64_t>, SparseRows<double, std::int32_t>,
                           SparseRows<double, std::int64_t>> {
 public:
  static Data dense(AnyArray values) {
    require(values.ndim() == 2, "dense rows need a matrix");
    require(values.shape(1) < 2 || values.stride(1) == 1, "values of a row must be contiguous");
    const Integer n = static_cast<Integer>(values.shape(0));
    const Integer d = static_cast<Integer>(values.shape(1));
    const Integer stride = values.stride(0);
    if (values.dtype() == nb::dtype<float>()) {
      const auto* data = static_cast<const float*>(values.data());
      return Data({values}, DenseRows<float>{data, n, d, stride});
    }
    require(values.dtype() == nb::dtype<double>(), "values must be float32 or float64");
    const auto* data = static_cast<const double*>(values.data());
    return Data({values}, DenseRows<double>{data, n, d, stride});
  }

  static Data sparse(AnyArray values, AnyArray indices, AnyArray offsets, Integer columns) {
    require(values.ndim() == 1 && indices.ndim() == 1 && offsets.ndim() == 1 && offsets.size() > 0 &&
                values.size() >= indices.size(),
            "sparse rows need values, indices and offsets of matching lengths");
    require(contiguous(values) && contiguous(indices) && contiguous(offsets),
            "values, indices and offsets must be contiguous");
    require(indices.dtype() == offsets.dtype(), "indices and offsets must have one type");
    const bool narrow = indices.dtype() == nb::dtype<std::int32_t>();
    require(narrow || indices.dtype() == nb::dtype<std::int64_t>(), "indices must be int32 or int64");
    const bool single = values.dtype() == nb::dtype<float>();
    require(single || values.dtype() == nb::dtype<double>(), "values must be float32 or float64");
    if (single && narrow) return sparse_of<float, std::int32_t>(values, indices, offsets, columns);
    if (single) return sparse_of<float, std::int64_t>(values, indices, offsets, columns);
    if (narrow) return sparse_of<double, std::int32_t>(values, indices, offsets, columns);
    return sparse_of<double, std::int64_t>(values, indices, offsets, columns);
  }

  // The cheapest way to hold the rows for a kernel; the values are looked at once.
  Encoding encoding(const KernelSum& kernel) const {
    if (kernel.uses(Common::given)) return {Holding::given};
    const std::lock_guard lock(memo_->mutex);
    std::optional<Encoding>& known = memo_->encodings[kernel.only_products()];
    if (!known) known = visit([&](const auto& rows) { return encoding_for({&rows}, kernel); });
    return *known;
  }

  // Calls visitor(rows, encoding) with the rows as a kernel takes them. Bytes are read once, for all that
  // comes after: there may be many problems on parts of the same rows.
  template <class Visitor>
  void visit_for(const KernelSum& kernel, const Visitor& visitor) const {
    const Encoding how = encoding(kernel);
    if (how.holding == Holding::bytes) return visitor(bytes(how.unit), how);
    visit([&](const auto& rows) { visitor(rows, how); });
  }

  // The same rows without their zeros, or nothing where that would not pay.
  std::optional<Data> without_zeros(const Budget& budget) const {
    return visit([&](const auto& rows) { return sparse_copy(rows, budget); });
  }

  // A copy of some rows, in the order given.
  Data take(ConstIndices order) const {
    require_rows(span(order));
    const nb::gil_scoped_release unlocked;
    return visit([&](const auto& rows) { return taken(rows, span(order)); });
  }

  // Whether no row has its columns out of order or twice; kernels need that.
  bool sorted() const { return sorted_; }

 private:
  Data(std::vector<AnyArray> arrays, Kind kind) : RowsOf(kind), arrays_(std::move(arrays)) {}

  ByteRows bytes(double unit) const {
    const std::lock_guard lock(memo_->mutex);
    if (!memo_->bytes) {
      std::vector<Integer> all(static_cast<std::size_t>(count()));
      std::iota(all.begin(), all.end(), Integer{0});
      visit([&](const auto& rows) { memo_->bytes.emplace(rows, all, unit); });
    }
    return *memo_->bytes;
  }

  // Every later loop trusts offsets and indices, so nothing unchecked gets past this line.
  template <class Value, class Index>
  static Data sparse_of(AnyArray values, AnyArray indices, AnyArray offsets, Integer columns) {
    const SparseRows<Value, Index> rows{
        static_cast<const Value*>(values.data()), static_cast<const Index*>(indices.data()),
        static_cast<const Index*>(offsets.data()), static_cast<Integer>(offsets.size()) - 1, columns};
    require(rows.offsets[0] == 0, "the first offset must be 0");
    for (Integer i = 0; i < rows.count; ++i) {
      require(rows.offsets[i] <= rows.offsets[i + 1], "offsets must not decrease");
    }
    require(rows.stored() <= static_cast<Integer>(indices.size()), "the last offset is too large");
    // One run over all values, however short the rows are: whether all columns are in 0 .. d - 1, and how
    // often one does not exceed the one before. In sorted rows that happens nowhere but where one begins.
    const Integer stored = rows.stored();
    Index low = 0, high = -1;
    Integer falls = 0;
    for (Integer k = 0; k < stored; ++k) {
      low = std::min(low, rows.indices[k]);
      high = std::max(high, rows.indices[k]);
    }
    require(low >= 0 && static_cast<Integer>(high) < columns, "a column index is out of range");
    for (Integer k = 1; k < stored; ++k) falls += rows.indices[k - 1] >= rows.indices[k];
    for (Integer i = 0; i < rows.count; ++i) {
      const Integer begin = rows.offsets[i];
      if (begin == 0 || begin == static_cast<Integer>(rows.offsets[i + 1])) continue;
      falls -= rows.indices[begin - 1] >= rows.indices[begin];
    }
    Data data({values, indices, offsets}, rows);
    data.sorted_ = falls == 0;
    return data;
  }

  template <class Value>
  static std::optional<Data> sparse_copy(const DenseRows<Value>& rows, const Budget& budget) {
    auto copy = maxmargin::without_zeros(rows, budget);
    if (!copy) return std::nullopt;
    return owning(std::move(*copy), rows.columns);
  }
  template <class Value, class Index>
  static std::optional<Data> sparse_copy(const SparseRows<Value, Index>&, const Budget&) {
    return std::nullopt;
  }

  template <class Value>
  static Data taken(const DenseRows<Value>& rows, std::span<const Integer> order) {
    auto owned = std::make_shared<LargeArray<Value>>(take_rows(rows, order));
    const Integer count = static_cast<Integer>(order.size());
    Data data({}, DenseRows<Value>{owned->get(), count, rows.columns, rows.columns});
    data.owned_ = std::move(owned);
    return data;
  }
  template <class Value, class Index>
  static Data taken(const SparseRows<Value, Index>& rows, std::span<const Integer> order) {
    constexpr Integer kLargest = std::numeric_limits<std::int32_t>::max();
    Integer stored = 0;
    for (const Integer i : order) stored += rows[i].count;
    require(rows.columns <= kLargest && stored <= kLargest, "too many columns or values to be copied");
    return owning(take_rows(rows, order), rows.columns);
  }

  template <class Value>
  static Data owning(SparseCopy<Value>&& copy, Integer columns) {
    auto owned = std::make_shared<SparseCopy<Value>>(std::move(copy));
    const SparseRows<Value, std::int32_t> view{owned->values.get(), owned->indices.get(),
                                               owned->offsets.data(),
                                               static_cast<Integer>(owned->offsets.size()) - 1, columns};
    Data data({}, view);
    data.owned_ = std::move(owned);
    return data;
  }

  std::vector<AnyArray> arrays_;
  std::shared_ptr<void> owned_;  // memory of copies made here
  bool sorted_ = true;
  std::shared_ptr<Memo> memo_ = std::make_shared<Memo>();
};

// Monomials that are formed on the way, of sparse rows that are kept alive.
class MonomialData : public RowsOf<MonomialRows> {
 public:
  MonomialData(const Data& base, Integer lowest, const std::vector<double>& scales, bool once,
               bool shared_repeats)
      : RowsOf(rows_of(base, Degree2(base.columns(), lowest, scales, once, shared_repeats))), base_(base) {}

 private:
  static MonomialRows rows_of(const Data& base, const Degree2& monomials) {
    require(base.sorted(), "columns in order are needed");
    return base.visit([&]<class Rows>(const Rows& rows) -> MonomialRows {
      if constexpr (std::is_same_v<Rows, SparseRows<double, std::int32_t>>) {
        return MonomialRows(rows, monomials);
      } else {
        throw std::invalid_argument("sparse rows of float64 with 32-bit columns are needed");
      }
    });
  }

  Data base_;
};

}  // namespace maxmargin
