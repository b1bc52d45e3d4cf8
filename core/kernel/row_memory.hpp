// SPDX-License-Identifier: BSD-3-Clause
// Memory for rows of a kernel matrix, which matrices that come one after the other can pass on.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "data/rows.hpp"
#include "machine/large_array.hpp"

namespace maxmargin {

// What one matrix has no more need for, and the next one may take: to get memory from the system anew takes
// a good part of the time of a small problem. Threads may share it.
class SpareMemory {
 public:
  using Piece = LargeArray<std::byte>;
  static constexpr std::size_t kPiece = std::size_t{1} << 22;  // bytes; those not touched take no memory

  Piece take() {
    const std::lock_guard lock(mutex_);
    if (pieces_.empty()) return large_array<std::byte>(kPiece);
    Piece piece = std::move(pieces_.back());
    pieces_.pop_back();
    return piece;
  }
  void give(Piece piece) {
    const std::lock_guard lock(mutex_);
    pieces_.push_back(std::move(piece));
  }

 private:
  std::mutex mutex_;
  std::vector<Piece> pieces_;
};

// Where all rows have one length, and many fit into a piece, they are cut from pieces; else each row has
// memory of its own, lest one length hold what another needs.
template <class T>
class RowMemory {
 public:
  // `length` is that of every row, or 0 where they differ. What is in `spare` is taken first.
  RowMemory(Integer length, std::shared_ptr<SpareMemory> spare)
      : spare_(std::move(spare)), length_(length), cut_(length > 0 && length <= kMost) {
    if (cut_) in_piece_ = kMost / length_;
  }
  RowMemory(RowMemory&&) = default;
  RowMemory& operator=(RowMemory&&) = default;
  ~RowMemory() { clear(); }

  bool cuts() const { return cut_; }

  // Not initialised. Rows that have memory of their own must be given back.
  T* take(Integer length) {
    if (!cut_) return new T[static_cast<std::size_t>(length)];
    if (free_.empty()) {
      if (next_ == in_piece_ * static_cast<Integer>(pieces_.size())) {
        pieces_.push_back(spare_ ? spare_->take() : SpareMemory().take());
      }
      T* piece = reinterpret_cast<T*>(pieces_[next_ / in_piece_].get());
      return piece + next_++ % in_piece_ * length_;
    }
    T* row = free_.back();
    free_.pop_back();
    return row;
  }
  void give_back(T* row) {
    if (cut_)
      free_.push_back(row);
    else
      delete[] row;
  }

  // The same pieces for rows that are shorter, with nothing taken. Whoever takes a row for each one there
  // was, in the order of their addresses, gets none that lies behind it.
  RowMemory for_shorter(Integer length) {
    RowMemory memory(length, spare_);
    if (!memory.cut_) return memory;
    memory.pieces_ = std::exchange(pieces_, {});
    std::sort(memory.pieces_.begin(), memory.pieces_.end());
    clear();
    return memory;
  }
  // Passes on the pieces behind the last row.
  void trim() {
    while (next_ <= in_piece_ * (static_cast<Integer>(pieces_.size()) - 1)) {
      if (spare_) spare_->give(std::move(pieces_.back()));
      pieces_.pop_back();
    }
  }
  // Passes on all of them: nothing that was taken is in use any more.
  void clear() {
    free_.clear();
    next_ = 0;
    trim();
  }

 private:
  static constexpr Integer kMost = static_cast<Integer>(SpareMemory::kPiece / sizeof(T));  // in a piece

  std::shared_ptr<SpareMemory> spare_;
  Integer length_;
  bool cut_;  // rows are cut from pieces
  Integer in_piece_ = 1, next_ = 0;
  std::vector<SpareMemory::Piece> pieces_;
  std::vector<T*> free_;
};

}  // namespace maxmargin
