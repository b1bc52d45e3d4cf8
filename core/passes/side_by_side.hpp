// SPDX-License-Identifier: BSD-3-Clause
// Dense rows of few columns in whole registers: loops whose time would else go to the ends of rows and to
// adding up the lanes of a register.
//
// A row is read in as many registers as its columns need. The last of them ends with the row, so that some
// of its lanes may be columns that the one before has, too: they count there. So rows need at least as many
// columns as a register has lanes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "data/rows.hpp"
#include "machine/vectors.hpp"

namespace maxmargin {

inline constexpr Integer kLane = kLanes<double>;

// As many values as a register has doubles.
template <class Value>
MAXMARGIN_INLINE Lanes<double> in_double(const Value* from) {
  typedef Value Part __attribute__((vector_size(sizeof(Value) * kLane)));
  Part part;
  std::memcpy(&part, from, sizeof(part));
  return __builtin_convertvector(part, Lanes<double>);
}

// Of each two groups of `step` lanes, their sum: those of a in the even places, those of b in the odd ones.
template <int step, int... lane>
MAXMARGIN_INLINE Lanes<double> joined(Lanes<double> a, Lanes<double> b,
                                      std::integer_sequence<int, lane...>) {
  constexpr int size = static_cast<int>(kLane);
  return __builtin_shufflevector(a, b, (lane / step % 2 == 0 ? lane : lane - step + size)...) +
         __builtin_shufflevector(a, b, (lane / step % 2 == 0 ? lane + step : lane + size)...);
}

// The sum of the lanes of each vector.
template <int step = 1>
MAXMARGIN_INLINE Lanes<double> lane_sums(const Lanes<double>* vectors) {
  constexpr int left = static_cast<int>(kLane) / step;
  if constexpr (left == 1) {
    return vectors[0];
  } else {
    Lanes<double> both[left / 2];
    for (int k = 0; k < left / 2; ++k) {
      both[k] = joined<step>(vectors[2 * k], vectors[2 * k + 1],
                             std::make_integer_sequence<int, static_cast<int>(kLane)>());
    }
    return lane_sums<2 * step>(both);
  }
}

// How the columns of rows lie in registers.
struct InRegisters {
  explicit InRegisters(Integer columns) : columns(columns), count((columns + kLane - 1) / kLane) {}

  // The column of the first lane of a register.
  Integer begin(Integer k) const { return k + 1 < count ? k * kLane : columns - kLane; }
  Integer size() const { return count * kLane; }
  // Calls each(column, place) for the lanes that count.
  template <class Each>
  void for_each(const Each& each) const {
    for (Integer j = 0; j < columns; ++j) {
      const Integer k = j / kLane;
      each(j, k * kLane + j - begin(k));
    }
  }

  Integer columns, count;
};

// out_ki = <w_k, x_i> for the first `wanted` of kPoints vectors w_k whose lanes that do not count are 0,
// and |x_i|^2; `step` is what lies between the sums of two points.
template <int kPoints, class Rows>
void scores_in_registers(const Rows& rows, const InRegisters& by, const double* points, Integer wanted,
                         double* out, Integer step, double* squared_norms) {
  Lanes<double> counted = {}, sums[kPoints + 1][kLane];
  by.for_each([&](Integer, Integer place) {
    if (place >= by.size() - kLane) counted[place - (by.size() - kLane)] = 1;
  });
  for (Integer i = 0; i < rows.count; i += kLane) {
    const Integer some = std::min(kLane, rows.count - i);
    for (Integer r = 0; r < kLane; ++r) {
      const auto* const x = rows[i + std::min(r, some - 1)].values;
      Lanes<double> own[kPoints + 1] = {};
      Integer k = 0;
      for (; k + 1 < by.count; ++k) {
        const Lanes<double> values = in_double(x + k * kLane);
        own[kPoints] += values * values;
        for (int p = 0; p < kPoints; ++p) own[p] += values * load(points + p * by.size() + k * kLane);
      }
      const Lanes<double> values = in_double(x + by.begin(k));
      own[kPoints] += values * (values * counted);
      for (int p = 0; p < kPoints; ++p) own[p] += values * load(points + p * by.size() + k * kLane);
      for (int p = 0; p <= kPoints; ++p) sums[p][r] = own[p];
    }
    const auto write = [&](double* to, const Lanes<double>* vectors) {
      const Lanes<double> found = lane_sums(vectors);
      std::memcpy(to, &found, static_cast<std::size_t>(some) * sizeof(double));
    };
    for (Integer p = 0; p < wanted; ++p) write(out + p * step + i, sums[p]);
    write(squared_norms + i, sums[kPoints]);
  }
}

// Some points, whose vectors are given one after the other, as scores in registers need them.
struct PaddedPoints {
  static constexpr Integer kMost = 4;  // points of one visit: as many sums as there are registers for

  PaddedPoints() : by(kLane), count(0) {}
  PaddedPoints(InRegisters by, std::span<const double> points)
      : by(by), count(static_cast<Integer>(points.size()) / by.columns) {
    values.resize(static_cast<std::size_t>((count + kMost) * by.size()));
    for (Integer p = 0; p < count; ++p) {
      by.for_each([&](Integer column, Integer place) {
        values[p * by.size() + place] = points[p * by.columns + column];
      });
    }
  }

  InRegisters by;
  Integer count;
  std::vector<double> values;
};

// The same for any number of points.
template <class Rows>
void scores_in_registers(const Rows& rows, const PaddedPoints& points, double* out, Integer step,
                         double* squared_norms) {
  Integer first = 0;
  do {
    const Integer count = std::min(PaddedPoints::kMost, points.count - first);
    // A loop for every number of points would take long to compile: two are as many as three.
    const auto visit = [&]<int kPoints>(std::integral_constant<int, kPoints>) {
      const double* const own = points.values.data() + first * points.by.size();
      double* const to = out + first * step;
      scores_in_registers<kPoints>(rows, points.by, own, count, to, step, squared_norms);
    };
    if (count == 0) visit(std::integral_constant<int, 0>());
    if (count == 1) visit(std::integral_constant<int, 1>());
    if (count == 2 || count == 3) visit(std::integral_constant<int, 3>());
    if (count == 4) visit(std::integral_constant<int, 4>());
    first += count;
  } while (first < points.count);
}

// target += sum of coefficient_i x_i over some rows, for two coefficients of each row at once; `column` is
// that of the first of kCount registers, the last of which begins at `last`.
template <int kCount, class Rows>
void add_two_sums(const Rows& rows, Integer first, Integer count, const double* one, const double* other,
                  Integer column, Integer last, double* first_target, double* second_target) {
  Lanes<double> a[kCount] = {}, b[kCount] = {};
  for (Integer i = 0; i < count; ++i) {
    const auto* const x = rows[first + i].values;
    for (int k = 0; k < kCount; ++k) {
      const Lanes<double> values = in_double(x + (k + 1 < kCount ? column + k * kLane : last));
      a[k] += one[i] * values;
      b[k] += other[i] * values;
    }
  }
  for (int k = 0; k < kCount; ++k) {
    store(first_target + k * kLane, load(first_target + k * kLane) + a[k]);
    store(second_target + k * kLane, load(second_target + k * kLane) + b[k]);
  }
}

inline constexpr Integer kRegistersOfSum = 4;  // registers of a row, and twice as many sums

// Calls add(kCount, k) for the registers of a row, kCount of them at a time from number k on.
template <class Add>
void in_groups_of_registers(const InRegisters& by, const Add& add) {
  for (Integer k = 0, wide = 0; k < by.count; k += wide) {
    wide = std::min(kRegistersOfSum, by.count - k);
    if (wide == 1) add(std::integral_constant<int, 1>(), k);
    if (wide == 2) add(std::integral_constant<int, 2>(), k);
    if (wide == 3) add(std::integral_constant<int, 3>(), k);
    if (wide == 4) add(std::integral_constant<int, 4>(), k);
  }
}

// The same for all columns, of targets as long as the registers of a row.
template <class Rows>
void add_two_sums_in_registers(const Rows& rows, const InRegisters& by, Integer first, Integer count,
                               const double* one, const double* other, double* first_target,
                               double* second_target) {
  in_groups_of_registers(by, [&]<int kCount>(std::integral_constant<int, kCount>, Integer k) {
    add_two_sums<kCount>(rows, first, count, one, other, k * kLane, by.begin(k + kCount - 1),
                         first_target + k * kLane, second_target + k * kLane);
  });
}

// target += sum of coefficient_i x_i over some rows, in two sums side by side, since each addition waits
// for the one before. The target has a place for each column.
template <class Rows>
void add_sum_in_registers(const Rows& rows, const InRegisters& by, Integer first, Integer count,
                          const double* coefficients, double* target) {
  in_groups_of_registers(by, [&]<int kCount>(std::integral_constant<int, kCount>, Integer k) {
    const Integer begin = k * kLane, last = by.begin(k + kCount - 1);
    Lanes<double> even[kCount] = {}, odd[kCount] = {};
    const auto add = [&](Integer i, Lanes<double>* sums) {
      const auto* const x = rows[first + i].values;
      for (int r = 0; r < kCount; ++r) {
        sums[r] += coefficients[i] * in_double(x + (r + 1 < kCount ? begin + r * kLane : last));
      }
    };
    Integer i = 0;
    for (; i + 2 <= count; i += 2) {
      add(i, even);
      add(i + 1, odd);
    }
    if (i < count) add(i, even);
    for (int r = 0; r < kCount; ++r) {
      double* const to = target + (r + 1 < kCount ? begin + r * kLane : last);
      Lanes<double> sum = even[r] + odd[r];
      // What the register before has, too, counts there.
      for (Integer lane = 0; lane < begin + r * kLane - (to - target); ++lane) sum[lane] = 0;
      store(to, load(to) + sum);
    }
  });
}

// Row g of `target` += sum of coefficient_i x_i over the rows first .. last - 1 with group_i = g. Rows of
// other groups count as 0 times what they are: two groups at a time stay in registers, and no sum waits for
// memory.
template <class Rows>
void add_groups_in_registers(const Rows& rows, Integer first, Integer last, const double* coefficients,
                             const Integer* groups, Integer count, double* target) {
  constexpr Integer kBlock = 256;  // rows that stay in the cache from one pair of groups to the next
  const InRegisters by(rows.columns);
  std::vector<double> sums(static_cast<std::size_t>((count + 1) * by.size()));
  std::array<double, kBlock> one, other;
  for (; first < last; first += kBlock) {
    const Integer some = std::min(kBlock, last - first);
    for (Integer group = 0; group < count; group += 2) {
      for (Integer i = 0; i < some; ++i) {
        const double c = coefficients[first + i];
        one[i] = groups[first + i] == group ? c : 0.0;
        other[i] = groups[first + i] == group + 1 ? c : 0.0;
      }
      double* const target_of_one = sums.data() + group * by.size();
      add_two_sums_in_registers(rows, by, first, some, one.data(), other.data(), target_of_one,
                                target_of_one + by.size());
    }
  }
  for (Integer group = 0; group < count; ++group) {
    by.for_each([&](Integer column, Integer place) {
      target[group * rows.columns + column] += sums[group * by.size() + place];
    });
  }
}

// places_i = the number of edges below the margin, and one more than there are edges for label -1; the last
// place is that of rows that are near the margin of 1.
inline void fold_places(const double* margins, const double* labels, std::span<const double> edges,
                        double width, Integer count, std::int64_t* places) {
  const std::int64_t bins = static_cast<std::int64_t>(edges.size()) + 1, none = 2 * bins;
  Integer i = 0;
  for (; i + kLane <= count; i += kLane) {
    const Lanes<double> margin = load(margins + i), off = margin - 1.0;
    LaneBits<double> place = {};
    for (const double edge : edges) place -= margin > edge;
    place += load(labels + i) < 0.0 ? LaneBits<double>{} + bins : LaneBits<double>{};
    place = ((off <= width) & (off >= -width)) ? LaneBits<double>{} + none : place;
    std::memcpy(places + i, &place, sizeof(place));
  }
  for (; i < count; ++i) {
    std::int64_t place = labels[i] < 0 ? bins : 0;
    for (const double edge : edges) place += margins[i] > edge;
    places[i] = std::abs(margins[i] - 1) <= width ? none : place;
  }
}

inline constexpr Integer kDirections = 16;  // as many numbers of single precision as a register may have

// Row r of `out` = the scores of row r less the shifts, for as many rows as numbers are given and as many
// directions as there are lanes. The rows are written out one by one, in a function of their own, so that
// each keeps its register: in the loop over all rows a compiler ran out of them, and it took twice as long.
template <class Value, int... r>
[[gnu::noinline]] void project(const Value* x, Integer stride, Integer columns, const Value* directions,
                               const Value* shifts, Value* out, std::integer_sequence<int, r...>) {
  Lanes<Value> scores[] = {(static_cast<void>(r), -load(shifts))...};
  for (Integer j = 0; j < columns; ++j) {
    const Lanes<Value> u = load(directions + j * kDirections);
    ((scores[r] += x[r * stride + j] * u), ...);
  }
  (store(out + r * kLanes<Value>, scores[r]), ...);
}

// out_i = the sum over kDirections directions of (<x_i, u> - shift)^2, of directions whose values for one
// column lie together: how long rows are in other units, in the precision of the values.
template <class Rows, class Value>
void projected_lengths(const Rows& rows, const Value* directions, const Value* shifts, double* out) {
  constexpr Integer kWide = kLanes<Value>, kCount = kDirections / kWide;
  const Integer columns = rows.columns;
  // Of fewer rows than there are lanes, each is taken as if there were so many of it.
  const bool few = rows.count < kLane;
  const Integer stride = few ? 0 : rows.stride;
  for (Integer i = 0; i < rows.count; i += few ? 1 : kLane) {
    const Integer first = few ? i : std::min(i, rows.count - kLane);  // the last ones may be seen twice
    const Value* const x = rows[first].values;
    Lanes<double> sums[kLane] = {};
    for (Integer k = 0; k < kCount; ++k) {
      Value scores[kLane][kWide];
      project(x, stride, columns, directions + k * kWide, shifts + k * kWide, scores[0],
              std::make_integer_sequence<int, static_cast<int>(kLane)>());
      for (Integer r = 0; r < kLane; ++r) {
        const Value* const values = scores[r];
        for (Integer l = 0; l < kWide; l += kLane) {
          const Lanes<double> own = in_double(values + l);
          sums[r] += own * own;
        }
      }
    }
    const Lanes<double> found = lane_sums(sums);
    std::memcpy(out + first, &found, (few ? 1 : sizeof(found) / sizeof(double)) * sizeof(double));
  }
}

}  // namespace maxmargin
