// SPDX-License-Identifier: BSD-3-Clause
// Rows of the matrix of all values k(x_i, x_j), never more of them at once than are asked for.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "kernel/any_kernel_matrix.hpp"
#include "kernel/encoded.hpp"
#include "kernel/kernel_dual_ascent.hpp"
#include "kernel/row_cache.hpp"
#include "kernel/sequential_minimal_optimization.hpp"
#include "kernel/symmetric_product.hpp"
#include "kernel/working_set.hpp"
#include "machine/threads.hpp"

namespace maxmargin {

// The matrix of all pairs of n rows, as blocks on its diagonal: what lies outside of them is left out.
//
// Rows are numbered in the order of the blocks. Rows that were computed can be kept for the next time.
template <class T>
class KernelMatrix final : public AnyKernelMatrix {
 public:
  using Value = T;

  // `order` has the rows block by block; block k is order[begins[k]] .. order[begins[k + 1] - 1].
  KernelMatrix(const KernelRows& rows, const KernelSum& kernel, const Encoding& encoding,
               std::span<const Integer> order, std::span<const Integer> begins, MatrixOptions options)
      : kernel_(kernel),
        encoding_(encoding),
        count_(static_cast<Integer>(order.size())),
        spare_(options.spare),
        cache_(count_, begins.size() == 2 ? count_ : 0, options.cache_bytes, std::move(options.counts),
               std::move(options.spare)) {
    block_of_.resize(order.size());
    for (std::size_t k = 0; k + 1 < begins.size(); ++k) {
      const auto which = order.subspan(begins[k], begins[k + 1] - begins[k]);
      const KeptColumns columns = columns_that_count(rows, which, kernel_.only_distances());
      blocks_.push_back({begins[k], Encoded<T>(rows, which, kernel_, encoding_, columns)});
      std::fill(block_of_.begin() + begins[k], block_of_.begin() + begins[k + 1], static_cast<Integer>(k));
    }
    // Reading a row again is no faster than computing it where that takes a few operations per value.
    bool quick = true;
    for (const Block& block : blocks_) quick = quick && block.rows.work() <= kQuick;
    caching_ = !quick || (!kernel_.terms.empty() && encoding_.holding != Holding::bits);
    // Not much faster with an exponential: rows that are rarely asked for do not earn their memory.
    if (quick && std::is_same_v<T, float>) cache_.wait(kWait);
  }

  std::unique_ptr<AnyKernelMatrix> subset(std::span<const Integer> which) override {
    std::vector<Block> parts;
    std::vector<std::vector<Integer>> members;  // of each part, counted from the beginning of its block
    std::vector<Integer> part_of(which.size());
    for (std::size_t a = 0; a < which.size();) {
      const Integer number = block_of_[which[a]];
      const Integer begin = static_cast<Integer>(a);
      std::vector<Integer>& these = members.emplace_back();
      for (; a < which.size() && block_of_[which[a]] == number; ++a) {
        these.push_back(which[a] - blocks_[number].begin);
        part_of[a] = static_cast<Integer>(parts.size());
      }
      parts.push_back({begin, blocks_[number].rows.subset(these)});
    }
    RowCache<T> cache =
        cache_.subset(which, [&](std::size_t k) { return std::span<const Integer>(members[part_of[k]]); });
    return std::unique_ptr<AnyKernelMatrix>(new KernelMatrix(
        kernel_, encoding_, std::move(parts), std::move(part_of), std::move(cache), caching_));
  }

  Integer count() const override { return count_; }
  bool keeps_most() const override {
    Integer values = 0;
    for (const Block& block : blocks_) values += block.rows.count() * block.rows.count();
    const Integer half = values / 2 * static_cast<Integer>(sizeof(T));
    return caching_ && (!cache_.loses() || cache_.has_room_for(half));
  }
  Holding holding() const override { return encoding_.holding; }
  bool expensive() const override {
    return std::ranges::any_of(blocks_, [](const Block& block) { return block.rows.work() > kCheap; });
  }
  Integer cached_bytes() const override { return cache_.used(); }
  Integer computed() const override { return cache_.computed(); }

  std::unique_ptr<AnyWorkingSet> working_set(Integer size, std::uint64_t seed) override {
    return std::make_unique<WorkingSet<KernelMatrix>>(*this, size, seed);
  }
  std::unique_ptr<AnySequentialMinimalOptimization> pairs(std::span<const double> diagonal,
                                                          bool second_order, bool shrinking) override {
    return std::make_unique<SequentialMinimalOptimization<KernelMatrix>>(*this, diagonal, second_order,
                                                                         shrinking);
  }
  KernelSweep sweep(bool squared, std::span<Coordinate> coordinates, std::span<const Integer> order,
                    std::span<double> scores, double bias, double bias_curvature, const Budget& budget,
                    Watch& watch) override {
    const auto run =
        squared ? kernel_dual_ascent<true, KernelMatrix> : kernel_dual_ascent<false, KernelMatrix>;
    return run(*this, coordinates, order, scores, bias, bias_curvature, budget, watch);
  }

  // What `add` would take for these rows, in multiply-adds.
  Integer work(std::span<const Integer> which) const {
    Integer sum = 0;
    for (const Integer row : which) {
      const Encoded<T>& rows = blocks_[block_of_[row]].rows;
      sum += rows.count() * (cache_.has(row) ? 1 : rows.work());
    }
    return sum;
  }

  void add(std::span<const Integer> which, std::span<const double> changes, double* f, const Budget& budget,
           bool goes_on = false) override {
    if (caching_ && cache_.is_of_no_use()) {
      cache_.forget();
      caching_ = false;
    }
    if (!goes_on) cache_.begin();
    std::vector<Share> shares;
    Integer work = 0;
    for (std::size_t q = 0; q < which.size();) {
      const Integer number = block_of_[which[q]];
      const Block& block = blocks_[number];
      Share share{&block, {}, {}, {}, {}};
      std::vector<Integer> fresh;
      for (; q < which.size() && block_of_[which[q]] == number; ++q) {
        const Integer row = which[q];
        if (const T* known = cache_.find(row)) {
          share.known.push_back({known, changes[q]});
          continue;
        }
        fresh.push_back(row - block.begin);
        share.changes.push_back(changes[q]);
        share.kept.push_back(keep(row, block.rows.count()));
      }
      const std::size_t batch = static_cast<std::size_t>(block.rows.queries_at_once());
      for (std::size_t first = 0; first < fresh.size(); first += batch) {
        const std::size_t size = std::min(batch, fresh.size() - first);
        share.batches.emplace_back().read(block.rows, std::span(fresh).subspan(first, size));
      }
      cache_.count_computed(static_cast<Integer>(fresh.size()));
      work += block.rows.count() * (static_cast<Integer>(fresh.size()) * block.rows.work() +
                                    static_cast<Integer>(share.known.size()));
      shares.push_back(std::move(share));
    }
    struct Item {
      const Share* share;
      Integer first, last;  // tiles
    };
    const Integer threads = budget.threads_for(work);
    std::vector<Item> items;
    for (const Share& share : shares) {
      const Integer tiles = share.block->rows.tiles(), step = share.block->rows.tiles_at_once(threads);
      for (Integer tile = 0; tile < tiles; tile += step)
        items.push_back({&share, tile, std::min(tile + step, tiles)});
    }
    share_out(threads, static_cast<Integer>(items.size()), [&](Integer number) {
      const Item& item = items[number];
      add_tiles(*item.share, item.first, item.last, f + item.share->block->begin);
    });
  }

  bool multiply(std::span<const double> p, std::span<double> out, const Budget& budget,
                Watch& watch) override {
    std::fill(out.begin(), out.end(), 0.0);
    if (kernel_.uses(Common::given)) {  // values may differ from those across the diagonal
      std::vector<Integer> all(p.size());
      std::iota(all.begin(), all.end(), Integer{0});
      add(all, p, out.data(), budget);
      return !watch.spend(0);
    }
    if (products_.empty()) {
      Integer bytes = 0;
      for (const Block& block : blocks_) bytes += SymmetricProduct<T>::bytes_for(block.rows.count());
      const bool keeps = caching_ && cache_.give_up(bytes);
      half_bytes_ = keeps ? bytes : 0;
      for (const Block& block : blocks_) products_.emplace_back(block.rows.count(), keeps, spare_);
    }
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      const Block& block = blocks_[k];
      if (!products_[k].has_values()) cache_.count_computed(block.rows.count());
      if (!products_[k].multiply(kernel_, block.rows, p.data() + block.begin, out.data() + block.begin,
                                 budget, watch)) {
        return false;
      }
    }
    return true;
  }
  void forget_half() override {
    products_.clear();
    cache_.take_back(half_bytes_);
    half_bytes_ = 0;
  }

  // out[a][b] = K(which_a, which_b), in rows of `stride`
  void square(std::span<const Integer> which, T* out, Integer stride, const Budget& budget) const {
    const Integer size = static_cast<Integer>(which.size());
    std::vector<Members> members(blocks_.size());
    for (std::size_t a = 0; a < which.size(); ++a) {
      const Integer number = block_of_[which[a]], place = static_cast<Integer>(a);
      const T* row = blocks_[number].rows.work() > kCheap ? cache_.look(which[a]) : nullptr;
      Members& mine = members[number];
      mine.local.push_back(which[a] - blocks_[number].begin);
      mine.places.push_back(place);
      if (row != nullptr) {
        mine.kept.push_back({row, place});
      } else {
        mine.missing.push_back(mine.local.back());
        mine.missing_places.push_back(place);
      }
    }
    // Beside the values of a block there are none, and behind the last one is room.
    for (Integer a = 0; a < size; ++a)
      std::fill(out + a * stride + (blocks_.size() > 1 ? 0 : size), out + (a + 1) * stride, T{});
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      if (members[k].local.empty()) continue;
      copy_kept(members[k], out, stride, budget);
      if (!members[k].missing.empty()) compute_missing(blocks_[k], members[k], out, stride, budget);
    }
  }

  // Row i, without what lies outside of its block: K(i, j) for j = first(i) .. first(i) + row.size() - 1.
  std::span<const T> row(Integer i, const Budget& budget) {
    cache_.begin();
    const Block& block = blocks_[block_of_[i]];
    const std::size_t length = static_cast<std::size_t>(block.rows.count());
    if (const T* known = cache_.find(i)) return {known, length};
    T* kept = keep(i, block.rows.count());
    if (kept == nullptr) {
      scratch_[next_scratch_ ^= 1].resize(length);
      kept = scratch_[next_scratch_].data();
    }
    cache_.count_computed(1);
    const Integer local = i - block.begin;
    Queries queries;
    queries.read(block.rows, std::span(&local, 1));
    const Integer threads = budget.threads_for(block.rows.count() * block.rows.work() * kQueries);
    const Integer tiles = block.rows.tiles(), step = block.rows.tiles_at_once(threads);
    share_out(threads, (tiles + step - 1) / step, [&](Integer item) {
      const Integer begin = item * step, end = std::min(begin + step, tiles);
      block.rows.for_each_tile(
          kernel_, queries, begin, end, [&](int, Integer tile, const TileSums<T>& values) {
            const Integer lanes = std::min<Integer>(kTile, block.rows.count() - tile * kTile);
            std::copy(values[0], values[0] + lanes, kept + tile * kTile);
          });
    });
    return {kept, length};
  }
  Integer first(Integer i) const { return blocks_[block_of_[i]].begin; }

  Integer blocks() const { return static_cast<Integer>(blocks_.size()); }
  Integer block_of(Integer i) const { return block_of_[i]; }
  // How many rows of a block a working set should have at most.
  Integer most_of_block() const { return blocks_.size() == 1 ? count_ : kMostOfBlock; }
  double coupled_share() const override {
    double pairs = 0;
    for (const Block& block : blocks_)
      pairs += static_cast<double>(block.rows.count() * block.rows.count());
    return pairs / (static_cast<double>(count_) * static_cast<double>(count_));
  }

 private:
  // Up to this much work per value, computing it again is faster than finding it: values lie far apart in
  // memory, both in rows that are kept and across the diagonal.
  static constexpr Integer kCheap = 4;
  // Up to this much, a value takes no longer than to write it to memory that was not used before. And how
  // often a row is computed then before it is kept, which costs as much as to compute it so often.
  static constexpr Integer kQuick = 2;
  static constexpr int kWait = 2;
  static constexpr Integer kMostOfBlock = 2048;  // values among so many stay in the third-level cache

  using Queries = typename Encoded<T>::Queries;
  struct Block {
    Integer begin;
    Encoded<T> rows;
  };

  KernelMatrix(const KernelSum& kernel, const Encoding& encoding, std::vector<Block> blocks,
               std::vector<Integer> block_of, RowCache<T> cache, bool caching)
      : kernel_(kernel),
        encoding_(encoding),
        count_(static_cast<Integer>(block_of.size())),
        blocks_(std::move(blocks)),
        block_of_(std::move(block_of)),
        cache_(std::move(cache)),
        caching_(caching) {}

  // The rows of a block that a square is made of, and their places in it.
  struct Members {
    std::vector<Integer> local, places;
    std::vector<std::pair<const T*, Integer>> kept;
    std::vector<Integer> missing, missing_places;
  };

  // Of rows that are kept, both ways: the matrix is symmetric.
  void copy_kept(const Members& members, T* out, Integer stride, const Budget& budget) const {
    const Integer size = static_cast<Integer>(members.local.size());
    const Integer count = static_cast<Integer>(members.kept.size());
    const Integer missing = static_cast<Integer>(members.missing.size());
    const Integer items = (count + kQueries - 1) / kQueries;
    share_out(budget.threads_for(size * count), items, [&](Integer item) {
      const Integer first = item * kQueries, last = std::min(first + kQueries, count);
      for (Integer q = first; q < last; ++q) {
        const auto& [row, place] = members.kept[q];
        T* target = out + place * stride;
        for (Integer b = 0; b < size; ++b) target[members.places[b]] = row[members.local[b]];
      }
      for (Integer b = 0; b < missing; ++b) {
        T* target = out + members.missing_places[b] * stride;
        for (Integer q = first; q < last; ++q) {
          target[members.kept[q].second] = members.kept[q].first[members.missing[b]];
        }
      }
    });
  }

  // Among the others; where values are expensive, each beyond the tile on the diagonal is computed once.
  void compute_missing(const Block& block, const Members& members, T* out, Integer stride,
                       const Budget& budget) const {
    const Encoded<T> part = block.rows.subset(members.missing);
    const Integer* places = members.missing_places.data();
    for_each_pair(
        kernel_, part, part, part.work() > kCheap, budget,
        [=](Integer a, Integer b, T value) { out[places[a] * stride + places[b]] = value; },
        [](Integer) { return false; });
  }

  // What one call of `add` does in one block.
  struct Share {
    const Block* block;
    std::vector<std::pair<const T*, double>> known;
    std::vector<Queries> batches;
    std::vector<double> changes;  // of the rows in the batches, one after the other
    std::vector<T*> kept;         // where their values go, or null
  };

  void add_tiles(const Share& share, Integer begin, Integer end, double* f) const {
    thread_local std::vector<double> kept_sums;  // as there is no time to ask for memory
    kept_sums.assign(static_cast<std::size_t>((end - begin) * kTile), 0.0);
    double* const sums = kept_sums.data();
    const Integer first = begin * kTile, count = share.block->rows.count();
    const Integer width = std::min(end * kTile, count) - first;
    for (const auto& [row, change] : share.known) {
      for (Integer k = 0; k < width; ++k) sums[k] += change * static_cast<double>(row[first + k]);
    }
    std::size_t start = 0;
    for (const Queries& batch : share.batches) {
      const auto add = [&](int query, Integer tile, const TileSums<T>& values) {
        const std::size_t from = start + static_cast<std::size_t>(query);
        const std::size_t size = std::min<std::size_t>(kQueries, share.changes.size() - from);
        const Integer lanes = std::min<Integer>(kTile, count - tile * kTile);
        double* const own = sums + (tile - begin) * kTile;
        for (std::size_t q = 0; q < size; ++q) {
          const double change = share.changes[from + q];
          for (int lane = 0; lane < kTile; ++lane)
            own[lane] += change * static_cast<double>(values[q][lane]);
          T* const kept = share.kept[from + q];
          if (kept != nullptr) std::copy(values[q], values[q] + lanes, kept + tile * kTile);
        }
      };
      share.block->rows.for_each_tile(kernel_, batch, begin, end, add);
      start += static_cast<std::size_t>(share.block->rows.queries_at_once());
    }
    for (Integer k = 0; k < width; ++k) f[first + k] += sums[k];
  }

  T* keep(Integer row, Integer length) { return caching_ ? cache_.keep(row, length) : nullptr; }

  KernelSum kernel_;
  Encoding encoding_{};
  Integer count_;
  std::vector<Block> blocks_;
  std::vector<Integer> block_of_;
  std::shared_ptr<SpareMemory> spare_;
  RowCache<T> cache_;
  std::vector<SymmetricProduct<T>> products_;  // one for each block, from the first product on
  Integer half_bytes_ = 0;                     // that they keep
  std::array<std::vector<T>, 2> scratch_;
  int next_scratch_ = 0;
  bool caching_ = false;
};

}  // namespace maxmargin
