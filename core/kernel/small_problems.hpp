// SPDX-License-Identifier: BSD-3-Clause
// Small kernel problems on rows of one matrix that is at hand: all of them solved, or proven, in one call.
//
// A pair of classes with a hundred rows takes some ten microseconds, less than the way to it from Python.
#pragma once

#include <span>
#include <vector>

#include "kernel/given_matrix.hpp"
#include "machine/budget.hpp"

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

// Multipliers alpha of every problem with a relative gap of at most tol, or, for at most `tiny` rows, that
// rounding alone keeps from the best; after `most_rounds` it may be worse. It begins with alpha as it is,
// made feasible; `scores` are K beta of it, where they are known, else there are none. Returns the steps of
// each.
std::vector<Integer> solve_small(const SmallProblems& all, std::span<double> alpha,
                                 std::span<const double> scores, double tol, Integer tiny,
                                 Integer most_rounds, const Budget& budget, Watch& watch);

// Numbers that prove what a problem's multipliers are worth, as Python takes them.
struct SmallProof {
  double b, low, high, primal, dual;
  double violation;  // the largest one of the optimality conditions
  double length;     // w is so many times the sum that the multipliers make
};
inline constexpr std::size_t kNumbersOfProof = sizeof(SmallProof) / sizeof(double);

// Makes every problem's alpha feasible and proves what it is worth; margins come with it.
// `lengths` are those of the matrix' rows, whose values are each off by at most `value_error` times both
// lengths.
void prove_small(const SmallProblems& all, std::span<double> alpha, std::span<double> margins,
                 std::span<const double> lengths, double value_error, std::span<SmallProof> proofs,
                 const Budget& budget);

// What is found of problems at several values of C: each array has a line for every C, of all rows or of
// all problems.
struct AlongCosts {
  std::span<const double> Cs;  // upwards
  std::span<double> alpha, margins;
  std::span<SmallProof> proofs;
  std::span<Integer> steps;
};

// Solves and proves problems whose costs are those at C = 1 at every C, each from its multipliers of the
// last one, times what makes the most of them. Problems that follow one another on the same rows share the
// values among these, also for their proofs. Returns the number of the first values of C at which all are
// within tol: what it finds beyond is worth nothing, since some problems have ended there.
Integer solve_along(const SmallProblems& all, const AlongCosts& found, double tol, Integer tiny,
                    Integer most_rounds, std::span<const double> lengths, double value_error,
                    const Budget& budget, Watch& watch);

}  // namespace maxmargin
