// SPDX-License-Identifier: BSD-3-Clause
// The only file that sees Python: checks shapes, releases the interpreter's lock, calls the
// kernels.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <variant>

#include "augmented_lagrangian.hpp"
#include "best_intercept.hpp"
#include "budget.hpp"
#include "columns.hpp"
#include "dual_coordinate_ascent.hpp"
#include "feasible.hpp"
#include "kernel_dual_ascent.hpp"
#include "kernel_matrix.hpp"
#include "large_array.hpp"
#include "libsvm.hpp"
#include "losses.hpp"
#include "momentum.hpp"
#include "monomial_rows.hpp"
#include "monomials.hpp"
#include "newton.hpp"
#include "passes.hpp"
#include "private_columns.hpp"
#include "random.hpp"
#include "row_classes.hpp"
#include "rows.hpp"
#include "sequential_minimal_optimization.hpp"
#include "small_classes.hpp"
#include "small_newton.hpp"
#include "small_problems.hpp"
#include "stochastic_subgradient.hpp"
#include "subgradient.hpp"
#include "taken_rows.hpp"
#include "weighted_quantile.hpp"
#include "working_set.hpp"
#include "zeros.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace maxmargin {
namespace {

using AnyArray = nb::ndarray<nb::ro, nb::device::cpu>;
using Vector = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstVector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Indices = nb::ndarray<Integer, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ConstIndices = nb::ndarray<const Integer, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using SignedBytes = nb::ndarray<std::int8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using ConstTable = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

std::span<double> span(const Vector& v) { return {v.data(), v.size()}; }
std::span<const double> span(const ConstVector& v) { return {v.data(), v.size()}; }
std::span<Integer> span(const Indices& v) { return {v.data(), v.size()}; }
std::span<const Integer> span(const ConstIndices& v) { return {v.data(), v.size()}; }

bool contiguous(const AnyArray& array) { return array.size() < 2 || array.stride(0) == 1; }

void require(bool holds, const char* message) {
  if (!holds) throw std::invalid_argument(message);
}

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

// The copy of core/private_columns.hpp, which only dual coordinate ascent sweeps.
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

template <class Visitor>
decltype(auto) with_loss(const std::string& name, Visitor&& visitor) {
  if (name == "hinge") return visitor(Hinge{});
  if (name == "squared_hinge") return visitor(SquaredHinge{});
  if (name == "logistic") return visitor(Logistic{});
  require(name == "perceptron", "unknown loss");
  return visitor(Perceptron{});
}

// Runs a kernel without the interpreter's lock and lets Ctrl-C through: Python's handler runs on
// the way, and what it raises is raised here once the kernel has left its data in a consistent
// state.
template <class Kernel>
auto interruptibly(const Budget& budget, const Kernel& kernel) {
  bool raised = false;
  Watch watch(budget, [&raised] {
    nb::gil_scoped_acquire lock;
    raised = PyErr_CheckSignals() != 0;
    return raised;
  });
  auto result = [&] {
    nb::gil_scoped_release unlocked;
    return kernel(watch);
  }();
  if (raised) throw nb::python_error();
  return result;
}

template <class T>
nb::object as_array(std::vector<T>&& values) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  const std::size_t size = owned->size();
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->data(), {size}, owner));
}

std::vector<std::string> instruction_sets() {
  std::vector<std::string> sets{"baseline"};
#if defined(__x86_64__) && defined(__GNUC__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) sets.push_back("avx2");
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512vpopcntdq")) {
    sets.push_back("avx512");
  }
#endif
  return sets;
}

void bind_data(nb::module_& m) {
  nb::class_<Data>(m, "Data")
      .def_static("dense", &Data::dense, "values"_a)
      .def_static("sparse", &Data::sparse, "values"_a, "indices"_a, "offsets"_a, "columns"_a)
      .def("without_zeros", &Data::without_zeros, "budget"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("take", &Data::take, "order"_a)
      .def_prop_ro("sorted", &Data::sorted)
      .def_prop_ro("count", &Data::count)
      .def_prop_ro("columns", &Data::columns)
      .def_prop_ro("stored", &Data::stored);

  nb::class_<CompactData>(m, "CompactData")
      .def_prop_ro("count", &CompactData::count)
      .def_prop_ro("columns", &CompactData::columns)
      .def_prop_ro("stored", &CompactData::stored);

  nb::class_<MonomialData>(m, "MonomialData")
      .def(nb::init<const Data&, Integer, const std::vector<double>&, bool, bool>(), "base"_a, "lowest"_a,
           "scales"_a, "once"_a, "shared_repeats"_a)
      .def_prop_ro("count", &MonomialData::count)
      .def_prop_ro("columns", &MonomialData::columns)
      .def_prop_ro("stored", &MonomialData::stored);

  nb::class_<Budget>(m, "Budget")
      .def(nb::init<double, Integer>(), "seconds"_a, "threads"_a)
      .def("stop", &Budget::stop)
      .def("part", &Budget::part, "seconds"_a)
      .def_prop_ro("seconds_left", &Budget::seconds_left)
      .def_prop_ro("stopped", &Budget::stopped)
      .def_prop_ro("spent", &Budget::spent);

  m.def("shuffle", [](Indices order, std::uint64_t state) {
    Random random(state);
    shuffle(span(order), random);
    return random.state();
  });
  m.def("draw", [](Indices order, Integer bound, std::uint64_t state) {
    require(bound > 0, "bound must be positive");
    Random random(state);
    draw(span(order), bound, random);
    return random.state();
  });
  m.def("weighted_quantile", [](ConstVector values, ConstVector weights, double level, double ridge) {
    require(values.size() == weights.size(), "one weight per value is needed");
    nb::gil_scoped_release unlocked;
    return weighted_quantile(span(values), span(weights), level, ridge);
  });
}

template <class AnyRows>
void combined(const AnyRows& data, ConstVector coefficients, Vector out, const Budget& budget) {
  data.require_lengths(coefficients.size(), out.size());
  nb::gil_scoped_release unlocked;
  data.visit([&](const auto& rows) { combine(rows, coefficients.data(), span(out), budget); });
}

template <class AnyRows>
void add_some(const AnyRows& data, ConstIndices order, ConstVector coefficients, Vector w) {
  data.require_rows(span(order));
  require(order.size() == coefficients.size(), "one number per row is needed");
  require(static_cast<Integer>(w.size()) == data.columns(), "one number per column is needed");
  nb::gil_scoped_release unlocked;
  data.visit([&](const auto& rows) { add_rows(rows, span(order), coefficients.data(), w.data()); });
}

template <class AnyRows>
void bind_passes_over(nb::module_& m) {
  m.def("scores", [](const AnyRows& data, ConstVector w, Vector out, const Budget& budget) {
    data.require_lengths(out.size(), w.size());
    nb::gil_scoped_release unlocked;
    data.visit([&](const auto& rows) { scores(rows, w.data(), span(out), budget); });
  });
  m.def("combine", &combined<AnyRows>);
  m.def("add_rows", &add_some<AnyRows>);
  m.def("squared_norms", [](const AnyRows& data, Vector out, const Budget& budget) {
    data.require_lengths(out.size(), static_cast<std::size_t>(data.columns()));
    nb::gil_scoped_release unlocked;
    data.visit([&](const auto& rows) { squared_norms(rows, span(out), budget); });
  });
}

void bind_passes(nb::module_& m) {
  m.def("dot", [](ConstVector a, ConstVector b) {
    require(a.size() == b.size(), "vectors of one length are needed");
    return dot(span(a), span(b));
  });
  m.def("loss_sum", [](const std::string& loss, ConstVector margins, ConstVector costs) {
    require(margins.size() == costs.size(), "one number per row is needed");
    nb::gil_scoped_release unlocked;
    return with_loss(loss,
                     [&](auto kind) { return loss_sum<decltype(kind)>(span(margins), costs.data()); });
  });
  m.def("multipliers", [](const std::string& loss, ConstVector margins, ConstVector costs, Vector out) {
    require(margins.size() == costs.size() && margins.size() == out.size(), "one number per row is needed");
    nb::gil_scoped_release unlocked;
    with_loss(loss,
              [&](auto kind) { multipliers_of<decltype(kind)>(span(margins), costs.data(), out.data()); });
  });
  m.def("dual_gain", [](const std::string& loss, ConstVector alpha, ConstVector costs) {
    require(alpha.size() == costs.size(), "one number per row is needed");
    nb::gil_scoped_release unlocked;
    return with_loss(loss, [&](auto kind) { return dual_gain<decltype(kind)>(span(alpha), costs.data()); });
  });
  m.def("largest_violation",
        [](const std::string& loss, ConstVector margins, ConstVector alpha, ConstVector costs) {
          require(margins.size() == costs.size() && margins.size() == alpha.size(),
                  "one number per row is needed");
          nb::gil_scoped_release unlocked;
          return with_loss(loss, [&](auto kind) {
            return largest_violation<decltype(kind)>(span(margins), alpha.data(), costs.data());
          });
        });
  m.def("row_classes",
        [](ConstVector margins, ConstVector alpha, ConstVector costs, bool by_margins, SignedBytes out) {
          for (const std::size_t size : {alpha.size(), costs.size(), out.size()}) {
            require(size == margins.size(), "one number per row is needed");
          }
          row_classes(span(margins), alpha.data(), costs.data(), by_margins, out.data());
        });
  m.def("make_feasible", [](Vector alpha, ConstVector labels, ConstVector upper, bool balanced) {
    require(alpha.size() == labels.size() && alpha.size() == upper.size(), "one number per row is needed");
    nb::gil_scoped_release unlocked;
    clip_to_box(span(alpha), upper.data());
    if (balanced) balance_classes(span(alpha), labels.data(), upper.data());
  });
  m.def("best_intercept", [](const std::string& loss, ConstVector scores, ConstVector labels,
                             ConstVector costs, double ridge) {
    require(scores.size() == labels.size() && scores.size() == costs.size(),
            "one number per row is needed");
    require(loss == "squared_hinge" || loss == "logistic", "a smooth loss is needed");
    nb::gil_scoped_release unlocked;
    const auto find = loss == "logistic" ? best_intercept<Logistic> : best_intercept<SquaredHinge>;
    return find(span(scores), labels.data(), costs.data(), ridge);
  });
  bind_passes_over<Data>(m);
  bind_passes_over<MonomialData>(m);
  m.def("combine", &combined<CompactData>);
  m.def("add_rows", &add_some<CompactData>);
  m.def("without_private_columns", [](const Data& data, const Budget& budget) -> nb::object {
    auto compact = [&] {
      nb::gil_scoped_release unlocked;
      return data.visit([&](const auto& rows) { return without_private_columns(rows, budget); });
    }();
    if (!compact) return nb::none();
    nb::object diagonal = as_array(std::move(compact->diagonal));
    return nb::make_tuple(CompactData(std::move(*compact)), diagonal);
  });
}

template <class T, class Deleter>
nb::object as_array(std::unique_ptr<T[], Deleter>&& values, Integer count) {
  using Owned = std::unique_ptr<T[], Deleter>;
  auto* owned = new Owned(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<Owned*>(p); });
  const std::size_t size = static_cast<std::size_t>(count);
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->get(), {size}, owner));
}

// As an array of its own type: SciPy copies what is a view of an array with many more elements.
template <class T>
nb::object taken(GrowingBytes& bytes) {
  const Integer count = static_cast<Integer>(bytes.size() / sizeof(T));
  LargeArray<std::uint8_t> memory = bytes.take();
  const Unmap deleter = memory.get_deleter();
  return as_array(LargeArray<T>(reinterpret_cast<T*>(memory.release()), deleter), count);
}

// The arrays come first, in (values, indices, ends, labels). From the heap: a reader frees a block before
// it is two further, and the next one then gets memory that the system need not clear again.
template <class Value, class Index>
nb::tuple parse_libsvm(std::string_view text, const TextOptions& options) {
  std::unique_ptr<Value[]> values;
  std::unique_ptr<Index[]> indices;
  std::unique_ptr<std::int32_t[]> ends;
  std::unique_ptr<double[]> labels;
  const ParsedRows parsed = [&] {
    nb::gil_scoped_release unlocked;
    const TextCounts counts = count_text(text);
    values = std::make_unique_for_overwrite<Value[]>(static_cast<std::size_t>(counts.colons));
    indices = std::make_unique_for_overwrite<Index[]>(static_cast<std::size_t>(counts.colons));
    ends = std::make_unique_for_overwrite<std::int32_t[]>(static_cast<std::size_t>(counts.lines));
    labels = std::make_unique_for_overwrite<double[]>(static_cast<std::size_t>(counts.lines));
    const RowArrays<Value, Index> out{values.get(), indices.get(), ends.get(), labels.get()};
    return LibsvmParser<Value, Index>(text, out, options).parse();
  }();
  const auto arrays = nb::make_tuple(
      as_array(std::move(values), parsed.stored), as_array(std::move(indices), parsed.stored),
      as_array(std::move(ends), parsed.rows), as_array(std::move(labels), parsed.rows));
  return nb::make_tuple(arrays, parsed);
}

void bind_files(nb::module_& m) {
  nb::class_<GrowingBytes>(m, "GrowingBytes")
      .def(nb::init<>())
      .def("append",
           [](GrowingBytes& self, AnyArray array) {
             require(array.ndim() == 1 && contiguous(array), "the values must be contiguous");
             nb::gil_scoped_release unlocked;
             self.append(array.data(), array.nbytes());
           })
      .def("take", [](GrowingBytes& self, const std::string& type) {
        if (type == "float32") return taken<float>(self);
        if (type == "float64") return taken<double>(self);
        if (type == "int32") return taken<std::int32_t>(self);
        require(type == "int64", "unknown type of values");
        return taken<std::int64_t>(self);
      });

  nb::class_<Place>(m, "Place")
      .def_ro("line", &Place::line)
      .def_ro("line_begin", &Place::line_begin)
      .def_ro("begin", &Place::begin)
      .def_ro("end", &Place::end);

  nb::class_<ParsedRows>(m, "ParsedRows")
      .def_ro("lines", &ParsedRows::lines)
      .def_ro("faulty", &ParsedRows::faulty)
      .def_ro("dropped", &ParsedRows::dropped)
      .def_ro("too_narrow", &ParsedRows::too_narrow)
      .def_ro("largest", &ParsedRows::largest)
      .def_ro("largest_place", &ParsedRows::largest_place)
      .def_prop_ro("fault", [](const ParsedRows& parsed) { return name_of(parsed.fault); })
      .def_ro("fault_place", &ParsedRows::fault_place);

  m.def(
      "parse_libsvm",
      [](Bytes text, bool wide, bool single, Integer first_index, Integer columns, bool drop_extra,
         bool labels_optional, bool skip_faulty) {
        const std::string_view view{reinterpret_cast<const char*>(text.data()), text.size()};
        require(view.empty() || view.back() == '\n', "the text must end with a newline");
        require(view.size() <= std::numeric_limits<std::int32_t>::max(), "the text is too long");
        const TextOptions options{first_index, columns, drop_extra, labels_optional, skip_faulty};
        if (single && wide) return parse_libsvm<float, std::int64_t>(view, options);
        if (single) return parse_libsvm<float, std::int32_t>(view, options);
        if (wide) return parse_libsvm<double, std::int64_t>(view, options);
        return parse_libsvm<double, std::int32_t>(view, options);
      },
      "text"_a, nb::kw_only(), "wide"_a, "single"_a, "first_index"_a, "columns"_a, "drop_extra"_a,
      "labels_optional"_a, "skip_faulty"_a);
}

template <class AnyRows>
auto swept(const AnyRows& data, bool squared, Table coordinates, Indices order, Vector w, double bias,
           double bias_curvature, double relaxation, double above, double below, const Budget& budget) {
  require(coordinates.shape(1) == sizeof(Coordinate) / sizeof(double), "a coordinate has five numbers");
  data.require_lengths(coordinates.shape(0), w.size());
  data.require_rows(span(ConstIndices(order)));
  const std::span<Coordinate> all{reinterpret_cast<Coordinate*>(coordinates.data()), coordinates.shape(0)};
  const Sweep sweep = interruptibly(budget, [&](Watch& watch) {
    return data.visit([&](const auto& rows) {
      const Walls walls{above, below};
      return squared ? dual_coordinate_ascent<true>(rows, all, span(order), w.data(), bias, bias_curvature,
                                                    relaxation, walls, watch)
                     : dual_coordinate_ascent<false>(rows, all, span(order), w.data(), bias, bias_curvature,
                                                     relaxation, walls, watch);
    });
  });
  return std::make_tuple(sweep.active, sweep.bias, sweep.largest, sweep.smallest, sweep.ascent, sweep.gap);
}

template <class AnyRows>
auto gone_on(const AnyRows& data, bool squared, Table coordinates, ConstIndices order, Vector w,
             double bias, double bias_curvature, Vector alpha_before, Vector w_before) {
  require(coordinates.shape(1) == sizeof(Coordinate) / sizeof(double), "a coordinate has five numbers");
  data.require_lengths(coordinates.shape(0), w.size());
  data.require_lengths(alpha_before.size(), w_before.size());
  data.require_rows(span(order));
  const std::span<Coordinate> all{reinterpret_cast<Coordinate*>(coordinates.data()), coordinates.shape(0)};
  nb::gil_scoped_release unlocked;
  const double gain = data.visit([&](const auto& rows) {
    const Before before{alpha_before.data(), span(w_before)};
    return squared ? go_on<true>(rows, all, span(order), span(w), bias, bias_curvature, before)
                   : go_on<false>(rows, all, span(order), span(w), bias, bias_curvature, before);
  });
  return std::make_pair(bias, gain);
}

template <class AnyRows>
void bind_solvers_over(nb::module_& m) {
  m.def("subgradient",
        [](const AnyRows& data, const std::string& loss, ConstVector labels, ConstVector costs,
           ConstVector w, double b, Vector gradient, const Budget& budget) {
          data.require_lengths(labels.size(), w.size());
          data.require_lengths(costs.size(), gradient.size());
          nb::gil_scoped_release unlocked;
          const LossSum sum = with_loss(loss, [&](auto kind) {
            return data.visit([&](const auto& rows) {
              return subgradient<decltype(kind)>(rows, labels.data(), costs.data(), w.data(), b,
                                                 span(gradient), budget);
            });
          });
          return std::make_tuple(sum.loss, sum.bias);
        });

  m.def("dual_coordinate_ascent", &swept<AnyRows>);
  m.def("go_on", &gone_on<AnyRows>);

  m.def("stochastic_subgradient", [](const AnyRows& data, const std::string& loss, ConstVector labels,
                                     ConstVector weights, ConstVector norms, ConstIndices order,
                                     Integer batch, ConstVector steps, double lambda, double radius,
                                     double bias_feature, bool bias_shrinks, Iterate& iterate,
                                     Vector lengths, Integer next, double threshold, const Budget& budget) {
    data.require_lengths(labels.size(), iterate.v.size());
    data.require_lengths(weights.size(), iterate.v.size());
    data.require_lengths(norms.size(), iterate.v.size());
    require(iterate.u.empty() || iterate.u.size() == iterate.v.size(), "u must be as long as v, or empty");
    require(batch > 0 && order.size() >= steps.size() * static_cast<std::size_t>(batch),
            "one batch of rows per step is needed");
    data.require_rows(span(order));
    RecentSteps recent{span(lengths), next, threshold};
    bool finished = false;
    const Integer taken = interruptibly(budget, [&](Watch& watch) {
      return with_loss(loss, [&](auto kind) {
        return data.visit([&](const auto& rows) {
          return stochastic_subgradient<decltype(kind)>(
              rows, labels.data(), weights.data(), norms.data(), span(order), batch, span(steps), lambda,
              radius, Bias{bias_feature, bias_shrinks}, iterate, recent, finished, watch);
        });
      });
    });
    return std::make_tuple(taken, recent.next, finished);
  });
}

void bind_solvers(nb::module_& m) {
  nb::class_<Iterate>(m, "Iterate")
      .def(
          "__init__", [](Iterate* self, Vector v, Vector u) { new (self) Iterate{span(v), span(u)}; },
          nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>())
      .def("rescale", &Iterate::rescale)
      .def_rw("scale", &Iterate::scale)
      .def_rw("mass", &Iterate::mass)
      .def_rw("counted", &Iterate::counted)
      .def_rw("squared_norm", &Iterate::squared_norm)
      .def_rw("beta", &Iterate::beta)
      .def_rw("beta_sum", &Iterate::beta_sum);

  bind_solvers_over<Data>(m);
  bind_solvers_over<MonomialData>(m);
  m.def("dual_coordinate_ascent", &swept<CompactData>);
  m.def("go_on", &gone_on<CompactData>);
}

template <class Visitor>
decltype(auto) with_piece(const std::string& loss, ConstVector costs, ConstVector centre, double stiffness,
                          Visitor&& visitor) {
  if (loss == "squared_hinge") return visitor(SmoothPiece<SquaredHinge>{costs.data()});
  if (loss == "logistic") return visitor(SmoothPiece<Logistic>{costs.data()});
  require(loss == "hinge" && centre.size() == costs.size(), "a centre for every row is needed");
  return visitor(AugmentedHinge{costs.data(), centre.data(), stiffness});
}

// The arrays of newton_step.py's Iterate, and of its Hessian.
template <class AnyRows>
SmallIterate small_iterate(const AnyRows& data, ConstVector costs, ConstVector labels,
                           ConstVector regulariser, Vector v, Vector margins, Vector multipliers,
                           Vector combined, Vector curvatures, Table lower, Vector counted, Vector peaks) {
  const std::size_t n = margins.size(), size = v.size(), d = static_cast<std::size_t>(data.columns());
  for (const std::size_t other :
       {costs.size(), labels.size(), multipliers.size(), curvatures.size(), counted.size()}) {
    require(other == n, "one number per row is needed");
  }
  data.require_lengths(n, d);
  require(size > 0 && (size == d || size == d + 1), "a place for every column is needed");
  require(regulariser.size() == size && combined.size() == size && peaks.size() == size,
          "one number per column is needed");
  require(lower.shape(0) == size && lower.shape(1) == size, "a row for every column is needed");
  return {span(labels),
          span(regulariser),
          span(v),
          span(margins),
          span(multipliers),
          span(combined),
          span(curvatures),
          {lower.data(), lower.size()},
          span(counted),
          span(peaks),
          {}};
}

template <class AnyRows>
auto small_newton_steps(const AnyRows& data, const std::string& loss, ConstVector costs, ConstVector centre,
                        double stiffness, ConstVector labels, ConstVector regulariser, Vector v,
                        Vector margins, Vector multipliers, Vector combined, Vector curvatures, Table lower,
                        Vector counted, Vector peaks, Integer most, double until, const Budget& budget) {
  SmallIterate at = small_iterate(data, costs, labels, regulariser, v, margins, multipliers, combined,
                                  curvatures, lower, counted, peaks);
  nb::gil_scoped_release unlocked;
  const auto [taken, length] = with_piece(loss, costs, centre, stiffness, [&](const auto& piece) {
    return small_steps(data, piece, at, most, until, budget);
  });
  return std::make_tuple(taken, length, at.sums.loss, at.sums.multipliers, at.sums.balance);
}

template <class AnyRows>
auto small_augmented_lagrangian_steps(const AnyRows& data, ConstVector costs, Vector alpha,
                                      double stiffness, bool begun, double raise_by, double small_part,
                                      ConstVector labels, ConstVector regulariser, Vector v, Vector margins,
                                      Vector multipliers, Vector combined, Vector curvatures, Table lower,
                                      Vector counted, Vector peaks, Standing& standing, Vector best_v,
                                      Vector best_multipliers, bool exact, Integer most, double until,
                                      const Budget& budget) {
  SmallIterate at = small_iterate(data, costs, labels, regulariser, v, margins, multipliers, combined,
                                  curvatures, lower, counted, peaks);
  require(alpha.size() == costs.size() && best_multipliers.size() == costs.size(),
          "one number per row is needed");
  require(best_v.size() == v.size(), "one number per column is needed");
  Smoothing smoothing{costs.data(), span(alpha), stiffness, begun, raise_by, small_part};
  Values values;
  nb::gil_scoped_release unlocked;
  const Integer taken = small_augmented_lagrangian(data, smoothing, at, standing, values, span(best_v),
                                                   span(best_multipliers), exact, most, until, budget);
  return std::make_tuple(taken, smoothing.stiffness, smoothing.begun, values.primal, values.dual,
                         values.imbalance);
}

auto solve_small_classes_of(const Data& data, bool squared, ConstTable labels, ConstTable costs,
                            ConstVector regulariser, Table v, Table multipliers, Indices steps,
                            Integer sweeps, double relaxation, double bias_reach, double first_part,
                            double stiffness, double raise_by, double small_part, Integer most,
                            double until, std::uint64_t seed, const Budget& budget) {
  const std::size_t count = labels.shape(0), n = labels.shape(1), size = v.shape(1);
  const std::size_t d = static_cast<std::size_t>(data.columns());
  data.require_lengths(n, d);
  require(costs.shape(0) == count && costs.shape(1) == n && multipliers.shape(0) == count &&
              multipliers.shape(1) == n && v.shape(0) == count && steps.size() == count,
          "a row for every class is needed");
  require(size > 0 && (size == d || size == d + 1) && regulariser.size() == size,
          "a place for every column is needed");
  std::vector<SmallClass> classes;
  for (std::size_t k = 0; k < count; ++k) {
    classes.push_back({{labels.data() + k * n, n},
                       {costs.data() + k * n, n},
                       span(regulariser),
                       {v.data() + k * size, size},
                       {multipliers.data() + k * n, n}});
  }
  const SmallOptions options{sweeps,   relaxation, bias_reach, first_part, stiffness,
                             raise_by, small_part, most,       until};
  return interruptibly(budget, [&](Watch& watch) {
    solve_small_classes(data, squared, options, classes, seed, budget, watch);
    std::vector<bool> finished;
    for (std::size_t k = 0; k < count; ++k) {
      steps.data()[k] = classes[k].steps;
      finished.push_back(classes[k].finished);
    }
    return finished;
  });
}

template <class AnyRows>
void multiplied(const AnyRows& data, ConstIndices first, ConstIndices second, Table out,
                const Budget& budget) {
  data.require_rows(span(first));
  data.require_rows(span(second));
  require(out.shape(0) == first.size() && out.shape(1) == second.size(),
          "a place for every pair is needed");
  nb::gil_scoped_release unlocked;
  data.visit(
      [&](const auto& rows) { inner_products(rows, span(first), span(second), out.data(), budget); });
}

template <class AnyRows>
void scored(const AnyRows& data, ConstIndices order, ConstVector w, Vector out, const Budget& budget) {
  data.require_rows(span(order));
  require(order.size() == out.size(), "one number per row is needed");
  require(static_cast<Integer>(w.size()) == data.columns(), "one number per column is needed");
  nb::gil_scoped_release unlocked;
  data.visit([&](const auto& rows) { scores_of(rows, span(order), w.data(), out.data(), budget); });
}

template <class AnyRows>
void bind_newton_over(nb::module_& m) {
  m.def("small_newton_steps", &small_newton_steps<AnyRows>);
  m.def("small_augmented_lagrangian_steps", &small_augmented_lagrangian_steps<AnyRows>);
  m.def("add_outer_products", [](const AnyRows& data, ConstVector coefficients, Table lower,
                                 const Budget& budget) {
    const Integer size = static_cast<Integer>(lower.shape(0));
    require(lower.shape(0) == lower.shape(1), "a square matrix is needed");
    require(size == data.columns() || size == data.columns() + 1, "a row for every column is needed");
    require(static_cast<Integer>(coefficients.size()) == data.count(), "one number per row is needed");
    nb::gil_scoped_release unlocked;
    data.visit([&](const auto& rows) {
      add_outer_products(rows, coefficients.data(), {lower.data(), lower.size()}, size, budget);
    });
  });
  m.def("curvature_product", [](const AnyRows& data, ConstVector curvatures, ConstVector p, double bias,
                                Vector out, const Budget& budget) {
    data.require_lengths(curvatures.size(), p.size());
    data.require_lengths(curvatures.size(), out.size());
    nb::gil_scoped_release unlocked;
    return data.visit([&](const auto& rows) {
      return curvature_product(rows, curvatures.data(), p.data(), bias, span(out), budget);
    });
  });
  m.def("inner_products", &multiplied<AnyRows>);
  m.def("scores_of", &scored<AnyRows>);
  m.def("gather", [](const AnyRows& data, ConstIndices order, ConstVector factors, Table out,
                     const Budget& budget) {
    const Integer size = static_cast<Integer>(out.shape(1));
    data.require_rows(span(order));
    require(size == data.columns() || size == data.columns() + 1, "a place for every column is needed");
    require(order.size() == factors.size() && order.size() == out.shape(0), "one number per row is needed");
    nb::gil_scoped_release unlocked;
    data.visit(
        [&](const auto& rows) { gather(rows, span(order), factors.data(), out.data(), size, budget); });
  });
}

void bind_newton(nb::module_& m) {
  nb::class_<Standing>(m, "Standing")
      .def(nb::init<>())
      .def_rw("primal", &Standing::primal)
      .def_rw("dual", &Standing::dual)
      .def_rw("best_imbalance", &Standing::best_imbalance)
      .def_rw("relative_gap", &Standing::relative_gap)
      .def_rw("finished", &Standing::finished)
      .def("remember", [](Standing& self, double primal, double dual, double imbalance, double balancing,
                          ConstVector v, ConstVector multipliers, Vector best_v, Vector best_multipliers) {
        require(v.size() > 0 && v.size() == best_v.size(), "one number per column is needed");
        require(multipliers.size() == best_multipliers.size(), "one number per row is needed");
        self.remember({primal, dual, imbalance}, balancing, span(v), span(multipliers), span(best_v),
                      span(best_multipliers));
      });
  m.def("cost_of_balancing",
        [](double imbalance, double stiffness, ConstVector multipliers, ConstVector costs) {
          require(multipliers.size() == costs.size(), "one number per row is needed");
          return cost_of_balancing(imbalance, stiffness, span(multipliers), costs.data());
        });
  bind_newton_over<Data>(m);
  bind_newton_over<MonomialData>(m);
  m.def("inner_products", &multiplied<CompactData>);
  m.def("scores_of", &scored<CompactData>);
  m.def("solve_small_classes", &solve_small_classes_of);
  m.def("refresh", [](const std::string& loss, ConstVector costs, ConstVector centre, double stiffness,
                      ConstVector margins, ConstVector labels, Vector multipliers,
                      Vector multiplier_changes, Vector curvatures, const Budget& budget) {
    for (const std::size_t size :
         {costs.size(), labels.size(), multipliers.size(), multiplier_changes.size(), curvatures.size()}) {
      require(size == margins.size(), "one number per row is needed");
    }
    nb::gil_scoped_release unlocked;
    const Refreshed sums = with_piece(loss, costs, centre, stiffness, [&](const auto& piece) {
      return refresh(piece, span(margins), labels.data(), multipliers.data(), multiplier_changes.data(),
                     curvatures.data(), budget);
    });
    return std::make_tuple(sums.loss, sums.multipliers, sums.balance);
  });
  m.def("line_search",
        [](const std::string& loss, ConstVector costs, ConstVector centre, double stiffness,
           ConstVector margins, ConstVector changes, double slope, double curvature, const Budget& budget) {
          require(costs.size() == margins.size() && changes.size() == margins.size(),
                  "one number per row is needed");
          nb::gil_scoped_release unlocked;
          return with_piece(loss, costs, centre, stiffness, [&](const auto& piece) {
            return line_search(piece, span(margins), changes.data(), slope, curvature, budget);
          });
        });
}

using FactorTuple = std::tuple<std::string, std::string, double, double, int>;
using TermTuple = std::tuple<double, std::vector<FactorTuple>>;

KernelSum kernel_of(const std::vector<TermTuple>& terms) {
  KernelSum kernel;
  for (const auto& [coefficient, factors] : terms) {
    Term& term = kernel.terms.emplace_back(Term{coefficient, {}});
    require(!factors.empty(), "a term needs a factor");
    for (const auto& [common, shape, gamma, shift, degree] : factors) {
      require(common == "product" || common == "minimum" || common == "harmonic" || common == "given",
              "unknown common sum");
      require(shape == "power" || shape == "tanh" || shape == "exponential", "unknown shape");
      require(degree >= 0, "the degree must not be negative");
      term.factors.push_back({common == "product"   ? Common::product
                              : common == "minimum" ? Common::minimum
                              : common == "given"   ? Common::given
                                                    : Common::harmonic,
                              shape == "power"  ? Shape::power
                              : shape == "tanh" ? Shape::tanh
                                                : Shape::exponential,
                              gamma, shift, degree});
    }
  }
  return kernel;
}

const char* name_of(Holding holding) {
  switch (holding) {
    case Holding::bits:
      return "bits";
    case Holding::bytes:
      return "bytes";
    case Holding::dense:
      return "dense";
    case Holding::given:
      return "given";
    default:
      return "sparse";
  }
}

// The kernel matrix of some rows, in single or double precision, with the rows kept alive.
class AnyKernelMatrix {
 public:
  AnyKernelMatrix(const Data& data, const KernelSum& kernel, std::span<const Integer> order,
                  std::span<const Integer> begins, Integer cache_bytes, bool single,
                  std::shared_ptr<CacheCounts> counts, std::shared_ptr<SpareMemory> spare)
      : data_(data) {
    data.require_rows(order);
    require(begins.size() >= 2 && begins.front() == 0 &&
                begins.back() == static_cast<Integer>(order.size()) &&
                std::is_sorted(begins.begin(), begins.end()),
            "blocks must begin at 0 and end with the rows");
    data_.visit_for(kernel, [&](const auto& rows, const Encoding& encoding) {
      if (single)
        matrix_.emplace<KernelMatrix<float>>(rows, kernel, encoding, order, begins, cache_bytes,
                                             std::move(counts), std::move(spare));
      else
        matrix_.emplace<KernelMatrix<double>>(rows, kernel, encoding, order, begins, cache_bytes,
                                              std::move(counts), std::move(spare));
    });
  }

  template <class Visitor>
  decltype(auto) visit(Visitor&& visitor) {
    return std::visit(
        [&](auto& matrix) -> decltype(visitor(std::declval<KernelMatrix<float>&>())) {
          if constexpr (std::is_same_v<std::decay_t<decltype(matrix)>, std::monostate>) {
            throw std::logic_error("no matrix");
          } else {
            return visitor(matrix);
          }
        },
        matrix_);
  }
  // The matrix of some of the rows, in ascending order; what was kept of their rows moves there.
  AnyKernelMatrix subset(std::span<const Integer> which) {
    AnyKernelMatrix part(data_);
    visit([&]<class T>(KernelMatrix<T>& typed) {
      part.matrix_.emplace<KernelMatrix<T>>(typed.subset(which));
    });
    return part;
  }

  Integer count() {
    return visit([](auto& matrix) { return matrix.count(); });
  }

 private:
  explicit AnyKernelMatrix(const Data& data) : data_(data) {}

  Data data_;
  std::variant<std::monostate, KernelMatrix<float>, KernelMatrix<double>> matrix_;
};

class AnyWorkingSet {
 public:
  AnyWorkingSet(AnyKernelMatrix& matrix, Integer size, std::uint64_t seed) : count_(matrix.count()) {
    require(size >= 2, "a working set needs two rows");
    matrix.visit([&]<class T>(KernelMatrix<T>& typed) { set_.emplace<WorkingSet<T>>(typed, size, seed); });
  }
  Integer count() const { return count_; }
  WorkingSetReport run(const KernelDual& dual, Integer rounds, const Budget& budget, Watch& watch) {
    return std::visit(
        [&](auto& set) {
          if constexpr (std::is_same_v<std::decay_t<decltype(set)>, std::monostate>) {
            return WorkingSetReport{};
          } else {
            return set.run(dual, rounds, budget, watch);
          }
        },
        set_);
  }

 private:
  Integer count_;
  std::variant<std::monostate, WorkingSet<float>, WorkingSet<double>> set_;
};

class AnySequentialMinimalOptimization {
 public:
  AnySequentialMinimalOptimization(AnyKernelMatrix& matrix, ConstVector diagonal, bool second_order,
                                   bool shrinking)
      : count_(matrix.count()) {
    require(static_cast<Integer>(diagonal.size()) == count_, "one number per row is needed");
    matrix.visit([&]<class T>(KernelMatrix<T>& typed) {
      pairs_.emplace<SequentialMinimalOptimization<T>>(typed, span(diagonal), second_order, shrinking);
    });
  }
  Integer count() const { return count_; }
  PairReport run(const KernelDual& dual, Integer most, double tolerance, const Budget& budget,
                 Watch& watch) {
    return std::visit(
        [&](auto& pairs) {
          if constexpr (std::is_same_v<std::decay_t<decltype(pairs)>, std::monostate>) {
            return PairReport{};
          } else {
            return pairs.run(dual, most, tolerance, budget, watch);
          }
        },
        pairs_);
  }

 private:
  Integer count_;
  std::variant<std::monostate, SequentialMinimalOptimization<float>, SequentialMinimalOptimization<double>>
      pairs_;
};

KernelDual kernel_dual(Integer count, ConstVector low, ConstVector high, ConstVector labels, Vector beta,
                       Vector f) {
  for (const std::size_t size : {low.size(), high.size(), labels.size(), beta.size(), f.size()}) {
    require(static_cast<Integer>(size) == count, "one number per row is needed");
  }
  return {span(low), span(high), span(labels), span(beta), span(f)};
}

// Calls visitor(rows, others, encoding) with two sets of rows, held alike.
template <class Visitor>
void visit_both(const KernelSum& kernel, const Data& first, const Data& second, Visitor&& visitor) {
  require(first.columns() == second.columns(), "rows with as many columns are needed");
  if (&first == &second) {
    return first.visit_for(
        kernel, [&](const auto& rows, const Encoding& encoding) { visitor(rows, rows, encoding); });
  }
  first.visit([&](const auto& rows) {
    using Rows = std::decay_t<decltype(rows)>;
    second.visit([&](const auto& others) {
      if constexpr (std::is_same_v<Rows, std::decay_t<decltype(others)>>) {
        visitor(rows, others, encoding_for({&rows, &others}, kernel));
      } else {
        throw std::invalid_argument("rows of one type are needed");
      }
    });
  });
}

void bind_kernels(nb::module_& m) {
  nb::class_<KernelSum>(m, "KernelSum").def("__init__", [](KernelSum* self, std::vector<TermTuple> terms) {
    new (self) KernelSum(kernel_of(terms));
  });

  m.def("kernel_encoding", [](const KernelSum& kernel, const Data& data) {
    nb::gil_scoped_release unlocked;
    return std::string(name_of(data.encoding(kernel).holding));
  });
  m.def("kernel_diagonal", [](const KernelSum& kernel, const Data& data, Vector out) {
    require(static_cast<Integer>(out.size()) == data.count(), "one number per row is needed");
    require(!kernel.uses(Common::given) || data.columns() == data.count(), "a square matrix is needed");
    nb::gil_scoped_release unlocked;
    data.visit([&](const auto& rows) { kernel_diagonal(kernel, rows, span(out)); });
  });
  m.def("column_ranges", [](const Data& data, ConstIndices which, Vector low, Vector high) {
    data.require_rows(span(which));
    data.require_lengths(static_cast<std::size_t>(data.count()), low.size());
    data.require_lengths(static_cast<std::size_t>(data.count()), high.size());
    nb::gil_scoped_release unlocked;
    data.visit([&](const auto& rows) { column_ranges(rows, span(which), low.data(), high.data()); });
  });
  m.def("read_columns", [](const Data& data, ConstIndices which, ConstIndices columns, Table out) {
    data.require_rows(span(which));
    for (const Integer column : span(columns)) {
      require(column >= 0 && column < data.columns(), "an index of a column is out of range");
    }
    require(out.shape(0) == columns.size() && out.shape(1) == which.size(),
            "a place for every value is needed");
    nb::gil_scoped_release unlocked;
    data.visit([&](const auto& rows) { read_columns(rows, span(which), span(columns), out.data()); });
  });
  m.def("kernel_block", [](const KernelSum& kernel, const Data& first, ConstIndices first_which,
                           const Data& second, ConstIndices second_which, Table out, const Budget& budget) {
    first.require_rows(span(first_which));
    second.require_rows(span(second_which));
    require(out.shape(0) == first_which.size() && out.shape(1) == second_which.size(),
            "a place for every pair is needed");
    nb::gil_scoped_release unlocked;
    visit_both(kernel, first, second, [&](const auto& rows, const auto& others, const Encoding& encoding) {
      kernel_block<double>(kernel, encoding, rows, span(first_which), others, span(second_which),
                           out.data(), budget);
    });
  });
  m.def(
      "kernel_expansions",
      [](const KernelSum& kernel, const Data& support, ConstIndices support_which, ConstTable coefficients,
         ConstIndices segments, const Data& targets, ConstIndices target_which, Table out, bool single,
         const Budget& budget, nb::object tell) {
        support.require_rows(span(support_which));
        targets.require_rows(span(target_which));
        require(coefficients.shape(1) == support_which.size(), "a coefficient for every row is needed");
        require(segments.size() >= 2 && span(segments).front() == 0 &&
                    span(segments).back() == static_cast<Integer>(support_which.size()) &&
                    std::is_sorted(span(segments).begin(), span(segments).end()),
                "segments must begin at 0 and end with the rows");
        require(out.shape(0) == coefficients.shape(0) * (segments.size() - 1) &&
                    out.shape(1) == target_which.size(),
                "a place for every sum is needed");
        const bool silent = tell.is_none();
        const auto between = [&] {
          nb::gil_scoped_acquire locked;
          if (PyErr_CheckSignals() != 0) throw nb::python_error();
          if (!silent) tell();
        };
        nb::gil_scoped_release unlocked;
        visit_both(
            kernel, support, targets, [&](const auto& rows, const auto& others, const Encoding& encoding) {
              const Integer count = static_cast<Integer>(coefficients.shape(0));
              const auto run = [&]<class T>(T) {
                expansions<T>(kernel, encoding, rows, span(support_which), coefficients.data(), count,
                              span(segments), others, span(target_which), out.data(), budget, between);
              };
              single ? run(0.0f) : run(0.0);
            });
      },
      "kernel"_a, "support"_a, "support_which"_a, "coefficients"_a, "segments"_a, "targets"_a,
      "target_which"_a, "out"_a, "single"_a, "budget"_a, "tell"_a = nb::none());

  m.def("solve_small", [](ConstTable matrix, ConstIndices order, ConstIndices begins, ConstVector labels,
                          ConstVector costs, Vector alpha, Vector margins, Table values, double tol,
                          Integer tiny, Integer most_rounds, const Budget& budget) {
    const Integer size = static_cast<Integer>(matrix.shape(0));
    require(matrix.shape(1) == matrix.shape(0), "a square matrix is needed");
    require(begins.size() >= 2 && span(begins).front() == 0 &&
                span(begins).back() == static_cast<Integer>(order.size()) &&
                std::is_sorted(span(begins).begin(), span(begins).end()),
            "problems must begin at 0 and end with the rows");
    for (const Integer i : span(order)) require(i >= 0 && i < size, "an index of a row is out of range");
    for (const std::size_t length : {labels.size(), costs.size(), alpha.size(), margins.size()}) {
      require(length == order.size(), "one number per row is needed");
    }
    require(values.shape(0) + 1 == begins.size() && values.shape(1) == 5,
            "five values per problem are needed");
    const SmallProblems problems{matrix.data(), size,        span(order), span(begins),
                                 span(labels),  span(costs), span(alpha), span(margins)};
    // Values are written before Ctrl-C is raised: they are proofs all the same.
    return interruptibly(budget, [&](Watch& watch) {
      return solve_small(problems, tol, tiny, most_rounds, values.data(), watch);
    });
  });

  nb::class_<CacheCounts>(m, "CacheCounts")
      .def(nb::init<>())
      .def_ro("peak_bytes", &CacheCounts::peak)
      .def_ro("rows_computed", &CacheCounts::computed)
      .def_ro("rows_found", &CacheCounts::found);

  nb::class_<SpareMemory>(m, "SpareMemory").def(nb::init<>());

  nb::class_<AnyKernelMatrix>(m, "KernelMatrix")
      .def(
          "__init__",
          [](AnyKernelMatrix* self, const Data& data, const KernelSum& kernel, ConstIndices order,
             ConstIndices begins, Integer cache_bytes, bool single, std::shared_ptr<CacheCounts> counts,
             std::shared_ptr<SpareMemory> spare) {
            nb::gil_scoped_release unlocked;
            new (self) AnyKernelMatrix(data, kernel, span(order), span(begins), cache_bytes, single,
                                       std::move(counts), std::move(spare));
          },
          "data"_a, "kernel"_a, "order"_a, "begins"_a, "cache_bytes"_a, "single"_a, "counts"_a = nb::none(),
          "spare"_a = nb::none())
      .def_prop_ro("count", &AnyKernelMatrix::count)
      .def_prop_ro("encoding",
                   [](AnyKernelMatrix& self) {
                     return std::string(name_of(self.visit([](auto& matrix) { return matrix.holding(); })));
                   })
      .def_prop_ro("cached_bytes",
                   [](AnyKernelMatrix& self) {
                     return self.visit([](auto& matrix) { return matrix.cached_bytes(); });
                   })
      .def_prop_ro(
          "dear",
          [](AnyKernelMatrix& self) { return self.visit([](auto& matrix) { return matrix.dear(); }); })
      .def_prop_ro(
          "keeps_all",
          [](AnyKernelMatrix& self) { return self.visit([](auto& matrix) { return matrix.keeps_all(); }); })
      .def("subset",
           [](AnyKernelMatrix& self, ConstIndices which) {
             const auto rows = span(which);
             require(std::is_sorted(rows.begin(), rows.end()), "rows must be in order");
             require(rows.empty() || (rows.front() >= 0 && rows.back() < self.count()),
                     "an index of a row is out of range");
             nb::gil_scoped_release unlocked;
             return self.subset(rows);
           })
      .def_prop_ro(
          "computed_rows",
          [](AnyKernelMatrix& self) { return self.visit([](auto& matrix) { return matrix.computed(); }); })
      .def("add", [](AnyKernelMatrix& self, ConstIndices which, ConstVector changes, Vector f,
                     const Budget& budget) {
        require(which.size() == changes.size(), "a change for every row is needed");
        require(static_cast<Integer>(f.size()) == self.count(), "one number per row is needed");
        require(std::is_sorted(span(which).begin(), span(which).end()), "rows must be in order");
        for (const Integer i : span(which)) {
          require(i >= 0 && i < self.count(), "an index of a row is out of range");
        }
        nb::gil_scoped_release unlocked;
        self.visit([&](auto& matrix) { matrix.add(span(which), span(changes), f.data(), budget); });
      });

  nb::class_<AnySequentialMinimalOptimization>(m, "SequentialMinimalOptimization")
      .def(nb::init<AnyKernelMatrix&, ConstVector, bool, bool>(), "matrix"_a, "diagonal"_a,
           "second_order"_a, "shrinking"_a, nb::keep_alive<1, 2>())
      .def("run",
           [](AnySequentialMinimalOptimization& self, ConstVector low, ConstVector high, ConstVector labels,
              Vector beta, Vector f, Integer most, double tolerance, const Budget& budget) {
             const KernelDual dual = kernel_dual(self.count(), low, high, labels, beta, f);
             const PairReport report = interruptibly(
                 budget, [&](Watch& watch) { return self.run(dual, most, tolerance, budget, watch); });
             return std::make_tuple(report.pairs, report.active, report.violation, report.ascent,
                                    report.gap, report.done);
           });

  m.def("kernel_dual_ascent", [](AnyKernelMatrix& self, bool squared, Table coordinates, ConstIndices order,
                                 Vector scores, double bias, double bias_curvature, const Budget& budget) {
    const Integer count = self.count();
    require(coordinates.shape(1) == 5 && static_cast<Integer>(coordinates.shape(0)) == count &&
                static_cast<Integer>(scores.size()) == count,
            "five numbers and a score per row are needed");
    for (const Integer i : span(order)) require(i >= 0 && i < count, "an index of a row is out of range");
    const std::span<Coordinate> all{reinterpret_cast<Coordinate*>(coordinates.data()),
                                    coordinates.shape(0)};
    const KernelSweep sweep = interruptibly(budget, [&](Watch& watch) {
      return self.visit([&](auto& matrix) {
        return squared ? kernel_dual_ascent<true>(matrix, all, span(order), span(scores), bias,
                                                  bias_curvature, budget, watch)
                       : kernel_dual_ascent<false>(matrix, all, span(order), span(scores), bias,
                                                   bias_curvature, budget, watch);
      });
    });
    return std::make_tuple(sweep.unrest, sweep.bias, sweep.ascent, sweep.gap, sweep.whole);
  });

  nb::class_<AnyWorkingSet>(m, "WorkingSet")
      .def(nb::init<AnyKernelMatrix&, Integer, std::uint64_t>(), "matrix"_a, "size"_a, "seed"_a,
           nb::keep_alive<1, 2>())
      .def("run", [](AnyWorkingSet& self, ConstVector low, ConstVector high, ConstVector labels,
                     Vector beta, Vector f, Integer rounds, const Budget& budget) {
        const KernelDual dual = kernel_dual(self.count(), low, high, labels, beta, f);
        const WorkingSetReport report =
            interruptibly(budget, [&](Watch& watch) { return self.run(dual, rounds, budget, watch); });
        return std::make_tuple(report.rounds, report.state.least, report.state.greatest,
                               report.state.primal, report.state.dual);
      });
}

using Output = nb::ndarray<nb::c_contig, nb::device::cpu>;

// The place for results of type T, with its size checked.
template <class T>
T* place_for(const Output& out, Integer count) {
  require(out.dtype() == nb::dtype<T>() && static_cast<Integer>(out.size()) == count,
          "a place of the right type is needed for every monomial");
  return static_cast<T*>(out.data());
}

template <class Rows>
void expand_dense(const Monomials& monomials, const Rows& rows, const Output& out, const Budget& budget) {
  if constexpr (requires { rows.stride; }) {
    using Value = std::decay_t<decltype(*rows.values)>;
    Value* values = place_for<Value>(out, rows.count * monomials.size());
    nb::gil_scoped_release unlocked;
    expand_dense(monomials, rows, values, budget);
  } else {
    throw std::invalid_argument("dense rows are needed");
  }
}

template <class Rows, class Index>
void expand_sparse(const Monomials& monomials, const Rows& rows, std::span<const Index> offsets,
                   const Output& to_indices, const Output& to_values, const Budget& budget) {
  if constexpr (requires { rows.offsets; }) {
    using Value = std::decay_t<decltype(*rows.values)>;
    require(fits(monomials, rows, offsets), "offsets must be those of the expansion");
    Index* indices = place_for<Index>(to_indices, static_cast<Integer>(offsets.back()));
    Value* values = place_for<Value>(to_values, static_cast<Integer>(offsets.back()));
    nb::gil_scoped_release unlocked;
    expand_sparse(monomials, rows, offsets, indices, values, budget);
  } else {
    throw std::invalid_argument("sparse rows are needed");
  }
}

void bind_features(nb::module_& m) {
  nb::class_<Monomials>(m, "Monomials")
      .def(nb::init<Integer, Integer, std::vector<double>, bool, bool>(), "columns"_a, "lowest"_a,
           "scales"_a, "once"_a, "shared_repeats"_a)
      .def_prop_ro("size", &Monomials::size)
      .def("expand_dense",
           [](const Monomials& self, const Data& data, Output out, const Budget& budget) {
             require(data.columns() == self.columns(), "rows with as many columns are needed");
             data.visit([&](const auto& rows) { expand_dense(self, rows, out, budget); });
           })
      .def("expand_sparse", [](const Monomials& self, const Data& data, AnyArray offsets, Output indices,
                               Output values, const Budget& budget) {
        require(data.columns() == self.columns(), "rows with as many columns are needed");
        require(data.sorted(), "columns in order are needed");
        require(offsets.ndim() == 1 && contiguous(offsets), "offsets must be contiguous");
        const auto with = [&]<class Index>(Index) {
          require(offsets.dtype() == nb::dtype<Index>(), "offsets must be int32 or int64");
          const std::span<const Index> all{static_cast<const Index*>(offsets.data()), offsets.size()};
          data.visit([&](const auto& rows) { expand_sparse(self, rows, all, indices, values, budget); });
        };
        offsets.dtype() == nb::dtype<std::int32_t>() ? with(std::int32_t{}) : with(std::int64_t{});
      });
}

}  // namespace
}  // namespace maxmargin

NB_MODULE(MAXMARGIN_MODULE, m) {
  nb::set_leak_warnings(false);  // core.py's constants live until the very end, on purpose
  m.def("instruction_sets", &maxmargin::instruction_sets);
  maxmargin::bind_data(m);
  maxmargin::bind_passes(m);
  maxmargin::bind_files(m);
  maxmargin::bind_solvers(m);
  maxmargin::bind_newton(m);
  maxmargin::bind_kernels(m);
  maxmargin::bind_features(m);
}
