// SPDX-License-Identifier: BSD-3-Clause
// Kernels, their matrices, and the solvers on them.

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <variant>

#include "bindings/data.hpp"
#include "bindings/modules.hpp"
#include "data/columns.hpp"
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

// A solver on a kernel matrix of either precision.
template <template <class> class SolverOn>
class OnEitherMatrix {
 public:
  template <class... Arguments>
  explicit OnEitherMatrix(AnyKernelMatrix& matrix, const Arguments&... arguments)
      : count_(matrix.count()), solver_(matrix.visit([&]<class Matrix>(Matrix& typed) -> Either {
          return Either(std::in_place_type<SolverOn<Matrix>>, typed, arguments...);
        })) {}

  // Calls visitor(solver) for a dual with as many rows as the matrix has.
  template <class Visitor>
  decltype(auto) visit(const KernelDual& dual, Visitor&& visitor) {
    require(dual.count() == count_, "one number per row is needed");
    return std::visit(std::forward<Visitor>(visitor), solver_);
  }

 private:
  using Either = std::variant<SolverOn<KernelMatrix<float>>, SolverOn<KernelMatrix<double>>>;

  Integer count_;
  Either solver_;
};
using AnyWorkingSet = OnEitherMatrix<WorkingSet>;
using AnySequentialMinimalOptimization = OnEitherMatrix<SequentialMinimalOptimization>;

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
    require(begins.size() >= 2 && span(begins).front() == 0 &&
                span(begins).back() == static_cast<Integer>(order.size()) &&
                std::is_sorted(span(begins).begin(), span(begins).end()),
            "problems must begin at 0 and end with the rows");
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

}  // namespace

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
          [](BoundSmallProblems& self, Vector alpha, Vector margins, Table proofs, const Budget& budget) {
            self.require_rows(alpha);
            self.require_rows(margins);
            require(static_cast<Integer>(proofs.shape(0)) == self.problems.count() && proofs.shape(1) == 6,
                    "six values per problem are needed");
            nb::gil_scoped_release unlocked;
            prove_small(self.problems, span(alpha), span(margins),
                        {reinterpret_cast<SmallProof*>(proofs.data()), proofs.shape(0)}, budget);
          },
          "alpha"_a, "margins"_a, "proofs"_a, "budget"_a);

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
           [](KernelDual& self, AnyKernelMatrix& matrix, ConstIndices rows, ConstVector targets,
              const Budget& budget) {
             require(rows.size() == targets.size() && matrix.count() == self.count(),
                     "one number per row is needed");
             require(std::is_sorted(span(rows).begin(), span(rows).end()), "rows must be in order");
             for (const Integer i : span(rows)) {
               require(i >= 0 && i < self.count(), "an index of a row is out of range");
             }
             nb::gil_scoped_release unlocked;
             matrix.visit([&](auto& typed) { self.move(typed, span(rows), span(targets), budget); });
           })
      .def("restore_gradient", [](KernelDual& self, AnyKernelMatrix& matrix, const Budget& budget) {
        require(matrix.count() == self.count(), "one number per row is needed");
        nb::gil_scoped_release unlocked;
        matrix.visit([&](auto& typed) { self.restore_gradient(typed, budget); });
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
      .def(
          "__init__",
          [](AnySequentialMinimalOptimization* self, AnyKernelMatrix& matrix, ConstVector diagonal,
             bool second_order, bool shrinking) {
            require(static_cast<Integer>(diagonal.size()) == matrix.count(),
                    "one number per row is needed");
            new (self) AnySequentialMinimalOptimization(matrix, span(diagonal), second_order, shrinking);
          },
          "matrix"_a, "diagonal"_a, "second_order"_a, "shrinking"_a, nb::keep_alive<1, 2>())
      .def("run", [](AnySequentialMinimalOptimization& self, KernelDual& dual, Integer most,
                     double tolerance, const Budget& budget) {
        const PairReport report = interruptibly(budget, [&](Watch& watch) {
          return self.visit(dual,
                            [&](auto& pairs) { return pairs.run(dual, most, tolerance, budget, watch); });
        });
        return std::make_tuple(report.pairs, report.active, report.violation, report.ascent, report.gap,
                               report.done);
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
      .def(
          "__init__",
          [](AnyWorkingSet* self, AnyKernelMatrix& matrix, Integer size, std::uint64_t seed) {
            require(size >= 2, "a working set needs two rows");
            new (self) AnyWorkingSet(matrix, size, seed);
          },
          "matrix"_a, "size"_a, "seed"_a, nb::keep_alive<1, 2>())
      .def("run",
           [](AnyWorkingSet& self, KernelDual& dual, Integer rounds, const Budget& budget) {
             return interruptibly(budget, [&](Watch& watch) {
               return self.visit(dual, [&](auto& set) { return set.run(dual, rounds, budget, watch); });
             });
           })
      .def("move_free",
           [](AnyWorkingSet& self, KernelDual& dual, Integer most, Integer systems, const Budget& budget) {
             nb::gil_scoped_release unlocked;
             return self.visit(dual, [&](auto& set) { return set.move_free(dual, most, systems, budget); });
           });
}

}  // namespace maxmargin
