// SPDX-License-Identifier: BSD-3-Clause
// Products of a symmetric kernel matrix with a vector: of k(x, z) and k(z, x) one is computed, and used
// twice.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

#include "kernel/encoded.hpp"
#include "kernel/row_memory.hpp"
#include "machine/budget.hpp"
#include "machine/threads.hpp"
#include "machine/vectors.hpp"

namespace maxmargin {

// Of the rows of one block. Values come in chunks, of kQueries rows against a tile of others that are not
// behind them; they are kept for the next product where there is room for all of them.
template <class T>
class SymmetricProduct {
 public:
  // Memory for values is taken from `spare`, where there is some, and given back to it.
  SymmetricProduct(Integer count, bool keeps, std::shared_ptr<SpareMemory> spare)
      : keeps_(keeps), spare_(std::move(spare)) {
    places_.push_back(0);
    for (Integer row = 0; row < count; row += kQueries) places_.push_back(places_.back() + row / kTile + 1);
  }
  SymmetricProduct(SymmetricProduct&&) = default;
  SymmetricProduct& operator=(SymmetricProduct&&) = delete;
  ~SymmetricProduct() {
    for (SpareMemory::Piece& piece : pieces_) {
      if (spare_) spare_->give(std::move(piece));
    }
  }

  // Bytes that are kept of so many rows.
  static Integer bytes_for(Integer count) {
    const Integer tiles = (count + kTile - 1) / kTile;
    return tiles * (tiles + 1) / 2 * kTile * kTile * static_cast<Integer>(sizeof(T));
  }
  // Whether the next product computes no values.
  bool has_values() const { return filled_; }

  // out += K p. False where the budget was spent: some of it is missing then.
  bool multiply(const KernelSum& kernel, const Encoded<T>& rows, const double* p, double* out,
                const Budget& budget, Watch& watch) {
    const Integer n = rows.count(), batch = rows.queries_at_once();
    const Integer batches = (n + batch - 1) / batch, each = (batches + kStrips - 1) / kStrips;
    const Integer strips = (batches + each - 1) / each, length = each * batch;
    while (keeps_ && static_cast<Integer>(pieces_.size()) * kInPiece < chunks())
      pieces_.push_back(spare_ ? spare_->take() : SpareMemory().take());
    padded_.assign(static_cast<std::size_t>(rows.tiles() * kTile), 0.0);
    std::copy(p, p + n, padded_.begin());
    // What the rows of a strip add to themselves and to those before them, up to the end of their tile.
    std::vector<std::vector<double>> sums(static_cast<std::size_t>(strips));
    const Integer value_work = filled_ ? 1 : rows.work();
    const auto caller = std::this_thread::get_id();
    std::atomic<bool> over{false};
    share_out(budget.threads_for(n * n / 2 * value_work), strips, [&](Integer item) {
      const Integer strip = strips - 1 - item;  // the longest first, so that threads end together
      const Integer begin = strip * length, end = std::min(begin + length, n);
      std::vector<double>& own = sums[static_cast<std::size_t>(strip)];
      own.assign(static_cast<std::size_t>((end + kTile - 1) / kTile * kTile), 0.0);
      for (Integer first = begin; first < end; first += batch) {
        if (std::this_thread::get_id() == caller && watch.spend(batch * first * value_work)) over = true;
        if (over) return;
        add_batch(kernel, rows, first, std::min(first + batch, n), own.data());
      }
    });
    if (over) return false;
    filled_ = keeps_;
    for (const std::vector<double>& own : sums) {  // in their order, whatever threads there were
      const Integer last = std::min(n, static_cast<Integer>(own.size()));
      for (Integer i = 0; i < last; ++i) out[i] += own[i];
    }
    return true;
  }

 private:
  static constexpr Integer kStrips = 64;  // of rows, that threads share among themselves
  static constexpr Integer kChunk = kQueries * kTile;
  static constexpr Integer kInPiece = static_cast<Integer>(SpareMemory::kPiece / sizeof(T)) / kChunk;
  static constexpr int kWide = kLanes<double>;

  Integer chunks() const { return places_.back(); }
  // Where the values of a row and its neighbours with a tile are kept.
  T* place(Integer row, Integer tile) const {
    const Integer chunk = places_[static_cast<std::size_t>(row / kQueries)] + tile;
    T* const piece = reinterpret_cast<T*>(pieces_[static_cast<std::size_t>(chunk / kInPiece)].get());
    return piece + chunk % kInPiece * kChunk;
  }

  void add_batch(const KernelSum& kernel, const Encoded<T>& rows, Integer first, Integer last,
                 double* sums) {
    const Integer diagonal = first / kTile;
    if (filled_) {
      for (Integer row = first; row < last; row += kQueries) {
        for (Integer tile = 0; tile <= diagonal; ++tile)
          add(place(row, tile), row, last, tile, diagonal, sums);
      }
      return;
    }
    std::vector<Integer> numbers(static_cast<std::size_t>(last - first));
    std::iota(numbers.begin(), numbers.end(), first);
    typename Encoded<T>::Queries queries;
    queries.read(rows, numbers);
    rows.for_each_tile(kernel, queries, 0, diagonal + 1,
                       [&](int query, Integer tile, const TileSums<T>& values) {
                         const Integer row = first + query;
                         if (row >= last) return;
                         if (keeps_) std::copy(values[0], values[0] + kChunk, place(row, tile));
                         add(values[0], row, last, tile, diagonal, sums);
                       });
  }

  // Adds the products with a chunk: to its rows and, outside of the tile on the diagonal, to its columns.
  void add(const T* values, Integer row, Integer last, Integer tile, Integer diagonal, double* sums) const {
    const double* const theirs = padded_.data() + tile * kTile;
    double* const back = sums + tile * kTile;
    const int some = static_cast<int>(std::min<Integer>(kQueries, last - row));
    if (tile == diagonal) {
      const Integer lanes = std::min<Integer>(kTile, static_cast<Integer>(padded_.size()) - tile * kTile);
      for (int q = 0; q < some; ++q) {
        double sum = 0;
        for (Integer lane = 0; lane < lanes; ++lane) {
          // Behind the last row are no values.
          if (theirs[lane] != 0) sum += static_cast<double>(values[q * kTile + lane]) * theirs[lane];
        }
        sums[row + q] += sum;
      }
      return;
    }
    if (some == kQueries) return add_chunk(values, theirs, padded_.data() + row, sums + row, back);
    for (int q = 0; q < some; ++q) {
      double sum = 0;
      for (int lane = 0; lane < kTile; ++lane) {
        const double value = static_cast<double>(values[q * kTile + lane]);
        sum += value * theirs[lane];
        back[lane] += value * padded_[row + q];
      }
      sums[row + q] += sum;
    }
  }
  static void add_chunk(const T* values, const double* theirs, const double* mine, double* own_sums,
                        double* back) {
    Lanes<double> own[kQueries] = {};
    for (int lane = 0; lane < kTile; lane += kWide) {
      const Lanes<double> p = load<double>(theirs + lane);
      Lanes<double> sum = load<double>(back + lane);
      for (int q = 0; q < kQueries; ++q) {
        const Lanes<double> value = widened(values + q * kTile + lane);
        own[q] += value * p;
        sum += value * mine[q];
      }
      store<double>(back + lane, sum);
    }
    for (int q = 0; q < kQueries; ++q) {
      double sum = 0;
      for (int lane = 0; lane < kWide; ++lane) sum += own[q][lane];
      own_sums[q] += sum;
    }
  }
  static Lanes<double> widened(const T* from) {
    typedef T Narrow __attribute__((vector_size(kWide * sizeof(T))));
    Narrow narrow;
    std::memcpy(&narrow, from, sizeof(narrow));
    return __builtin_convertvector(narrow, Lanes<double>);
  }

  bool keeps_, filled_ = false;
  std::vector<Integer> places_;  // of the chunks of each kQueries rows
  std::shared_ptr<SpareMemory> spare_;
  std::vector<SpareMemory::Piece> pieces_;
  std::vector<double> padded_;  // p, with zeros up to the end of the last tile
};

}  // namespace maxmargin
