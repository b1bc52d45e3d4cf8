// SPDX-License-Identifier: BSD-3-Clause
// What the rows of a chunk add to the sums of a pass, in one visit of each row.
//
// Rows are taken in blocks. While the rows of a block are near, and a few numbers of each of them beside
// these, all is found out that a pass asks of them: no number of a row is written to memory and read again,
// but where somebody asks for it.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "passes/passes.hpp"
#include "passes/proof.hpp"

namespace maxmargin {

inline constexpr Integer kVisited = 256;  // rows of a block: with 20 columns 20 kB, in the nearest cache

// The rows of a problem for two classes.
struct TwoClasses {
  AnyLoss loss;
  const std::uint8_t* ours;     // not 0 for a row with label 1
  std::array<double, 2> costs;  // C_i of rows with label -1, and with label 1
  const double* own_costs;      // C_i of each row, where they differ; else null
};

// Some (w, b), and by how much a score at each of them can be off, in units of the length of its row.
struct PointsOfPass {
  Integer count() const { return static_cast<Integer>(intercepts.size()); }

  std::span<const double> vectors, intercepts, errors;
};

// Numbers of the rows of one block; those of a point lie together.
struct RowBlock {
  explicit RowBlock(Integer points) : margins(static_cast<std::size_t>(points * kVisited)) {}

  double* margins_at(Integer point) { return &margins[point * kVisited]; }

  Integer first = 0, count = 0;
  std::array<double, kVisited> labels, costs, lengths;
  std::vector<double> margins;
};

// The scores of a block at some points, and squared lengths.
template <class Rows>
class ScoresOfBlocks {
 public:
  ScoresOfBlocks(const Rows& rows, std::span<const double> points) : rows_(rows), points_(points) {
    if (fits_registers(rows)) padded_ = PaddedPoints(InRegisters(rows.columns), points);
  }
  void operator()(Integer first, Integer count, double* scores, double* squared_norms) const {
    const View<Rows> view = rows_;
    if constexpr (kDense<Rows>) {
      if (fits_registers(view)) {
        // A block begins with the first of two rows where two in turn share their values.
        const Rows part{view[first].values, count, view.columns, view.stride, view.shift};
        return scores_in_registers(part, padded_, scores, kVisited, squared_norms);
      }
    }
    for (Integer i = 0; i < count; ++i) squared_norms[i] = view[first + i].squared_norm();
    for (std::size_t begin = 0; begin < points_.size(); begin += static_cast<std::size_t>(view.columns)) {
      for (Integer i = 0; i < count; ++i) scores[i] = view[first + i].dot(&points_[begin]);
      scores += kVisited;
    }
  }

 private:
  const Rows& rows_;
  std::span<const double> points_;
  PaddedPoints padded_;
};

// Calls each(block) for one block after the other. `losses` become upper bounds of the sums of the losses
// at each point; `longest` is a bound on the length of the longest row.
template <class Rows, class Each>
void visit_blocks(const Rows& rows, const TwoClasses& of, const PointsOfPass& at, double length_rounding,
                  std::span<double> losses, double& longest, const Each& each) {
  const Integer points = at.count();
  const ScoresOfBlocks<Rows> scores_of(rows, at.vectors);
  RowBlock block(points);
  std::fill(losses.begin(), losses.end(), 0.0);
  longest = 0;
  Integer blocks = 0;
  for (; block.first < rows.count; block.first += kVisited, ++blocks) {
    const Integer count = block.count = std::min(kVisited, rows.count - block.first);
    double* const lengths = block.lengths.data();
    scores_of(block.first, count, block.margins.data(), lengths);
    const std::uint8_t* const ours = of.ours + block.first;
    double *const labels = block.labels.data(), *const costs = block.costs.data();
    const double cost = of.costs[1], other_cost = of.costs[0];
#pragma omp simd
    for (Integer i = 0; i < count; ++i) lengths[i] = std::sqrt(lengths[i]) * length_rounding;
    double most = longest;
#pragma omp simd reduction(max : most)
    for (Integer i = 0; i < count; ++i) most = lengths[i] > most ? lengths[i] : most;
    longest = most;
#pragma omp simd
    for (Integer i = 0; i < count; ++i) {
      labels[i] = static_cast<double>(2 * static_cast<int>(ours[i] != 0) - 1);
      costs[i] = labels[i] > 0 ? cost : other_cost;
    }
    if (of.own_costs) std::copy_n(of.own_costs + block.first, count, costs);
    const std::size_t size = static_cast<std::size_t>(count);
    const Objective objective{of.loss, {labels, size}, {costs, size}};
    for (Integer p = 0; p < points; ++p) {
      double* const margins = block.margins_at(p);
      const double b = at.intercepts[p];
#pragma omp simd
      for (Integer i = 0; i < count; ++i) margins[i] = labels[i] * (margins[i] + b);
      losses[p] += objective.primal({margins, size}, 0, 0, {at.errors[p], {lengths, size}});
    }
    each(block, objective);
  }
  for (double& loss : losses) loss *= 1 + static_cast<double>(blocks + 4) * kUnit;
}

// Two sums of rows times their multipliers, those of label 1 first.
template <class Rows>
class SumsOfSides {
 public:
  explicit SumsOfSides(const Rows& rows)
      : rows_(rows), by_(rows.columns), own_(fits_registers(rows) ? 2 * by_.size() : 0) {}

  void add(Integer first, Integer count, const double* of_1, const double* of_other, double* vectors) {
    const View<Rows> view = rows_;
    if constexpr (kDense<Rows>) {
      if (!own_.empty()) {
        return add_two_sums_in_registers(view, by_, first, count, of_1, of_other, own_.data(),
                                         own_.data() + by_.size());
      }
    }
    for (Integer i = 0; i < count; ++i) {
      if (of_1[i] != 0) view[first + i].add_to(vectors, of_1[i]);
      if (of_other[i] != 0) view[first + i].add_to(vectors + view.columns, of_other[i]);
    }
  }
  // Adds what is still in registers' order.
  void end(double* vectors) const {
    if (own_.empty()) return;
    for (Integer side = 0; side < 2; ++side) {
      by_.for_each([&](Integer column, Integer place) {
        vectors[side * by_.columns + column] += own_[side * by_.size() + place];
      });
    }
  }

 private:
  const Rows& rows_;
  InRegisters by_;
  std::vector<double> own_;
};

// What the multipliers of the margins at the first point add up to. Pairs are those of label 1 and of -1.
struct MultiplierSums {
  double* vectors;                          // two of them, of zeros
  std::array<double, 2> gains{}, totals{};  // gains from below
  double totals_off = 0;                    // what both totals together may be off by
  double lengths = 0, terms = 0;            // sum_i alpha_i |x_i|, and how many alpha_i are not 0
  double longest = 0;
};

// `margins` are those at the first point, where there is room for them.
template <class Rows>
void add_multipliers(const Rows& rows, const TwoClasses& of, const PointsOfPass& at, double length_rounding,
                     std::span<double> losses, std::span<double> margins, MultiplierSums& sums) {
  SumsOfSides<Rows> vectors(rows);
  std::array<std::array<double, kVisited>, 3> alpha;  // all, those of label 1, those of -1
  std::array<double, 2> sizes{};
  double blocks = 0;
  const auto each = [&](RowBlock& block, const Objective& objective) {
    const std::size_t size = static_cast<std::size_t>(block.count);
    const double* const own = block.margins_at(0);
    objective.multipliers({own, size}, alpha[0].data());
    const double *const labels = block.labels.data(), *const lengths = block.lengths.data();
    double *const all = alpha[0].data(), *const ours = alpha[1].data(), *const others = alpha[2].data();
    double length = 0, terms = 0;
#pragma omp simd reduction(+ : length, terms)
    for (std::size_t i = 0; i < size; ++i) {
      ours[i] = labels[i] > 0 ? all[i] : 0.0;
      others[i] = labels[i] > 0 ? 0.0 : all[i];
      length += all[i] * lengths[i];
      terms += all[i] != 0 ? 1.0 : 0.0;
    }
    sums.lengths += length;
    sums.terms += terms;
    const std::array<Gains, 2> gains = objective.gains_of_sides({all, size});
    for (std::size_t side = 0; side < 2; ++side) {
      sums.gains[side] += gains[side].gain;
      sizes[side] += std::abs(gains[side].gain);
      sums.totals[side] += gains[side].total;
    }
    vectors.add(block.first, block.count, alpha[1].data(), alpha[2].data(), sums.vectors);
    if (!margins.empty()) std::copy_n(own, size, margins.begin() + block.first);
    ++blocks;
  };
  visit_blocks(rows, of, at, length_rounding, losses, sums.longest, each);
  vectors.end(sums.vectors);
  const double roundings = (blocks + 4) * kUnit;
  for (std::size_t side = 0; side < 2; ++side) sums.gains[side] -= roundings * sizes[side];
  sums.totals_off =
      (static_cast<double>(kVisited) + blocks + 18) * kUnit * (sums.totals[0] + sums.totals[1]);
}

// How a pass of the hinge sorts rows by their margins at the first point.
struct Sorting {
  std::span<const double> edges;  // increasing
  double width;                   // of the band, whose rows are told and not folded
  const double* spreads;          // in which distances of margins from 1 are told, or null
};

// What it finds.
struct SortedRows {
  double *vectors, *sums;  // of folded rows, see `fold_rows`
  // For each point and side, sum_i C_i (x_i, 1): of the first point those of rows of the band with a loss;
  // of the others the rows that have a loss there alone, less those that have one at the first alone.
  double* slopes;
  std::vector<Integer> near{};         // the rows of the band
  std::vector<double> near_margins{};  // as they were sorted by
  double longest = 0;
};

template <class Rows>
void sort_rows(const Rows& rows, const TwoClasses& of, const PointsOfPass& at, double length_rounding,
               const Sorting& by, std::span<double> losses, std::span<double> all_margins,
               SortedRows& found) {
  const View<Rows> view = rows;
  Folds<Rows> folds(rows, by.edges, by.width);
  std::array<double, kVisited> scaled;
  std::array<std::int32_t, kVisited> some;
  const Integer columns = rows.columns;
  const auto add = [&](Integer point, const RowBlock& block, Integer i, double weight) {
    double* const slope = found.slopes + (2 * point + (block.labels[i] > 0 ? 0 : 1)) * (columns + 1);
    view[block.first + i].add_to(slope, weight);
    slope[columns] += weight;
  };
  const auto each = [&](RowBlock& block, const Objective&) {
    const Integer count = block.count;
    const double* const own = block.margins_at(0);
    const double* margins = own;
    if (by.spreads) {
      const double* const spreads = by.spreads + block.first;
      for (Integer i = 0; i < count; ++i) scaled[i] = 1 + (own[i] - 1) / spreads[i];
      margins = scaled.data();
    }
    folds.add(block.first, count, block.labels.data(), block.costs.data(), margins, block.lengths.data());
    Integer listed = 0;
    for (Integer i = 0; i < count; ++i) {
      some[listed] = static_cast<std::int32_t>(i);
      listed += static_cast<Integer>((std::abs(margins[i] - 1) <= by.width) & (block.costs[i] > 0));
    }
    for (Integer k = 0; k < listed; ++k) {
      const Integer i = some[k];
      found.near.push_back(block.first + i);
      found.near_margins.push_back(margins[i]);
      if (margins[i] < 1) add(0, block, i, block.costs[i]);
    }
    for (Integer p = 1; p < at.count(); ++p) {
      const double* const others = block.margins_at(p);
      listed = 0;
      for (Integer i = 0; i < count; ++i) {
        some[listed] = static_cast<std::int32_t>(i);
        listed += static_cast<Integer>((others[i] < 1) != (margins[i] < 1));
      }
      for (Integer k = 0; k < listed; ++k) {
        const Integer i = some[k];
        add(p, block, i, others[i] < 1 ? block.costs[i] : -block.costs[i]);
      }
    }
    if (!all_margins.empty()) std::copy_n(own, count, all_margins.begin() + block.first);
  };
  visit_blocks(rows, of, at, length_rounding, losses, found.longest, each);
  folds.end(found.vectors, found.sums);
}

}  // namespace maxmargin
