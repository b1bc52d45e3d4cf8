// SPDX-License-Identifier: BSD-3-Clause
// Whole passes over the data, shared by the certificate and the solvers.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "data/rows.hpp"
#include "machine/budget.hpp"
#include "machine/large_array.hpp"
#include "machine/threads.hpp"
#include "passes/side_by_side.hpp"
#include "passes/sums.hpp"

namespace maxmargin {

// NumPy's product would hand a long sum to BLAS and its threads, which get in the way of ours.
inline double dot(std::span<const double> a, std::span<const double> b) {
  return sum_in_blocks(a.size(), [&](std::size_t k) { return a[k] * b[k]; });
}

// <w, x> of four rows at once: each sum alone would wait for itself.
template <class Value>
std::array<double, 4> scores_of_four(const DenseRows<Value>& rows, Integer first, const double* w) {
  const Value *x = rows[first].values, *y = rows[first + 1].values, *z = rows[first + 2].values,
              *u = rows[first + 3].values;
  double a = 0, b = 0, c = 0, d = 0;
#pragma omp simd reduction(+ : a, b, c, d)
  for (Integer j = 0; j < rows.columns; ++j) {
    a += static_cast<double>(x[j]) * w[j];
    b += static_cast<double>(y[j]) * w[j];
    c += static_cast<double>(z[j]) * w[j];
    d += static_cast<double>(u[j]) * w[j];
  }
  return {a, b, c, d};
}

// Whether rows are read in whole registers.
template <class Rows>
bool fits_registers(const Rows& rows) {
  return kDense<Rows> && rows.columns >= kLane;
}

inline constexpr Integer kRowsOfBlock = 64;  // which stay in the cache while they are visited again

// <w, x_i> of the rows of a block, whose number is at most kRowsOfBlock.
template <class Rows>
class ScoresOfBlock {
 public:
  ScoresOfBlock(const Rows& rows, const double* w) : w_(w) {
    // Of shorter rows the registers' ends would take longer than the sums.
    if (!fits_registers(rows) || InRegisters(rows.columns).count <= kRegistersOfSum) return;
    points_ = PaddedPoints(InRegisters(rows.columns), {w, static_cast<std::size_t>(rows.columns)});
  }
  void operator()(const Rows& rows, Integer first, Integer count, double* out) const {
    Integer i = 0;
    if constexpr (kDense<Rows>) {
      if (points_.count > 0) {
        std::array<double, kRowsOfBlock> lengths;
        Rows some = rows;
        some.values += first * rows.stride;
        some.count = count;
        scores_in_registers<1>(some, points_.by, points_.values.data(), 1, out, count, lengths.data());
        return;
      }
      for (; i + 4 <= count; i += 4) std::ranges::copy(scores_of_four(rows, first + i, w_), out + i);
    }
    for (; i < count; ++i) out[i] = rows[first + i].dot(w_);
  }

 private:
  const double* w_;
  PaddedPoints points_;
};

// out_i = <w, x_i>
template <class Rows>
void scores(const Rows& rows, const double* w, std::span<double> out, const Budget& budget) {
  if constexpr (requires { rows.shift; }) {
    if (rows.shift == 1) {
      // Twins share their product. From the end, since the first half of `out` has all of them.
      const std::size_t pairs = out.size() / 2;
      scores(without_twins(rows), w, out.first(pairs), budget);
      for (std::size_t k = pairs; k-- > 0;) out[2 * k] = out[2 * k + 1] = out[k];
      return;
    }
  }
  const ScoresOfBlock<Rows> scores_of_block(rows, w);
  in_parallel(budget.threads_for(rows.stored()), rows.count, [&](Integer, Integer i, Integer last) {
    const View<Rows> view = rows;
    for (Integer some = 0; i < last; i += some) {
      some = std::min(kRowsOfBlock, last - i);
      scores_of_block(view, i, some, out.data() + i);
    }
  });
}

// out_i = |x_i|^2
template <class Rows>
void squared_norms(const Rows& rows, std::span<double> out, const Budget& budget) {
  in_parallel(budget.threads_for(rows.stored()), rows.count, [&](Integer, Integer i, Integer last) {
    for (; i < last; ++i) out[i] = rows[i].squared_norm();
  });
}

// out_ki = <w_k, x_i> for some w_k, which `points` has one after the other, and |x_i|^2: where rows are
// dense, one visit of each row for several points.
template <class Rows>
void scores_at(const Rows& rows, std::span<const double> points, double* out, std::span<double> norms,
               const Budget& budget) {
  if constexpr (kDense<Rows>) {
    if (fits_registers(rows)) {
      const PaddedPoints padded(InRegisters(rows.columns), points);
      return scores_in_registers(rows, padded, out, rows.count, norms.data());
    }
  }
  squared_norms(rows, norms, budget);
  for (std::size_t first = 0; first < points.size(); first += static_cast<std::size_t>(rows.columns)) {
    scores(rows, &points[first], std::span(out, norms.size()), budget);
    out += norms.size();
  }
}

// Work on a share of the rows, which is called by its address: what gives the shares out is compiled once.
struct WorkOnShare {
  void (*call)(const void* work, Integer thread, Integer first, Integer last, double* target);
  const void* work;
};

// See `accumulate`.
inline void add_up_shares(Integer count, Integer columns, Integer stored, std::span<double> out,
                          const Budget& budget, const WorkOnShare& work) {
  // A private target costs d additions in the end: worth it only where a share has more to add.
  const Integer threads = columns < stored / 2 ? budget.threads_for(stored) : 1;
  std::vector<std::vector<double>> own(static_cast<std::size_t>(threads - 1));
  for (std::vector<double>& part : own) part.reserve(out.size());
  std::fill(out.begin(), out.end(), 0.0);
  in_parallel(threads, count, [&](Integer thread, Integer first, Integer last) {
    double* target = out.data();
    if (thread > 0) {
      own[thread - 1].assign(out.size(), 0.0);
      target = own[thread - 1].data();
    }
    work.call(work.work, thread, first, last, target);
  });
  for (const std::vector<double>& part : own) {
    for (std::size_t j = 0; j < out.size(); ++j) out[j] += part[j];
  }
}

// Runs work(thread, first, last, target) on shares of the rows, each thread with its own target of d zeros,
// and adds the targets up in `out`.
template <class Rows, class Work>
void accumulate(const Rows& rows, std::span<double> out, const Budget& budget, const Work& work) {
  const auto call = [](const void* given, Integer thread, Integer first, Integer last, double* target) {
    (*static_cast<const Work*>(given))(thread, first, last, target);
  };
  add_up_shares(rows.count, rows.columns, rows.stored(), out, budget, {call, &work});
}

// The sums of the coefficients of twins, one for each pair: all that counts where products are linear in
// them, and half as many numbers to look at, of which few are 0.
inline NumbersOfRows sums_of_twins(const double* coefficients, Integer count, const Budget& budget) {
  NumbersOfRows sums(static_cast<std::size_t>(count / 2));
  for_each_row(budget, sums.size(),
               [&](std::size_t k) { sums[k] = coefficients[2 * k] + coefficients[2 * k + 1]; });
  return sums;
}

// target += sum of coefficient_i x_i over a block of rows. Few rows whose coefficient is not 0 are told
// apart; else all are added up, which is faster than branches that nobody foresees.
template <class Rows>
void add_block(const Rows& rows, Integer first, Integer count, const double* coefficients, double* target) {
  if constexpr (kDense<Rows>) {
    constexpr Integer kFew = 4;  // one row in so many
    Integer added = 0;
    for (Integer i = 0; i < count; ++i) added += coefficients[i] != 0;
    if (kFew * added > count) {
      const InRegisters by(rows.columns);
      // More registers would be a second visit of the rows, out of the order in which they lie.
      if (fits_registers(rows) && by.count <= kRegistersOfSum) {
        return add_sum_in_registers(rows, by, first, count, coefficients, target);
      }
      for (Integer i = 0; i < count; ++i) rows[first + i].add_to(target, coefficients[i]);
      return;
    }
  }
  for (Integer i = 0; i < count; ++i) {
    if (coefficients[i] != 0) rows[first + i].add_to(target, coefficients[i]);
  }
}

// out = sum_i coefficient_i x_i
template <class Rows>
void combine(const Rows& rows, const double* coefficients, std::span<double> out, const Budget& budget) {
  if constexpr (requires { rows.shift; }) {
    if (rows.shift == 1) {
      const NumbersOfRows sums = sums_of_twins(coefficients, rows.count, budget);
      return combine(without_twins(rows), sums.data(), out, budget);
    }
  }
  accumulate(rows, out, budget, [&](Integer, Integer i, Integer last, double* target) {
    const View<Rows> view = rows;
    for (Integer some = 0; i < last; i += some) {
      some = std::min(kRowsOfBlock, last - i);
      add_block(view, i, some, coefficients + i, target);
    }
  });
}

// Row g of `out` = sum of coefficient_i x_i over the rows with group_i = g: all groups in one pass.
template <class Rows>
void combine_groups(const Rows& rows, const double* coefficients, const Integer* groups,
                    std::span<double> out, const Budget& budget) {
  accumulate(rows, out, budget, [&](Integer, Integer i, Integer last, double* target) {
    const View<Rows> view = rows;
    if constexpr (kDense<Rows>) {
      if (fits_registers(rows)) {
        const Integer count = static_cast<Integer>(out.size()) / view.columns;
        return add_groups_in_registers(view, i, last, coefficients, groups, count, target);
      }
    }
    for (; i < last; ++i) {
      if (coefficients[i] != 0) view[i].add_to(target + groups[i] * view.columns, coefficients[i]);
    }
  });
}

// Sums over rows whose margins are farther from 1 than a width, by label and by the number of edges below
// the margin; those of label 1 come first. A row of `sums` has the costs, the costs times the lengths, and
// the number of rows with a cost. All in one visit of each row, while its values are near.
template <class Rows>
class Folds {
 public:
  Folds(const Rows& rows, std::span<const double> edges, double width)
      : rows_(rows),
        edges_(edges),
        width_(width),
        places_(2 * (static_cast<Integer>(edges.size()) + 1)),
        in_registers_(fits_registers(rows)),
        columns_(rows.columns),
        // One place more, for the rows that are near the margin: they are visited, too, so that no branch
        // has to be foreseen.
        own_(static_cast<std::size_t>((places_ + 1) * (in_registers_ ? columns_.size() : rows.columns))),
        facts_(static_cast<std::size_t>(kFacts * (places_ + 1))) {}

  // Adds the rows from `first` on, whose numbers are given from there on, too.
  void add(Integer first, Integer count, const double* labels, const double* costs, const double* margins,
           const double* lengths) {
    constexpr Integer kBlock = 512;  // rows whose places are found before they are visited
    std::array<std::int64_t, kBlock> at;
    for (Integer done = 0; done < count; done += kBlock) {
      const Integer some = std::min(kBlock, count - done);
      fold_places(margins + done, labels + done, edges_, width_, some, at.data());
      add_to_places(first + done, some, at.data(), costs + done, lengths + done);
    }
  }
  void end(double* vectors, double* sums) const {
    for (Integer place = 0; place < places_; ++place) {
      for (Integer k = 0; k < 3; ++k) sums[3 * place + k] += facts_[kFacts * place + k];
    }
    if (!in_registers_) {
      for (Integer k = 0; k < places_ * columns_.columns; ++k) vectors[k] += own_[k];
      return;
    }
    for (Integer place = 0; place < places_; ++place) {
      columns_.for_each([&](Integer column, Integer lane) {
        vectors[place * columns_.columns + column] += own_[place * columns_.size() + lane];
      });
    }
  }

 private:
  void add_to_places(Integer first, Integer some, const std::int64_t* at, const double* costs,
                     const double* lengths) {
    const View<Rows> view = rows_;
    const InRegisters columns = columns_;
    const Integer places = places_;
    double *const own = own_.data(), *const facts = facts_.data();
    for (Integer i = 0; i < some; ++i) {
      const double cost = costs[i];
      double* const fact = facts + kFacts * at[i];
      const Facts own_facts = {cost, cost * lengths[i], cost != 0 ? 1.0 : 0.0, 0.0};
      Facts sums;
      std::memcpy(&sums, fact, sizeof(sums));
      sums += own_facts;
      std::memcpy(fact, &sums, sizeof(sums));
      if constexpr (kDense<Rows>) {
        if (in_registers_) {
          double* const target = own + at[i] * columns.size();
          const auto* const x = view[first + i].values;
          for (Integer k = 0; k < columns.count; ++k) {
            double* const to = target + k * kLane;
            store(to, load(to) + cost * in_double(x + columns.begin(k)));
          }
          continue;
        }
      }
      if (at[i] < places && cost != 0) view[first + i].add_to(own + at[i] * view.columns, cost);
    }
  }

  static constexpr Integer kFacts = 4;  // the last of them is 0: so they are added all at once
  typedef double Facts __attribute__((vector_size(kFacts * sizeof(double))));

  const Rows& rows_;
  std::span<const double> edges_;
  double width_;
  Integer places_;
  bool in_registers_;
  InRegisters columns_;
  std::vector<double> own_, facts_;
};

// The same of all rows at once.
struct Folding {
  std::span<const double> edges;  // increasing
  double width;
  const double *labels, *costs, *margins, *lengths;
};
template <class Rows>
void fold_rows(const Rows& rows, const Folding& by, double* vectors, double* sums) {
  Folds<Rows> folds(rows, by.edges, by.width);
  folds.add(0, rows.count, by.labels, by.costs, by.margins, by.lengths);
  folds.end(vectors, sums);
}

// Rows that lie apart come late, unless they are asked for before their turn.
template <class Rows>
void prefetch_ahead(const Rows& rows, std::span<const Integer> order, Integer k) {
  constexpr Integer kAhead = 4;
  if (k + kAhead < static_cast<Integer>(order.size())) rows.prefetch(order[k + kAhead]);
}

// w += sum_k coefficient_k x_i with i = order_k: for a few rows, where a pass would be too much.
template <class Rows>
void add_rows(const Rows& rows, std::span<const Integer> order, const double* coefficients, double* w) {
  for (std::size_t k = 0; k < order.size(); ++k) {
    prefetch_ahead(rows, order, static_cast<Integer>(k));
    rows[order[k]].add_to(w, coefficients[k]);
  }
}

}  // namespace maxmargin
