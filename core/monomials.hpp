// SPDX-License-Identifier: BSD-3-Clause
// All monomials of a row, by degree and then in the order of their columns: 1, x_0, x_1, .., x_0^2, x_0
// x_1, ..
//
// A monomial of degree k is a sequence of columns i_1 <= i_2 <= .. <= i_k, or i_1 < i_2 < .. where a column
// may occur only once. Let choices(r, i) be the number of such sequences of length r that begin at column i
// or later. Then a sequence has, among those of its degree,
//     sum over p of  choices(k - p + 1, first column that i_p may be) - choices(k - p + 1, i_p)
// others before it. A walk over the stored values adds these terms up on its way.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "passes.hpp"
#include "rows.hpp"

namespace maxmargin {

class Monomials {
 public:
  static constexpr Integer kHighest = 255;  // a walk is as deep as the degree

  // scales[k] multiplies the monomials of degree k = 0 .. highest; those of a degree below `lowest` are
  // left out. With `shared_repeats`, x_i^p is divided by sqrt(p!): what the polynomial kernel needs.
  Monomials(Integer columns, Integer lowest, std::vector<double> scales, bool once, bool shared_repeats)
      : columns_(columns), lowest_(lowest), scales_(std::move(scales)), once_(once) {
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

  // Writes size_of_row values, and their columns where `indices` is not null. With several lanes, up to
  // lanes - 1 values behind the row are read, and as many places behind its monomials are overwritten.
  template <Integer lanes, class Row, class Value, class Index>
  void expand(const Row& row, Value* values, Index* indices) const {
    for (Integer k = lowest_; k <= highest(); ++k) {
      Walk<lanes, Row, Value, Index> walk{*this, row, values, indices};
      if (k == 0) {
        walk.write(scales_[0], begins_[0]);
      } else {
        walk.extend(k, 0, 0, begins_[k], scales_[k], 0);
      }
      values = walk.values;
      indices = walk.indices;
    }
  }

 private:
  template <Integer lanes, class Row, class Value, class Index>
  struct Walk {
    const Monomials& all;
    const Row& row;
    Value* values;
    Index* indices;

    void write(double value, Integer column) {
      *values++ = static_cast<Value>(value);
      if (indices) *indices++ = static_cast<Index>(column);
    }
    // All ways to add r more columns to a sequence of the given product. They are columns from `from` on,
    // which are stored from place `begin` on; `run` counts how often the last column has occurred. `before`
    // counts the monomials in front of this sequence.
    void extend(Integer r, Integer begin, Integer from, Integer before, double product, Integer run) {
      if (r == 1) return finish(begin, before - from, product, run);
      const Integer end = all.once_ ? row.size() - r + 1 : row.size();
      for (Integer place = begin; place < end; ++place) {
        const Integer i = column(row, place);
        const Integer repeats = run > 0 && place == begin && !all.once_ ? run + 1 : 1;
        const Integer skipped = all.choices(r, from) - all.choices(r, i);
        extend(r - 1, place + all.once_, i + all.once_, before + skipped,
               product * static_cast<double>(row.values[place]) * all.repeat_scales_[repeats], repeats);
      }
    }
    // The last column of a sequence: one run over the row, since choices(1, i) = d - i.
    void finish(Integer begin, Integer shift, double product, Integer run) {
      const Integer end = row.size();
      if (begin < end && run > 0 && !all.once_) {
        write(product * static_cast<double>(row.values[begin]) * all.repeat_scales_[run + 1],
              shift + column(row, begin));
        ++begin;
      }
      const Value factor = static_cast<Value>(product);
      const Integer count = end - begin;
      if (count <= 0) return;
      const Value* const given = row.values + begin;
      for (Integer k = 0; k < count; k += lanes) {
        for (Integer lane = 0; lane < lanes; ++lane) values[k + lane] = factor * given[k + lane];
      }
      values += count;
      if (!indices) return;
      for (Integer k = 0; k < count; k += lanes) {
        for (Integer lane = 0; lane < lanes; ++lane) {
          indices[k + lane] = static_cast<Index>(shift + column(row, begin + k + lane));
        }
      }
      indices += count;
    }
  };

  template <class Value>
  static Integer column(const DenseRow<Value>&, Integer place) {
    return place;
  }
  template <class Value, class Index>
  static Integer column(const SparseRow<Value, Index>& row, Integer place) {
    return row.columns[place];
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
  std::vector<Integer> choices_;
  std::vector<Integer> begins_;  // first column of every degree
  std::vector<double> repeat_scales_;
};

// Values that may be read behind row i.
template <class Value>
Integer room_behind(const DenseRows<Value>& rows, Integer i) {
  return (rows.count - 1 - i) * rows.stride;
}
template <class Value, class Index>
Integer room_behind(const SparseRows<Value, Index>& rows, Integer i) {
  return rows.stored() - static_cast<Integer>(rows.offsets[i + 1]);
}

// Expands the rows of a share, whose results lie one behind the other: row i's from begin(i) on. Most runs
// of products are short, so they are made in steps of a few, too many at the end; the next rows write over
// these. Where no others follow, each is made by itself.
template <class Rows, class Begin, class Value, class Index>
void expand_share(const Monomials& monomials, const Rows& rows, Integer i, Integer last, const Begin& begin,
                  Value* values, Index* indices) {
  constexpr Integer kLanes = 8;
  const Integer end = begin(last);
  for (; i < last; ++i) {
    Value* const to = values + begin(i);
    Index* const places = indices ? indices + begin(i) : nullptr;
    if (room_behind(rows, i) >= kLanes && end - begin(i + 1) >= kLanes) {
      monomials.expand<kLanes>(rows[i], to, places);
    } else {
      monomials.expand<1>(rows[i], to, places);
    }
  }
}

// Every row of the dense matrix `out` holds size() values.
template <class Value>
void expand_dense(const Monomials& monomials, const DenseRows<Value>& rows, Value* out,
                  const Budget& budget) {
  const Integer size = monomials.size();
  const auto begin = [size](Integer i) { return i * size; };
  in_parallel(budget.threads_for(rows.count * size), rows.count, [&](Integer, Integer i, Integer last) {
    expand_share(monomials, rows, i, last, begin, out, static_cast<Integer*>(nullptr));
  });
}

// Whether offsets are those of the expansion: what fills it trusts them.
template <class Value, class Index, class Offset>
bool fits(const Monomials& monomials, const SparseRows<Value, Index>& rows,
          std::span<const Offset> offsets) {
  if (static_cast<Integer>(offsets.size()) != rows.count + 1 || offsets[0] != 0) return false;
  for (Integer i = 0; i < rows.count; ++i) {
    const Integer size = monomials.size_of_row(rows[i].count);
    if (static_cast<Integer>(offsets[i + 1]) - static_cast<Integer>(offsets[i]) != size) return false;
  }
  return true;
}

// The sparse matrix (values, indices, offsets); rows must be sorted, and offsets must fit.
template <class Value, class Index, class Offset>
void expand_sparse(const Monomials& monomials, const SparseRows<Value, Index>& rows,
                   std::span<const Offset> offsets, Offset* indices, Value* values, const Budget& budget) {
  const auto begin = [offsets](Integer i) { return static_cast<Integer>(offsets[i]); };
  in_parallel(budget.threads_for(begin(rows.count)), rows.count, [&](Integer, Integer i, Integer last) {
    expand_share(monomials, rows, i, last, begin, values, indices);
  });
}

}  // namespace maxmargin
