// SPDX-License-Identifier: BSD-3-Clause
// The threads behind `in_parallel`. They outlive a call, because a pass over the data often takes less time
// than starting a thread would.

#include "machine/threads.hpp"

#include <atomic>
#include <cstdint>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

namespace maxmargin {
namespace {

void relax() {
#if defined(__x86_64__) && defined(__GNUC__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) && defined(__GNUC__)
  asm volatile("yield");
#endif
}

// Threads that wait for shares of a job. The caller works too, and takes whatever shares no helper has
// taken: a helper that comes late, or that a fork has left behind, costs nothing.
class Helpers {
 public:
  using Share = void (*)(const void* work, Integer share);

  // Calls the work on shares 0 .. shares - 1, each once.
  void run(Integer shares, Share call, const void* work) {
    start(shares - 1);
    call_ = call;
    work_ = work;
    done_.store(0, std::memory_order_relaxed);
    left_.store(static_cast<std::uint32_t>(shares), std::memory_order_release);
    left_.notify_all();
    while (take_share()) {
    }
    const auto all = static_cast<std::uint32_t>(shares);
    for (std::uint32_t done = done_.load(std::memory_order_acquire), look = 0; done != all;
         done = done_.load(std::memory_order_acquire)) {
      if (++look < kLooks) {
        relax();
      } else {
        done_.wait(done, std::memory_order_acquire);
      }
    }
  }

 private:
  static constexpr std::uint32_t kLooks = 2000;  // some 50 microseconds: the next pass often comes at once

  void start(Integer count) {
    try {
      for (; started_ < count; ++started_) std::thread([this] { help(); }).detach();
    } catch (const std::system_error&) {
      // The system has no more threads to give; the caller takes the shares.
    }
  }

  // Takes one share and works on it; false where none is left.
  bool take_share() {
    std::uint32_t left = left_.load(std::memory_order_acquire);
    do {
      if (left == 0) return false;
    } while (!left_.compare_exchange_weak(left, left - 1, std::memory_order_acq_rel));
    // The job cannot end before this share is done, so what it consists of stays.
    call_(work_, static_cast<Integer>(left) - 1);
    done_.fetch_add(1, std::memory_order_acq_rel);
    done_.notify_one();
    return true;
  }

  [[noreturn]] void help() {
    for (std::uint32_t look = 0;;) {
      if (take_share()) {
        look = 0;
      } else if (++look < kLooks) {
        relax();
      } else {
        left_.wait(0, std::memory_order_acquire);
        look = 0;
      }
    }
  }

  Integer started_ = 0;
  Share call_ = nullptr;
  const void* work_ = nullptr;
  alignas(64) std::atomic<std::uint32_t> left_{0};  // shares that nobody has taken
  alignas(64) std::atomic<std::uint32_t> done_{0};
};

// Helpers for the time of one job: every caller has its own, however many there are at a time. They are
// never destroyed; their threads sleep until the process ends.
class Borrowed {
 public:
  Borrowed() {
    const std::lock_guard lock(idle().mutex);
    // Threads do not live on in a forked process.
    if (const long now = process(); idle().process != now) idle().forget(now);
    if (idle().helpers.empty()) {
      helpers_ = new Helpers;
    } else {
      helpers_ = idle().helpers.back();
      idle().helpers.pop_back();
    }
  }
  ~Borrowed() {
    const std::lock_guard lock(idle().mutex);
    idle().helpers.push_back(helpers_);
  }
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  Helpers* operator->() const { return helpers_; }

 private:
  struct Idle {
    std::mutex mutex;
    std::vector<Helpers*> helpers;
    long process = 0;

    void forget(long now) {
      helpers.clear();
      process = now;
    }
  };
  static Idle& idle() {
    static Idle& all = *new Idle;
    return all;
  }
  static long process() {
#if defined(__unix__) || defined(__APPLE__)
    return static_cast<long>(getpid());
#else
    return 1;
#endif
  }

  Helpers* helpers_;
};

}  // namespace

void share_among_threads(Integer shares, void (*call)(const void* work, Integer share), const void* work) {
  if (shares <= 1) return call(work, 0);
  Borrowed()->run(shares, call, work);
}

}  // namespace maxmargin
