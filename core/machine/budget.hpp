// SPDX-License-Identifier: BSD-3-Clause
// What a loop may use: threads, time until a deadline, and the patience of whoever may interrupt.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

#include "data/rows.hpp"

namespace maxmargin {

// Shared by all the steps of a run, also across threads: `stop` in one of them ends them all.
class Budget {
 public:
  Budget(double seconds, Integer threads) : start_(Clock::now()), seconds_(seconds), threads_(threads) {}

  // So many seconds of this budget, from now on; who stops one of the two stops both.
  Budget part(double seconds) const {
    Budget some(std::min(seconds, seconds_left()), threads_);
    some.stopped_ = stopped_;
    return some;
  }

  double seconds_left() const {
    return seconds_ - std::chrono::duration<double>(Clock::now() - start_).count();
  }
  void stop() { stopped_->store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_->load(std::memory_order_relaxed); }
  bool spent() const { return stopped() || seconds_left() <= 0; }

  // No more threads than the work is worth: waking one costs as much as many multiply-adds.
  Integer threads_for(Integer work) const {
    const Integer worth = 1 + work / kWorkPerThread;
    return threads_ < worth ? threads_ : worth;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr Integer kWorkPerThread = Integer{1} << 17;  // about a tenth of a millisecond

  Clock::time_point start_;
  double seconds_;
  Integer threads_;
  std::shared_ptr<std::atomic<bool>> stopped_ = std::make_shared<std::atomic<bool>>(false);
};

// One loop's look at its budget, cheap enough to be asked after every row.
class Watch {
 public:
  Watch(const Budget& budget, std::function<bool()> interrupted)
      : budget_(budget), interrupted_(std::move(interrupted)) {}

  // Counts `work` multiply-adds; true when the loop should end.
  bool spend(Integer work) {
    credit_ -= work;
    if (credit_ > 0) return over_;
    credit_ = kWorkBetweenLooks;
    const double left = budget_.seconds_left();
    over_ = over_ || budget_.stopped() || left <= 0;
    if (!over_ && Clock::now() - asked_ > kTimeBetweenQuestions) {
      asked_ = Clock::now();
      over_ = interrupted_();
    }
    return over_;
  }

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr Integer kWorkBetweenLooks = Integer{1} << 19;  // about half a millisecond
  // A question may have to wait for the interpreter's lock, so it is asked rarely.
  static constexpr auto kTimeBetweenQuestions = std::chrono::milliseconds(40);

  const Budget& budget_;
  std::function<bool()> interrupted_;
  Clock::time_point asked_ = Clock::now();
  Integer credit_ = kWorkBetweenLooks;
  bool over_ = false;
};

}  // namespace maxmargin
