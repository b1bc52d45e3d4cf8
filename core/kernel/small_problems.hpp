// SPDX-License-Identifier: BSD-3-Clause
// Small kernel problems on rows of one matrix that is at hand: all of them solved, or proven, in one call.
//
// A pair of classes with a hundred rows takes some ten microseconds, less than the way to it from Python.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernel/given_matrix.hpp"
#include "kernel/small_dual.hpp"

namespace maxmargin {

// Problem p has the numbers begins[p] .. begins[p + 1] - 1 of each array.
struct SmallProblems {
  const double* matrix;
  Integer size;  // rows and columns of the matrix
  std::span<const Integer> order, begins;
  std::span<const double> labels, costs;

  Integer count() const { return static_cast<Integer>(begins.size()) - 1; }
  Integer rows(Integer p) const { return begins[p + 1] - begins[p]; }
  template <class T>
  std::span<T> part(Integer p, std::span<T> array) const {
    return array.subspan(begins[p], rows(p));
  }
  GivenMatrix matrix_of(Integer p) const { return {matrix, size, part(p, order)}; }
};

// The values among the rows of problems, kept from one call to the next with problems on the same rows of
// the same matrix.
struct KeptValues {
  std::shared_ptr<SmallDual<double>> small;
};

// Multipliers alpha of every problem with a relative gap of at most tol, or, for at most `tiny` rows, that
// rounding alone keeps from the best; after `most_rounds` it may be worse. It begins with alpha as it is,
// made feasible; `scores` are K beta of it, where they are known, else there are none. Returns the steps of
// each.
std::vector<Integer> solve_small(const SmallProblems& all, std::span<double> alpha,
                                 std::span<const double> scores, double tol, Integer tiny,
                                 Integer most_rounds, KeptValues* kept, const Budget& budget, Watch& watch);

// Six numbers that prove what a problem's multipliers are worth, as Python takes them.
struct SmallProof {
  double b, low, high, primal, dual;
  double violation;  // the largest one of complementary slackness
};

// Makes every problem's alpha feasible and proves what it is worth; margins come with it.
// `lengths` are those of the matrix' rows, whose values are each off by at most `value_error` times both
// lengths.
void prove_small(const SmallProblems& all, std::span<double> alpha, std::span<double> margins,
                 std::span<const double> lengths, double value_error, std::span<SmallProof> proofs,
                 const Budget& budget);

}  // namespace maxmargin
