// SPDX-License-Identifier: BSD-3-Clause
// Four ways to hold rows so that common sums of many pairs are cheap: bits and bytes (counted_tiles.hpp),
// dense, sparse; and one for values of a kernel that are given.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "kernel/counted_tiles.hpp"
#include "kernel/tiles.hpp"

namespace maxmargin {

// out[q][lane] = the common sums of four queries with the lanes of kVectorsAtOnce registers of a tile, or
// those of -1/2 (x - z)^2 with `distances`; added to what is there if it `goes_on`. Queries are
// [column][kQueries], the tile is [column][kTile]. Inlined, or the compiler would keep the sums in memory.
template <Common common_sum, bool distances, bool goes_on, class T>
MAXMARGIN_INLINE void dense_sums(const T* rows, Integer columns, const T* queries, T* out) {
  using V = Lanes<T>;
  constexpr int lanes = kLanes<T>;
  V sums[4][kVectorsAtOnce] = {};
  for (Integer k = 0; k < columns; ++k) {
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
      T* const target = out + q * kTile + v * lanes;
      if constexpr (goes_on) sums[q][v] += load<T>(target);
      store<T>(target, sums[q][v]);
    }
  }
}
// The same for all queries and lanes of a tile.
template <Common common_sum, bool distances, bool goes_on, class T>
void dense_tile_sums(const T* rows, Integer columns, const T* queries, TileSums<T>& out) {
  for (int q = 0; q < kQueries; q += 4) {
    for (int lane = 0; lane < kTile; lane += kVectorsAtOnce * kLanes<T>)
      dense_sums<common_sum, distances, goes_on>(rows + lane, columns, queries + q, out[q] + lane);
  }
}

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
  Integer tiles_in_block() const { return 1; }

 private:
  DenseTiles(Tiled<T> values, bool distances) : values_(std::move(values)), distances_(distances) {}

  template <Common common_sum>
  void common(const Queries& queries, Integer tile, TileSums<T>& out) const {
    const auto run = distances_ && common_sum == Common::product
                         ? dense_tile_sums<common_sum, true, false, T>
                         : dense_tile_sums<common_sum, false, false, T>;
    run(values_.tile(tile), values_.columns(), queries.data(), out);
  }

  Tiled<T> values_;
  bool distances_;
};

// How many rows with few values are compared with others at once: a piece of the others is then read from
// the nearest cache for all but the first of them.
inline constexpr int kSparseQueries = 2 * kQueries;

// The values of a few rows, one row after the other.
template <class T>
struct SparseQueries {
  std::vector<Integer> begins{0};  // of each row, and the end
  std::vector<std::int32_t> columns;
  std::vector<T> values;

  int count() const { return static_cast<int>(begins.size()) - 1; }
  void clear() {
    begins.resize(1);
    columns.clear();
    values.clear();
  }
  void add(std::int32_t column, T value) {
    columns.push_back(column);
    values.push_back(value);
  }
  void end_row() { begins.push_back(static_cast<Integer>(columns.size())); }
};

// Rows with few values, block by block of rows, and in a block column by column: who has a value there. The
// columns of a query lead to all rows that have something in common with it, and its sums with these are
// neighbours in the nearest cache. Columns that many rows have are held as dense ones: a text has some
// hundred words that make nine tenths of what its rows have in common.
template <class Value, class T>
class SparseTiles {
 public:
  using Queries = SparseQueries<T>;

  SparseTiles(const SparseRows<Value>& rows, std::vector<Integer> which)
      : rows_(rows), which_(std::move(which)), places_(static_cast<std::size_t>(rows.columns), -1) {
    const Integer stored = choose_dense();
    const Integer tiles = tiles_of(which_.size()), columns = rows_.columns;
    // No more beginnings of columns than there are entries, however many columns there are.
    const Integer most = std::max<Integer>(1, stored / std::max<Integer>(1, columns));
    const Integer blocks = std::clamp<Integer>((tiles + kTilesInBlock - 1) / kTilesInBlock, 1, most);
    in_block_ = std::max<Integer>(1, (tiles + blocks - 1) / blocks) * kTile;
    fill(stored);
  }
  SparseTiles subset(std::span<const Integer> which) const { return {rows_, picked(which_, which)}; }

  void read(std::span<const Integer> which, Queries& queries) const {
    queries.clear();
    for (const Integer row : which) {
      for_each_value(rows_[which_[row]], [&](Integer column, auto value) {
        queries.add(static_cast<std::int32_t>(column), static_cast<T>(value));
      });
      queries.end_row();
    }
  }

  // Calls use(query, tile, sums) for every kQueries queries and every one of the tiles.
  template <class Use>
  void for_each_tile(const KernelSum& kernel, const Queries& queries, Integer first, Integer last,
                     const Use& use) const {
    struct Kept {
      Queries sparse;
      std::vector<T> dense, sums;
      std::vector<Integer> next, after;
    };
    thread_local Kept kept_by_thread;
    Kept& kept = kept_by_thread;  // found once: a thread has to look for what it keeps
    split(queries, kept.sparse, kept.dense);
    kept.next.resize(kept.sparse.columns.size());
    kept.after.resize(kept.sparse.columns.size());
    kept.sums.resize(kCommons * kSparseQueries * kMostRows);
    const Integer end = std::min(last * kTile, static_cast<Integer>(which_.size()));
    alignas(64) CommonSums<T> commons;
    // To begin with some rows that nobody asks for is quicker than to look for others in every column.
    const Integer start = first * kTile, in_block = start % in_block_;
    Integer limit;
    for (Integer begin = start - in_block % kMostRows; begin < end; begin = limit) {
      const Integer block = begin / in_block_, block_end = (block + 1) * in_block_;
      limit = std::min({begin + kMostRows, block_end, end});
      if (begin <= start || begin == block * in_block_) find_entries(kept.sparse, block, begin, kept.next);
      const bool whole = limit == block_end || limit == static_cast<Integer>(which_.size());
      for_each_common(kernel, [&]<Common common_sum>() {
        const auto add = whole ? &SparseTiles::add<common_sum, true> : &SparseTiles::add<common_sum, false>;
        T* const own = kept.sums.data() + static_cast<int>(common_sum) * kSparseQueries * kMostRows;
        (this->*add)(kept.sparse, block, begin, limit, kept.next, kept.after, own);
      });
      std::swap(kept.next, kept.after);
      for (Integer tile = std::max(begin / kTile, first); tile * kTile < limit; ++tile) {
        for (int query = 0; query < queries.count(); query += kQueries) {
          for_each_common(kernel, [&]<Common common_sum>() {
            constexpr int number = static_cast<int>(common_sum);
            const T* const own =
                kept.sums.data() + (number * kSparseQueries + query) * kMostRows + tile * kTile - begin;
            for (int q = 0; q < kQueries; ++q)
              std::copy(own + q * kMostRows, own + q * kMostRows + kTile, commons[number][q]);
            dense_tile_sums<common_sum, false, true>(dense_.tile(tile), dense_.columns(),
                                                     kept.dense.data() + query * dense_.columns(),
                                                     commons[number]);
          });
          use(query, tile, commons);
        }
      }
    }
  }

  Integer work() const { return which_.empty() ? 1 : 2 * (rows_.stored() / rows_.count + 1); }
  Integer tiles_in_block() const { return in_block_ / kTile; }

 private:
  struct Entry {
    std::uint32_t row;
    Value value;
  };
  static constexpr Integer kTilesInBlock = 32;  // unless there are more columns than entries in it
  static constexpr Integer kMostRows = kTilesInBlock * kTile;  // whose sums are in the nearest cache
  static constexpr std::size_t kAhead = 8;  // columns whose entries are fetched before their turn
  // The squared share of rows that have a value in a dense column. For every pair of rows it takes
  // 1 / (2 kLanes) of a cycle; a sparse one takes 1.2, but only for pairs that have it in common.
  static constexpr double kSquaredDenseShare = 1 / (2.4 * kLanes<T>);

  // Finds the dense columns, and returns how many values are in others.
  Integer choose_dense() {
    std::vector<Integer> counts(places_.size(), 0);
    if (which_.empty()) return 0;
    for (const Integer i : which_)
      for_each_value(rows_[i], [&](Integer column, auto) { ++counts[column]; });
    const double count = static_cast<double>(tiles_of(which_.size()) * kTile);
    Integer stored = 0;
    std::int32_t dense = 0;
    for (std::size_t column = 0; column < counts.size(); ++column) {
      const double share = static_cast<double>(counts[column]) / count;
      if (share * share >= kSquaredDenseShare)
        places_[column] = dense++;
      else
        stored += counts[column];
    }
    dense_ = Tiled<T>(which_.size(), dense);
    return stored;
  }

  void fill(Integer stored) {
    const Integer count = static_cast<Integer>(which_.size()), columns = rows_.columns;
    const Integer blocks = (count + in_block_ - 1) / in_block_;
    begins_.assign(static_cast<std::size_t>(blocks * columns + 1), 0);
    for (Integer i = 0; i < count; ++i) {
      Integer* const own = begins_.data() + i / in_block_ * columns + 1;
      for_each_value(rows_[which_[i]], [&](Integer column, auto) { own[column] += places_[column] < 0; });
    }
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    entries_ = std::make_unique_for_overwrite<Entry[]>(static_cast<std::size_t>(stored));
    for (Integer i = 0; i < count; ++i) {
      Integer* const own = begins_.data() + i / in_block_ * columns;
      for_each_value(rows_[which_[i]], [&](Integer column, auto value) {
        if (places_[column] >= 0)
          dense_.at(i, places_[column]) = static_cast<T>(value);
        else
          entries_[own[column]++] = {static_cast<std::uint32_t>(i), static_cast<Value>(value)};
      });
    }
    // Each has moved on to where the next one began.
    std::copy_backward(begins_.begin(), begins_.end() - 1, begins_.end());
    begins_[0] = 0;
  }

  // The values in dense columns, as [kQueries of the queries][column][query], and the others.
  void split(const Queries& queries, Queries& sparse, std::vector<T>& dense) const {
    sparse.clear();
    dense.assign(static_cast<std::size_t>(kSparseQueries * dense_.columns()), T{});
    for (int q = 0; q < queries.count(); ++q) {
      T* const own = dense.data() + q / kQueries * kQueries * dense_.columns() + q % kQueries;
      for (Integer k = queries.begins[q]; k < queries.begins[q + 1]; ++k) {
        const std::int32_t place = places_[queries.columns[k]];
        if (place >= 0)
          own[place * kQueries] = queries.values[k];
        else
          sparse.add(queries.columns[k], queries.values[k]);
      }
      sparse.end_row();
    }
  }

  // The first entry of every column in a block whose row is not before this one.
  void find_entries(const Queries& queries, Integer block, Integer row, std::vector<Integer>& next) const {
    const Integer* const begins = begins_.data() + block * rows_.columns;
    const Entry* const entries = entries_.get();
    for (std::size_t k = 0; k < next.size(); ++k) {
      const Integer* const own = begins + queries.columns[k];
      next[k] = own[0];
      if (row > block * in_block_) {
        const auto before = [=](const Entry& entry) { return static_cast<Integer>(entry.row) < row; };
        next[k] = std::partition_point(entries + own[0], entries + own[1], before) - entries;
      }
    }
  }

  // sums[query][row - begin] for the rows up to `limit`, which are the last ones of the block if `whole`;
  // else entries go on after these.
  template <Common common_sum, bool whole>
  void add(const Queries& queries, Integer block, Integer begin, Integer limit,
           const std::vector<Integer>& next, std::vector<Integer>& after, T* sums) const {
    const Integer* const begins = begins_.data() + block * rows_.columns;
    const Entry* const entries = entries_.get();
    const std::size_t size = queries.columns.size();
    for (int q = 0; q < kSparseQueries; ++q) {
      T* const own = sums + q * kMostRows;
      std::fill(own, own + (limit - begin + kTile - 1) / kTile * kTile, T{});
      if (q >= queries.count()) continue;
      for (std::size_t k = static_cast<std::size_t>(queries.begins[q]);
           k < static_cast<std::size_t>(queries.begins[q + 1]); ++k) {
        if (k + kAhead < size) MAXMARGIN_PREFETCH(entries + next[k + kAhead]);
        const Entry* entry = entries + next[k];
        const Entry* const end = entries + begins[queries.columns[k] + 1];
        const T z = queries.values[k];
        for (; entry < end && (whole || static_cast<Integer>(entry->row) < limit); ++entry)
          own[entry->row - begin] += share<common_sum>(static_cast<T>(entry->value), z);
        if constexpr (!whole) after[k] = entry - entries;
      }
    }
  }

  SparseRows<Value> rows_;
  std::vector<Integer> which_;
  std::vector<std::int32_t> places_;  // of the dense columns, -1 of others
  Tiled<T> dense_{0, 0};
  Integer in_block_ = kTile;     // rows
  std::vector<Integer> begins_;  // among the entries: [block][column], and the end
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
  Integer tiles_in_block() const { return 1; }

 private:
  DenseRows<Value> matrix_;
  std::vector<Integer> which_;
};

}  // namespace maxmargin
