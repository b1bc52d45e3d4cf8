// SPDX-License-Identifier: BSD-3-Clause
// One step of a second-order method on
//
//   1/2 v'Rv + sum_i piece_i(m_i),      m_i = y_i <v, z_i> + 1 - p_i,
//
// with z_i = (x_i, 1) where there is an intercept, else x_i. Targets p_i are in the margins of the first
// point, and in all that follow from them,
//
// and Newton's method, which is nothing but such steps. The numbers 2 to 5 are those of the algorithm's
// statement in src/maxmargin/solvers/newton.py.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "linear/pieces.hpp"
#include "machine/large_array.hpp"

namespace maxmargin {

// All that a method asks of rows. Whoever can do these four things can be solved for, in this process or
// elsewhere.
class System {
 public:
  virtual ~System() = default;

  // out_i = <p, z_i>
  virtual void scores(std::span<const double> p, std::span<double> out, const Budget& budget) = 0;
  // out = sum_i c_i z_i
  virtual void combine(std::span<const double> c, std::span<double> out, const Budget& budget) = 0;
  // x = -(R + sum_i h_i z_i z_i')^-1 x; false where the rows are too large to be squared.
  virtual bool solve(std::span<const double> h, std::span<double> x, const Budget& budget) = 0;
  // The next curvatures h will be about so many times the last ones.
  virtual void scale(double factor) = 0;
};

// A problem without its rows and its losses.
struct Terms {
  std::span<const double> labels, costs;  // y and C, one for each row
  std::span<const double> regulariser;    // the diagonal of R: 1, and last 0 for an exact intercept
  std::span<const double> targets{};      // p, or none where all of them are 1

  bool is_exact() const { return !regulariser.empty() && regulariser.back() == 0; }
};

// A point v with what follows from its margins.
struct NewtonPoint {
  // Another point, of whose multipliers and curvatures nothing is known.
  void place(std::span<const double> point, std::span<const double> its_margins) {
    v.assign(point.begin(), point.end());
    margins.assign(its_margins.begin(), its_margins.end());
    per_row.resize(margins.size());
    per_column.resize(v.size());
    forget();
  }
  void forget() {
    multipliers.assign(margins.size(), 0.0);
    curvatures.assign(margins.size(), 0.0);
    combined.assign(v.size(), 0.0);
    peak = 0;
  }

  // Takes over the margins: rows whose multiplier stays cost nothing but the look at them. Where most
  // change the sum is made anew, and where multipliers have become so small that the rounding of earlier,
  // larger ones would be seen.
  template <class Piece>
  void refresh(const Piece& piece, System& system, const Budget& budget) {
    sums = maxmargin::refresh(piece, margins, terms.labels.data(), multipliers.data(), per_row.data(),
                              curvatures.data(), budget);
    constexpr double kMuch = 1e6;
    peak = std::max(peak, sums.multipliers);
    if (sums.changed < sums.supporting && peak <= kMuch * sums.multipliers) {
      system.combine(per_row, per_column, budget);
      for (std::size_t j = 0; j < v.size(); ++j) combined[j] += per_column[j];
    } else {
      for_each_row(budget, per_row.size(),
                   [&](std::size_t i) { per_row[i] = terms.labels[i] * multipliers[i]; });
      combine_all(system, budget);
      peak = sums.multipliers;
    }
  }

  // combined = the sum of c_i z_i, with c_i as in per_row, and of the settled rows.
  void combine_all(System& system, const Budget& budget) {
    system.combine(per_row, combined, budget);
    for (std::size_t j = 0; j < settled.size(); ++j) combined[j] += settled[j];
  }

  // per_column = R v - combined, the gradient of the sum of pieces.
  void set_gradient() {
    for (std::size_t j = 0; j < v.size(); ++j) per_column[j] = terms.regulariser[j] * v[j] - combined[j];
  }

  // One Newton step for the gradient in per_column, as far as the sum of pieces falls. Returns how much of
  // it was taken, or nothing where there is no direction.
  template <class Piece>
  std::optional<double> move(const Piece& piece, System& system, const Budget& budget) {
    std::vector<double>& p = per_column;
    NumbersOfRows& changes = per_row;
    if (!system.solve(curvatures, p, budget)) return std::nullopt;
    system.scores(p, changes, budget);
    for_each_row(budget, changes.size(), [&](std::size_t i) { changes[i] *= terms.labels[i]; });
    double slope = 0, curvature = 0;
    for (std::size_t j = 0; j < v.size(); ++j) {
      slope += terms.regulariser[j] * p[j] * v[j];
      curvature += terms.regulariser[j] * p[j] * p[j];
    }
    for (std::size_t j = 0; j < settled.size(); ++j) slope -= settled[j] * p[j];
    const double length = line_search(piece, margins, changes.data(), slope, curvature, budget);
    for (std::size_t j = 0; j < v.size(); ++j) v[j] += length * p[j];
    for_each_row(budget, changes.size(), [&](std::size_t i) { margins[i] += length * changes[i]; });
    refresh(piece, system, budget);
    return length;
  }

  // 1/2 v'Rv + sum_i C_i loss(m_i)
  double primal() const {
    double squares = 0, lines = settled_costs;
    for (std::size_t j = 0; j < v.size(); ++j) squares += terms.regulariser[j] * v[j] * v[j];
    for (std::size_t j = 0; j < settled.size(); ++j) lines -= settled[j] * v[j];
    return 0.5 * squares + sums.loss + lines;
  }
  // 1/2 g'R^-1 g, with 1 where nothing holds the intercept: how far v is from the best of the pieces' sum.
  double residual() const {
    double squares = 0;
    for (std::size_t j = 0; j < v.size(); ++j) {
      const double g = terms.regulariser[j] * v[j] - combined[j];
      squares += g * g / (terms.regulariser[j] > 0 ? terms.regulariser[j] : 1.0);
    }
    return 0.5 * squares;
  }

  Terms terms;
  std::vector<double> v{};
  NumbersOfRows margins{};
  NumbersOfRows multipliers{};     // a_i = -piece_i'(m_i)
  std::vector<double> combined{};  // sum_i a_i y_i z_i
  NumbersOfRows curvatures{};      // h_i = piece_i''(m_i), and a part of it where a row has just lost it
  NumbersOfRows per_row{};         // room for a step's own numbers
  std::vector<double> per_column{};
  // Of other rows, whose losses are lines, C_i (1 - m_i): sum_i C_i y_i z_i, if there are any, and sum_i
  // C_i.
  std::vector<double> settled{};
  double settled_costs = 0;
  Refreshed sums{};  // at the multipliers
  double peak = 0;   // of the multipliers' sum, since that of rows was last made
};

// A method in the middle of a run.
class SecondOrderMethod {
 public:
  explicit SecondOrderMethod(const Terms& terms) : at{terms} {}
  virtual ~SecondOrderMethod();

  // Steps until the relative gap is at most `until`, rounding leaves nothing to gain, or `most` have been
  // taken. Returns how many were; 0 where the rows are too large to be squared.
  Integer steps(System& system, Integer most, double until, const Budget& budget);
  virtual double relative_gap() const = 0;
  virtual bool finished() const = 0;

  NewtonPoint at;

 private:
  virtual bool step(System& system, const Budget& budget) = 0;
};

class NewtonMethod : public SecondOrderMethod {
 public:
  using Loss = std::variant<SquaredHinge, Logistic>;
  NewtonMethod(Loss loss, const Terms& terms) : SecondOrderMethod(terms), loss_(loss) {}

  // At the point where `at` has been placed.
  void begin(System& system, const Budget& budget);
  double relative_gap() const override { return relative_gap_; }
  bool finished() const override { return finished_; }

 private:
  template <class L>
  SmoothPiece<L> piece_of() const {
    return {at.terms.costs.data()};
  }

  bool step(System& system, const Budget& budget) override;
  double gap_of_point() const;

  Loss loss_;
  double relative_gap_ = INFINITY;
  bool finished_ = false;
};

}  // namespace maxmargin
