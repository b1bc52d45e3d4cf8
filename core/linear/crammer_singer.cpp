// SPDX-License-Identifier: BSD-3-Clause
#include "linear/crammer_singer.hpp"

#include <algorithm>
#include <array>
#include <variant>
#include <vector>

#include "passes/passes.hpp"

namespace maxmargin {
namespace {

constexpr Integer kLanesOfOne = 8;  // classes that cost no more than one, if their weights lie side by side

// scores_a = <w_k, x> for a few classes k = places_a, whose sums stay in registers. In two halves: a sum
// waits for itself.
template <Integer kLanes, class OneRow>
MAXMARGIN_INLINE void few_scores(const OneRow& row, const ClassWeights& w, Integer columns,
                                 const std::int32_t* places, double* scores) {
  double even[kLanes] = {}, odd[kLanes] = {};
  const auto add = [&](Integer column, double x, double* sums) {
    const double* const weights = w.values + column * w.stride;
    for (Integer a = 0; a < kLanes; ++a) sums[a] += x * weights[places[a]];
  };
  const Integer size = row.size();
  Integer k = 0;
  for (; k + 2 <= size; k += 2) {
    add(column_of(row, k), static_cast<double>(row.values[k]), even);
    add(column_of(row, k + 1), static_cast<double>(row.values[k + 1]), odd);
  }
  if (k < size) add(column_of(row, k), static_cast<double>(row.values[k]), even);
  if (w.constant != 0) add(columns, w.constant, odd);
  for (Integer a = 0; a < kLanes; ++a) scores[a] = even[a] + odd[a];
}

// scores_a = <w_k, x> for some classes k = places_a.
template <class OneRow>
void some_scores(const OneRow& row, const ClassWeights& w, Integer columns, const std::int32_t* places,
                 Integer count, double* scores) {
  std::fill(scores, scores + count, 0.0);
  const auto add = [&](Integer column, double x) {
    const double* const weights = w.values + column * w.stride;
    for (Integer a = 0; a < count; ++a) scores[a] += x * weights[places[a]];
  };
  for_each_value(row, [&](Integer column, auto value) { add(column, static_cast<double>(value)); });
  if (w.constant != 0) add(columns, w.constant);
}

// The sweep of one kind of rows: where it has come to, and a row's visit.
template <class Rows>
class Sweeping {
 public:
  Sweeping(Rows rows, const ClassExamples& examples, std::span<Integer> order, const ClassWeights& w,
           const ClassSteps& steps)
      : rows_(rows),
        examples_(examples),
        order_(order),
        w_(w),
        steps_(steps),
        block_(std::max(w.stride, kLanesOfOne)),
        moved_(static_cast<std::size_t>(w.stride)),
        by_(moved_.size()) {}

  ClassSweep run(Watch& watch) {
    constexpr Integer kAhead = 2;  // rows that are on their way from memory
    const Integer count = static_cast<Integer>(order_.size()), classes = w_.classes;
    Integer position = 0;
    while (position < count) {
      if (position + kAhead < count) {
        const Integer next = order_[position + kAhead];
        rows_.prefetch(next);
        MAXMARGIN_PREFETCH(&examples_.multipliers[next * classes]);
        MAXMARGIN_PREFETCH(&examples_.places[next * classes]);
      }
      const Integer i = order_[position++];  // 1
      const Integer some = visit(i);
      if (some == 0) continue;
      order_[sweep_.active++] = i;
      if (watch.spend(2 * rows_[i].size() * some)) break;
    }
    while (position < count) order_[sweep_.active++] = order_[position++];
    return sweep_;
  }

 private:
  // How many classes it has looked at; 0: the row is left out.
  Integer visit(Integer i) {
    const Integer some = examples_.sizes[i], stride = w_.stride;
    if (some == 2) return look_at_two(i);
    // Where few are left, the others cost more: all are looked at.
    if (some <= 4 && 4 * kLanesOfOne <= stride) return look_at_few<4>(i, 4);
    if (some > 4 && 6 * some <= stride) {
      return look_at_few<0>(i, (some + kLanesOfOne - 1) / kLanesOfOne * kLanesOfOne);
    }
    if (stride == 4) return look_at_all<4>(i);
    if (stride == 8) return look_at_all<8>(i);
    if (stride == 16) return look_at_all<16>(i);
    if (stride == 24) return look_at_all<24>(i);
    if (stride == 32) return look_at_all<32>(i);
    return look_at_all<0>(i);
  }

  // Two are left, the own class and another.
  Integer look_at_two(Integer i) {
    const auto row = rows_[i];
    const std::int32_t* const places = &examples_.places[i * w_.classes];
    double* const stored = &examples_.multipliers[i * w_.classes];
    const Integer own = places[0], other = places[1];
    double scores[2];
    if (2 * kLanesOfOne <= w_.stride) {  // 2
      few_scores<2>(row, w_, rows_.columns, places, scores);
    } else {
      all_scores(row, w_, rows_.columns, block_.scores());
      scores[0] = block_.scores()[own];
      scores[1] = block_.scores()[other];
    }
    const double squared_norm = examples_.squared_norms[i], alpha = -stored[other];
    const ClassRow known = row_of(i, 0, 2);
    const BestOfTwo best =  // 3
        best_of_two(known, scores[0], scores[1], alpha, squared_norm, steps_.held, sweep_);
    if (best.change != 0) {
      examples_.moved[i] = 1;
      stored[own] = best.given;
      stored[other] = -best.given;
      listed_ = 2;
      moved_[0] = own;
      moved_[1] = other;
      by_[0] = best.change;
      by_[1] = -best.change;
      if (known.A > 0) add_to_listed<2>(row);  // 4
    } else if (best.is_left_out) {
      return 0;
    }
    return 2;
  }

  // All classes lie side by side, in their order.
  template <Integer kLanes>
  Integer look_at_all(Integer i) {
    const Integer lanes = kLanes > 0 ? kLanes : w_.stride, classes = w_.classes;
    const auto row = rows_[i];
    const ClassRow known = row_of(i, examples_.codes[i], classes);
    double *const beta = block_.multipliers(), *const stored = &examples_.multipliers[i * classes];
    all_scores(row, w_, rows_.columns, block_.scores());  // 2
#pragma omp simd
    for (Integer k = 0; k < lanes; ++k) beta[k] = k < classes ? stored[k] : 0.0;
    const Best best = best_changes<kLanes>(known, lanes, block_, sweep_);  // 3
    if (best.largest_change > 0) {
      examples_.moved[i] = 1;
      take<kLanes>(best, known, lanes, examples_.squared_norms[i], block_, sweep_);
#pragma omp simd
      for (Integer k = 0; k < lanes; ++k) {
        if (k < classes) stored[k] = beta[k];
      }
      if (known.A > 0) add_to_all<kLanes>(row);  // 4
    } else if (is_left_out<kLanes>(best, known, lanes)) {
      return 0;
    }
    if (known.A > 0) examples_.sizes[i] = listed<kLanes>(known, best, &examples_.places[i * classes]);
    return lanes;
  }

  // The classes that are still looked at, in the order of the list.
  template <Integer kLanes>
  Integer look_at_few(Integer i, Integer lanes) {
    const auto row = rows_[i];
    std::int32_t* const places = &examples_.places[i * w_.classes];
    Integer some = examples_.sizes[i];
    const ClassRow known = row_of(i, 0, some);
    double *const G = block_.scores(), *const beta = block_.multipliers();
    double* const stored = &examples_.multipliers[i * w_.classes];
    if constexpr (kLanes > 0) {  // 2
      std::array<std::int32_t, kLanes> in_lanes;
      for (Integer a = 0; a < kLanes; ++a) in_lanes[a] = places[a < some ? a : 1];
      few_scores<kLanes>(row, w_, rows_.columns, in_lanes.data(), G);
    } else {
      some_scores(row, w_, rows_.columns, places, some, G);
      std::fill(G + some, G + lanes, 0.0);
    }
    for (Integer a = 0; a < lanes; ++a) beta[a] = a < some ? stored[places[a]] : 0.0;
    const Best best = best_changes<kLanes>(known, lanes, block_, sweep_);  // 3
    if (best.largest_change > 0) {
      examples_.moved[i] = 1;
      take<kLanes>(best, known, lanes, examples_.squared_norms[i], block_, sweep_);
      for (Integer a = 0; a < some; ++a) stored[places[a]] = beta[a];
      if (known.A > 0) {  // 4
        const Integer changes = listed_changes([&](Integer a) { return places[a]; }, some);
        if (changes == 2) {
          add_to_listed<2>(row);
        } else if (changes == 3) {
          add_to_listed<3>(row);
        } else {
          add_to_listed<0>(row);
        }
      }
    } else if (is_left_out<kLanes>(best, known, lanes)) {
      return 0;
    }
    // Classes that are far below the level are not looked at for a while. One other has to remain.
    double* const D = block_.heights();
    const double lowest = best.water.level - steps_.held_class;
    for (Integer a = some - 1; a > 0 && some > 2; --a) {
      if (beta[a] != 0 || !(D[a] < lowest) || !(known.A > 0)) continue;
      --some;
      places[a] = places[some];
      beta[a] = beta[some];
      D[a] = D[some];
    }
    examples_.sizes[i] = static_cast<std::int32_t>(some);
    return lanes;
  }

  // A step that looks ahead is exact for a curvature that is smaller.
  ClassRow row_of(Integer i, Integer own, Integer some) const {
    return {own, some, examples_.costs[i], examples_.squared_norms[i] / steps_.relaxation};
  }

  template <Integer kLanes>
  bool is_left_out(const Best& best, const ClassRow& known, Integer lanes) {
    return best.water.above == 1 &&
           is_ahead(block_, kLanes > 0 ? kLanes : lanes, known.some, best.largest_score, steps_.held);
  }

  // Lists the own class and those that are not far below the level, the highest of them in any case.
  template <Integer kLanes>
  std::int32_t listed(const ClassRow& known, const Best& best, std::int32_t* places) {
    const Integer lanes = kLanes > 0 ? kLanes : w_.stride, own = known.own;
    const double *const D = block_.heights(), *const beta = block_.multipliers();
    const double *const number = block_.numbers(), own_number = static_cast<double>(own);
    double highest = -INFINITY;
#pragma omp simd reduction(max : highest)
    for (Integer k = 0; k < lanes; ++k) {
      highest = std::max(highest, number[k] == own_number ? -INFINITY : D[k]);
    }
    const double lowest = std::min(best.water.level - steps_.held_class, highest);
    Integer* const stays = moved_.data();
#pragma omp simd
    for (Integer k = 0; k < lanes; ++k) {
      const Integer has = beta[k] != 0 ? 1 : 0, is_near = D[k] >= lowest ? 1 : 0;
      stays[k] = has | is_near;
    }
    places[0] = static_cast<std::int32_t>(own);
    Integer some = 1;
    for (Integer a = 0; a + 1 < known.some; ++a) {
      const Integer k = a + (a >= own ? 1 : 0);
      places[some] = static_cast<std::int32_t>(k);  // the next is written over one that goes
      some += stays[k];
    }
    return static_cast<std::int32_t>(some);
  }

  // w_k += change_k x for all classes.
  template <Integer kLanes, class OneRow>
  MAXMARGIN_INLINE void add_to_all(const OneRow& row) {
    const Integer lanes = kLanes > 0 ? kLanes : w_.stride;
    const double* const change = block_.changes();
    if (kLanes == 0 && 3 * listed_changes([](Integer k) { return k; }, w_.classes) <= lanes) {
      return add_to_listed<0>(row);
    }
    const auto add = [&](Integer column, double x) {
      double* const weights = w_.values + column * lanes;
#pragma omp simd
      for (Integer k = 0; k < lanes; ++k) weights[k] += x * change[k];
    };
    for_each_value(row, [&](Integer column, auto value) { add(column, static_cast<double>(value)); });
    if (w_.constant != 0) add(rows_.columns, w_.constant);
  }

  // Lists the changes that are not 0, and returns how many there are.
  template <class Place>
  MAXMARGIN_INLINE Integer listed_changes(const Place& place, Integer count) {
    const double* const change = block_.changes();
    listed_ = 0;
    for (Integer a = 0; a < count; ++a) {
      moved_[listed_] = place(a);
      by_[listed_] = change[a];
      listed_ += change[a] != 0 ? 1 : 0;
    }
    return listed_;
  }

  // w_k += change x for the classes that are listed: kCount of them where that is not 0.
  template <Integer kCount, class OneRow>
  MAXMARGIN_INLINE void add_to_listed(const OneRow& row) {
    const Integer count = kCount > 0 ? kCount : listed_;
    const Integer* const moved = moved_.data();
    const double* const by = by_.data();
    const auto add = [&](Integer column, double x) {
      double* const weights = w_.values + column * w_.stride;
      for (Integer a = 0; a < count; ++a) weights[moved[a]] += x * by[a];
    };
    for_each_value(row, [&](Integer column, auto value) { add(column, static_cast<double>(value)); });
    if (w_.constant != 0) add(rows_.columns, w_.constant);
  }

  const Rows rows_;
  const ClassExamples& examples_;
  const std::span<Integer> order_;
  const ClassWeights w_;
  const ClassSteps steps_;
  ClassBlock block_;
  ClassSweep sweep_;
  std::vector<Integer> moved_;  // the classes whose changes are listed
  std::vector<double> by_;      // their changes
  Integer listed_ = 0;
};

}  // namespace

ClassSweep crammer_singer(const StoredRows& rows, const ClassExamples& examples, std::span<Integer> order,
                          const ClassWeights& w, const ClassSteps& steps, Watch& watch) {
  return std::visit([&](const auto& kind) { return Sweeping(kind, examples, order, w, steps).run(watch); },
                    rows);
}

bool are_classes(std::span<const std::int32_t> places, Integer classes) {
  std::uint32_t highest = 0;  // numbers below 0 are high ones here
#pragma omp simd reduction(max : highest)
  for (std::size_t a = 0; a < places.size(); ++a) {
    highest = std::max(highest, static_cast<std::uint32_t>(places[a]));
  }
  return highest < static_cast<std::uint32_t>(classes);
}

void class_scores(const StoredRows& rows, std::span<const Integer> codes, const ClassWeights& w,
                  double* out, const Budget& budget) {
  std::visit(
      [&](const auto& kind) {
        const Integer threads = budget.threads_for(kind.stored() * w.classes);
        std::vector<std::vector<double>> each(static_cast<std::size_t>(threads));
        for (std::vector<double>& own : each) own.resize(static_cast<std::size_t>(w.stride));
        in_parallel(threads, kind.count, [&](Integer thread, Integer i, Integer last) {
          double* const scores = each[thread].data();
          for (; i < last; ++i) {
            all_scores(kind[i], w, kind.columns, scores);
            double* to = out + i * (w.classes - 1);
            const double own = scores[codes[i]];
            for (Integer k = 0; k < w.classes; ++k) {
              if (k != codes[i]) *to++ = own - scores[k];
            }
          }
        });
      },
      rows);
}

void class_combine(const StoredRows& rows, std::span<const Integer> codes, const double* alpha,
                   Integer classes, double constant, std::span<double> out, const Budget& budget) {
  std::visit(
      [&](const auto& kind) {
        const Integer most = budget.threads_for(kind.stored() * classes);
        std::vector<std::vector<Integer>> lists(static_cast<std::size_t>(most));
        std::vector<std::vector<double>> each(lists.size());
        for (std::size_t t = 0; t < lists.size(); ++t) {
          lists[t].reserve(static_cast<std::size_t>(classes));
          each[t].resize(static_cast<std::size_t>(classes));
        }
        accumulate(kind, out, budget, [&](Integer thread, Integer i, Integer last, double* target) {
          const ClassWeights w{target, classes, classes, constant};
          double* const beta = each[thread].data();
          for (; i < last; ++i) {
            const double* from = alpha + i * (classes - 1);
            double own = 0;
            bool any = false;
            for (Integer k = 0; k < classes; ++k) {
              if (k == codes[i]) continue;
              any |= *from != 0;
              beta[k] = -*from;
              own += *from++;
            }
            beta[codes[i]] = own;
            if (any) add_to_classes(kind[i], w, kind.columns, beta, lists[thread]);
          }
        });
      },
      rows);
}

}  // namespace maxmargin
