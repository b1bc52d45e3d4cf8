// SPDX-License-Identifier: BSD-3-Clause
// Kernel matrices of either precision, and all that is done with them: what bindings see of core/kernel.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "kernel/kernel_dual.hpp"
#include "kernel/kernel_rows.hpp"
#include "kernel/row_cache.hpp"
#include "linear/dual_coordinate_ascent.hpp"
#include "machine/budget.hpp"

namespace maxmargin {

// The report of a run of sequential minimal optimisation.
struct PairReport {
  Integer pairs = 0;     // steps taken
  Integer active = 0;    // rows not shrunk away
  double violation = 0;  // greatest f of a beta that may fall minus least f of one that may grow
  double ascent = 0;     // by how much the dual value grew
  double gap = 0;        // of the active rows; the others have none as long as their walls hold them
  bool done = false;     // all rows were looked at, and no pair is left to move
};

// The report of a sweep of dual coordinate ascent with a kernel.
struct KernelSweep {
  double unrest = 0;  // the largest derivative that a step has used up
  double bias = 0;    // s^2 sum_j alpha_j y_j
  double ascent = 0;  // by how much the dual value grew
  double gap = 0;     // at the end of the sweep
  bool whole = true;  // all rows were visited
};

// See working_set.hpp.
class AnyWorkingSet {
 public:
  virtual ~AnyWorkingSet() = default;
  // So many rounds, or fewer where there is nothing left to do; returns their number.
  virtual Integer run(KernelDual& dual, Integer rounds, const Budget& budget, Watch& watch) = 0;
  // Moves the free multipliers, if there are `most` of them or fewer, to where up to `systems` steps of
  // Newton's method lead; returns the number of these steps. In single precision there are none.
  virtual Integer move_free(KernelDual& dual, Integer most, Integer systems, const Budget& budget) = 0;
  // Steps on pairs so far, each times the rows of its set.
  virtual double work() const = 0;
  // Rows of the matrix that the rounds have asked for so far, one for each multiplier that changed.
  virtual Integer moved() const = 0;
};

// See sequential_minimal_optimization.hpp.
class AnySequentialMinimalOptimization {
 public:
  virtual ~AnySequentialMinimalOptimization() = default;
  // At most `most` pairs, until no pair violates by more than `tolerance`.
  virtual PairReport run(KernelDual& dual, Integer most, double tolerance, const Budget& budget,
                         Watch& watch) = 0;
};

// See kernel_matrix.hpp. A solver that it makes must not outlive it.
class AnyKernelMatrix {
 public:
  virtual ~AnyKernelMatrix() = default;
  virtual Integer count() const = 0;
  virtual Holding holding() const = 0;
  virtual Integer cached_bytes() const = 0;
  virtual Integer computed() const = 0;
  // Whether values take long enough to compute for it to pay to remember or to do without them.
  virtual bool expensive() const = 0;
  // The share of all pairs of rows that are in one block.
  virtual double coupled_share() const = 0;
  // Whether a row that is computed is still there when it is needed again: always so far, or of every
  // second one at least.
  virtual bool keeps_most() const = 0;
  // The matrix of some of the rows, in ascending order; what was kept of their rows moves there.
  virtual std::unique_ptr<AnyKernelMatrix> subset(std::span<const Integer> which) = 0;
  // f_j += sum_q changes_q K(which_q, j) for all j; `which` must be in ascending order. A call that goes on
  // with what the last one began takes no memory from its rows.
  virtual void add(std::span<const Integer> which, std::span<const double> changes, double* f,
                   const Budget& budget, bool goes_on = false) = 0;

  // out = K p. The first time, memory for rows makes way for half of the matrix, if that fits there and is
  // worth keeping. False where the budget was spent: `out` is of no use then.
  virtual bool multiply(std::span<const double> p, std::span<double> out, const Budget& budget,
                        Watch& watch) = 0;
  // Gives the memory for that half back.
  virtual void forget_half() = 0;

  virtual std::unique_ptr<AnyWorkingSet> working_set(Integer size, std::uint64_t seed) = 0;
  virtual std::unique_ptr<AnySequentialMinimalOptimization> pairs(std::span<const double> diagonal,
                                                                  bool second_order, bool shrinking) = 0;
  // One sweep of kernel_dual_ascent.hpp.
  virtual KernelSweep sweep(bool squared, std::span<Coordinate> coordinates, std::span<const Integer> order,
                            std::span<double> scores, double bias, double bias_curvature,
                            const Budget& budget, Watch& watch) = 0;
};

struct MatrixOptions {
  Integer cache_bytes;
  bool single;
  std::shared_ptr<CacheCounts> counts;
  std::shared_ptr<SpareMemory> spare;
};
std::unique_ptr<AnyKernelMatrix> kernel_matrix(const KernelRows& rows, const KernelSum& kernel,
                                               const Encoding& encoding, std::span<const Integer> order,
                                               std::span<const Integer> begins, MatrixOptions options);

// Some rows of what a kernel takes.
struct SomeRows {
  const KernelRows& rows;
  std::span<const Integer> which;
};

// out_i = k(x_i, x_i)
void kernel_diagonal(const KernelSum& kernel, const StoredRows& rows, std::span<double> out,
                     const Budget& budget);
// out[a][b] = k(row a of the first, row b of the second); not all of them where the budget is spent
void kernel_block(const KernelSum& kernel, const Encoding& encoding, SomeRows first, SomeRows second,
                  double* out, const Budget& budget, Watch& watch);

// Some numbers for each row of the support of `expansions`, values[r][s].
struct Coefficients {
  const double* values;
  Integer rows;
  std::span<const Integer> segments;  // where consecutive shares of the support begin, and the end
};
// out[segment][r][target] = sum over the rows s of a segment of values[r][s] k(s, target)
//
// The certificate has one segment, one-vs-one has one per class. The values of the kernel are computed in
// single precision if asked for, all sums in double. `between` is called now and then; how often changes
// nothing in the sums.
void expansions(const KernelSum& kernel, const Encoding& encoding, SomeRows support,
                const Coefficients& coefficients, SomeRows targets, double* out, bool single,
                const Budget& budget, const std::function<void()>& between);

}  // namespace maxmargin
