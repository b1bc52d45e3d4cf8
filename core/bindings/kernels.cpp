// SPDX-License-Identifier: BSD-3-Clause
// Kernels, their matrices, and the solvers on them.

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <mutex>
#include <numeric>
#include <variant>

#include "bindings/data.hpp"
#include "bindings/kernel_memo.hpp"
#include "bindings/modules.hpp"
#include "kernel/kernel_dual_ascent.hpp"
#include "kernel/kernel_matrix.hpp"
#include "kernel/sequential_minimal_optimization.hpp"
#include "kernel/small_problems.hpp"
#include "kernel/working_set.hpp"

namespace maxmargin {
namespace {

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

// The cheapest way to hold the rows for a kernel; the values are looked at once.
Encoding encoding_of(const Data& data, const KernelSum& kernel) {
  if (kernel.uses(Common::given)) return {Holding::given};
  KernelMemo& memo = data.memo();
  const std::lock_guard lock(memo.mutex);
  std::optional<Encoding>& known = memo.encodings[kernel.only_products()];
  if (!known) known = encoding_for({&data.stored_rows()}, kernel);
  return *known;
}

KernelRows as_stored(const Data& data) {
  return data.visit([](const auto& rows) { return KernelRows(rows); });
}

// The rows as a kernel takes them. Bytes are read once, for all that comes after: there may be many
// problems on parts of the same rows.
KernelRows rows_for(const Data& data, const Encoding& encoding) {
  if (encoding.holding != Holding::bytes) return as_stored(data);
  KernelMemo& memo = data.memo();
  const std::lock_guard lock(memo.mutex);
  if (!memo.bytes) {
    std::vector<Integer> all(static_cast<std::size_t>(data.count()));
    std::iota(all.begin(), all.end(), Integer{0});
    data.visit([&](const auto& rows) { memo.bytes.emplace(rows, all, encoding.unit); });
  }
  return *memo.bytes;
}

// Two sets of rows, held alike.
struct Pair {
  Encoding encoding;
  KernelRows first, others;
  bool one;  // the two are the same

  const KernelRows& second() const { return one ? first : others; }
};

Pair pair_for(const KernelSum& kernel, const Data& first, const Data& second) {
  require(first.columns() == second.columns(), "rows with as many columns are needed");
  if (&first == &second) {
    const Encoding encoding = encoding_of(first, kernel);
    return {encoding, rows_for(first, encoding), {}, true};
  }
  require(first.stored_rows().index() == second.stored_rows().index(), "rows of one type are needed");
  const Encoding encoding = encoding_for({&first.stored_rows(), &second.stored_rows()}, kernel);
  return {encoding, as_stored(first), as_stored(second), false};
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
    const Encoding encoding = encoding_of(data, kernel);
    const KernelRows rows = rows_for(data, encoding);
    if (single)
      matrix_.emplace<KernelMatrix<float>>(rows, kernel, encoding, order, begins, cache_bytes,
                                           std::move(counts), std::move(spare));
    else
      matrix_.emplace<KernelMatrix<double>>(rows, kernel, encoding, order, begins, cache_bytes,
                                            std::move(counts), std::move(spare));
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

}  // namespace

void bind_kernels(nb::module_& m) {
  nb::class_<KernelSum>(m, "KernelSum").def("__init__", [](KernelSum* self, std::vector<TermTuple> terms) {
    new (self) KernelSum(kernel_of(terms));
  });

  m.def("kernel_encoding", [](const KernelSum& kernel, const Data& data) {
    nb::gil_scoped_release unlocked;
    return std::string(name_of(encoding_of(data, kernel).holding));
  });
  m.def("kernel_diagonal", [](const KernelSum& kernel, const Data& data, Vector out) {
    require(static_cast<Integer>(out.size()) == data.count(), "one number per row is needed");
    require(!kernel.uses(Common::given) || data.columns() == data.count(), "a square matrix is needed");
    nb::gil_scoped_release unlocked;
    data.visit([&](const auto& rows) { kernel_diagonal(kernel, rows, span(out)); });
  });
  m.def("kernel_block", [](const KernelSum& kernel, const Data& first, ConstIndices first_which,
                           const Data& second, ConstIndices second_which, Table out, const Budget& budget) {
    first.require_rows(span(first_which));
    second.require_rows(span(second_which));
    require(out.shape(0) == first_which.size() && out.shape(1) == second_which.size(),
            "a place for every pair is needed");
    nb::gil_scoped_release unlocked;
    const Pair rows = pair_for(kernel, first, second);
    kernel_block<double>(kernel, rows.encoding, rows.first, span(first_which), rows.second(),
                         span(second_which), out.data(), budget);
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
        const Pair rows = pair_for(kernel, support, targets);
        const Integer count = static_cast<Integer>(coefficients.shape(0));
        const auto run = single ? expansions<float> : expansions<double>;
        run(kernel, rows.encoding, rows.first, span(support_which), coefficients.data(), count,
            span(segments), rows.second(), span(target_which), out.data(), budget, between);
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

}  // namespace maxmargin
