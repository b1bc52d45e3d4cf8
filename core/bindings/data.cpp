// SPDX-License-Identifier: BSD-3-Clause
// Rows, budgets and random order: how they come from Python.

#include "bindings/data.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <limits>
#include <tuple>

#include "bindings/modules.hpp"
#include "data/columns.hpp"
#include "data/private_columns.hpp"
#include "data/short_rows.hpp"
#include "data/taken_rows.hpp"
#include "data/transposed.hpp"
#include "loops/loops.hpp"
#include "machine/random.hpp"

namespace maxmargin {
namespace {

constexpr Integer kLargest = std::numeric_limits<std::int32_t>::max();

// Every later loop trusts offsets and columns, so nothing unchecked gets past here.
template <class Index>
std::vector<Integer> checked_offsets(const AnyArray& given, std::size_t values) {
  const Index* first = static_cast<const Index*>(given.data());
  std::vector<Integer> offsets(first, first + given.size());
  require(offsets.front() == 0, "the first offset must be 0");
  require(std::is_sorted(offsets.begin(), offsets.end()), "offsets must not decrease");
  require(offsets.back() <= static_cast<Integer>(values), "the last offset is too large");
  return offsets;
}

template <class Value, class Index>
SparseRows<Value, Index> sparse_rows(const Value* values, const Index* indices,
                                     const std::vector<Integer>& offsets, Integer columns) {
  return {values, indices, offsets.data(), length(offsets) - 1, columns};
}

AnyData short_rows(std::shared_ptr<const ShortRows> owned) {
  const auto rows = [&](const auto& indices) {
    return AnyRows(sparse_rows(owned->values.get(), indices.get(), owned->offsets, owned->columns));
  };
  return AnyData(std::visit(rows, owned->indices), owned);
}

}  // namespace

Integer AnyData::longest() const {
  return rows_.visit([](const auto& rows) {
    Integer most = rows.columns;
    if constexpr (requires { rows.offsets; }) {
      most = 0;
      for (Integer i = 0; i < rows.count >> rows.shift; ++i)
        most = std::max(most, rows.offsets[i + 1] - rows.offsets[i]);
    }
    return most;
  });
}

Data::Data(StoredRows rows, std::shared_ptr<const void> owner, bool sorted)
    : AnyData(std::visit([](const auto& kind) { return AnyRows(kind); }, rows), std::move(owner)),
      stored_rows_(rows),
      sorted_(sorted),
      memo_(std::make_shared<KernelMemo>()) {}

Data Data::dense(const AnyArray& values) {
  require(values.ndim() == 2, "dense rows need a matrix");
  const bool has_pairs = values.shape(0) > 0 && values.shape(1) > 1;
  require(!has_pairs || values.stride(1) == 1, "values of a row must be contiguous");
  return with_type<float, double>(values, "values must be float32 or float64", [&]<class Value>() {
    const DenseRows<Value> rows{static_cast<const Value*>(values.data()),
                                static_cast<Integer>(values.shape(0)),
                                static_cast<Integer>(values.shape(1)), values.stride(0)};
    return Data(rows, std::make_shared<const AnyArray>(values));
  });
}

Data Data::sparse(const AnyArray& values, const AnyArray& indices, const AnyArray& offsets,
                  Integer columns) {
  require(values.ndim() == 1 && indices.ndim() == 1 && offsets.ndim() == 1 && offsets.size() > 0 &&
              values.size() >= indices.size(),
          "sparse rows need values, indices and offsets of matching lengths");
  require(contiguous(values) && contiguous(indices) && contiguous(offsets),
          "values, indices and offsets must be contiguous");
  require(indices.dtype() == offsets.dtype(), "indices and offsets must have one type");
  require(columns <= kLargest, "sparse rows can have no more than 2147483647 columns");
  const auto read = [&]<class Value, class Index>() {
    SparseCopy<Value> own;  // of what cannot be read in place
    own.offsets = checked_offsets<Index>(offsets, indices.size());
    const std::size_t stored = static_cast<std::size_t>(own.offsets.back());
    const Index* given = static_cast<const Index*>(indices.data());
    require(are_columns(std::span(given, stored), columns), "a column index is out of range");
    const std::int32_t* narrow = nullptr;
    if constexpr (std::is_same_v<Index, std::int32_t>) {
      narrow = given;
    } else {
      own.indices = large_array<std::int32_t>(stored);
      std::transform(given, given + stored, own.indices.get(),
                     [](Index column) { return static_cast<std::int32_t>(column); });
      narrow = own.indices.get();
    }
    const bool sorted = are_in_order(narrow, own.offsets);
    const auto owner = std::make_shared<const std::tuple<AnyArray, AnyArray, SparseCopy<Value>>>(
        values, indices, std::move(own));
    const auto& kept = std::get<2>(*owner);
    return Data(sparse_rows(static_cast<const Value*>(values.data()), narrow, kept.offsets, columns), owner,
                sorted);
  };
  return with_type<float, double>(values, "values must be float32 or float64", [&]<class Value>() {
    return with_type<std::int32_t, std::int64_t>(
        indices, "indices must be int32 or int64",
        [&]<class Index>() { return read.template operator()<Value, Index>(); });
  });
}

template <class Value>
Data Data::owning(SparseCopy<Value>&& copy, Integer columns) {
  const auto owned = std::make_shared<const SparseCopy<Value>>(std::move(copy));
  return Data(sparse_rows(owned->values.get(), owned->indices.get(), owned->offsets, columns), owned);
}

Data Data::take(const ConstIndices& order) const {
  const std::span<const Integer> which = row_numbers(order);
  return visit([&]<class Rows>(const Rows& rows) {
    if constexpr (kDense<Rows>) {
      auto values = take_rows(rows, which);
      const Rows taken{values.get(), length(which), rows.columns, rows.columns};
      return Data(taken, std::make_shared<const decltype(values)>(std::move(values)));
    } else {
      return owning(take_rows(rows, which), rows.columns);
    }
  });
}

Data Data::transposed(const Budget& budget) const {
  return visit([&]<class Rows>(const Rows& rows) {
    require(rows.shift == 0, "rows that are no twins are needed");
    require(rows.count <= kLargest, "columns can have no more than 2147483647 rows");
    if constexpr (kDense<Rows>) {
      auto values = maxmargin::transposed(rows, budget);
      const Rows columns{values.get(), rows.columns, rows.count, rows.count};
      return Data(columns, std::make_shared<const decltype(values)>(std::move(values)));
    } else {
      return owning(maxmargin::transposed(rows, budget), rows.count);
    }
  });
}

AnyData Data::take_scaled(const ConstIndices& order, const ConstVector& factors, const Vector& squares,
                          const Vector& mixed, const Budget& budget) const {
  const std::span<const Integer> which = row_numbers(order);
  const ScaledRows scaled{which, per_column(factors).data(), maxmargin::per_row(squares, length(which)),
                          maxmargin::per_row(mixed, length(which))};
  return visit([&](const auto& rows) -> AnyData {
    std::vector<Integer> offsets;
    const std::size_t room = scaled.room(rows);
    ShortRows brief;
    brief.columns = columns();
    brief.reserve(room);
    const bool suits = std::visit(
        [&](auto& indices) {
          return scaled.fill(rows, offsets, brief.values.get(), indices.get(), budget);
        },
        brief.indices);
    if (suits) {
      brief.offsets = std::move(offsets);
      return short_rows(std::make_shared<const ShortRows>(std::move(brief)));
    }
    SparseCopy<double> copy{large_array<double>(room), large_array<std::int32_t>(room), {}};
    scaled.fill(rows, offsets, copy.values.get(), copy.indices.get(), budget);
    copy.offsets = std::move(offsets);
    return owning(std::move(copy), columns());
  });
}

Data Data::twinned() const {
  return visit([&](const auto& rows) {
    require(rows.shift == 0, "these rows are twins already");
    return Data(maxmargin::twinned(rows), owner(), sorted_);
  });
}

std::optional<Data> Data::in_single_precision(const Budget& budget) const {
  const auto* const rows = std::get_if<SparseRows<double>>(&stored_rows_);
  if (rows == nullptr) return std::nullopt;
  using Kept = std::pair<LargeArray<float>, std::shared_ptr<const void>>;
  const auto kept = std::make_shared<const Kept>(maxmargin::in_single_precision(*rows, budget), owner());
  const SparseRows<float> brief{kept->first.get(), rows->indices, rows->offsets,
                                rows->count,       rows->columns, rows->shift};
  return Data(brief, kept, sorted_);
}

std::optional<Data> Data::without_zeros(const Budget& budget) const {
  return visit([&]<class Rows>(const Rows& rows) -> std::optional<Data> {
    if constexpr (kDense<Rows>) {
      if (auto copy = maxmargin::without_zeros(rows, budget)) return owning(std::move(*copy), rows.columns);
    }
    return std::nullopt;
  });
}

MonomialData::MonomialData(const Data& base, Integer lowest, const std::vector<double>& scales, bool once,
                           bool shared_repeats)
    : AnyData(
          [&] {
            require(base.sorted(), "columns in order are needed");
            const auto* rows = std::get_if<SparseRows<double>>(&base.stored_rows());
            require(rows != nullptr, "sparse rows of float64 are needed");
            return AnyRows(
                MonomialRows(*rows, Degree2(base.columns(), lowest, scales, once, shared_repeats)));
          }(),
          base.owner()) {}

namespace {

// The rows without columns that only one of them has, and what these add to the diagonal; or nothing.
std::optional<std::pair<AnyData, std::vector<double>>> compact(const Data& data, const Budget& budget) {
  auto made = data.visit([&](const auto& rows) { return without_private_columns(rows, budget); });
  if (!made) return std::nullopt;
  std::vector<double> diagonal = std::move(made->diagonal);
  return std::pair(short_rows(std::make_shared<const CompactRows>(std::move(*made))), std::move(diagonal));
}

}  // namespace

void bind_data(nb::module_& m) {
  nb::class_<AnyData>(m, "AnyData")
      .def_prop_ro("count", &AnyData::count)
      .def_prop_ro("columns", &AnyData::columns)
      .def_prop_ro("stored", &AnyData::stored)
      .def_prop_ro("longest", &AnyData::longest);

  nb::class_<Data, AnyData> data(m, "Data");
  data.def_static("dense", &Data::dense, "values"_a)
      .def_static("sparse", &Data::sparse, "values"_a, "indices"_a, "offsets"_a, "columns"_a)
      .def_prop_ro("sorted", &Data::sorted);
  define_loop(data, "without_zeros", {"budget"}, &Data::without_zeros);
  define_loop(data, "in_single_precision", {"budget"}, &Data::in_single_precision);
  define_loop(data, "take", {"order"}, &Data::take);
  define_loop(data, "transposed", {"budget"}, &Data::transposed);
  define_loop(data, "take_scaled", {"order", "factors", "squares", "mixed", "budget"}, &Data::take_scaled);
  data.def("twinned", &Data::twinned);

  nb::class_<MonomialData, AnyData>(m, "MonomialData")
      .def(nb::init<const Data&, Integer, const std::vector<double>&, bool, bool>(), "base"_a, "lowest"_a,
           "scales"_a, "once"_a, "shared_repeats"_a);

  nb::class_<Budget>(m, "Budget")
      .def(nb::init<double, Integer>(), "seconds"_a, "threads"_a)
      .def("stop", &Budget::stop)
      .def("part", &Budget::part, "seconds"_a)
      .def_prop_ro("threads", &Budget::threads)
      .def_prop_ro("seconds_left", &Budget::seconds_left)
      .def_prop_ro("stopped", &Budget::stopped)
      .def_prop_ro("spent", &Budget::spent);

  define(m, "shuffle", {"order", "state"}, [](const Indices& order, std::uint64_t state) {
    Random random(state);
    shuffle(span(order), random);
    return random.state();
  });
  define(m, "draw", {"order", "bound", "state"},
         [](const Indices& order, Integer bound, std::uint64_t state) {
           require(bound > 0, "bound must be positive");
           Random random(state);
           draw(span(order), bound, random);
           return random.state();
         });
  define(m, "draw_batches", {"order", "batch", "pool", "state"},
         [](const Indices& order, Integer batch, const Indices& pool, std::uint64_t state) {
           require(batch > 0 && batch <= length(pool),
                   "a batch must have between 1 and all members of the pool");
           Random random(state);
           draw_batches(span(order), batch, span(pool), random);
           return random.state();
         });
  define_loop(m, "column_ranges", {"data", "which", "low", "high", "budget"},
              [](const Data& data, const ConstIndices& which, const Vector& low, const Vector& high,
                 const Budget& budget) {
                double *const least = data.per_column(low).data(), *const most =
                                                                       data.per_column(high).data();
                const std::span<const Integer> some = data.row_numbers(which);
                data.visit([&](const auto& rows) { column_ranges(rows, some, least, most, budget); });
              });
  define_loop(
      m, "read_columns", {"data", "which", "columns", "out"},
      [](const Data& data, const ConstIndices& which, const ConstIndices& columns, const Table& out) {
        const std::span<const Integer> some = data.row_numbers(which);
        numbers_below(columns, data.columns(), "an index of a column is out of range");
        require(out.shape(0) == columns.size() && out.shape(1) == which.size(),
                "a place for every value is needed");
        data.visit([&](const auto& rows) { read_columns(rows, some, span(columns), out.data()); });
      });
  m.def(
      "without_private_columns",
      [](const Data& data, const Budget& budget) -> nb::object {
        auto found = [&] {
          nb::gil_scoped_release unlocked;
          return compact(data, budget);
        }();
        if (!found) return nb::none();
        return nb::make_tuple(std::move(found->first), as_array(std::move(found->second)));
      },
      "data"_a, "budget"_a,
      nb::sig("def without_private_columns(data: Data, budget: Budget) "
              "-> tuple[AnyData, numpy.typing.NDArray[numpy.float64]] | None"));
}

}  // namespace maxmargin
