// SPDX-License-Identifier: BSD-3-Clause
// Memory for arrays of many megabytes: not initialised, in large pages where the system has them, and
// given back to the system when it is freed (what malloc has grown for may stay with the heap).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace maxmargin {

struct Unmap {
  std::size_t bytes = 0;
  std::size_t before = 0;  // bytes of these that lie before the array
  void operator()(void* memory) const {
#if defined(__linux__)
    munmap(static_cast<std::byte*>(memory) - before, bytes);
#else
    std::free(memory);
#endif
  }
};

template <class T>
using LargeArray = std::unique_ptr<T[], Unmap>;

template <class T>
LargeArray<T> large_array(std::size_t count, bool large_pages = true) {
  std::size_t bytes = count * sizeof(T) + 1;  // the system refuses to give nothing
  std::size_t before = 0;
#if defined(__linux__)
  // What is mapped beyond the array, so that it can begin where a large page does, takes no memory.
  constexpr std::size_t kLargePage = std::size_t{1} << 21;
  large_pages = large_pages && bytes > kLargePage;
  if (large_pages) bytes += kLargePage;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  // Large pages spare the faults of the first touch, and the page walks of reading rows in random order.
  // Advice: nothing is lost where it is not taken.
  if (large_pages) {
    before = (kLargePage - reinterpret_cast<std::uintptr_t>(memory) % kLargePage) % kLargePage;
    memory = static_cast<std::byte*>(memory) + before;
    madvise(memory, bytes - before, MADV_HUGEPAGE);
  }
#else
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
#endif
  return LargeArray<T>(static_cast<T*>(memory), Unmap{bytes, before});
}

// Gives vectors of many megabytes memory in large pages. In pages of 4 kB the first touch of 10 MB is 2,400
// faults of the system, which take longer than most sums over them.
template <class T>
struct InLargePages {
  using value_type = T;

  InLargePages() = default;
  template <class Other>
  InLargePages(const InLargePages<Other>&) {}

  T* allocate(std::size_t count) {
#if defined(__linux__)
    if (const std::size_t bytes = count * sizeof(T); bytes >= kLarge) {
      void* const memory = std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage);
      if (memory == nullptr) throw std::bad_alloc();
      madvise(memory, bytes / kPage * kPage, MADV_HUGEPAGE);  // the last page stays as small as it is
      return static_cast<T*>(memory);
    }
#endif
    return std::allocator<T>().allocate(count);
  }
  void deallocate(T* memory, std::size_t count) {
#if defined(__linux__)
    if (count * sizeof(T) >= kLarge) return std::free(memory);
#endif
    std::allocator<T>().deallocate(memory, count);
  }
  friend bool operator==(const InLargePages&, const InLargePages&) { return true; }

 private:
  static constexpr std::size_t kPage = std::size_t{1} << 21, kLarge = 2 * kPage;
};

// A number for each row, where there may be very many.
using NumbersOfRows = std::vector<double, InLargePages<double>>;

// Bytes that are added at the end, without knowing how many there will be. Growing copies nothing where
// the system can move pages, and room that is not used yet takes no memory.
class GrowingBytes {
 public:
  std::size_t size() const { return size_; }

  void append(const void* bytes, std::size_t count) {
    if (count == 0) return;  // there may be no memory on either side
    if (size_ + count > room_) set_room(size_ + count + (size_ + count) / 4);
    std::memcpy(memory_.get() + size_, bytes, count);
    size_ += count;
  }

  // All of them, in no more memory than they need.
  LargeArray<std::uint8_t> take() {
    set_room(size_);
    size_ = room_ = 0;
    return std::move(memory_);
  }

 private:
  void set_room(std::size_t room) {
    if (!memory_) {
      memory_ = large_array<std::uint8_t>(room, false);
    } else {
      const std::size_t old = memory_.get_deleter().bytes, bytes = room + 1;
#if defined(__linux__)
      void* memory = mremap(memory_.get(), old, bytes, MREMAP_MAYMOVE);
      if (memory == MAP_FAILED) throw std::bad_alloc();
#else
      void* memory = std::realloc(memory_.get(), bytes);
      if (memory == nullptr) throw std::bad_alloc();
#endif
      static_cast<void>(memory_.release());
      memory_ = LargeArray<std::uint8_t>(static_cast<std::uint8_t*>(memory), Unmap{bytes});
    }
#if defined(__linux__)
    // Not earlier: the last large page may hold little.
    if (room > kLarge) madvise(memory_.get(), room, MADV_HUGEPAGE);
#endif
    room_ = room;
  }

  static constexpr std::size_t kLarge = std::size_t{1} << 23;
  LargeArray<std::uint8_t> memory_;
  std::size_t size_ = 0;
  std::size_t room_ = 0;
};

}  // namespace maxmargin
