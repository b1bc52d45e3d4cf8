// SPDX-License-Identifier: BSD-3-Clause
// What a loop may use: threads, time until a deadline, and the patience of whoever may interrupt.
#pragma once

#include <atomic>
#include <memory>

#include "data/rows.hpp"

namespace maxmargin {

// Shared by all the steps of a run, also across threads: `stop` in one of them ends them all.
class Budget {
 public:
  Budget(double seconds, Integer threads);

  // So many seconds of this budget, from now on; who stops one of the two stops both.
  Budget part(double seconds) const;

  double seconds_left() const;
  void stop() { stopped_->store(true, std::memory_order_relaxed); }
  bool stopped() const { return stopped_->load(std::memory_order_relaxed); }
  bool spent() const { return stopped() || seconds_left() <= 0; }

  Integer threads() const { return threads_; }
  // No more threads than the work is worth: waking one costs as much as many multiply-adds.
  Integer threads_for(Integer work) const {
    const Integer worth = 1 + work / kWorkPerThread;
    return threads_ < worth ? threads_ : worth;
  }

 private:
  static constexpr Integer kWorkPerThread = Integer{1} << 17;  // about a tenth of a millisecond

  double end_;  // on the clock of budget.cpp, in seconds
  Integer threads_;
  std::shared_ptr<std::atomic<bool>> stopped_ = std::make_shared<std::atomic<bool>>(false);
};

// One loop's look at its budget, cheap enough to be asked after every row.
class Watch {
 public:
  // `interrupted(who)` is asked now and then.
  Watch(const Budget& budget, bool (*interrupted)(void* who), void* who);

  // Counts `work` multiply-adds; true when the loop should end.
  bool spend(Integer work) {
    credit_ -= work;
    return credit_ > 0 ? over_ : look();
  }

 private:
  static constexpr Integer kWorkBetweenLooks = Integer{1} << 19;  // about half a millisecond

  bool look();

  const Budget& budget_;
  bool (*interrupted_)(void* who);
  void* who_;
  double asked_;
  Integer credit_ = kWorkBetweenLooks;
  bool over_ = false;
};

}  // namespace maxmargin
