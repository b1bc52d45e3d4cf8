// SPDX-License-Identifier: BSD-3-Clause
// The only file that sees Python: checks shapes, releases the interpreter's lock, calls the
// kernels.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <variant>

#include "best_intercept.hpp"
#include "budget.hpp"
#include "dual_coordinate_ascent.hpp"
#include "large_array.hpp"
#include "libsvm.hpp"
#include "losses.hpp"
#include "newton.hpp"
#include "passes.hpp"
#include "private_columns.hpp"
#include "random.hpp"
#include "rows.hpp"
#include "stochastic_subgradient.hpp"
#include "subgradient.hpp"
#include "weighted_quantile.hpp"
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
using Table = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

std::span<double> span(const Vector& v) { return {v.data(), v.size()}; }
std::span<const double> span(const ConstVector& v) { return {v.data(), v.size()}; }
std::span<Integer> span(const Indices& v) { return {v.data(), v.size()}; }
std::span<const Integer> span(const ConstIndices& v) { return {v.data(), v.size()}; }

bool contiguous(const AnyArray& array) { return array.size() < 2 || array.stride(0) == 1; }

void require(bool holds, const char* message) {
  if (!holds) throw std::invalid_argument(message);
}

// Rows of any kind, with the arrays they point into kept alive.
class Data {
 public:
  using Kind = std::variant<DenseRows<float>, DenseRows<double>, SparseRows<float, std::int32_t>,
                            SparseRows<float, std::int64_t>, SparseRows<double, std::int32_t>,
                            SparseRows<double, std::int64_t>>;

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

  static Data compact(CompactRows&& rows) {
    auto owned = std::make_shared<CompactRows>(std::move(rows));
    const SparseRows<float, std::int32_t> view{
        owned->values.get(), owned->indices.get(), owned->offsets.data(),
        static_cast<Integer>(owned->offsets.size()) - 1, owned->columns};
    Data data({}, view);
    data.owned_ = std::move(owned);
    return data;
  }

  // The same rows without their zeros, or nothing where that would not pay.
  std::optional<Data> without_zeros(const Budget& budget) const {
    return std::visit([&](const auto& rows) { return sparse_copy(rows, budget); }, kind_);
  }

  template <class Visitor>
  decltype(auto) visit(Visitor&& visitor) const {
    return std::visit(std::forward<Visitor>(visitor), kind_);
  }
  // Whether no row has its columns out of order or twice; kernels need that.
  bool sorted() const { return sorted_; }
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
  Data(std::vector<AnyArray> arrays, Kind kind) : arrays_(std::move(arrays)), kind_(kind) {}

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
    // Without branches per value: whether all columns are in 0 .. d - 1, and strictly increase in a row.
    bool sorted = true;
    for (Integer i = 0; i < rows.count; ++i) {
      const auto row = rows[i];
      if (row.count == 0) continue;
      Index low = row.columns[0], high = row.columns[0];
      for (Integer k = 1; k < row.count; ++k) {
        low = std::min(low, row.columns[k]);
        high = std::max(high, row.columns[k]);
        sorted &= row.columns[k - 1] < row.columns[k];
      }
      require(low >= 0 && static_cast<Integer>(high) < columns, "a column index is out of range");
    }
    Data data({values, indices, offsets}, rows);
    data.sorted_ = sorted;
    return data;
  }

  template <class Value>
  static std::optional<Data> sparse_copy(const DenseRows<Value>& rows, const Budget& budget) {
    auto copy = maxmargin::without_zeros(rows, budget);
    if (!copy) return std::nullopt;
    auto owned = std::make_shared<SparseCopy<Value>>(std::move(*copy));
    const SparseRows<Value, std::int32_t> view{owned->values.get(), owned->indices.get(),
                                               owned->offsets.data(), rows.count, rows.columns};
    Data data({}, view);
    data.owned_ = std::move(owned);
    return data;
  }
  template <class Value, class Index>
  static std::optional<Data> sparse_copy(const SparseRows<Value, Index>&, const Budget&) {
    return std::nullopt;
  }

  std::vector<AnyArray> arrays_;
  std::shared_ptr<void> owned_;  // memory of copies made here
  Kind kind_;
  bool sorted_ = true;
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
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {
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
      .def_prop_ro("sorted", &Data::sorted)
      .def_prop_ro("count", &Data::count)
      .def_prop_ro("columns", &Data::columns)
      .def_prop_ro("stored", &Data::stored);

  nb::class_<Budget>(m, "Budget")
      .def(nb::init<double, Integer>(), "seconds"_a, "threads"_a)
      .def("stop", &Budget::stop)
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
  m.def("best_intercept", [](const std::string& loss, ConstVector scores, ConstVector labels,
                             ConstVector costs, double ridge) {
    require(scores.size() == labels.size() && scores.size() == costs.size(),
            "one number per row is needed");
    require(loss == "squared_hinge" || loss == "logistic", "a smooth loss is needed");
    nb::gil_scoped_release unlocked;
    const auto find = loss == "logistic" ? best_intercept<Logistic> : best_intercept<SquaredHinge>;
    return find(span(scores), labels.data(), costs.data(), ridge);
  });
  m.def("scores", [](const Data& data, ConstVector w, Vector out, const Budget& budget) {
    data.require_lengths(out.size(), w.size());
    nb::gil_scoped_release unlocked;
    data.visit([&](const auto& rows) { scores(rows, w.data(), span(out), budget); });
  });
  m.def("combine", [](const Data& data, ConstVector coefficients, Vector out, const Budget& budget) {
    data.require_lengths(coefficients.size(), out.size());
    nb::gil_scoped_release unlocked;
    data.visit([&](const auto& rows) { combine(rows, coefficients.data(), span(out), budget); });
  });
  m.def("squared_norms", [](const Data& data, Vector out, const Budget& budget) {
    data.require_lengths(out.size(), static_cast<std::size_t>(data.columns()));
    nb::gil_scoped_release unlocked;
    data.visit([&](const auto& rows) { squared_norms(rows, span(out), budget); });
  });
  m.def("without_private_columns", [](const Data& data, const Budget& budget) -> nb::object {
    auto compact = [&] {
      nb::gil_scoped_release unlocked;
      return data.visit([&](const auto& rows) { return without_private_columns(rows, budget); });
    }();
    if (!compact) return nb::none();
    nb::object diagonal = as_array(std::move(compact->diagonal));
    return nb::make_tuple(Data::compact(std::move(*compact)), diagonal);
  });
}

template <class T>
nb::object as_array(LargeArray<T>&& values, Integer count) {
  auto* owned = new LargeArray<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<LargeArray<T>*>(p); });
  const std::size_t size = static_cast<std::size_t>(count);
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(owned->get(), {size}, owner));
}

// The arrays come first, in (values, indices, ends, labels), and lie in memory of their own that goes
// back to the system: a reader holds many of these blocks and frees them one by one.
template <class Value, class Index>
nb::tuple parse_libsvm(std::string_view text, const TextOptions& options) {
  LargeArray<Value> values;
  LargeArray<Index> indices;
  LargeArray<std::int32_t> ends;
  LargeArray<double> labels;
  const ParsedRows parsed = [&] {
    nb::gil_scoped_release unlocked;
    const TextCounts counts = count_text(text);
    values = large_array<Value>(static_cast<std::size_t>(counts.colons));
    indices = large_array<Index>(static_cast<std::size_t>(counts.colons));
    ends = large_array<std::int32_t>(static_cast<std::size_t>(counts.lines));
    labels = large_array<double>(static_cast<std::size_t>(counts.lines));
    const RowArrays<Value, Index> out{values.get(), indices.get(), ends.get(), labels.get()};
    return LibsvmParser<Value, Index>(text, out, options).parse();
  }();
  const auto arrays = nb::make_tuple(
      as_array(std::move(values), parsed.stored), as_array(std::move(indices), parsed.stored),
      as_array(std::move(ends), parsed.rows), as_array(std::move(labels), parsed.rows));
  return nb::make_tuple(arrays, parsed);
}

void bind_files(nb::module_& m) {
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

void bind_solvers(nb::module_& m) {
  m.def("subgradient", [](const Data& data, const std::string& loss, ConstVector labels, ConstVector costs,
                          ConstVector w, double b, Vector gradient, const Budget& budget) {
    data.require_lengths(labels.size(), w.size());
    data.require_lengths(costs.size(), gradient.size());
    nb::gil_scoped_release unlocked;
    const LossSum sum = with_loss(loss, [&](auto kind) {
      return data.visit([&](const auto& rows) {
        return subgradient<decltype(kind)>(rows, labels.data(), costs.data(), w.data(), b, span(gradient),
                                           budget);
      });
    });
    return std::make_tuple(sum.loss, sum.bias);
  });

  m.def("dual_coordinate_ascent", [](const Data& data, bool squared, Table coordinates, Indices order,
                                     Vector w, double bias, double bias_curvature, double relaxation,
                                     double above, double below, const Budget& budget) {
    require(coordinates.shape(1) == sizeof(Coordinate) / sizeof(double), "a coordinate has five numbers");
    data.require_lengths(coordinates.shape(0), w.size());
    data.require_rows(span(ConstIndices(order)));
    const std::span<Coordinate> all{reinterpret_cast<Coordinate*>(coordinates.data()),
                                    coordinates.shape(0)};
    const Sweep sweep = interruptibly(budget, [&](Watch& watch) {
      return data.visit([&](const auto& rows) {
        const Walls walls{above, below};
        return squared ? dual_coordinate_ascent<true>(rows, all, span(order), w.data(), bias,
                                                      bias_curvature, relaxation, walls, watch)
                       : dual_coordinate_ascent<false>(rows, all, span(order), w.data(), bias,
                                                       bias_curvature, relaxation, walls, watch);
      });
    });
    return std::make_tuple(sweep.active, sweep.bias, sweep.largest, sweep.smallest, sweep.ascent,
                           sweep.gap);
  });

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

  m.def("stochastic_subgradient", [](const Data& data, const std::string& loss, ConstVector labels,
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

template <class Visitor>
decltype(auto) with_piece(const std::string& loss, ConstVector costs, ConstVector centre, double stiffness,
                          Visitor&& visitor) {
  if (loss == "squared_hinge") return visitor(SmoothPiece<SquaredHinge>{costs.data()});
  if (loss == "logistic") return visitor(SmoothPiece<Logistic>{costs.data()});
  require(loss == "hinge" && centre.size() == costs.size(), "a centre for every row is needed");
  return visitor(AugmentedHinge{costs.data(), centre.data(), stiffness});
}

void bind_newton(nb::module_& m) {
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
  m.def("add_outer_products", [](const Data& data, ConstVector coefficients, Table lower,
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
  m.def("curvature_product", [](const Data& data, ConstVector curvatures, ConstVector p, double bias,
                                Vector out, const Budget& budget) {
    data.require_lengths(curvatures.size(), p.size());
    data.require_lengths(curvatures.size(), out.size());
    nb::gil_scoped_release unlocked;
    return data.visit([&](const auto& rows) {
      return curvature_product(rows, curvatures.data(), p.data(), bias, span(out), budget);
    });
  });
  m.def("inner_products",
        [](const Data& data, ConstIndices first, ConstIndices second, Table out, const Budget& budget) {
          data.require_rows(span(first));
          data.require_rows(span(second));
          require(out.shape(0) == first.size() && out.shape(1) == second.size(),
                  "a place for every pair is needed");
          nb::gil_scoped_release unlocked;
          data.visit([&](const auto& rows) {
            inner_products(rows, span(first), span(second), out.data(), budget);
          });
        });
  m.def("scores_of",
        [](const Data& data, ConstIndices order, ConstVector w, Vector out, const Budget& budget) {
          data.require_rows(span(order));
          require(order.size() == out.size(), "one number per row is needed");
          require(static_cast<Integer>(w.size()) == data.columns(), "one number per column is needed");
          nb::gil_scoped_release unlocked;
          data.visit([&](const auto& rows) { scores_of(rows, span(order), w.data(), out.data(), budget); });
        });
  m.def("gather", [](const Data& data, ConstIndices order, ConstVector factors, Table out,
                     const Budget& budget) {
    const Integer size = static_cast<Integer>(out.shape(1));
    data.require_rows(span(order));
    require(size == data.columns() || size == data.columns() + 1, "a place for every column is needed");
    require(order.size() == factors.size() && order.size() == out.shape(0), "one number per row is needed");
    nb::gil_scoped_release unlocked;
    data.visit(
        [&](const auto& rows) { gather(rows, span(order), factors.data(), out.data(), size, budget); });
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
}
