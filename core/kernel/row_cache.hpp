// SPDX-License-Identifier: BSD-3-Clause
// Rows of a kernel matrix that were computed and may be needed again, within a budget of memory.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "data/rows.hpp"
#include "kernel/row_memory.hpp"
#include "kernel/tiles.hpp"

namespace maxmargin {

// What a run has made of its memory for rows, over all matrices that it had one after the other.
struct CacheCounts {
  Integer used = 0;      // bytes that are held now
  Integer peak = 0;      // the most that were held
  Integer computed = 0;  // rows that were computed
  Integer found = 0;     // rows that were asked for again and were still there
};

template <class T>
class RowCache {
 public:
  // `length` is that of every row, or 0 where they differ.
  RowCache(Integer rows, Integer length, Integer bytes, std::shared_ptr<CacheCounts> counts,
           std::shared_ptr<SpareMemory> spare)
      : memory_(length, std::move(spare)),
        cached_(static_cast<std::size_t>(rows)),
        last_use_(static_cast<std::size_t>(rows), 0),
        counts_(counts ? std::move(counts) : std::make_shared<CacheCounts>()),
        bytes_(bytes) {}
  RowCache(RowCache&&) = default;
  RowCache& operator=(RowCache&&) = delete;
  ~RowCache() {
    if (counts_) forget();  // a cache that was moved from has none
  }

  Integer used() const { return used_; }
  Integer computed() const { return computed_; }
  // Whether rows have had to make way for others, or would have if none had been passed over.
  bool loses() const { return lost_ > 0 || used_ + passed_over_ > bytes_; }
  bool has_room_for(Integer bytes) const { return bytes <= bytes_; }
  // Whether most rows are gone before they are asked for again: to keep them is only work.
  bool is_of_no_use() const { return lost_ > kPatience && found_ < computed_ / 4; }

  // Rows that are asked for from here on do not make way for each other, nor the last ones before.
  void begin() { ++clock_; }

  bool has(Integer row) const { return !cached_[row].empty(); }
  // The values of a row that is kept, or null.
  const T* find(Integer row) {
    if (cached_[row].empty()) return nullptr;
    last_use_[row] = clock_;
    ++found_;
    ++counts_->found;
    return cached_[row].data();
  }

  // The same, without counting it as use.
  const T* look(Integer row) const { return cached_[row].empty() ? nullptr : cached_[row].data(); }

  // From here on, a row is kept when it has been computed so often before.
  void wait(int times) { wait_ = times; }
  // Memory for a row that is about to be computed, taken from rows not used for long; null if there is
  // none, or the row has to wait.
  T* keep(Integer row, Integer length) {
    if (wait_ > 0) {
      times_.resize(cached_.size());
      if (times_[row] == 0) passed_over_ += bytes_of(length);
      if (times_[row] == wait_) passed_over_ -= bytes_of(length);
      if (times_[row] <= wait_ && times_[row]++ < wait_) return nullptr;
    }
    while (used_ + bytes_of(length) > bytes_) {
      ++lost_;
      if (!evict()) return nullptr;
    }
    return place(row, {memory_.take(length), static_cast<std::size_t>(length)});
  }
  void count_computed(Integer rows) {
    computed_ += rows;
    counts_->computed += rows;
  }

  // Leaves so many bytes to something else, and forgets all rows where there is no other room; false where
  // there are not so many.
  bool give_up(Integer bytes) {
    if (bytes > bytes_) return false;
    bytes_ -= bytes;
    if (used_ > bytes_) forget();
    counts_->used += bytes;
    counts_->peak = std::max(counts_->peak, counts_->used);
    return true;
  }
  void take_back(Integer bytes) {
    bytes_ += bytes;
    counts_->used -= bytes;
  }

  void forget() {
    for (const Integer row : kept_) memory_.give_back(release(row));
    kept_.clear();
    memory_.clear();
  }

  // The rows which[0], which[1], ... and of their values those at the places that `members` names for each,
  // in ascending order; all other rows are forgotten. It takes no more memory than there was: rows of one
  // length are cut down where they are, others are given back before the next is copied.
  template <class Members>
  RowCache subset(std::span<const Integer> which, const Members& members) {
    const Integer size = static_cast<Integer>(which.size());
    const bool cut = memory_.cuts();
    RowCache part(size, cut ? size : 0, bytes_, counts_, nullptr);
    part.wait_ = wait_;
    if (!times_.empty()) part.times_ = picked(times_, which);
    std::vector<Integer> moved;
    for (std::size_t k = 0; k < which.size(); ++k) {
      if (has(which[k])) moved.push_back(static_cast<Integer>(k));
    }
    const auto memory_of = [&](Integer k) { return cached_[which[k]].data(); };
    std::sort(moved.begin(), moved.end(),
              [&](Integer k, Integer l) { return std::less<const T*>()(memory_of(k), memory_of(l)); });
    std::vector<char> stays(cached_.size(), 0);
    for (const Integer row : which) stays[row] = 1;
    for (const Integer row : kept_) {
      if (!stays[row]) memory_.give_back(release(row));
    }
    kept_.clear();
    part.memory_ = memory_.for_shorter(cut ? size : 0);
    for (const Integer k : moved) {
      T* row = release(which[k]);
      const std::span<const Integer> places = members(k);
      const std::span<T> some{part.memory_.take(static_cast<Integer>(places.size())), places.size()};
      for (std::size_t m = 0; m < places.size(); ++m) some[m] = row[places[m]];
      if (!cut) memory_.give_back(row);
      part.place(k, some);
    }
    part.memory_.trim();
    std::sort(part.kept_.begin(), part.kept_.end());  // addresses must not decide which row makes way
    return part;
  }

 private:
  static constexpr Integer kPatience = 10'000;  // rows lost before the memory for them is given up

  static Integer bytes_of(Integer length) { return length * static_cast<Integer>(sizeof(T)); }

  T* place(Integer row, std::span<T> values) {
    const Integer size = bytes_of(static_cast<Integer>(values.size()));
    used_ += size;
    counts_->used += size;
    counts_->peak = std::max(counts_->peak, counts_->used);
    cached_[row] = values;
    last_use_[row] = clock_;
    kept_.push_back(row);
    return values.data();
  }
  // Forgets a row; its memory is the caller's.
  T* release(Integer row) {
    const Integer size = bytes_of(static_cast<Integer>(cached_[row].size()));
    used_ -= size;
    counts_->used -= size;
    return std::exchange(cached_[row], {}).data();
  }
  bool evict() {
    // The oldest of a few: as good as the oldest of all, and found at once.
    std::size_t oldest = kept_.size();
    for (int trial = 0; trial < 8 && !kept_.empty(); ++trial) {
      const std::size_t place = (hand_ += 7919) % kept_.size();
      // The row asked for before this one may still be in use.
      if (last_use_[kept_[place]] >= clock_ - 1) continue;
      if (oldest == kept_.size() || last_use_[kept_[place]] < last_use_[kept_[oldest]]) oldest = place;
    }
    if (oldest == kept_.size()) return false;
    memory_.give_back(release(kept_[oldest]));
    kept_[oldest] = kept_.back();
    kept_.pop_back();
    return true;
  }

  RowMemory<T> memory_;
  std::vector<std::span<T>> cached_;
  std::vector<Integer> last_use_;
  std::vector<Integer> kept_;
  std::vector<char> times_;  // that a row was computed, up to one more than `wait_`; empty where none waits
  int wait_ = 0;
  std::shared_ptr<CacheCounts> counts_;
  Integer bytes_, used_ = 0, passed_over_ = 0, clock_ = 0, computed_ = 0, found_ = 0, lost_ = 0;
  std::size_t hand_ = 0;
};

}  // namespace maxmargin
