// SPDX-License-Identifier: BSD-3-Clause
// Four ways to hold rows so that common sums of many pairs are cheap: bits and bytes (counted_tiles.hpp),
// dense, sparse; and one for values of a kernel that are given.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "kernel/counted_tiles.hpp"
#include "kernel/tiles.hpp"

namespace maxmargin {

// Any values, zeros included. With `distances`, the common product is replaced by -1/2 |x - z|^2: twice the
// work, but no digits are lost where two long rows lie close together.
template <class T>
class DenseTiles {
 public:
  using Queries = std::vector<T>;

  template <class Rows>
  DenseTiles(const Rows& rows, std::span<const Integer> which, const KeptColumns& columns, bool distances)
      : values_(which.size(), columns.count), distances_(distances) {
    for (std::size_t i = 0; i < which.size(); ++i) {
      for_each_value(rows[which[i]], [&](Integer column, auto value) {
        const Integer place = columns.places[column];
        if (place >= 0) values_.at(static_cast<Integer>(i), place) = static_cast<T>(value);
      });
    }
  }
  DenseTiles subset(std::span<const Integer> which) const { return {values_.subset(which), distances_}; }
  void read(std::span<const Integer> which, Queries& queries) const { values_.read(which, queries); }

  void commons(const KernelSum& kernel, const Queries& queries, Integer tile, CommonSums<T>& out) const {
    for_each_common(kernel, [&]<Common common_sum>() {
      common<common_sum>(queries, tile, out[static_cast<int>(common_sum)]);
    });
  }

  Integer work() const { return values_.columns(); }

 private:
  DenseTiles(Tiled<T> values, bool distances) : values_(std::move(values)), distances_(distances) {}

  template <Common common_sum>
  void common(const Queries& queries, Integer tile, TileSums<T>& out) const {
    const T* rows = values_.tile(tile);
    constexpr int width = kVectorsAtOnce * kLanes<T>;
    for (int q = 0; q < kQueries; q += 4) {
      for (int lane = 0; lane < kTile; lane += width) {
        if (distances_ && common_sum == Common::product) {
          sum<true, common_sum>(rows + lane, queries.data() + q, out[q] + lane);
        } else {
          sum<false, common_sum>(rows + lane, queries.data() + q, out[q] + lane);
        }
      }
    }
  }
  // Inlined, or the compiler would keep the sums in memory.
  template <bool distances, Common common_sum>
  MAXMARGIN_INLINE void sum(const T* rows, const T* queries, T* out) const {
    using V = Lanes<T>;
    constexpr int lanes = kLanes<T>;
    V sums[4][kVectorsAtOnce] = {};
    for (Integer k = 0; k < values_.columns(); ++k) {
      V values[kVectorsAtOnce];
      for (int v = 0; v < kVectorsAtOnce; ++v) values[v] = load<T>(rows + k * kTile + v * lanes);
      for (int q = 0; q < 4; ++q) {
        const V query = all<T>(queries[k * kQueries + q]);
        for (int v = 0; v < kVectorsAtOnce; ++v) {
          if constexpr (distances) {
            const V difference = values[v] - query;
            sums[q][v] += difference * difference;
          } else {
            sums[q][v] += share<common_sum>(values[v], query);
          }
        }
      }
    }
    for (int q = 0; q < 4; ++q) {
      for (int v = 0; v < kVectorsAtOnce; ++v) {
        if constexpr (distances) sums[q][v] *= T{-0.5};
        store<T>(out + q * kTile + v * lanes, sums[q][v]);
      }
    }
  }

  Tiled<T> values_;
  bool distances_;
};

// How many queries the sums of sparse rows are computed for at once: as many as one line of the cache
// holds.
template <class T>
inline constexpr int kSparseQueries = 64 / static_cast<int>(sizeof(T));

template <class T>
struct alignas(64) SparseLine {
  T values[kSparseQueries<T>] = {};
};

// The columns that any of the queries has, in ascending order, and the values there.
template <class T>
struct SparseQueries {
  std::vector<std::int32_t> columns;
  std::vector<SparseLine<T>> values;
  int count = 0;  // queries
};

// Rows with few values, column by column: who has a value there. The columns of a few queries lead to all
// rows that have something in common with them; most columns of most rows are never looked at.
template <class Value, class T>
class SparseTiles {
 public:
  using Queries = SparseQueries<T>;
  static constexpr int kAtOnce = kSparseQueries<T>;

  SparseTiles(const SparseRows<Value>& rows, std::vector<Integer> which)
      : rows_(rows), which_(std::move(which)), begins_(static_cast<std::size_t>(rows.columns + 1), 0) {
    for (const Integer i : which_)
      for_each_value(rows_[i], [&](Integer column, auto) { ++begins_[column + 1]; });
    for (Integer column = 0; column < rows_.columns; ++column) begins_[column + 1] += begins_[column];
    entries_ = std::make_unique_for_overwrite<Entry[]>(static_cast<std::size_t>(begins_.back()));
    for (std::size_t i = 0; i < which_.size(); ++i) {
      for_each_value(rows_[which_[i]], [&](Integer column, auto value) {
        entries_[begins_[column]++] = {static_cast<std::uint32_t>(i), static_cast<Value>(value)};
      });
    }
    // Each has moved on to where the next one began.
    std::copy_backward(begins_.begin(), begins_.end() - 1, begins_.end());
    begins_[0] = 0;
  }
  SparseTiles subset(std::span<const Integer> which) const { return {rows_, picked(which_, which)}; }

  void read(std::span<const Integer> which, Queries& queries) const {
    // Kept by the thread: there may be millions of columns, and all bits are 0 between two calls.
    struct Kept {
      std::vector<std::uint64_t> marks;
      std::vector<std::uint32_t> places;
    };
    thread_local Kept kept;
    std::vector<std::uint64_t>& marks = kept.marks;
    std::vector<std::uint32_t>& places = kept.places;
    const std::size_t columns = static_cast<std::size_t>(rows_.columns);
    if (places.size() < columns) {
      places.resize(columns);
      marks.resize((columns + 63) / 64);
    }
    for (const Integer row : which) {
      for_each_value(rows_[which_[row]], [&](Integer column, auto) {
        marks[column / 64] |= std::uint64_t{1} << (column % 64);
      });
    }
    queries.columns.clear();
    for (std::size_t word = 0; word < (columns + 63) / 64; ++word) {
      for (std::uint64_t bits = std::exchange(marks[word], 0); bits != 0; bits &= bits - 1) {
        const std::size_t column = 64 * word + static_cast<std::size_t>(std::countr_zero(bits));
        places[column] = static_cast<std::uint32_t>(queries.columns.size());
        queries.columns.push_back(static_cast<std::int32_t>(column));
      }
    }
    queries.count = static_cast<int>(which.size());
    queries.values.assign(queries.columns.size(), {});
    for (std::size_t q = 0; q < which.size(); ++q) {
      for_each_value(rows_[which_[which[q]]], [&](Integer column, auto value) {
        queries.values[places[column]].values[q] = static_cast<T>(value);
      });
    }
  }

  // Calls use(query, tile, sums) for every kQueries queries and every one of the tiles.
  template <class Use>
  void for_each_tile(const KernelSum& kernel, const Queries& queries, Integer first, Integer last,
                     const Use& use) const {
    struct Kept {
      std::vector<Integer> next, after;
      std::vector<SparseLine<T>> sums;
    };
    thread_local Kept kept;
    // Found once: a thread has to look for what it keeps.
    std::vector<Integer>&next = kept.next, &after = kept.after;  // entries to go on from, of each column
    std::vector<SparseLine<T>>& sums = kept.sums;                // [common sum][row]
    constexpr Integer size = kTilesAtOnce * kTile;
    sums.resize(kCommons * size);
    next.resize(queries.columns.size());
    after.resize(queries.columns.size());
    for (std::size_t k = 0; k < next.size(); ++k) next[k] = entry_from(queries.columns[k], first * kTile);
    alignas(64) CommonSums<T> commons;
    for (Integer group = first; group < last; group += kTilesAtOnce) {
      const Integer tiles = std::min<Integer>(kTilesAtOnce, last - group);
      for_each_common(kernel, [&]<Common common_sum>() {
        SparseLine<T>* const own = sums.data() + static_cast<int>(common_sum) * size;
        std::fill(own, own + tiles * kTile, SparseLine<T>{});
        add<common_sum>(queries, group * kTile, (group + tiles) * kTile, next, after, own);
      });
      std::swap(next, after);
      for (Integer tile = 0; tile < tiles; ++tile) {
        for (int query = 0; query < queries.count; query += kQueries) {
          for_each_number_of_common(kernel, [&](int number) {
            const SparseLine<T>* const own = sums.data() + number * size + tile * kTile;
            for (int q = 0; q < kQueries; ++q) {
              for (int lane = 0; lane < kTile; ++lane)
                commons[number][q][lane] = own[lane].values[query + q];
            }
          });
          use(query, group + tile, commons);
        }
      }
    }
  }

  Integer work() const { return which_.empty() ? 1 : 2 * (rows_.stored() / rows_.count + 1); }

 private:
  struct Entry {
    std::uint32_t row;
    Value value;
  };
  // So many tiles that their sums stay in the second-level cache.
  static constexpr Integer kTilesAtOnce = 16;

  // The first entry of a column whose row is not before this one.
  Integer entry_from(Integer column, Integer row) const {
    const Entry* const begin = entries_.get() + begins_[column];
    if (row == 0) return begins_[column];
    const Entry* const end = entries_.get() + begins_[column + 1];
    return std::partition_point(begin, end, [=](const Entry& entry) { return entry.row < row; }) -
           entries_.get();
  }

  // Adds the shares of all columns for the rows from `base` to `limit`.
  template <Common common_sum>
  void add(const Queries& queries, Integer base, Integer limit, const std::vector<Integer>& next,
           std::vector<Integer>& after, SparseLine<T>* sums) const {
    const std::size_t columns = queries.columns.size();
    const Entry* const entries = entries_.get();
    for (std::size_t k = 0; k < columns; ++k) {
      if (k + kAhead < columns) MAXMARGIN_PREFETCH(entries + next[k + kAhead]);
      const Entry* entry = entries + next[k];
      const Entry* const end = entries + begins_[queries.columns[k] + 1];
      const T* const values = queries.values[k].values;
      for (; entry < end && entry->row < limit; ++entry) {
        const T x = static_cast<T>(entry->value);
        T* const target = sums[entry->row - base].values;
#pragma omp simd
        for (int q = 0; q < kAtOnce; ++q) target[q] += share<common_sum>(x, values[q]);
      }
      after[k] = entry - entries;
    }
  }
  static constexpr std::size_t kAhead = 8;  // columns whose entries are fetched before their turn

  SparseRows<Value> rows_;
  std::vector<Integer> which_;
  std::vector<Integer> begins_;  // of each column among the entries, and the end
  std::shared_ptr<Entry[]> entries_;
};

// Values of a kernel that are given: the rows are those of the matrix itself.
template <class Value>
class GivenTiles {
 public:
  using Queries = std::vector<Integer>;  // rows

  GivenTiles(const DenseRows<Value>& matrix, std::vector<Integer> which)
      : matrix_(matrix), which_(std::move(which)) {}
  GivenTiles subset(std::span<const Integer> which) const { return {matrix_, picked(which_, which)}; }
  void read(std::span<const Integer> which, Queries& queries) const { queries = picked(which_, which); }

  template <class T>
  void commons(const KernelSum&, const Queries& queries, Integer tile, CommonSums<T>& sums) const {
    TileSums<T>& out = sums[static_cast<int>(Common::given)];
    const Integer first = tile * kTile;
    const Integer last = std::min<Integer>(first + kTile, static_cast<Integer>(which_.size()));
    for (std::size_t q = 0; q < kQueries; ++q) {
      std::fill(out[q], out[q] + kTile, T{});
      if (q >= queries.size()) continue;
      const Value* row = matrix_[queries[q]].values;
      for (Integer i = first; i < last; ++i) out[q][i - first] = static_cast<T>(row[which_[i]]);
    }
  }

  Integer work() const { return 1; }

 private:
  DenseRows<Value> matrix_;
  std::vector<Integer> which_;
};

}  // namespace maxmargin
