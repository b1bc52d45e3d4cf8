// SPDX-License-Identifier: BSD-3-Clause
#include "linear/points.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "data/columns.hpp"
#include "machine/threads.hpp"

namespace maxmargin {
namespace {

// Points of a pass: their values, a few hundred bytes for each column, stay in the first cache.
constexpr Integer kPointsAtOnce = 32;

// The rows, one at a time: what is done with their values is compiled for each kind of them, the rest once.
class OneByOne {
 public:
  explicit OneByOne(const AnyRows& rows) : rows_(rows) {
    if (const auto* formed = rows.get_if<MonomialRows>()) room_ = room_for_a_row(*formed);
  }
  // Calls visit(column, value) for the values of row i.
  template <class Visit>
  void for_each_value(Integer i, const Visit& visit) {
    rows_.visit([&]<class Rows>(const Rows& kind) {
      if constexpr (std::is_same_v<Rows, MonomialRows>) {
        maxmargin::for_each_value(written_out(kind[i], room_), visit);
      } else {
        maxmargin::for_each_value(kind[i], visit);
      }
    });
  }

 private:
  const AnyRows& rows_;
  WrittenOut room_;
};

// Many points, held by columns.
struct Points {
  std::span<const double> values;
  Integer count, size;

  Points(std::span<const double> values, std::size_t count)
      : values(values), count(static_cast<Integer>(count)), size(0) {
    if (count > 0) size = static_cast<Integer>(values.size() / count);
  }
  // The scores of row i at all of them, of which there are kCount where that is not 0.
  template <Integer kCount = 0>
  void scores(OneByOne& rows, Integer i, bool has_intercept, double* out) const {
    const Integer points = kCount > 0 ? kCount : count;
    if (has_intercept) {
      std::copy_n(values.data() + (size - 1) * points, points, out);
    } else {
      std::fill_n(out, points, 0.0);
    }
    rows.for_each_value(i, [&](Integer column, auto value) {
      const double x = static_cast<double>(value);
      const double* const line = values.data() + column * points;
#pragma omp simd
      for (Integer p = 0; p < points; ++p) out[p] += x * line[p];
    });
  }
};

// Numbers of each thread, which are added up in the end.
class Parts {
 public:
  Parts(Integer threads, Integer size) : threads_(threads), size_(size), all_(threads * size) {}
  void clear() { std::ranges::fill(all_, 0.0); }
  double* of(Integer thread) { return all_.data() + thread * size_; }
  void add_up(std::span<double> out) const {
    std::ranges::fill(out, 0.0);
    for (Integer t = 0; t < threads_; ++t) {
      for (Integer k = 0; k < static_cast<Integer>(out.size()); ++k) out[k] += all_[t * size_ + k];
    }
  }

 private:
  Integer threads_, size_;
  std::vector<double> all_;
};

}  // namespace

void hinges_of_points(const AnyRows& rows, std::span<const double> labels, std::span<const double> costs,
                      std::span<const double> margins, double width, std::span<const double> points,
                      std::span<const Integer> left_out, std::span<double> out, std::span<double> crossings,
                      const Budget& budget) {
  const Points all(points, left_out.size());
  const Integer count = all.count, threads = budget.threads_for(rows.stored * count);
  const bool has_intercept = all.size > rows.columns;
  using Scores = std::array<double, kPointsAtOnce>;
  const auto hinge = [&](Integer i, double score) {
    return costs[i] * std::max(1 - labels[i] * score, 0.0);
  };
  std::vector<double> table(all.size * kPointsAtOnce);
  Parts sums(threads, kPointsAtOnce);
  for (Integer first = 0; first < count; first += kPointsAtOnce) {
    const Integer together = std::min(kPointsAtOnce, count - first);
    for (Integer c = 0; c < all.size; ++c) {
      std::copy_n(points.data() + c * count + first, together, table.data() + c * kPointsAtOnce);
    }
    const Points some(table, kPointsAtOnce);
    sums.clear();
    in_parallel(threads, rows.count, [&](Integer t, Integer i, Integer last) {
      OneByOne each(rows);
      double* const sum = sums.of(t);
      for (; i < last; ++i) {
        if (costs[i] == 0) continue;
        Scores scores;
        some.scores<kPointsAtOnce>(each, i, has_intercept, scores.data());
        const double side = margins[i] < 1 ? 1 : -1, y = side * labels[i], before = side - width;
        double crossing = 0;
        for (Integer p = 0; p < kPointsAtOnce; ++p) sum[p] += hinge(i, scores[p]);
        for (Integer p = 0; p < together; ++p) crossing += std::max(y * scores[p] - before, 0.0);
        crossings[i] += crossing;
      }
    });
    OneByOne each(rows);
    for (Integer p = 0; p < together; ++p) {
      const Integer i = left_out[first + p];
      Scores scores;
      some.scores<kPointsAtOnce>(each, i, has_intercept, scores.data());
      sums.of(0)[p] -= hinge(i, scores[p]);
    }
    sums.add_up(out.subspan(first, together));
  }
}

void pulls_of_points(const AnyRows& rows, AnyLoss loss, const StartingRows& about,
                     std::span<const Integer> among, std::span<const double> points,
                     std::span<const Integer> left_out, std::span<double> out, std::span<double> sizes,
                     std::span<double> moved, const Budget& budget) {
  const Points all(points, left_out.size());
  const Integer count = all.count, size = all.size, looked_at = static_cast<Integer>(among.size());
  const Integer per_row = rows.count > 0 ? rows.stored / rows.count + 1 : 1;
  const Integer threads = budget.threads_for(looked_at * per_row * count);
  const bool has_intercept = size > rows.columns;
  Parts sums(threads, size * count), of_lengths(threads, count), pulls(threads, count),
      farthest(threads, count);
  std::vector<std::vector<Integer>> out_of(looked_at);
  for (Integer p = 0; p < count; ++p) {
    const auto place = std::ranges::lower_bound(among, left_out[p]);
    if (place != among.end() && *place == left_out[p]) out_of[place - among.begin()].push_back(p);
  }
  in_parallel(threads, looked_at, [&](Integer t, Integer k, Integer last) {
    OneByOne each(rows);
    double *const sum = sums.of(t), *const length = of_lengths.of(t), *const pull = pulls.of(t);
    double* const far = farthest.of(t);
    for (; k < last; ++k) {
      const Integer i = among[k];
      if (about.costs[i] == 0) continue;
      all.scores(each, i, has_intercept, pull);
      const double y = about.labels[i], C = about.costs[i], its = about.lengths[i];
      const double before = y * about.margins[i], per_range = about.per_range[i];
      for (const Integer p : out_of[k]) pull[p] = before;  // where it has not moved
#pragma omp simd
      for (Integer p = 0; p < count; ++p) {
        const double distance = std::abs(pull[p] - before) * per_range;
        far[p] = far[p] < distance ? distance : far[p];
      }
      std::visit(
          [&](auto its_loss) {
            for (Integer p = 0; p < count; ++p) pull[p] = -C * its_loss.derivative(y * pull[p]);
          },
          loss);
      for (const Integer p : out_of[k]) pull[p] = 0;
#pragma omp simd
      for (Integer p = 0; p < count; ++p) {
        length[p] += its * pull[p];
        pull[p] *= y;
      }
      const auto add = [&](Integer column, auto value) {
        const double x = static_cast<double>(value);
        double* const line = sum + column * count;
#pragma omp simd
        for (Integer p = 0; p < count; ++p) line[p] += x * pull[p];
      };
      each.for_each_value(i, add);
      if (has_intercept) add(size - 1, 1.0);
    }
  });
  sums.add_up(out);
  of_lengths.add_up(sizes);
  std::ranges::fill(moved, 0.0);
  for (Integer t = 0; t < threads; ++t) {
    for (Integer p = 0; p < count; ++p) moved[p] = std::max(moved[p], farthest.of(t)[p]);
  }
}

void squared_lengths_through(const AnyRows& rows, std::span<const Integer> which, std::span<const double> T,
                             Integer size, std::span<double> out, const Budget& budget) {
  const Integer count = static_cast<Integer>(which.size()), threads = budget.threads_for(count * size);
  std::vector<double> own(threads * size);
  in_parallel(threads, count, [&](Integer t, Integer k, Integer last) {
    OneByOne each(rows);
    double* const sum = own.data() + t * size;
    const auto add = [&](Integer column, auto value) {
      const double x = static_cast<double>(value);
      const double* const line = T.data() + column * size;
#pragma omp simd
      for (Integer j = 0; j < size; ++j) sum[j] += x * line[j];
    };
    for (; k < last; ++k) {
      std::fill_n(sum, size, 0.0);
      each.for_each_value(which[k], add);
      if (size > rows.columns) add(size - 1, 1.0);
      double squared = 0;
#pragma omp simd reduction(+ : squared)
      for (Integer j = 0; j < size; ++j) squared += sum[j] * sum[j];
      out[k] = squared;
    }
  });
}

}  // namespace maxmargin
