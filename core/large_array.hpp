// SPDX-License-Identifier: BSD-3-Clause
// Memory for arrays of many megabytes: not initialised, in large pages where the system has them, and
// given back to the system when it is freed (what malloc has grown for may stay with the heap).
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace maxmargin {

struct Unmap {
  std::size_t bytes = 0;
  void operator()(void* memory) const {
#if defined(__linux__)
    munmap(memory, bytes);
#else
    std::free(memory);
#endif
  }
};

template <class T>
using LargeArray = std::unique_ptr<T[], Unmap>;

template <class T>
LargeArray<T> large_array(std::size_t count) {
  const std::size_t bytes = count * sizeof(T) + 1;  // the system refuses to give nothing
#if defined(__linux__)
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  // Large pages spare the faults of the first touch, and the page walks of reading rows in random order.
  // Advice: nothing is lost where it is not taken.
  madvise(memory, bytes, MADV_HUGEPAGE);
#else
  void* memory = std::malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
#endif
  return LargeArray<T>(static_cast<T*>(memory), Unmap{bytes});
}

}  // namespace maxmargin
