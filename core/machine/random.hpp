// SPDX-License-Identifier: BSD-3-Clause
// Random orders and draws that are the same on every machine for the same seed.
#pragma once

#include <span>
#include <utility>

#include "data/rows.hpp"

namespace maxmargin {

// splitmix64 (Steele, Lea, Flood 2014): one addition and one mix per number, any seed is good.
class Random {
 public:
  explicit Random(std::uint64_t state) : state_(state) {}

  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }

  // Uniform in 0 .. bound - 1. Multiply and shift is biased by less than 2^-32 while the bound has
  // 32 bits; larger bounds take a remainder, biased by less than bound / 2^64.
  Integer below(Integer bound) {
    if (bound >> 32) return static_cast<Integer>(next() % static_cast<std::uint64_t>(bound));
    return static_cast<Integer>(((next() >> 32) * static_cast<std::uint64_t>(bound)) >> 32);
  }

  // Uniform in [0, 1).
  double unit() { return static_cast<double>(next() >> 11) * 0x1p-53; }

  std::uint64_t state() const { return state_; }

 private:
  std::uint64_t state_;
};

// Fisher and Yates: every order is equally likely.
inline void shuffle(std::span<Integer> order, Random& random) {
  for (Integer i = static_cast<Integer>(order.size()) - 1; i > 0; --i) {
    std::swap(order[i], order[random.below(i + 1)]);
  }
}

// Independent uniform draws from 0 .. bound - 1, with repetition.
inline void draw(std::span<Integer> order, Integer bound, Random& random) {
  for (Integer& index : order) index = random.below(bound);
}

// Batch after batch of different members of a pool, each batch independent of the others: the pool is
// shuffled anew as far as a batch reaches. Whatever its order was before, all subsets are equally likely.
inline void draw_batches(std::span<Integer> order, Integer batch, std::span<Integer> pool, Random& random) {
  const Integer members = static_cast<Integer>(pool.size());
  const Integer places = static_cast<Integer>(order.size());
  for (Integer first = 0; first + batch <= places; first += batch) {
    for (Integer k = 0; k < batch; ++k) {
      std::swap(pool[k], pool[k + random.below(members - k)]);
      order[first + k] = pool[k];
    }
  }
}

}  // namespace maxmargin
