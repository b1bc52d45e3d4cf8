// SPDX-License-Identifier: BSD-3-Clause
#include "linear/left_out.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

#include "data/columns.hpp"
#include "machine/threads.hpp"

namespace maxmargin {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kUnitRounding = 0x1p-53;
constexpr double kNearlyNothing = 1e-290;  // more than all that is lost to numbers that are too small
constexpr double kStandstill = 1e-36;      // a speed at which no wall is reached
constexpr Integer kRowsAtOnce = 4;  // that a thread takes: less than a tenth of a millisecond, mostly

// The tables of groups, with a line for each column. Paths only propose multipliers, and what these are
// worth is computed in full: single precision will do, but where walls are close together.
template <class Real>
struct Tables {
  explicit Tables(const Followers& followers)
      : size(static_cast<Integer>(std::sqrt(static_cast<double>(followers.inverse.size())) + 0.5)),
        length(static_cast<Integer>(followers.rows.size()) + 1),
        movements(followers.movements.size()),
        between(followers.between.begin(), followers.between.end()) {
    for (Integer j = 0; j < length; ++j) {
      for (Integer c = 0; c < size; ++c) {
        movements[c * length + j] = static_cast<Real>(followers.movements[j * size + c]);
      }
    }
  }
  Integer size, length;
  std::vector<Real> movements, between;
};

// The path of one row's multiplier, from its value down; all others are where they are best for it.
//
//   1  g = y z'H^-1 z_i y_i of all groups, own = z_i'H^-1 z_i;  taken = 0
//   2  repeat
//   3      the walls are reached after  step = min of (wall - beyond) / (k g)
//   4      if the row's margin is low enough before, or the dual value high enough: end there
//   5      beyond += step k g;  margin -= step own;  taken += step
//   6      the group at its wall leaves it or stays there: H changes by k z z', g and own by rank one
//
// Rows are visited where they are read, since the rest need not be compiled for each kind of them.
template <class Real>
class Path {
 public:
  static constexpr Real kNowhere = std::numeric_limits<Real>::infinity();
  static constexpr double kSmallestPivot = std::is_same_v<Real, float> ? 1e-5 : 1e-11;  // below: rounding

  Path(const AnyRows& rows, const Followers& followers, const Tables<Real>& tables, const Standpoint& from,
       Integer most_events)
      : rows_(rows),
        followers_(followers),
        tables_(tables),
        from_(from),
        most_(most_events),
        count_(tables.length - 1),
        size_(tables.size),
        reals_((6 + most_events) * tables.length + most_events),
        doubles_(3 * tables.length + 2 * tables.size),
        between_walls_(tables.length) {
    Real* real = reals_.data();
    for (Real** each : {&g_, &beyond_, &slopes_, &low_, &high_, &steps_}) {
      *each = real;
      real += tables.length;
    }
    pivots_ = real;
    factors_ = real + most_events * tables.length;
    double* full = doubles_.data();
    for (double** each : {&down_, &up_, &deltas_}) {
      *each = full;
      full += tables.length;
    }
    moved_ = full;
    difference_ = full + tables.size;
    std::ranges::copy(followers.down, down_);
    std::ranges::copy(followers.up, up_);
    for (Integer j = 0; j < count_; ++j) {
      beyond_[j] = static_cast<Real>(followers.beyond[j]);
      slopes_[j] = static_cast<Real>(followers.slopes[j]);
      set_walls(j, beyond_[j] == 0 && down_[j] > 0 && up_[j] > 0);
    }
    start_.assign(beyond_, beyond_ + 4 * tables.length);  // with slopes and walls, which follow
    start_between_ = between_walls_;
  }

  Departure follow(const Leaving& one, double* point) {
    begin(one);
    const double stop = one.multiplier;  // taken away altogether
    double margin = one.margin, taken = 0, worth = -one.multiplier, lost = 0;
    bool ended = false, passed = false;
    Departure end{one.multiplier, -one.multiplier};
    while (true) {
      const auto [group, step] = next_wall();
      const double until_low = own_ > 0 ? std::max((margin - one.target) / own_, 0.0) : kNever;
      if (!passed && point != nullptr && stop - taken <= std::min(step, ended ? kNever : until_low)) {
        write_point(one, stop - taken, stop, point);
        passed = true;
      }
      if (!ended) {
        const double first = std::min(step, until_low), then = taken + first;
        const double value = worth + first * (margin - 0.5 * own_ * first);
        const auto enough = [&](double gain) {
          return then > stop && gain - one.slack > (then - stop) * one.target;
        };
        if (until_low <= step || (point == nullptr && enough(value - lost))) {
          end = {stop - then, gain(one, first, then)};
          ended = until_low <= step || enough(end.gain);
          lost = std::max(value - end.gain, 0.0);
        }
      }
      if (ended && (passed || point == nullptr)) return end;
      if (group < 0 || events_ == most_) break;
      worth += step * (margin - 0.5 * own_ * step);
      margin -= step * own_;
      taken += step;
      move(step);
      if (!cross(group)) break;
    }
    if (!ended) end = {stop - taken, gain(one, 0.0, taken)};
    if (point != nullptr && !passed) write_point(one, 0.0, taken, point);
    return end;
  }

 private:
  struct Wall {
    Integer group;
    double step;
  };

  void begin(const Leaving& one) {
    std::fill_n(g_, count_ + 1, Real{0});
    std::fill_n(moved_, size_, 0.0);
    add_lines(one.row, one.label, tables_.movements.data(), tables_.length, g_);
    add_lines(one.row, one.label, followers_.inverse.data(), size_, moved_);
    const double bias_share = from_.bias != 0 ? from_.bias * moved_[size_ - 1] : 0.0;
    own_ = one.label * rows_.visit([&](const auto& kind) { return kind[one.row].dot(moved_, bias_share); });
    std::ranges::copy(followers_.down, down_);
    std::ranges::copy(followers_.up, up_);
    std::ranges::copy(start_, beyond_);
    between_walls_ = start_between_;
    events_ = 0;
    moved_intercept_ = 0;
    if (one.group >= 0) leave_group(one);
  }

  // out += sum of label z_c line_c over the columns c of a row: y z'H^-1 z_row y_row of all groups, say.
  template <class Number>
  void add_lines(Integer row, double label, const Number* lines, Integer length, Number* out) {
    const auto add = [&](Integer column, auto value) {
      const Number x = static_cast<Number>(label * static_cast<double>(value));
      const Number* const line = lines + column * length;
#pragma omp simd
      for (Integer j = 0; j < length; ++j) out[j] += x * line[j];
    };
    rows_.visit([&](const auto& kind) { for_each_value(kind[row], add); });
    if (from_.bias != 0) add(size_ - 1, from_.bias);
  }

  // Without the row, its group has as much less room.
  void leave_group(const Leaving& one) {
    const Integer j = one.group;
    if (between_walls_[j]) change(j, -one.slope);
    const double room = down_[j] + up_[j];
    const auto without = [room](double all, double part) {
      return std::max(all - part - 4 * kUnitRounding * room, 0.0);
    };
    down_[j] = without(down_[j], one.multiplier);
    up_[j] = without(up_[j], one.cost - one.multiplier);
    slopes_[j] -= static_cast<Real>(one.slope);
    const bool alone = slopes_[j] <= 0.5 * one.slope;
    if (alone) {
      slopes_[j] = 0;
      down_[j] = up_[j] = 0;
    }
    set_walls(j, between_walls_[j] && !alone);
    if (alone) low_[j] = high_[j] = std::numeric_limits<Real>::quiet_NaN();  // it has no walls to reach
  }

  // Between which values a group moves until something changes.
  void set_walls(Integer j, bool between) {
    between_walls_[j] = between;
    const bool above = !between && (beyond_[j] > 0 || (beyond_[j] == 0 && up_[j] <= 0));
    put_walls(j, between, above);
  }
  void put_walls(Integer j, bool between, bool above) {
    const Real down = static_cast<Real>(-down_[j]), up = static_cast<Real>(up_[j]);
    low_[j] = between ? down : above ? up : -kNowhere;
    high_[j] = between ? up : above ? kNowhere : down;
  }

  Wall next_wall() {
    // Local names, and a speed that is never 0: through members, or with a branch, it would be slow.
    const Real *slopes = slopes_, *g = g_, *low = low_, *high = high_, *beyond = beyond_;
    Real* const steps = steps_;
    const Integer count = count_;
    Real least = kNowhere;
#pragma omp simd reduction(min : least)
    for (Integer j = 0; j < count; ++j) {
      const Real speed = slopes[j] * g[j] + static_cast<Real>(kStandstill);
      const Real above = high[j], below = low[j];
      const Real step = ((speed > 0 ? above : below) - beyond[j]) / speed;
      steps[j] = step;
      least = step < least ? step : least;
    }
    if (!(least < kNowhere)) return {-1, kNever};
    return {std::find(steps, steps + count, least) - steps, std::max(static_cast<double>(least), 0.0)};
  }

  void move(double step) {
    const Real *slopes = slopes_, *g = g_, size = static_cast<Real>(step);
    Real* const beyond = beyond_;
#pragma omp simd
    for (Integer j = 0; j < count_; ++j) beyond[j] += size * slopes[j] * g[j];
    moved_intercept_ -= step * g_[count_];
  }

  bool cross(Integer j) {
    const bool rises = slopes_[j] * g_[j] > 0, between = !between_walls_[j];
    beyond_[j] = static_cast<Real>(rises == between ? -down_[j] : up_[j]);
    if (!change(j, between ? slopes_[j] : -slopes_[j])) return false;
    between_walls_[j] = between;
    put_walls(j, between, rises);
    return true;
  }

  // H += k z z' of a group, for all that H^-1 was used for.
  bool change(Integer j, double k) {
    if (events_ == most_) return false;
    const Integer length = count_ + 1;
    Real* const pivot = pivots_ + events_ * length;
    if (tables_.between.empty()) {
      std::fill_n(pivot, length, Real{0});
      add_lines(followers_.rows[j], followers_.labels[j], tables_.movements.data(), length, pivot);
    } else {
      std::copy_n(tables_.between.data() + j * length, length, pivot);
    }
    Integer p = 0;
    for (; p + 4 <= events_; p += 4) {
      const Real *a = pivots_ + p * length, *b = a + length, *c = b + length, *d = c + length;
      const Real *f = factors_ + p, fa = f[0] * a[j], fb = f[1] * b[j], fc = f[2] * c[j], fd = f[3] * d[j];
#pragma omp simd
      for (Integer l = 0; l < length; ++l) pivot[l] -= fa * a[l] + fb * b[l] + fc * c[l] + fd * d[l];
    }
    for (; p < events_; ++p) {
      const Real* const before = pivots_ + p * length;
      const Real factor = factors_[p] * before[j];
#pragma omp simd
      for (Integer l = 0; l < length; ++l) pivot[l] -= factor * before[l];
    }
    const double divisor = 1 + k * pivot[j];
    if (!(divisor > kSmallestPivot)) return false;
    const Real factor = static_cast<Real>(k / divisor), its = factor * g_[j];
    factors_[events_++] = factor;
    own_ -= static_cast<double>(its) * g_[j];
    Real* const g = g_;
#pragma omp simd
    for (Integer l = 0; l < length; ++l) g[l] -= its * pivot[l];
    return true;
  }

  // How far multipliers have moved after another step, inside their walls; one of those between them makes
  // up for what rounding took from the balance.
  void take_deltas(const Leaving& one, double step, double taken) {
    double sum = -taken * one.label, most = 0;
    Integer roomiest = -1;
    for (Integer j = 0; j < count_; ++j) {
      const double there = beyond_[j] + step * slopes_[j] * g_[j];
      deltas_[j] = std::min(std::max(there, -down_[j]), up_[j]);
      sum += deltas_[j] * followers_.labels[j];
      const double room = std::min(deltas_[j] + down_[j], up_[j] - deltas_[j]);
      if (room > most) {
        most = room;
        roomiest = j;
      }
    }
    if (from_.reach > 0 && std::abs(sum) < most) deltas_[roomiest] -= sum * followers_.labels[roomiest];
  }

  // sum_j delta_j y_j z_j - taken y_i z_i after another step, with the sums that bounds on it need.
  struct Sums {
    double changes = 0, sizes = 0, lengths = 0, terms = 0;
  };
  Sums combine(const Leaving& one, double step, double taken) {
    take_deltas(one, step, taken);
    Sums sums;
    std::fill(difference_, difference_ + size_, 0.0);
    rows_.visit([&](const auto& kind) {
      const auto add = [&](Integer row, double label, double delta) {
        kind[row].add_to(difference_, delta * label);
        if (from_.bias != 0) difference_[size_ - 1] += delta * label * from_.bias;
        sums.sizes += std::abs(delta);
        sums.lengths += std::abs(delta) * (from_.lengths[row] + from_.bias);
        sums.terms += 1;
      };
      for (Integer j = 0; j < count_; ++j) {
        if (deltas_[j] == 0) continue;
        sums.changes += deltas_[j];
        add(followers_.rows[j], followers_.labels[j], deltas_[j]);
      }
      add(one.row, one.label, -taken);
    });
    return sums;
  }

  // By how much the dual value is larger than that of the standpoint, at least.
  double gain(const Leaving& one, double step, double taken) {
    const Sums sums = combine(one, step, taken);
    const Integer regular = from_.reach > 0 ? size_ - 1 : size_;
    double product = 0, squared = 0, from_squared = 0;
#pragma omp simd reduction(+ : product, squared, from_squared)
    for (Integer j = 0; j < regular; ++j) {
      product += from_.combined[j] * difference_[j];
      squared += difference_[j] * difference_[j];
      from_squared += from_.combined[j] * from_.combined[j];
    }
    const double u = kUnitRounding, wide = 1 + 4 * (static_cast<double>(size_) + 8) * u;
    const double length = std::sqrt(squared) * wide, from_length = std::sqrt(from_squared) * wide;
    const double off = 2 * (sums.terms + 8) * u * sums.lengths;
    const double lost = from_length * off + from_.off * (length + off) +
                        2 * (static_cast<double>(size_) + 8) * u * from_length * length +
                        2 * (sums.terms + 8) * u * (sums.sizes + one.multiplier);
    const double unbalanced = from_.reach > 0 ? std::abs(difference_[size_ - 1]) + off : 0.0;
    const double held = 0.5 * (length + off) * (length + off) * wide + from_.reach * unbalanced * wide;
    const double value = sums.changes - one.multiplier - product - held;
    return value - lost - 8 * u * (std::abs(sums.changes) + one.multiplier + std::abs(product) + held) -
           kNearlyNothing;
  }

  void write_point(const Leaving& one, double step, double taken, double* point) {
    combine(one, step, taken);
    const double b = from_.intercept + moved_intercept_ - step * g_[count_];
    for (Integer j = 0; j < size_; ++j) point[j] = from_.combined[j] + difference_[j];
    if (from_.bias != 0) point[size_ - 1] = b;
  }

  const AnyRows& rows_;
  const Followers& followers_;
  const Tables<Real>& tables_;
  const Standpoint& from_;
  Integer most_, count_, size_, events_ = 0;
  double own_ = 0, moved_intercept_ = 0;
  std::vector<Real> reals_;
  std::vector<double> doubles_;
  std::vector<char> between_walls_;
  std::vector<Real> start_;
  std::vector<char> start_between_;
  Real *g_, *beyond_, *slopes_, *low_, *high_, *steps_, *pivots_, *factors_;
  double *down_, *up_, *deltas_, *moved_, *difference_;
};

template <class Real>
void leave_out_in(const AnyRows& rows, const Followers& followers, const Standpoint& from,
                  std::span<const Leaving> leaving, Integer most_events, std::span<Departure> ends,
                  std::span<double> points, const Budget& budget) {
  const Integer count = static_cast<Integer>(leaving.size());
  const Integer size = static_cast<Integer>(from.combined.size());
  const Integer threads = budget.threads_for(count * size * static_cast<Integer>(followers.rows.size()));
  const Tables<Real> tables(followers);
  std::vector<Path<Real>> paths;
  paths.reserve(threads);
  for (Integer t = 0; t < threads; ++t) paths.emplace_back(rows, followers, tables, from, most_events);
  std::atomic<Integer> next{0};
  in_parallel(threads, threads, [&](Integer t, Integer, Integer) {
    for (Integer i; (i = next.fetch_add(kRowsAtOnce, std::memory_order_relaxed)) < count;) {
      const bool over = budget.spent();
      for (const Integer last = std::min(i + kRowsAtOnce, count); i < last; ++i) {
        const Leaving& one = leaving[i];
        ends[i] = over ? Departure{one.multiplier, -kNever}
                       : paths[t].follow(one, points.empty() ? nullptr : points.data() + i * size);
      }
    }
  });
}

}  // namespace

void leave_out(const AnyRows& rows, const Followers& followers, const Standpoint& from,
               std::span<const Leaving> leaving, Integer most_events, bool in_full,
               std::span<Departure> ends, std::span<double> points, const Budget& budget) {
  const auto run = in_full ? leave_out_in<double> : leave_out_in<float>;
  run(rows, followers, from, leaving, most_events, ends, points, budget);
}

}  // namespace maxmargin
