// SPDX-License-Identifier: BSD-3-Clause
#include "kernel/any_kernel_matrix.hpp"

#include <utility>

#include "kernel/kernel_dual_ascent.hpp"
#include "kernel/kernel_matrix.hpp"
#include "kernel/sequential_minimal_optimization.hpp"
#include "kernel/working_set.hpp"

namespace maxmargin {
namespace {

template <class T>
class WorkingSetOn final : public AnyWorkingSet {
 public:
  WorkingSetOn(KernelMatrix<T>& matrix, Integer size, std::uint64_t seed) : set_(matrix, size, seed) {}
  Integer run(KernelDual& dual, Integer rounds, const Budget& budget, Watch& watch) override {
    return set_.run(dual, rounds, budget, watch);
  }
  Integer move_free(KernelDual& dual, Integer most, Integer systems, const Budget& budget) override {
    return set_.move_free(dual, most, systems, budget);
  }

 private:
  WorkingSet<KernelMatrix<T>> set_;
};

template <class T>
class PairsOn final : public AnySequentialMinimalOptimization {
 public:
  PairsOn(KernelMatrix<T>& matrix, std::span<const double> diagonal, bool second_order, bool shrinking)
      : pairs_(matrix, diagonal, second_order, shrinking) {}
  PairReport run(KernelDual& dual, Integer most, double tolerance, const Budget& budget,
                 Watch& watch) override {
    return pairs_.run(dual, most, tolerance, budget, watch);
  }

 private:
  SequentialMinimalOptimization<KernelMatrix<T>> pairs_;
};

template <class T>
class KernelMatrixIn final : public AnyKernelMatrix {
 public:
  explicit KernelMatrixIn(KernelMatrix<T> matrix) : matrix_(std::move(matrix)) {}

  Integer count() const override { return matrix_.count(); }
  Holding holding() const override { return matrix_.holding(); }
  Integer cached_bytes() const override { return matrix_.cached_bytes(); }
  Integer computed() const override { return matrix_.computed(); }
  bool dear() const override { return matrix_.dear(); }
  bool keeps_all() const override { return matrix_.keeps_all(); }
  std::unique_ptr<AnyKernelMatrix> subset(std::span<const Integer> which) override {
    return std::make_unique<KernelMatrixIn>(matrix_.subset(which));
  }
  void add(std::span<const Integer> which, std::span<const double> changes, double* f,
           const Budget& budget) override {
    matrix_.add(which, changes, f, budget);
  }
  std::unique_ptr<AnyWorkingSet> working_set(Integer size, std::uint64_t seed) override {
    return std::make_unique<WorkingSetOn<T>>(matrix_, size, seed);
  }
  std::unique_ptr<AnySequentialMinimalOptimization> pairs(std::span<const double> diagonal,
                                                          bool second_order, bool shrinking) override {
    return std::make_unique<PairsOn<T>>(matrix_, diagonal, second_order, shrinking);
  }
  KernelSweep sweep(bool squared, std::span<Coordinate> coordinates, std::span<const Integer> order,
                    std::span<double> scores, double bias, double bias_curvature, const Budget& budget,
                    Watch& watch) override {
    const auto sweep = squared ? kernel_dual_ascent<true, T> : kernel_dual_ascent<false, T>;
    return sweep(matrix_, coordinates, order, scores, bias, bias_curvature, budget, watch);
  }

 private:
  KernelMatrix<T> matrix_;
};

}  // namespace

std::unique_ptr<AnyKernelMatrix> kernel_matrix(const KernelRows& rows, const KernelSum& kernel,
                                               const Encoding& encoding, std::span<const Integer> order,
                                               std::span<const Integer> begins, MatrixOptions options) {
  const auto made = [&]<class T>(T) -> std::unique_ptr<AnyKernelMatrix> {
    return std::make_unique<KernelMatrixIn<T>>(
        KernelMatrix<T>(rows, kernel, encoding, order, begins, options.cache_bytes,
                        std::move(options.counts), std::move(options.spare)));
  };
  return options.single ? made(0.0f) : made(0.0);
}

void kernel_diagonal(const KernelSum& kernel, const StoredRows& rows, std::span<double> out) {
  std::visit([&](const auto& kind) { kernel_diagonal(kernel, kind, out); }, rows);
}

void kernel_block(const KernelSum& kernel, const Encoding& encoding, SomeRows first, SomeRows second,
                  double* out, const Budget& budget) {
  kernel_block<double>(kernel, encoding, first.rows, first.which, second.rows, second.which, out, budget);
}

void expansions(const KernelSum& kernel, const Encoding& encoding, SomeRows support,
                const Coefficients& coefficients, SomeRows targets, double* out, bool single,
                const Budget& budget, const std::function<void()>& between) {
  const auto run = single ? expansions<float> : expansions<double>;
  run(kernel, encoding, support.rows, support.which, coefficients.values, coefficients.rows,
      coefficients.segments, targets.rows, targets.which, out, budget, between);
}

}  // namespace maxmargin
