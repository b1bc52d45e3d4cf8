// SPDX-License-Identifier: BSD-3-Clause
// Work shared among threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <span>

#include "data/rows.hpp"
#include "machine/budget.hpp"

namespace maxmargin {

// Calls call(work, share) for the shares 0 .. shares - 1, each once, on as many threads; one
// share on the thread that calls.
void share_among_threads(Integer shares, void (*call)(const void* work, Integer share), const void* work);

// Calls work(share, first, last) on equal shares of 0 .. count - 1, one for each thread that may be used.
// `work` must not throw, since an exception on another thread would end the process: the memory that it
// needs is reserved beforehand.
template <class Work>
void in_parallel(Integer threads, Integer count, const Work& work) {
  struct Job {
    const Work& work;
    Integer threads, count;
    void operator()(Integer t) const { work(t, count * t / threads, count * (t + 1) / threads); }
  };
  const Job job{work, threads, count};
  // By its address also where there is one share: the loop would be compiled a second time.
  share_among_threads(
      threads, [](const void* given, Integer share) { (*static_cast<const Job*>(given))(share); }, &job);
}

// Calls work(i) for 0 .. count - 1, in registers and on as many threads as numbers of the memory are worth.
template <class Work>
void for_each_row(const Budget& budget, std::size_t count, const Work& work) {
  const Integer all = static_cast<Integer>(count);
  in_parallel(budget.threads_for(all), all, [&](Integer, Integer begin, Integer end) {
#pragma omp simd
    for (Integer i = begin; i < end; ++i) work(static_cast<std::size_t>(i));
  });
}

// One array becomes another: no core alone fills the memory's bandwidth.
inline void copy(const Budget& budget, std::span<const double> from, std::span<double> to) {
  const Integer count = static_cast<Integer>(from.size());
  in_parallel(budget.threads_for(count), count, [&](Integer, Integer begin, Integer end) {
    std::copy(from.begin() + begin, from.begin() + end, to.begin() + begin);
  });
}

// Calls work(item) for 0 .. count - 1 on several threads; whoever is free takes the next.
template <class Work>
void share_out(Integer threads, Integer count, const Work& work) {
  std::atomic<Integer> next{0};
  in_parallel(std::max<Integer>(1, std::min(threads, count)), count, [&](Integer, Integer, Integer) {
    for (Integer item; (item = next.fetch_add(1, std::memory_order_relaxed)) < count;) work(item);
  });
}

}  // namespace maxmargin
