// SPDX-License-Identifier: BSD-3-Clause
// Memory for arrays of many megabytes: not initialised, and in large pages where the system has them.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace maxmargin {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

template <class T>
using LargeArray = std::unique_ptr<T[], Free>;

// Large pages spare the faults of the first touch, and the page walks of reading rows in random order.
template <class T>
LargeArray<T> large_array(std::size_t count) {
  constexpr std::size_t kPage = std::size_t{1} << 21;
  const std::size_t bytes = (count * sizeof(T) / kPage + 1) * kPage;
  void* memory = std::aligned_alloc(kPage, bytes);
  if (memory == nullptr) throw std::bad_alloc();
#if defined(__linux__)
  madvise(memory, bytes, MADV_HUGEPAGE);  // advice: nothing is lost where it is not taken
#endif
  return LargeArray<T>(static_cast<T*>(memory));
}

}  // namespace maxmargin
