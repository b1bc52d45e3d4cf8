// SPDX-License-Identifier: BSD-3-Clause
// Kernels, their matrices, and the solvers on them.

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>
#include <optional>

#include "bindings/coordinates.hpp"
#include "bindings/data.hpp"
#include "bindings/kernel_memo.hpp"
#include "bindings/modules.hpp"
#include "kernel/any_kernel_matrix.hpp"
#include "kernel/small_problems.hpp"
#include "twofold/kernel.hpp"

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
  if (!memo.bytes) memo.bytes = byte_rows(data.stored_rows(), encoding.unit);
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

void require_begins(std::span<const Integer> begins, std::size_t rows, const char* message) {
  require(begins.size() >= 2 && begins.front() == 0 && begins.back() == static_cast<Integer>(rows) &&
              std::is_sorted(begins.begin(), begins.end()),
          message);
}

// A kernel matrix, with the rows kept alive.
struct BoundMatrix {
  Data data;
  std::unique_ptr<AnyKernelMatrix> matrix;

  AnyKernelMatrix* operator->() const { return matrix.get(); }
  Integer count() const { return matrix->count(); }
  void require_rows(std::span<const Integer> rows) const {
    require(std::is_sorted(rows.begin(), rows.end()), "rows must be in order");
    require(rows.empty() || (rows.front() >= 0 && rows.back() < count()),
            "an index of a row is out of range");
  }
};

// A solver on a kernel matrix, which lives longer.
template <class Solver>
struct OnMatrix {
  Integer count;
  std::unique_ptr<Solver> solver;

  Solver& on(const KernelDual& dual) const {
    require(dual.count() == count, "one number per row is needed");
    return *solver;
  }
};
using BoundWorkingSet = OnMatrix<AnyWorkingSet>;
using BoundPairs = OnMatrix<AnySequentialMinimalOptimization>;

// Small problems, with the arrays they point into kept alive.
struct BoundSmallProblems {
  ConstTable matrix;
  ConstIndices order, begins;
  ConstVector labels, costs;
  SmallProblems problems;

  BoundSmallProblems(ConstTable matrix, ConstIndices order, ConstIndices begins, ConstVector labels,
                     ConstVector costs)
      : matrix(matrix),
        order(order),
        begins(begins),
        labels(labels),
        costs(costs),
        problems{matrix.data(), static_cast<Integer>(matrix.shape(0)),
                 span(order),   span(begins),
                 span(labels),  span(costs)} {
    require(matrix.shape(1) == matrix.shape(0), "a square matrix is needed");
    require_begins(span(begins), order.size(), "problems must begin at 0 and end with the rows");
    for (const Integer i : span(order)) {
      require(i >= 0 && i < problems.size, "an index of a row is out of range");
    }
    require_rows(labels);
    require_rows(costs);
  }
  template <class Array>
  void require_rows(const Array& array) const {
    require(array.size() == order.size(), "one number per row is needed");
  }
};

// An array of an object that Python holds, seen in place.
auto seen(std::vector<double>& values) {
  return nb::ndarray<nb::numpy, double, nb::ndim<1>>(values.data(), {values.size()}, nb::handle());
}

}  // namespace

void bind_kernels(nb::module_& m) {
  nb::class_<KernelSum>(m, "KernelSum")
      .def(
          "__init__",
          [](KernelSum* self, std::vector<TermTuple> terms) { new (self) KernelSum(kernel_of(terms)); },
          "terms"_a);

  m.def(
      "kernel_encoding",
      [](const KernelSum& kernel, const Data& data) {
        nb::gil_scoped_release unlocked;
        return std::string(name_of(encoding_of(data, kernel).holding));
      },
      "kernel"_a, "data"_a);
  m.def("has_twofold", &has_twofold, "kernel"_a);
  m.def(
      "twofold_scores",
      [](const KernelSum& kernel, const Data& data, ConstIndices which, ConstVector coefficients,
         ConstVector lengths) {
        data.require_rows(span(which));
        require(coefficients.size() == which.size() && lengths.size() == which.size(),
                "one number per row is needed");
        require(has_twofold(kernel), "this kernel has no twofold form");
        nb::gil_scoped_release unlocked;
        return twofold_scores(kernel, data.stored_rows(), span(which), span(coefficients), span(lengths));
      },
      "kernel"_a, "data"_a, "which"_a, "coefficients"_a, "lengths"_a);
  // The largest distance of a row from the multiples of one number that it is held as, as a share of its
  // length; 0 where it is held as it is.
  m.def(
      "packing_error",
      [](const KernelSum& kernel, const Data& data) {
        nb::gil_scoped_release unlocked;
        const KernelRows rows = rows_for(data, encoding_of(data, kernel));
        const ByteRows* bytes = std::get_if<ByteRows>(&rows);
        return bytes ? bytes->off() : 0.0;
      },
      "kernel"_a, "data"_a);
  m.def(
      "kernel_diagonal",
      [](const KernelSum& kernel, const Data& data, Vector out) {
        require(static_cast<Integer>(out.size()) == data.count(), "one number per row is needed");
        require(!kernel.uses(Common::given) || data.columns() == data.count(), "a square matrix is needed");
        nb::gil_scoped_release unlocked;
        kernel_diagonal(kernel, data.stored_rows(), span(out));
      },
      "kernel"_a, "data"_a, "out"_a);
  m.def(
      "kernel_block",
      [](const KernelSum& kernel, const Data& first, ConstIndices first_which, const Data& second,
         ConstIndices second_which, Table out, const Budget& budget) {
        first.require_rows(span(first_which));
        second.require_rows(span(second_which));
        require(out.shape(0) == first_which.size() && out.shape(1) == second_which.size(),
                "a place for every pair is needed");
        nb::gil_scoped_release unlocked;
        const Pair rows = pair_for(kernel, first, second);
        kernel_block(kernel, rows.encoding, {rows.first, span(first_which)},
                     {rows.second(), span(second_which)}, out.data(), budget);
      },
      "kernel"_a, "first"_a, "first_which"_a, "second"_a, "second_which"_a, "out"_a, "budget"_a);
  m.def(
      "kernel_expansions",
      [](const KernelSum& kernel, const Data& support, ConstIndices support_which, const Data& targets,
         ConstIndices target_which, Table out, ConstTable coefficients, ConstIndices segments, bool single,
         const Budget& budget, nb::object tell) {
        support.require_rows(span(support_which));
        targets.require_rows(span(target_which));
        require(coefficients.shape(1) == support_which.size(), "a coefficient for every row is needed");
        require_begins(span(segments), support_which.size(),
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
        expansions(kernel, rows.encoding, {rows.first, span(support_which)},
                   {coefficients.data(), static_cast<Integer>(coefficients.shape(0)), span(segments)},
                   {rows.second(), span(target_which)}, out.data(), single, budget, between);
      },
      "kernel"_a, "support"_a, "support_which"_a, "targets"_a, "target_which"_a, "out"_a, nb::kw_only(),
      "coefficients"_a, "segments"_a, "single"_a, "budget"_a, "tell"_a = nb::none());

  nb::class_<BoundSmallProblems>(m, "SmallProblems")
      .def(nb::init<ConstTable, ConstIndices, ConstIndices, ConstVector, ConstVector>(), "matrix"_a,
           "order"_a, "begins"_a, "labels"_a, "costs"_a)
      // Multipliers are written before Ctrl-C is raised: they can be proven all the same.
      .def(
          "solve",
          [](BoundSmallProblems& self, Vector alpha, double tol, Integer tiny, Integer rounds,
             const Budget& budget) {
            self.require_rows(alpha);
            return interruptibly(budget, [&](Watch& watch) {
              return solve_small(self.problems, span(alpha), tol, tiny, rounds, budget, watch);
            });
          },
          "alpha"_a, "tol"_a, "tiny"_a, "rounds"_a, "budget"_a)
      .def(
          "prove",
          [](BoundSmallProblems& self, Vector alpha, Vector margins, ConstVector lengths,
             double value_error, Table proofs, const Budget& budget) {
            self.require_rows(alpha);
            self.require_rows(margins);
            require(static_cast<Integer>(lengths.size()) == self.problems.size,
                    "one length per row of the matrix is needed");
            require(static_cast<Integer>(proofs.shape(0)) == self.problems.count() && proofs.shape(1) == 6,
                    "six values per problem are needed");
            nb::gil_scoped_release unlocked;
            prove_small(self.problems, span(alpha), span(margins), span(lengths), value_error,
                        {reinterpret_cast<SmallProof*>(proofs.data()), proofs.shape(0)}, budget);
          },
          "alpha"_a, "margins"_a, "lengths"_a, "value_error"_a, "proofs"_a, "budget"_a);

  nb::class_<KernelDual>(m, "KernelDual")
      .def(
          "__init__",
          [](KernelDual* self, ConstVector labels, ConstVector costs) {
            require(labels.size() == costs.size(), "one number per row is needed");
            new (self) KernelDual(span(labels), span(costs));
          },
          "labels"_a, "costs"_a)
      .def_prop_ro(
          "labels", [](KernelDual& self) { return seen(self.labels); }, nb::rv_policy::reference_internal)
      .def_prop_ro(
          "beta", [](KernelDual& self) { return seen(self.beta); }, nb::rv_policy::reference_internal)
      .def_prop_ro(
          "f", [](KernelDual& self) { return seen(self.f); }, nb::rv_policy::reference_internal)
      .def_prop_ro("violation", [](KernelDual& self) { return self.state.violation(); })
      .def_prop_ro("primal", [](KernelDual& self) { return self.state.primal; })
      .def_prop_ro("dual", [](KernelDual& self) { return self.state.dual; })
      .def("take_best_intercept", &KernelDual::take_best_intercept)
      .def("may_move", [](KernelDual& self) { return as_array(self.may_move()); })
      .def("subset",
           [](KernelDual& self, ConstIndices rows) {
             for (const Integer i : span(rows)) {
               require(i >= 0 && i < self.count(), "an index of a row is out of range");
             }
             return self.subset(span(rows));
           })
      .def("move",
           [](KernelDual& self, BoundMatrix& matrix, ConstIndices rows, ConstVector targets,
              const Budget& budget) {
             require(rows.size() == targets.size() && matrix.count() == self.count(),
                     "one number per row is needed");
             matrix.require_rows(span(rows));
             nb::gil_scoped_release unlocked;
             self.move(*matrix.matrix, span(rows), span(targets), budget);
           })
      .def("restore_gradient", [](KernelDual& self, BoundMatrix& matrix, const Budget& budget) {
        require(matrix.count() == self.count(), "one number per row is needed");
        nb::gil_scoped_release unlocked;
        self.restore_gradient(*matrix.matrix, budget);
      });

  nb::class_<CacheCounts>(m, "CacheCounts")
      .def(nb::init<>())
      .def_ro("peak_bytes", &CacheCounts::peak)
      .def_ro("rows_computed", &CacheCounts::computed)
      .def_ro("rows_found", &CacheCounts::found);

  nb::class_<SpareMemory>(m, "SpareMemory").def(nb::init<>());

  nb::class_<BoundMatrix>(m, "KernelMatrix")
      .def(
          "__init__",
          [](BoundMatrix* self, const Data& data, const KernelSum& kernel, ConstIndices order,
             ConstIndices begins, Integer cache_bytes, bool single, std::shared_ptr<CacheCounts> counts,
             std::shared_ptr<SpareMemory> spare) {
            data.require_rows(span(order));
            require_begins(span(begins), order.size(), "blocks must begin at 0 and end with the rows");
            const Data kept = data;
            nb::gil_scoped_release unlocked;
            const Encoding encoding = encoding_of(data, kernel);
            new (self) BoundMatrix{
                kept, kernel_matrix(rows_for(data, encoding), kernel, encoding, span(order), span(begins),
                                    {cache_bytes, single, std::move(counts), std::move(spare)})};
          },
          "data"_a, "kernel"_a, "order"_a, "begins"_a, nb::kw_only(), "cache_bytes"_a, "single"_a,
          "counts"_a = nb::none(), "spare"_a = nb::none())
      .def_prop_ro("count", &BoundMatrix::count)
      .def_prop_ro("encoding", [](BoundMatrix& self) { return std::string(name_of(self->holding())); })
      .def_prop_ro("cached_bytes", [](BoundMatrix& self) { return self->cached_bytes(); })
      .def_prop_ro("computed_rows", [](BoundMatrix& self) { return self->computed(); })
      .def_prop_ro("dear", [](BoundMatrix& self) { return self->dear(); })
      .def_prop_ro("keeps_all", [](BoundMatrix& self) { return self->keeps_all(); })
      .def(
          "subset",
          [](BoundMatrix& self, ConstIndices which) {
            self.require_rows(span(which));
            Data kept = self.data;
            nb::gil_scoped_release unlocked;
            return BoundMatrix{std::move(kept), self->subset(span(which))};
          },
          "which"_a)
      .def(
          "add",
          [](BoundMatrix& self, ConstIndices which, ConstVector changes, Vector f, const Budget& budget) {
            require(which.size() == changes.size(), "a change for every row is needed");
            require(static_cast<Integer>(f.size()) == self.count(), "one number per row is needed");
            self.require_rows(span(which));
            nb::gil_scoped_release unlocked;
            self->add(span(which), span(changes), f.data(), budget);
          },
          "which"_a, "changes"_a, "f"_a, "budget"_a);

  nb::class_<BoundPairs>(m, "SequentialMinimalOptimization")
      .def(
          "__init__",
          [](BoundPairs* self, BoundMatrix& matrix, ConstVector diagonal, bool second_order,
             bool shrinking) {
            require(static_cast<Integer>(diagonal.size()) == matrix.count(),
                    "one number per row is needed");
            new (self) BoundPairs{matrix.count(), matrix->pairs(span(diagonal), second_order, shrinking)};
          },
          "matrix"_a, "diagonal"_a, "second_order"_a, "shrinking"_a, nb::keep_alive<1, 2>())
      .def(
          "run",
          [](BoundPairs& self, KernelDual& dual, Integer most, double tolerance, const Budget& budget) {
            AnySequentialMinimalOptimization& pairs = self.on(dual);
            const PairReport report = interruptibly(
                budget, [&](Watch& watch) { return pairs.run(dual, most, tolerance, budget, watch); });
            return std::make_tuple(report.pairs, report.active, report.violation, report.ascent, report.gap,
                                   report.done);
          },
          "dual"_a, "most"_a, "tolerance"_a, "budget"_a);

  m.def(
      "kernel_dual_ascent",
      [](BoundMatrix& matrix, bool squared, Table coordinates, ConstIndices order, Vector scores,
         double bias, double bias_curvature, const Budget& budget) {
        const Integer count = matrix.count();
        const std::span<Coordinate> all = coordinates_of(coordinates);
        require(static_cast<Integer>(all.size()) == count && static_cast<Integer>(scores.size()) == count,
                "a coordinate and a score per row are needed");
        matrix.data.require_rows(span(order));
        for (const Integer i : span(order)) require(i < count, "an index of a row is out of range");
        const KernelSweep sweep = interruptibly(budget, [&](Watch& watch) {
          return matrix->sweep(squared, all, span(order), span(scores), bias, bias_curvature, budget,
                               watch);
        });
        return std::make_tuple(sweep.unrest, sweep.bias, sweep.ascent, sweep.gap, sweep.whole);
      },
      "matrix"_a, "squared"_a, "coordinates"_a, "order"_a, "scores"_a, nb::kw_only(), "bias"_a,
      "bias_curvature"_a, "budget"_a);

  nb::class_<BoundWorkingSet>(m, "WorkingSet")
      .def(
          "__init__",
          [](BoundWorkingSet* self, BoundMatrix& matrix, Integer size, std::uint64_t seed) {
            require(size >= 2, "a working set needs two rows");
            new (self) BoundWorkingSet{matrix.count(), matrix->working_set(size, seed)};
          },
          "matrix"_a, "size"_a, "seed"_a, nb::keep_alive<1, 2>())
      .def(
          "run",
          [](BoundWorkingSet& self, KernelDual& dual, Integer rounds, const Budget& budget) {
            AnyWorkingSet& set = self.on(dual);
            return interruptibly(budget,
                                 [&](Watch& watch) { return set.run(dual, rounds, budget, watch); });
          },
          "dual"_a, "rounds"_a, "budget"_a)
      .def(
          "move_free",
          [](BoundWorkingSet& self, KernelDual& dual, Integer most, Integer systems, const Budget& budget) {
            AnyWorkingSet& set = self.on(dual);
            nb::gil_scoped_release unlocked;
            return set.move_free(dual, most, systems, budget);
          },
          "dual"_a, "most"_a, "systems"_a, "budget"_a);
}

}  // namespace maxmargin
