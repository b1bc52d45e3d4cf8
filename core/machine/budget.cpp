// SPDX-License-Identifier: BSD-3-Clause
#include "machine/budget.hpp"

#include <algorithm>
#include <chrono>

namespace maxmargin {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Budget::Budget(double seconds, Integer threads) : end_(now() + seconds), threads_(threads) {}

Budget Budget::part(double seconds) const {
  Budget some(std::min(seconds, seconds_left()), threads_);
  some.stopped_ = stopped_;
  return some;
}

double Budget::seconds_left() const { return end_ - now(); }

Watch::Watch(const Budget& budget, bool (*interrupted)(void* who), void* who)
    : budget_(budget), interrupted_(interrupted), who_(who), asked_(now()) {}

bool Watch::look() {
  // A question may have to wait for the interpreter's lock, so it is asked rarely.
  constexpr double kSecondsBetweenQuestions = 0.04;
  credit_ = kWorkBetweenLooks;
  over_ = over_ || budget_.spent();
  if (!over_ && now() - asked_ > kSecondsBetweenQuestions) {
    asked_ = now();
    over_ = interrupted_(who_);
  }
  return over_;
}

}  // namespace maxmargin
