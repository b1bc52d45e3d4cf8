// SPDX-License-Identifier: BSD-3-Clause
// Kernels, their matrices, and the solvers on them.

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>
#include <optional>

#include "bindings/coordinates.hpp"
#include "bindings/data.hpp"
#include "bindings/modules.hpp"
#include "kernel/any_kernel_matrix.hpp"
#include "kernel/conjugate_gradients.hpp"
#include "kernel/small_problems.hpp"
#include "twofold/kernel.hpp"

namespace maxmargin {
namespace {

using FactorTuple = std::tuple<std::string, std::string, double, double, int>;
using TermTuple = std::tuple<double, std::vector<FactorTuple>>;

// Names in the order of the enumerations.
constexpr const char* kCommonNames[] = {"product", "minimum", "harmonic", "given"};
constexpr const char* kShapeNames[] = {"power", "tanh", "exponential"};
constexpr const char* kHoldingNames[] = {"bits", "bytes", "dense", "sparse", "given"};

template <class Enumeration, std::size_t count>
Enumeration named(const char* const (&names)[count], const std::string& name, const char* message) {
  const auto place = std::ranges::find(names, name) - names;
  require(place < static_cast<std::ptrdiff_t>(count), message);
  return static_cast<Enumeration>(place);
}
std::string name_of(Holding holding) { return kHoldingNames[static_cast<int>(holding)]; }

KernelSum kernel_of(const std::vector<TermTuple>& terms) {
  KernelSum kernel;
  for (const auto& [coefficient, factors] : terms) {
    Term& term = kernel.terms.emplace_back(Term{coefficient, {}});
    require(!factors.empty(), "a term needs a factor");
    for (const auto& [common, shape, gamma, shift, degree] : factors) {
      require(degree >= 0, "the degree must not be negative");
      term.factors.push_back({named<Common>(kCommonNames, common, "unknown common sum"),
                              named<Shape>(kShapeNames, shape, "unknown shape"), gamma, shift, degree});
    }
  }
  return kernel;
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

Pair pair_for(const KernelSum& kernel, const Data& first, const Data& second, bool packed = true) {
  require(first.columns() == second.columns(), "rows with as many columns are needed");
  if (&first == &second) {
    Encoding encoding = encoding_of(first, kernel);
    if (!packed && encoding.holding == Holding::bytes) encoding = {Holding::dense};
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
  template <class Array>
  auto per_row(const Array& array) const {
    return maxmargin::per_row(array, count());
  }
  std::span<const Integer> sorted_rows(const ConstIndices& rows) const {
    require(std::ranges::is_sorted(span(rows)), "rows must be in order");
    return row_numbers(rows, count());
  }
};

// A solver on a kernel matrix, which lives longer.
template <class Solver>
struct OnMatrix {
  Integer count;
  std::unique_ptr<Solver> solver;

  Solver& on(const KernelDual& dual) const {
    per_row(dual.beta, count);
    return *solver;
  }
};
using BoundWorkingSet = OnMatrix<AnyWorkingSet>;
using BoundPairs = OnMatrix<AnySequentialMinimalOptimization>;
using BoundGradients = OnMatrix<ConjugateGradients>;

// Small problems, with the arrays they point into kept alive.
struct BoundSmallProblems : SmallProblems {
  BoundSmallProblems(const ConstTable& matrix, const ConstIndices& order, const ConstIndices& begins,
                     const ConstVector& labels, const ConstVector& costs)
      : SmallProblems{matrix.data(),
                      static_cast<Integer>(matrix.shape(0)),
                      span(order),
                      span(begins),
                      maxmargin::per_row(labels, length(order)),
                      maxmargin::per_row(costs, length(order))},
        arrays(matrix, order, begins, labels, costs) {
    require(matrix.shape(1) == matrix.shape(0), "a square matrix is needed");
    require_begins(span(begins), order.size(), "problems must begin at 0 and end with the rows");
    row_numbers(order, size);
  }
  template <class Array>
  auto per_row(const Array& array) const {
    return maxmargin::per_row(array, length(order));
  }
  std::tuple<ConstTable, ConstIndices, ConstIndices, ConstVector, ConstVector> arrays;
};

void bind_values(nb::module_& m) {
  nb::class_<KernelSum> kernel_sum(m, "KernelSum");
  define(kernel_sum, "__init__", {"terms"},
         [](KernelSum* self, std::vector<TermTuple> terms) { new (self) KernelSum(kernel_of(terms)); });

  define_loop(m, "kernel_encoding", {"kernel", "data"}, [](const KernelSum& kernel, const Data& data) {
    return name_of(encoding_of(data, kernel).holding);
  });
  define(m, "has_twofold", {"kernel"}, &has_twofold);
  define_loop(m, "twofold_scores", {"kernel", "data", "which", "coefficients", "lengths"},
              [](const KernelSum& kernel, const Data& data, const ConstIndices& which,
                 const ConstVector& coefficients, const ConstVector& lengths) {
                const auto some = data.row_numbers(which);
                require(has_twofold(kernel), "this kernel has no twofold form");
                return twofold_scores(kernel, data.stored_rows(), some, per_row(coefficients, length(some)),
                                      per_row(lengths, length(some)));
              });
  // The largest distance of a row from the multiples of one number that it is held as, and the largest one
  // as a share of a row's length; 0 where rows are held as they are.
  define_loop(m, "packing_error", {"kernel", "data"}, [](const KernelSum& kernel, const Data& data) {
    const KernelRows rows = rows_for(data, encoding_of(data, kernel));
    const ByteRows* bytes = std::get_if<ByteRows>(&rows);
    return bytes ? std::pair{bytes->off(), bytes->share_off()} : std::pair{0.0, 0.0};
  });
  define_loop(m, "largest_of_whole_numbers", {"data"},
              [](const Data& data) { return largest_of_whole_numbers(data.stored_rows()); });
  define_loop(m, "kernel_diagonal", {"kernel", "data", "out", "budget"},
              [](const KernelSum& kernel, const Data& data, const Vector& out, const Budget& budget) {
                require(!kernel.uses(Common::given) || data.columns() == data.count(),
                        "a square matrix is needed");
                kernel_diagonal(kernel, data.stored_rows(), data.per_row(out), budget);
              });
  define_loop(
      m, "kernel_block", {"kernel", "first", "first_which", "second", "second_which", "out", "budget"},
      [](const KernelSum& kernel, const Data& first, const ConstIndices& first_which, const Data& second,
         const ConstIndices& second_which, const Table& out, const Budget& budget) {
        const auto ours = first.row_numbers(first_which), theirs = second.row_numbers(second_which);
        require(out.shape(0) == ours.size() && out.shape(1) == theirs.size(),
                "a place for every pair is needed");
        const Pair rows = pair_for(kernel, first, second);
        interruptibly(budget, [&](Watch& watch) {
          kernel_block(kernel, rows.encoding, {rows.first, ours}, {rows.second(), theirs}, out.data(),
                       budget, watch);
          return true;
        });
      });
  m.def(
      "kernel_expansions",
      [](const KernelSum& kernel, const Data& support, const ConstIndices& support_which,
         const Data& targets, const ConstIndices& target_which, const Table& out,
         const ConstTable& coefficients, const ConstIndices& segments, bool single, const Budget& budget,
         nb::object tell, bool packed) {
        const auto ours = support.row_numbers(support_which), theirs = targets.row_numbers(target_which);
        require(coefficients.shape(1) == ours.size(), "a coefficient for every row is needed");
        require_begins(span(segments), ours.size(), "segments must begin at 0 and end with the rows");
        require(
            out.shape(0) == coefficients.shape(0) * (segments.size() - 1) && out.shape(1) == theirs.size(),
            "a place for every sum is needed");
        const bool silent = tell.is_none();
        const auto between = [&] {
          nb::gil_scoped_acquire locked;
          if (PyErr_CheckSignals() != 0) throw nb::python_error();
          if (!silent) tell();
        };
        nb::gil_scoped_release unlocked;
        const Pair rows = pair_for(kernel, support, targets, packed);
        expansions(kernel, rows.encoding, {rows.first, ours},
                   {coefficients.data(), static_cast<Integer>(coefficients.shape(0)), span(segments)},
                   {rows.second(), theirs}, out.data(), single, budget, between);
      },
      "kernel"_a, "support"_a, "support_which"_a, "targets"_a, "target_which"_a, "out"_a, nb::kw_only(),
      "coefficients"_a, "segments"_a, "single"_a, "budget"_a, "tell"_a = nb::none(), "packed"_a = true);
}

void bind_small_problems(nb::module_& m) {
  nb::class_<BoundSmallProblems> problems(m, "SmallProblems");
  problems.def(nb::init<ConstTable, ConstIndices, ConstIndices, ConstVector, ConstVector>(), "matrix"_a,
               "order"_a, "begins"_a, "labels"_a, "costs"_a);
  // Multipliers are written before Ctrl-C is raised: they can be proven all the same.
  problems.def(
      "solve",
      [](BoundSmallProblems& self, const Vector& alpha, double tol, Integer tiny, Integer rounds,
         const Budget& budget, const ConstVector& scores) {
        const auto own = self.per_row(alpha);
        const auto known = length(scores) > 0 ? self.per_row(scores) : span(scores);
        return interruptibly(budget, [&](Watch& watch) {
          return solve_small(self, own, known, tol, tiny, rounds, budget, watch);
        });
      },
      "alpha"_a, "tol"_a, "tiny"_a, "rounds"_a, "budget"_a, "scores"_a, Released());
  problems.def(
      "solve_along",
      [](BoundSmallProblems& self, const ConstVector& Cs, const Table& alpha, const Table& margins,
         const Table& proofs, const Indices& steps, double tol, Integer tiny, Integer rounds,
         const ConstVector& lengths, double value_error, const Budget& budget) {
        const Integer lines = length(Cs), all = lines * self.count();
        for (const Table* table : {&alpha, &margins}) {
          require(static_cast<Integer>(table->shape(0)) == lines && table->shape(1) == self.order.size(),
                  "a line of all rows for every C is needed");
        }
        require(static_cast<Integer>(proofs.shape(0)) == all && proofs.shape(1) == kNumbersOfProof &&
                    length(steps) == all,
                "all values of a proof and a number of steps for every problem at every C are needed");
        require(length(lengths) == self.size, "one length per row of the matrix is needed");
        SmallProof* const proven = reinterpret_cast<SmallProof*>(proofs.data());
        const AlongCosts found{
            span(Cs), span(alpha), span(margins), {proven, proofs.shape(0)}, span(steps)};
        return interruptibly(budget, [&](Watch& watch) {
          return solve_along(self, found, tol, tiny, rounds, span(lengths), value_error, budget, watch);
        });
      },
      "Cs"_a, nb::kw_only(), "alpha"_a, "margins"_a, "proofs"_a, "steps"_a, "tol"_a, "tiny"_a, "rounds"_a,
      "lengths"_a, "value_error"_a, "budget"_a, Released());
  define_loop(
      problems, "prove", {"alpha", "margins", "lengths", "value_error", "proofs", "budget"},
      [](BoundSmallProblems& self, const Vector& alpha, const Vector& margins, const ConstVector& lengths,
         double value_error, const Table& proofs, const Budget& budget) {
        require(length(lengths) == self.size, "one length per row of the matrix is needed");
        require(static_cast<Integer>(proofs.shape(0)) == self.count() && proofs.shape(1) == kNumbersOfProof,
                "all values of a proof per problem are needed");
        prove_small(self, self.per_row(alpha), self.per_row(margins), span(lengths), value_error,
                    {reinterpret_cast<SmallProof*>(proofs.data()), proofs.shape(0)}, budget);
      });
}

void bind_dual(nb::module_& m) {
  nb::class_<KernelDual> dual(m, "KernelDual");
  define(dual, "__init__", {"labels", "costs"},
         [](KernelDual* self, const ConstVector& labels, const ConstVector& costs) {
           new (self) KernelDual(span(labels), per_row(costs, length(labels)));
         });
  define(dual, "__init__", {"low", "high", "wanted", "widths"},
         [](KernelDual* self, const ConstVector& low, const ConstVector& high, const ConstVector& wanted,
            const ConstVector& widths) {
           const Integer rows = length(low);
           new (self)
               KernelDual(span(low), per_row(high, rows), per_row(wanted, rows), per_row(widths, rows));
         });
  dual.def_prop_ro("free", [](KernelDual& self) { return self.free(); });
  dual.def_prop_ro("wanted", [](KernelDual& self) { return shown(self.wanted); })
      .def_prop_ro("beta", [](KernelDual& self) { return shown(self.beta); })
      .def_prop_ro("above", [](KernelDual& self) { return shown(self.above); })
      .def_prop_ro("below", [](KernelDual& self) { return shown(self.below); })
      .def_rw("total", &KernelDual::total)
      .def("take_sides", &KernelDual::take_sides)
      .def_prop_ro("f", [](KernelDual& self) { return shown(self.f); })
      .def_prop_ro("violation", [](KernelDual& self) { return self.state.violation(); })
      .def_prop_ro("primal", [](KernelDual& self) { return self.state.primal; })
      .def_prop_ro("dual", [](KernelDual& self) { return self.state.dual; })
      .def("take_best_point", &KernelDual::take_best_point)
      .def("may_move", [](KernelDual& self) { return as_array(self.may_move()); });
  define_loop(dual, "subset", {"rows"}, [](KernelDual& self, const ConstIndices& rows) {
    return self.subset(row_numbers(rows, self.count()));
  });
  define_loop(dual, "move", {"matrix", "rows", "targets", "budget"},
              [](KernelDual& self, BoundMatrix& matrix, const ConstIndices& rows,
                 const ConstVector& targets, const Budget& budget) {
                matrix.per_row(self.beta);
                const auto moved = matrix.sorted_rows(rows);
                self.move(*matrix.matrix, moved, per_row(targets, length(moved)), budget);
              });
  define_loop(dual, "with_part", {"rows", "part"},
              [](const KernelDual& self, const ConstIndices& rows, const KernelDual& part) {
                const auto moved = row_numbers(rows, self.count());
                require(part.count() == length(moved) && part.sides() == self.sides(),
                        "the dual of these very rows is needed");
                KernelDual both = self;
                both.put(moved, part);
                return both;
              });
  define_loop(dual, "take_over", {"matrix", "rows", "part", "budget"},
              [](KernelDual& self, BoundMatrix& matrix, const ConstIndices& rows, const KernelDual& part,
                 const Budget& budget) {
                matrix.per_row(self.beta);
                const auto moved = matrix.sorted_rows(rows);
                require(part.count() == length(moved) && part.sides() == self.sides(),
                        "the dual of these very rows is needed");
                self.take_over(*matrix.matrix, moved, part, budget);
              });
  define_loop(dual, "restore_gradient", {"matrix", "budget"},
              [](KernelDual& self, BoundMatrix& matrix, const Budget& budget) {
                matrix.per_row(self.beta);
                self.restore_gradient(*matrix.matrix, budget);
              });
}

void bind_matrix(nb::module_& m) {
  nb::class_<CacheCounts>(m, "CacheCounts")
      .def(nb::init<>())
      .def_ro("peak_bytes", &CacheCounts::peak)
      .def_ro("rows_computed", &CacheCounts::computed)
      .def_ro("rows_found", &CacheCounts::found);

  nb::class_<SpareMemory>(m, "SpareMemory").def(nb::init<>());

  nb::class_<BoundMatrix> matrix(m, "KernelMatrix");
  matrix
      .def(
          "__init__",
          [](BoundMatrix* self, const Data& data, const KernelSum& kernel, const ConstIndices& order,
             const ConstIndices& begins, Integer cache_bytes, bool single,
             std::shared_ptr<CacheCounts> counts, std::shared_ptr<SpareMemory> spare) {
            const auto rows = data.row_numbers(order);
            require_begins(span(begins), rows.size(), "blocks must begin at 0 and end with the rows");
            const Encoding encoding = encoding_of(data, kernel);
            new (self) BoundMatrix{
                data, kernel_matrix(rows_for(data, encoding), kernel, encoding, rows, span(begins),
                                    {cache_bytes, single, std::move(counts), std::move(spare)})};
          },
          "data"_a, "kernel"_a, "order"_a, "begins"_a, nb::kw_only(), "cache_bytes"_a, "single"_a,
          "counts"_a = nb::none(), "spare"_a = nb::none(), Released())
      .def_prop_ro("count", &BoundMatrix::count)
      .def_prop_ro("encoding", [](BoundMatrix& self) { return name_of(self->holding()); })
      .def_prop_ro("cached_bytes", [](BoundMatrix& self) { return self->cached_bytes(); })
      .def_prop_ro("computed_rows", [](BoundMatrix& self) { return self->computed(); })
      .def_prop_ro("expensive", [](BoundMatrix& self) { return self->expensive(); })
      .def_prop_ro("coupled_share", [](BoundMatrix& self) { return self->coupled_share(); })
      .def_prop_ro("keeps_most", [](BoundMatrix& self) { return self->keeps_most(); });
  define_loop(matrix, "subset", {"which"}, [](BoundMatrix& self, const ConstIndices& which) {
    return BoundMatrix{self.data, self->subset(self.sorted_rows(which))};
  });
  define_loop(matrix, "add", {"which", "changes", "f", "budget"},
              [](BoundMatrix& self, const ConstIndices& which, const ConstVector& changes, const Vector& f,
                 const Budget& budget) {
                const auto rows = self.sorted_rows(which);
                self->add(rows, per_row(changes, length(rows)), self.per_row(f).data(), budget);
              });
  define_loop(matrix, "multiply", {"p", "out", "budget"},
              [](BoundMatrix& self, const ConstVector& p, const Vector& out, const Budget& budget) {
                return interruptibly(budget, [&](Watch& watch) {
                  return self->multiply(self.per_row(p), self.per_row(out), budget, watch);
                });
              });
}

void bind_solvers(nb::module_& m) {
  nb::class_<BoundPairs> pairs(m, "SequentialMinimalOptimization");
  pairs.def(
      "__init__",
      [](BoundPairs* self, BoundMatrix& matrix, const ConstVector& diagonal, bool second_order,
         bool shrinking) {
        new (self)
            BoundPairs{matrix.count(), matrix->pairs(matrix.per_row(diagonal), second_order, shrinking)};
      },
      "matrix"_a, "diagonal"_a, "second_order"_a, "shrinking"_a, nb::keep_alive<1, 2>());
  define_loop(pairs, "run", {"dual", "most", "tolerance", "budget"},
              [](BoundPairs& self, KernelDual& dual, Integer most, double tolerance, const Budget& budget) {
                const PairReport report = interruptibly(budget, [&](Watch& watch) {
                  return self.on(dual).run(dual, most, tolerance, budget, watch);
                });
                return std::make_tuple(report.pairs, report.active, report.violation, report.ascent,
                                       report.gap, report.done);
              });

  m.def(
      "kernel_dual_ascent",
      [](BoundMatrix& matrix, bool squared, const Table& coordinates, const ConstIndices& order,
         const Vector& scores, double bias, double bias_curvature, const Budget& budget) {
        const std::span<Coordinate> all = coordinates_of(coordinates, matrix.count());
        const auto visits = row_numbers(order, matrix.count());
        const std::span<double> out = matrix.per_row(scores);
        const KernelSweep sweep = interruptibly(budget, [&](Watch& watch) {
          return matrix->sweep(squared, all, visits, out, bias, bias_curvature, budget, watch);
        });
        return std::make_tuple(sweep.unrest, sweep.bias, sweep.ascent, sweep.gap, sweep.whole);
      },
      "matrix"_a, "squared"_a, "coordinates"_a, "order"_a, "scores"_a, nb::kw_only(), "bias"_a,
      "bias_curvature"_a, "budget"_a, Released());

  nb::class_<BoundWorkingSet> set(m, "WorkingSet");
  set.def(
      "__init__",
      [](BoundWorkingSet* self, BoundMatrix& matrix, Integer size, std::uint64_t seed) {
        require(size >= 2, "a working set needs two rows");
        new (self) BoundWorkingSet{matrix.count(), matrix->working_set(size, seed)};
      },
      "matrix"_a, "size"_a, "seed"_a, nb::keep_alive<1, 2>());
  define_loop(set, "run", {"dual", "rounds", "budget"},
              [](BoundWorkingSet& self, KernelDual& dual, Integer rounds, const Budget& budget) {
                return interruptibly(
                    budget, [&](Watch& watch) { return self.on(dual).run(dual, rounds, budget, watch); });
              });
  set.def_prop_ro("work", [](BoundWorkingSet& self) { return self.solver->work(); });
  define_loop(set, "move_free", {"dual", "most", "systems", "budget"},
              [](BoundWorkingSet& self, KernelDual& dual, Integer most, Integer systems,
                 const Budget& budget) { return self.on(dual).move_free(dual, most, systems, budget); });
  set.def_prop_ro("moved", [](BoundWorkingSet& self) { return self.solver->moved(); });

  nb::class_<BoundGradients> gradients(m, "ConjugateGradients");
  gradients.def(
      "__init__",
      [](BoundGradients* self, BoundMatrix& matrix) {
        new (self) BoundGradients{matrix.count(), std::make_unique<ConjugateGradients>(*matrix.matrix)};
      },
      "matrix"_a, nb::keep_alive<1, 2>());
  define_loop(gradients, "run", {"dual", "steps", "budget"},
              [](BoundGradients& self, KernelDual& dual, Integer steps, const Budget& budget) {
                require(
                    dual.sides() == 1 && std::ranges::none_of(dual.widths, [](double e) { return e > 0; }),
                    "multipliers must have one total and no kink");
                return interruptibly(
                    budget, [&](Watch& watch) { return self.on(dual).run(dual, steps, budget, watch); });
              });
}

}  // namespace

void bind_kernels(nb::module_& m) {
  bind_values(m);
  bind_small_problems(m);
  bind_dual(m);
  bind_matrix(m);
  bind_solvers(m);
}

}  // namespace maxmargin
