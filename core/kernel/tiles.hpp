// SPDX-License-Identifier: BSD-3-Clause
// Rows come in tiles of kTile, and in a tile one column after the other, so that a loop over the rows of
// a tile is a loop over neighbours in memory. `Queries` are up to kQueries rows, copied out and
// interleaved, whose sums with all rows of a tile are computed at once.
#pragma once

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "data/columns.hpp"
#include "kernel/kernel_rows.hpp"
#include "kernel/kernels.hpp"

namespace maxmargin {

template <class T>
using TileSums = T[kQueries][kTile];

// One for each kind of common sum; those that the kernel does not use are left as they are.
template <class T>
using CommonSums = TileSums<T>[kCommons];

// Calls visit<common>() for each kind of common sum over columns that the kernel uses.
template <class Visit>
void for_each_common(const KernelSum& kernel, const Visit& visit) {
  if (kernel.uses(Common::product)) visit.template operator()<Common::product>();
  if (kernel.uses(Common::minimum)) visit.template operator()<Common::minimum>();
  if (kernel.uses(Common::harmonic)) visit.template operator()<Common::harmonic>();
}
// The same as a number, visit(common), where the loops are those of every kind.
template <class Visit>
void for_each_number_of_common(const KernelSum& kernel, const Visit& visit) {
  for (const Common common : {Common::product, Common::minimum, Common::harmonic}) {
    if (kernel.uses(common)) visit(static_cast<int>(common));
  }
}

// The columns that a block of rows has to hold, and where each column goes: -1 where it is left out.
struct KeptColumns {
  Places places;
  Integer count;
};

inline Integer tiles_of(std::size_t count) { return (static_cast<Integer>(count) + kTile - 1) / kTile; }

// all[which_0], all[which_1], ...
template <class T>
std::vector<T> picked(const std::vector<T>& all, std::span<const Integer> which) {
  std::vector<T> some;
  some.reserve(which.size());
  for (const Integer i : which) some.push_back(all[i]);
  return some;
}

// Numbers of rows in tiles, [tile][column][lane], all 0 at first.
template <class T>
class Tiled {
 public:
  Tiled(std::size_t rows, Integer columns)
      : columns_(columns), values_(static_cast<std::size_t>(tiles_of(rows) * columns * kTile)) {}

  Tiled subset(std::span<const Integer> which) const {
    Tiled part(which.size(), columns_);
    for (std::size_t i = 0; i < which.size(); ++i) {
      for (Integer k = 0; k < columns_; ++k) part.at(static_cast<Integer>(i), k) = at(which[i], k);
    }
    return part;
  }
  // Copies rows out, as [column][query].
  void read(std::span<const Integer> which, std::vector<T>& queries) const {
    queries.assign(static_cast<std::size_t>(columns_ * kQueries), T{});
    for (std::size_t q = 0; q < which.size(); ++q) {
      for (Integer k = 0; k < columns_; ++k) queries[k * kQueries + q] = at(which[q], k);
    }
  }

  Integer columns() const { return columns_; }
  const T* tile(Integer number) const { return values_.data() + number * columns_ * kTile; }
  T& at(Integer row, Integer column) { return values_[place(row, column)]; }
  const T& at(Integer row, Integer column) const { return values_[place(row, column)]; }

 private:
  Integer place(Integer row, Integer column) const {
    return ((row / kTile) * columns_ + column) * kTile + row % kTile;
  }

  Integer columns_;
  std::vector<T> values_;
};

}  // namespace maxmargin
