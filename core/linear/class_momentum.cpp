// SPDX-License-Identifier: BSD-3-Clause
#include "linear/class_momentum.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <variant>
#include <vector>

namespace maxmargin {
namespace {

// The dual value along one direction: how it begins to grow, and by how much its slope falls.
struct ClassParabola {
  double slope = 0;
  double curvature = 0;
  double terms = 0;  // of the slope, without their signs: rounding is in proportion to them

  // A row's own part: what it gives to the other classes.
  void add(double given) {
    slope += given;
    terms += std::abs(given);
  }
  void add(std::span<const double> w, std::span<const double> change) {
    double along = 0, squares = 0, length = 0;
#pragma omp simd reduction(+ : along, squares, length)
    for (std::size_t j = 0; j < w.size(); ++j) {
      along += w[j] * change[j];
      squares += change[j] * change[j];
      length += w[j] * w[j];
    }
    slope -= along;
    terms += std::sqrt(squares * length);
    curvature += squares;
  }
  bool rises() const { return slope > kRounding * terms && curvature > 0; }
  double best() const { return slope / curvature; }

 private:
  static constexpr double kRounding = 1e-9;
};

// One multiplier of a row that moves.
struct Entry {
  Integer k;
  double beta, move;
};
// The multipliers of a row that move: its own class, which is the last, and those of the others that do.
struct MovingRow {
  Integer row, first, last;
};

// The move of one row since it was last seen, one number for each class.
class RowMove {
 public:
  explicit RowMove(Integer lanes)
      : move_(static_cast<std::size_t>(lanes)), whole_(move_.size()), moving_(move_.size()) {}

  // Line 1: a move that no wall stops at once. Returns whether it is another one than the whole.
  bool leave_walls(const double* beta, double* last, Integer classes, Integer own, double cost) {
    double *const move = move_.data(), *const whole = whole_.data();
    double given = 0, free = 0, stopped = 0;
#pragma omp simd reduction(+ : given, free, stopped)
    for (Integer k = 0; k < classes; ++k) {
      const double by = beta[k] - last[k], inside = beta[k] < 0 ? by : 0.0;
      last[k] = beta[k];
      whole[k] = by;
      move[k] = inside;
      given -= inside;
      free += beta[k] < 0 ? 1.0 : 0.0;
      stopped += by != inside ? 1.0 : 0.0;
    }
    stopped -= whole[own] != 0 ? 1 : 0;  // the own class takes what the others give
    const bool is_full = given > 0 && beta[own] >= cost;
    if (is_full) {
      const double each = given / free;
#pragma omp simd
      for (Integer k = 0; k < classes; ++k) move[k] += beta[k] < 0 ? each : 0.0;
      given = 0;
    }
    move[own] = given;
    return stopped > 0 || is_full;
  }
  // What line 1 has changed.
  void correction(Integer classes, double* out) const {
    for (Integer k = 0; k < classes; ++k) out[k] = move_[k] - whole_[k];
  }
  double operator[](Integer k) const { return move_[k]; }
  // The classes that move.
  std::span<const Integer> moving(Integer classes) {
    Integer count = 0;
    for (Integer k = 0; k < classes; ++k) {
      moving_[count] = k;  // the next is written over one that does not
      count += move_[k] != 0 ? 1 : 0;
    }
    return {moving_.data(), static_cast<std::size_t>(count)};
  }

 private:
  std::vector<double> move_, whole_;
  std::vector<Integer> moving_;
};

// The moves of all rows.
class Moving {
 public:
  void add(Integer i, const double* beta, RowMove& move, Integer classes, Integer own) {
    const Integer first = static_cast<Integer>(entries_.size());
    for (const Integer k : move.moving(classes)) {
      if (k != own) entries_.push_back({k, beta[k], move[k]});
    }
    if (static_cast<Integer>(entries_.size()) == first) return;
    entries_.push_back({own, beta[own], move[own]});
    rows_.push_back({i, first, static_cast<Integer>(entries_.size()) - 1});
  }
  const std::vector<MovingRow>& rows() const { return rows_; }
  std::span<Entry> others(const MovingRow& row) {
    return {&entries_[row.first], static_cast<std::size_t>(row.last - row.first)};
  }
  Entry& own(const MovingRow& row) { return entries_[row.last]; }

  // How much of a row's move fits between its walls, where that is less than `length`.
  double room(const MovingRow& row, double cost, double length) {
    for (const Entry& entry : others(row)) length = fitting(entry.move, -entry.beta, length);
    return fitting(own(row).move, cost - own(row).beta, length);
  }

 private:
  static double fitting(double move, double left, double length) {
    return move > 0 && length * move > left ? std::max(left, 0.0) / move : length;
  }
  std::vector<Entry> entries_;
  std::vector<MovingRow> rows_;
};

}  // namespace

double go_on(const StoredRows& rows, const ClassBoxes& boxes, const ClassWeights& w,
             const ClassesBefore& before) {
  // What w is off by for the multipliers is in v as well: moves that grew from sweep to sweep would make it
  // grow.
  constexpr double kFarthest = 1;
  const Integer classes = w.classes;
  const std::span<double> v = before.w, weights{w.values, v.size()};
  const ClassWeights of_v{v.data(), classes, w.stride, w.constant};
  RowMove move(w.stride);
  std::vector<double> correction(static_cast<std::size_t>(w.stride), 0.0);
  std::vector<Integer> changed;
  changed.reserve(static_cast<std::size_t>(classes));
  const auto correct = [&](Integer i) {
    std::visit(
        [&](const auto& kind) { add_to_classes(kind[i], of_v, kind.columns, correction.data(), changed); },
        rows);
  };
  Moving moving;
  for (std::size_t j = 0; j < v.size(); ++j) v[j] = weights[j] - v[j];
  ClassParabola straight;
  const Integer count = std::visit([](const auto& kind) { return kind.count; }, rows);
  for (Integer i = 0; i < count; ++i) {  // 1
    if (boxes.moved[i] == 0) continue;
    boxes.moved[i] = 0;
    const double* const beta = &boxes.multipliers[i * classes];
    const Integer own = boxes.codes[i];
    if (move.leave_walls(beta, &before.multipliers[i * classes], classes, own, boxes.costs[i])) {
      move.correction(classes, correction.data());
      correct(i);
    }
    straight.add(move[own]);
    moving.add(i, beta, move, classes, own);
  }
  straight.add(weights, v);
  ClassParabola inside;
  if (straight.rises()) {
    const double length = std::min(straight.best(), kFarthest);  // 2
    for (double& value : v) value *= length;
    std::fill(correction.begin(), correction.end(), 0.0);
    for (const MovingRow& row : moving.rows()) {  // 3
      Entry& own = moving.own(row);
      const double room = moving.room(row, boxes.costs[row.row], length);
      if (room < length) {
        correction[own.k] = (room - length) * own.move;
        for (const Entry& entry : moving.others(row)) correction[entry.k] = (room - length) * entry.move;
        correct(row.row);
        correction[own.k] = 0;
        for (const Entry& entry : moving.others(row)) correction[entry.k] = 0;
      }
      for (Entry& entry : moving.others(row)) entry.move *= room;
      own.move *= room;
      inside.add(own.move);
    }
    inside.add(weights, v);
  }
  const double length = inside.rises() ? std::min(1.0, inside.best()) : 0.0;  // 4
  if (length > 0) {
    for (const MovingRow& row : moving.rows()) {
      double* const beta = &boxes.multipliers[row.row * classes];
      boxes.moved[row.row] = 1;
      for (const Entry& entry : moving.others(row)) {
        beta[entry.k] = std::min(entry.beta + length * entry.move, 0.0);
      }
      const Integer own = moving.own(row).k;
      double given = 0;
#pragma omp simd reduction(+ : given)
      for (Integer k = 0; k < classes; ++k) given -= k != own ? beta[k] : 0.0;
      beta[own] = std::min(given, boxes.costs[row.row]);
    }
  }
  for (std::size_t j = 0; j < v.size(); ++j) {
    const double here = weights[j];
    if (length > 0) weights[j] += length * v[j];
    v[j] = here;
  }
  return length * (inside.slope - 0.5 * length * inside.curvature);
}

}  // namespace maxmargin
