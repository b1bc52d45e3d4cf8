// SPDX-License-Identifier: BSD-3-Clause
// All monomials of a row, by degree and then in the order of their columns: 1, x_0, x_1, .., x_0^2, x_0
// x_1, ..
//
// A monomial of degree k is a sequence of columns i_1 <= i_2 <= .. <= i_k, or i_1 < i_2 < .. where a column
// may occur only once. Let choices(r, i) be the number of such sequences of length r that begin at column i
// or later. Then a sequence has, among those of its degree,
//     sum over p of  choices(k - p + 1, first column that i_p may be) - choices(k - p + 1, i_p)
// others before it.
//
// The monomials of degree k that begin with column i are x_i times those of degree k - 1 that begin at i or
// later (behind i, where a column may occur only once). These lie side by side at the end of the row's
// monomials of degree k - 1, and their columns in the result differ by one number that depends on i alone.
// So every degree is made of the one before by one long run for each stored value.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "data/rows.hpp"
#include "passes/passes.hpp"

namespace maxmargin {

inline constexpr Integer kRun = 16;  // products made at once

// The monomials of one degree of a row, without the degree's scale; `first` is the number that `columns`
// have for the first of all of them. Up to kRun - 1 places behind them may be read.
template <class Value, class Index>
struct MonomialBlock {
  const Value* values;
  const Index* columns;
  Integer count;
  Integer first;
};

// What one thread needs to expand rows of up to `longest` stored values.
template <class Value, class Index>
struct MonomialSpace {
  // `largest` bounds the monomials of a degree that are not part of the result as they are.
  MonomialSpace(Integer longest, Integer degree, Integer largest)
      : row_values(static_cast<std::size_t>(longest + kRun)),
        row_columns(row_values.size()),
        begins(static_cast<std::size_t>(degree + 2), std::vector<Integer>(row_values.size())) {
    std::iota(row_columns.begin(), row_columns.end(), Index{0});
    std::iota(begins[1].begin(), begins[1].end(), Integer{0});
    for (int k = 0; k < 2; ++k) {
      values[k].resize(static_cast<std::size_t>(largest + kRun));
      columns[k].resize(values[k].size());
    }
  }

  // Row i as its monomials of degree 1. A dense row has the columns that this began with, and is read where
  // it lies if what is behind it may be read.
  MonomialBlock<Value, Index> read(const DenseRows<Value>& rows, Integer i) {
    const DenseRow<Value> row = rows[i];
    const bool in_place = (rows.count - 1 - i) * rows.stride >= kRun;
    if (!in_place) std::copy_n(row.values, row.columns, row_values.begin());
    return {in_place ? row.values : row_values.data(), row_columns.data(), row.columns, 0};
  }
  MonomialBlock<Value, Index> read(const SparseRows<Value>& rows, Integer i) {
    const auto row = rows[i];
    std::copy_n(row.values, row.count, row_values.begin());
    std::copy_n(row.columns, row.count, row_columns.begin());
    return {row_values.data(), row_columns.data(), row.count, 0};
  }

  std::vector<Value> row_values;
  std::vector<Index> row_columns;
  std::vector<std::vector<Integer>> begins;  // of a degree: where those that begin at a stored value begin
  std::vector<Value> values[2];              // of two degrees in turn
  std::vector<Index> columns[2];
};

class Monomials {
 public:
  static constexpr Integer kHighest = 255;

  // scales[k] multiplies the monomials of degree k = 0 .. highest; those of a degree below `lowest` are
  // left out. With `shared_repeats`, x_i^p is divided by sqrt(p!): what the polynomial kernel needs.
  Monomials(Integer columns, Integer lowest, std::vector<double> scales, bool once, bool shared_repeats)
      : columns_(columns),
        lowest_(lowest),
        scales_(std::move(scales)),
        once_(once),
        shared_repeats_(shared_repeats) {
    const Integer highest = this->highest();
    if (lowest < 0 || lowest > highest || highest > kHighest || columns < 0) {
      throw std::invalid_argument("degrees from 0 to 255, in order, are needed");
    }
    // Row r from row r - 1, with columns d - 1, d - 2, .. 0 joining one by one.
    choices_.assign(static_cast<std::size_t>((highest + 1) * (columns + 1)), 0);
    for (Integer i = 0; i <= columns; ++i) choices(0, i) = 1;
    for (Integer r = 1; r <= highest; ++r) {
      for (Integer i = columns - 1; i >= 0; --i) {
        choices(r, i) = sum(choices(r, i + 1), choices(r - 1, once ? i + 1 : i));
      }
    }
    shifts_.assign(static_cast<std::size_t>((highest + 1) * columns), 0);
    for (Integer r = 1; r <= highest; ++r) {
      for (Integer i = 0; i < columns; ++i) {
        const Integer before = choices(r, 0) - choices(r, i);
        shifts_[r * columns + i] = before - (choices(r - 1, 0) - choices(r - 1, once ? i + 1 : i));
      }
    }
    begins_.assign(static_cast<std::size_t>(highest) + 2, 0);
    for (Integer k = lowest; k <= highest; ++k) begins_[k + 1] = sum(begins_[k], choices(k, 0));
    for (Integer t = 0; t <= highest; ++t) {
      repeat_scales_.push_back(shared_repeats && t > 1 ? 1 / std::sqrt(static_cast<double>(t)) : 1.0);
    }
  }

  Integer highest() const { return static_cast<Integer>(scales_.size()) - 1; }
  Integer columns() const { return columns_; }
  // Columns of the expansion.
  Integer size() const { return begins_.back(); }
  // Monomials of a row with so many stored values. A row of few columns has as many as the last columns of
  // all.
  Integer size_of_row(Integer stored) const {
    Integer total = 0;
    for (Integer k = lowest_; k <= highest(); ++k) total += choices(k, columns_ - stored);
    return total;
  }

  // The most monomials of one degree that a row of so many stored values needs beside its result.
  Integer beside_result(Integer stored) const {
    Integer most = 0;
    for (Integer k = 2; k < highest(); ++k) {
      if (!is_its_own_source(k)) most = std::max(most, choices(k, columns_ - stored));
    }
    return most;
  }

  // Writes size_of_row values, and their columns where `indices` is not null. Up to kRun - 1 places behind
  // the row's monomials are overwritten.
  template <class Value, class Index>
  void expand(const MonomialBlock<Value, Index>& row, MonomialSpace<Value, Index>& space, Value* values,
              Index* indices) const {
    if (highest() == 2 && !shared_repeats_) return expand_pairs(row, first_degrees(row, values, indices));
    Writer<Value, Index> to = first_degrees(row, values, indices);
    MonomialBlock<Value, Index> block = row;
    for (Integer k = 2; k <= highest(); ++k) {
      if (k == highest() || is_its_own_source(k)) {
        const MonomialBlock<Value, Index> next{to.values, to.indices, 0, begins_[k]};
        block = lengthen(k, row, block, next, scales_[k], space, to);
      } else {
        Writer<Value, Index> beside{space.values[k % 2].data(),
                                    indices ? space.columns[k % 2].data() : nullptr};
        const MonomialBlock<Value, Index> next{beside.values, beside.indices, 0, 0};
        block = lengthen(k, row, block, next, 1.0, space, beside);
        if (k >= lowest_) to.run(block, 0, block.count, scales_[k], begins_[k]);
      }
    }
  }

 private:
  template <class Value, class Index>
  struct Writer {
    Value* values;
    Index* indices;

    void write(double value, Integer column) {
      *values++ = static_cast<Value>(value);
      if (indices) *indices++ = static_cast<Index>(column);
    }
    // A part of a block, its values times the factor and its columns moved by `shift`. A few products are
    // complete before any of them is written, so that the compiler may use vectors. Columns are added up in
    // their own type, where sums may wrap around on the way but are right in the end.
    MAXMARGIN_INLINE void run(const MonomialBlock<Value, Index>& block, Integer begin, Integer end,
                              double factor, Integer shift) {
      const Value* const given = block.values + begin;
      const Value scale = static_cast<Value>(factor);
      const Integer count = end - begin;
      for (Integer k = 0; k < count; k += kRun) {
        Value products[kRun];
        for (Integer lane = 0; lane < kRun; ++lane) products[lane] = scale * given[k + lane];
        for (Integer lane = 0; lane < kRun; ++lane) values[k + lane] = products[lane];
      }
      values += count;
      if (!indices) return;
      using Unsigned = std::make_unsigned_t<Index>;
      const Index* const columns = block.columns + begin;
      const Unsigned by = static_cast<Unsigned>(shift);
      for (Integer k = 0; k < count; k += kRun) {
        Index moved[kRun];
        for (Integer lane = 0; lane < kRun; ++lane) {
          moved[lane] = static_cast<Index>(static_cast<Unsigned>(columns[k + lane]) + by);
        }
        for (Integer lane = 0; lane < kRun; ++lane) indices[k + lane] = moved[lane];
      }
      indices += count;
    }
    // The products with tails that begin with the same column. Those that have it most often come first.
    // Returns where the other tails begin.
    Integer repeats(const Monomials& all, Integer k, Integer place, const MonomialBlock<Value, Index>& row,
                    const MonomialBlock<Value, Index>& shorter, double factor, Integer shift,
                    const MonomialSpace<Value, Index>& space) {
      Integer begin = space.begins[k - 1][place];
      const Integer first = begin;
      for (Integer times = k - 1; times >= 1; --times) {
        const std::vector<Integer>& rest = space.begins[k - 1 - times];
        const Integer end = first + (times == k - 1 ? 1 : rest[row.count] - rest[place]);
        run(shorter, begin, end, factor * all.repeat_scales_[times + 1], shift);
        begin = end;
      }
      return begin;
    }
  };

  // Writes those of the degrees 0 and 1.
  template <class Value, class Index>
  MAXMARGIN_INLINE Writer<Value, Index> first_degrees(const MonomialBlock<Value, Index>& row, Value* values,
                                                      Index* indices) const {
    Writer<Value, Index> to{values, indices};
    if (lowest_ == 0) to.write(scales_[0], begins_[0]);
    if (highest() >= 1 && lowest_ <= 1) to.run(row, 0, row.count, scales_[1], begins_[1]);
    return to;
  }

  // Degree 2 of most rows is many short runs: what each needs beside its products is kept small.
  template <class Value, class Index>
  void expand_pairs(const MonomialBlock<Value, Index>& row, Writer<Value, Index> to) const {
    const Integer* const shifts = shifts_.data() + 2 * columns_;
    for (Integer place = 0; place < row.count; ++place) {
      const double factor = scales_[2] * static_cast<double>(row.values[place]);
      to.run(row, place + once_, row.count, factor, begins_[2] + shifts[row.columns[place]]);
    }
  }

  // Whether the monomials of degree k stand in the result as the next degree needs them.
  bool is_its_own_source(Integer k) const { return k >= lowest_ && scales_[k] == 1; }

  // Writes the monomials of degree k, of a row and its monomials of degree k - 1.
  template <class Value, class Index>
  MonomialBlock<Value, Index> lengthen(Integer k, const MonomialBlock<Value, Index>& row,
                                       const MonomialBlock<Value, Index>& shorter,
                                       MonomialBlock<Value, Index> longer, double scale,
                                       MonomialSpace<Value, Index>& space, Writer<Value, Index>& to) const {
    const Integer* const tails = space.begins[k - 1].data();
    Integer* const begins = space.begins[k].data();
    const Integer* const shifts = shifts_.data() + k * columns_;
    const Integer moved = longer.first - shorter.first;
    const Integer once = once_;
    Writer<Value, Index> out = to;
    for (Integer place = 0; place < row.count; ++place) {
      begins[place] = longer.count;
      Integer begin = tails[place + once];
      longer.count += shorter.count - begin;
      const Integer shift = moved + shifts[row.columns[place]];
      const double factor = scale * static_cast<double>(row.values[place]);
      if (shared_repeats_) begin = out.repeats(*this, k, place, row, shorter, factor, shift, space);
      out.run(shorter, begin, shorter.count, factor, shift);
    }
    to = out;
    begins[row.count] = longer.count;
    return longer;
  }

  Integer& choices(Integer r, Integer i) { return choices_[r * (columns_ + 1) + i]; }
  Integer choices(Integer r, Integer i) const { return choices_[r * (columns_ + 1) + i]; }
  static Integer sum(Integer a, Integer b) {
    if (a > std::numeric_limits<Integer>::max() - b) {
      throw std::invalid_argument("the monomials are too many to be counted");
    }
    return a + b;
  }

  Integer columns_;
  Integer lowest_;
  std::vector<double> scales_;
  bool once_;
  bool shared_repeats_;
  std::vector<Integer> choices_;
  std::vector<Integer> shifts_;  // places of r columns beginning at i, less those of the r - 1 behind it
  std::vector<Integer> begins_;  // first column of every degree
  std::vector<double> repeat_scales_;
};

// Expands the rows of a share, whose results lie one behind the other: row i's from begin(i) on. Most runs
// of products are short, so they are made in steps of a few, too many at the end; the next rows write over
// these. Where no others follow, a row is made elsewhere and copied.
template <class Rows, class Begin, class Value, class Index>
void expand_share(const Monomials& monomials, const Rows& rows, Integer i, Integer last, const Begin& begin,
                  MonomialSpace<Value, Index>& space, Value* values, Index* indices) {
  const Integer end = begin(last);
  for (; i < last && end - begin(i + 1) >= kRun; ++i) {
    Index* const places = indices ? indices + begin(i) : nullptr;
    monomials.expand(space.read(rows, i), space, values + begin(i), places);
  }
  std::vector<Value> room;
  std::vector<Index> places;
  for (; i < last; ++i) {
    const Integer size = begin(i + 1) - begin(i);
    room.resize(static_cast<std::size_t>(size + kRun));
    if (indices) places.resize(room.size());
    monomials.expand(space.read(rows, i), space, room.data(), indices ? places.data() : nullptr);
    std::copy_n(room.data(), size, values + begin(i));
    if (indices) std::copy_n(places.data(), size, indices + begin(i));
  }
}

// Expands all rows, of up to `longest` stored values each; row i's results are from begin(i) on.
template <class Rows, class Begin, class Value, class Index>
void expand_rows(const Monomials& monomials, const Rows& rows, Integer longest, const Begin& begin,
                 Value* values, Index* indices, const Budget& budget) {
  const Integer threads = budget.threads_for(begin(rows.count));
  const MonomialSpace<Value, Index> one(longest, monomials.highest(), monomials.beside_result(longest));
  std::vector spaces(static_cast<std::size_t>(threads), one);  // one for each thread, made beforehand
  in_parallel(threads, rows.count, [&](Integer thread, Integer i, Integer last) {
    expand_share(monomials, rows, i, last, begin, spaces[thread], values, indices);
  });
}

// Every row of the dense matrix `out` holds size() values.
template <class Value>
void expand_dense(const Monomials& monomials, const DenseRows<Value>& rows, Value* out,
                  const Budget& budget) {
  const auto begin = [size = monomials.size()](Integer i) { return i * size; };
  expand_rows(monomials, rows, rows.columns, begin, out, static_cast<Integer*>(nullptr), budget);
}

// Whether offsets are those of the expansion: what fills it trusts them.
template <class Value, class Offset>
bool fits(const Monomials& monomials, const SparseRows<Value>& rows, std::span<const Offset> offsets) {
  if (static_cast<Integer>(offsets.size()) != rows.count + 1 || offsets[0] != 0) return false;
  for (Integer i = 0; i < rows.count; ++i) {
    const Integer size = monomials.size_of_row(rows[i].count);
    if (static_cast<Integer>(offsets[i + 1]) - static_cast<Integer>(offsets[i]) != size) return false;
  }
  return true;
}

// The sparse matrix (values, indices, offsets); rows must be sorted, and offsets must fit.
template <class Value, class Offset>
void expand_sparse(const Monomials& monomials, const SparseRows<Value>& rows,
                   std::span<const Offset> offsets, Offset* indices, Value* values, const Budget& budget) {
  const auto begin = [offsets](Integer i) { return static_cast<Integer>(offsets[i]); };
  Integer longest = 0;
  for (Integer i = 0; i < rows.count; ++i) longest = std::max(longest, rows[i].count);
  expand_rows(monomials, rows, longest, begin, values, indices, budget);
}

// Compiled for each instruction set, in monomials.cpp.
#define MAXMARGIN_EXPANSIONS(extern_, Value)                                                            \
  extern_ template void expand_dense(const Monomials&, const DenseRows<Value>&, Value*, const Budget&); \
  extern_ template void expand_sparse(const Monomials&, const SparseRows<Value>&,                       \
                                      std::span<const std::int32_t>, std::int32_t*, Value*,             \
                                      const Budget&);                                                   \
  extern_ template void expand_sparse(const Monomials&, const SparseRows<Value>&,                       \
                                      std::span<const std::int64_t>, std::int64_t*, Value*,             \
                                      const Budget&);
MAXMARGIN_EXPANSIONS(extern, float)
MAXMARGIN_EXPANSIONS(extern, double)

}  // namespace maxmargin
