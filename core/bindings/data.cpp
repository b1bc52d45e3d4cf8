// SPDX-License-Identifier: BSD-3-Clause
// Rows, budgets and random order: how they come from Python.

#include "bindings/data.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <limits>

#include "bindings/kernel_memo.hpp"
#include "bindings/modules.hpp"
#include "data/columns.hpp"
#include "data/private_columns.hpp"
#include "data/taken_rows.hpp"
#include "loops/loops.hpp"
#include "machine/random.hpp"

namespace maxmargin {
namespace {

constexpr Integer kLargest = std::numeric_limits<std::int32_t>::max();

AnyRows view(const CompactRows& rows) {
  return std::visit(
      [&]<class Index>(const LargeArray<Index>& indices) -> AnyRows {
        return AnyRows(SparseRows<float, Index>{rows.values.get(), indices.get(), rows.offsets.data(),
                                                static_cast<Integer>(rows.offsets.size()) - 1,
                                                rows.columns});
      },
      rows.indices);
}

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

}  // namespace

Integer AnyData::longest() const {
  return rows_.visit([](const auto& rows) {
    Integer most = rows.columns;
    if constexpr (requires { rows.offsets; }) {
      most = 0;
      for (Integer i = 0; i < rows.count; ++i) most = std::max(most, rows.offsets[i + 1] - rows.offsets[i]);
    }
    return most;
  });
}

void AnyData::require_lengths(std::size_t per_row, std::size_t per_column) const {
  require(static_cast<Integer>(per_row) == count(), "one number per row is needed");
  require(static_cast<Integer>(per_column) == columns(), "one number per column is needed");
}

void AnyData::require_rows(std::span<const Integer> order) const {
  Integer low = 0, high = -1;
  for (const Integer i : order) {
    low = std::min(low, i);
    high = std::max(high, i);
  }
  require(low >= 0 && high < count(), "an index of a row is out of range");
}

CompactData::CompactData(CompactRows&& rows)
    : CompactData(std::make_shared<const CompactRows>(std::move(rows))) {}

CompactData::CompactData(std::shared_ptr<const CompactRows> rows)
    : AnyData(view(*rows)), rows_(std::move(rows)) {}

Data::Data(StoredRows rows, std::vector<AnyArray> arrays, std::shared_ptr<const void> owned)
    : AnyData(std::visit([](const auto& kind) { return AnyRows(kind); }, rows)),
      stored_rows_(rows),
      arrays_(std::move(arrays)),
      owned_(std::move(owned)),
      memo_(std::make_shared<KernelMemo>()) {}

Data Data::dense(AnyArray values) {
  require(values.ndim() == 2, "dense rows need a matrix");
  require(values.shape(1) < 2 || values.stride(1) == 1, "values of a row must be contiguous");
  const auto rows = [&]<class Value>(const Value* first) {
    return DenseRows<Value>{first, static_cast<Integer>(values.shape(0)),
                            static_cast<Integer>(values.shape(1)), values.stride(0)};
  };
  if (values.dtype() == nb::dtype<float>()) {
    return Data(rows(static_cast<const float*>(values.data())), {values});
  }
  require(values.dtype() == nb::dtype<double>(), "values must be float32 or float64");
  return Data(rows(static_cast<const double*>(values.data())), {values});
}

Data Data::sparse(AnyArray values, AnyArray indices, AnyArray offsets, Integer columns) {
  require(values.ndim() == 1 && indices.ndim() == 1 && offsets.ndim() == 1 && offsets.size() > 0 &&
              values.size() >= indices.size(),
          "sparse rows need values, indices and offsets of matching lengths");
  require(contiguous(values) && contiguous(indices) && contiguous(offsets),
          "values, indices and offsets must be contiguous");
  require(indices.dtype() == offsets.dtype(), "indices and offsets must have one type");
  require(columns <= kLargest, "sparse rows can have no more than 2147483647 columns");
  const bool narrow = indices.dtype() == nb::dtype<std::int32_t>();
  require(narrow || indices.dtype() == nb::dtype<std::int64_t>(), "indices must be int32 or int64");
  const bool single = values.dtype() == nb::dtype<float>();
  require(single || values.dtype() == nb::dtype<double>(), "values must be float32 or float64");
  if (single && narrow) return sparse_of<float, std::int32_t>(values, indices, offsets, columns);
  if (single) return sparse_of<float, std::int64_t>(values, indices, offsets, columns);
  if (narrow) return sparse_of<double, std::int32_t>(values, indices, offsets, columns);
  return sparse_of<double, std::int64_t>(values, indices, offsets, columns);
}

template <class Value, class Index>
Data Data::sparse_of(AnyArray values, AnyArray indices, AnyArray offsets, Integer columns) {
  SparseCopy<Value> own;  // of what cannot be read in place
  own.offsets = checked_offsets<Index>(offsets, indices.size());
  const std::size_t stored = static_cast<std::size_t>(own.offsets.back());
  const Index* given = static_cast<const Index*>(indices.data());
  require(are_columns(std::span(given, stored), columns), "a column index is out of range");
  const std::int32_t* read = nullptr;
  if constexpr (std::is_same_v<Index, std::int32_t>) {
    read = given;
  } else {
    own.indices = large_array<std::int32_t>(stored);
    std::transform(given, given + stored, own.indices.get(),
                   [](Index column) { return static_cast<std::int32_t>(column); });
    read = own.indices.get();
  }
  const bool sorted = are_in_order(read, own.offsets);
  const auto owned = std::make_shared<const SparseCopy<Value>>(std::move(own));
  const SparseRows<Value> rows{static_cast<const Value*>(values.data()), read, owned->offsets.data(),
                               static_cast<Integer>(owned->offsets.size()) - 1, columns};
  Data data(rows, {values, indices}, owned);
  data.sorted_ = sorted;
  return data;
}

template <class Value>
Data Data::owning(SparseCopy<Value>&& copy, Integer columns) {
  const auto owned = std::make_shared<const SparseCopy<Value>>(std::move(copy));
  const SparseRows<Value> rows{owned->values.get(), owned->indices.get(), owned->offsets.data(),
                               static_cast<Integer>(owned->offsets.size()) - 1, columns};
  return Data(rows, {}, owned);
}
template Data Data::owning(SparseCopy<float>&&, Integer);
template Data Data::owning(SparseCopy<double>&&, Integer);

Data Data::take(ConstIndices order) const {
  require_rows(span(order));
  const nb::gil_scoped_release unlocked;
  return visit([&]<class Rows>(const Rows& rows) {
    if constexpr (kDense<Rows>) {
      auto owned =
          std::make_shared<const decltype(take_rows(rows, span(order)))>(take_rows(rows, span(order)));
      const Integer count = static_cast<Integer>(order.size());
      return Data(Rows{owned->get(), count, rows.columns, rows.columns}, {}, owned);
    } else {
      return owning(take_rows(rows, span(order)), rows.columns);
    }
  });
}

std::optional<Data> Data::without_zeros(const Budget& budget) const {
  return visit([&]<class Rows>(const Rows& rows) -> std::optional<Data> {
    if constexpr (kDense<Rows>) {
      if (auto copy = sparse_copy(rows, budget)) return owning(std::move(*copy), rows.columns);
    }
    return std::nullopt;
  });
}

MonomialData::MonomialData(const Data& base, Integer lowest, const std::vector<double>& scales, bool once,
                           bool shared_repeats)
    : AnyData([&] {
        require(base.sorted(), "columns in order are needed");
        const auto* rows = std::get_if<SparseRows<double>>(&base.stored_rows());
        require(rows != nullptr, "sparse rows of float64 are needed");
        return AnyRows(MonomialRows(*rows, Degree2(base.columns(), lowest, scales, once, shared_repeats)));
      }()),
      base_(base) {}

void bind_data(nb::module_& m) {
  nb::class_<AnyData>(m, "AnyData")
      .def_prop_ro("count", &AnyData::count)
      .def_prop_ro("columns", &AnyData::columns)
      .def_prop_ro("stored", &AnyData::stored)
      .def_prop_ro("longest", &AnyData::longest);

  nb::class_<Data, AnyData>(m, "Data")
      .def_static("dense", &Data::dense, "values"_a)
      .def_static("sparse", &Data::sparse, "values"_a, "indices"_a, "offsets"_a, "columns"_a)
      .def("without_zeros", &Data::without_zeros, "budget"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("take", &Data::take, "order"_a)
      .def_prop_ro("sorted", &Data::sorted);

  nb::class_<CompactData, AnyData>(m, "CompactData");

  nb::class_<MonomialData, AnyData>(m, "MonomialData")
      .def(nb::init<const Data&, Integer, const std::vector<double>&, bool, bool>(), "base"_a, "lowest"_a,
           "scales"_a, "once"_a, "shared_repeats"_a);

  nb::class_<Budget>(m, "Budget")
      .def(nb::init<double, Integer>(), "seconds"_a, "threads"_a)
      .def("stop", &Budget::stop)
      .def("part", &Budget::part, "seconds"_a)
      .def_prop_ro("seconds_left", &Budget::seconds_left)
      .def_prop_ro("stopped", &Budget::stopped)
      .def_prop_ro("spent", &Budget::spent);

  m.def(
      "shuffle",
      [](Indices order, std::uint64_t state) {
        Random random(state);
        shuffle(span(order), random);
        return random.state();
      },
      "order"_a, "state"_a);
  m.def(
      "draw",
      [](Indices order, Integer bound, std::uint64_t state) {
        require(bound > 0, "bound must be positive");
        Random random(state);
        draw(span(order), bound, random);
        return random.state();
      },
      "order"_a, "bound"_a, "state"_a);
  m.def(
      "draw_batches",
      [](Indices order, Integer batch, Indices pool, std::uint64_t state) {
        require(batch > 0 && batch <= static_cast<Integer>(pool.size()),
                "a batch must have between 1 and all members of the pool");
        Random random(state);
        draw_batches(span(order), batch, span(pool), random);
        return random.state();
      },
      "order"_a, "batch"_a, "pool"_a, "state"_a);
  m.def(
      "without_private_columns",
      [](const Data& data, const Budget& budget) -> nb::object {
        auto compact = [&] {
          nb::gil_scoped_release unlocked;
          return data.visit([&](const auto& rows) { return without_private_columns(rows, budget); });
        }();
        if (!compact) return nb::none();
        const auto diagonal = as_array(std::move(compact->diagonal));
        return nb::make_tuple(CompactData(std::move(*compact)), diagonal);
      },
      "data"_a, "budget"_a,
      nb::sig("def without_private_columns(data: Data, budget: Budget) "
              "-> tuple[CompactData, numpy.typing.NDArray[numpy.float64]] | None"));
  m.def(
      "column_ranges",
      [](const Data& data, ConstIndices which, Vector low, Vector high) {
        data.require_rows(span(which));
        data.require_lengths(static_cast<std::size_t>(data.count()), low.size());
        data.require_lengths(static_cast<std::size_t>(data.count()), high.size());
        nb::gil_scoped_release unlocked;
        data.visit([&](const auto& rows) { column_ranges(rows, span(which), low.data(), high.data()); });
      },
      "data"_a, "which"_a, "low"_a, "high"_a);
  m.def(
      "read_columns",
      [](const Data& data, ConstIndices which, ConstIndices columns, Table out) {
        data.require_rows(span(which));
        for (const Integer column : span(columns)) {
          require(column >= 0 && column < data.columns(), "an index of a column is out of range");
        }
        require(out.shape(0) == columns.size() && out.shape(1) == which.size(),
                "a place for every value is needed");
        nb::gil_scoped_release unlocked;
        data.visit([&](const auto& rows) { read_columns(rows, span(which), span(columns), out.data()); });
      },
      "data"_a, "which"_a, "columns"_a, "out"_a);
}

}  // namespace maxmargin
