// SPDX-License-Identifier: BSD-3-Clause
// Sums over all pairs of rows (i, j) of one query with relevance_i > relevance_j, without writing them out.
//
// Rows are ordered by query and relevance. The rows of one relevance are sorted by their scores, and
// neighbours are merged as in merge sort, until each query is one block: O(n log n). Every pair meets in
// exactly one merge, of a lower block with an upper one, both sorted. There the pairs of a row whose margin
// s_i - s_j is below some number are the first rows of one block, or the last ones of the other, so that
// sums over them are differences of prefix sums. Those are kept in twofold precision, and margins are
// compared without rounding: the multipliers below are exactly what is said of them, whatever the scores.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "twofold/arithmetic.hpp"

namespace maxmargin {

// The multiplier of a pair with the margin m, in units of its cost: 0 from `top` on,
// slope (top - m) from `bottom` to `top`, and 1 below.
struct Ramp {
  double top, bottom, slope;
};

struct BoundedSum {
  double value = 0;  // as it was computed
  double error = 0;  // how far it can be from the exact sum
};

class RankedPairs {
 public:
  // `order`: the rows by query and by rising relevance. `levels`: where the rows of each level begin in
  // it, and the end. `queries`: where the levels of each query begin in that, and their end.
  RankedPairs(std::vector<std::int64_t> order, std::vector<std::int64_t> levels,
              std::span<const std::int64_t> queries, std::span<const double> weights);

  std::size_t rows() const { return order_.size(); }
  // The number of pairs: the sum of the products of their weights.
  BoundedSum count() const;

  // Everything below is about the scores that were sorted last. They must be finite.
  void sort(std::span<const double> scores);

  // The sum of weight_i weight_j (top - m)^power over the pairs with m < top; power is 0, 1 or 2.
  BoundedSum sum(double top, int power);

  // For every row the multipliers of its pairs, those where it is to be the upper one minus the others;
  // and `mass`, the sum of both. Returns the sum of all, and through `slack` a number: what is said of row
  // i is off by at most  mass_i off_by() + slack weight_i.
  BoundedSum multipliers(const Ramp& ramp, std::span<double> signed_sums, std::span<double> mass,
                         double& slack);
  double off_by() const { return static_cast<double>(merges_.size() + 24) * kUnit; }

  // The matrix  slope sum over the pairs on the ramp  weight_i weight_j (e_i - e_j)(e_i - e_j)'  times some
  // columns, row by row; after `hold`.
  void hold(const Ramp& ramp);
  void product(std::span<const double> values, std::size_t columns, std::span<double> out);

 private:
  struct Block {
    std::size_t begin, middle, end;  // lower rows before the middle, upper ones from there on
  };
  struct Place {
    double score;
    std::int64_t at;  // in order_
  };
  struct Window {
    std::uint32_t begin, end;  // the places of the pairs on the ramp
  };

  // Scores are counted from a reference, so that only their spread within a block is lost to rounding.
  void take_prefix_sums(const Place* places, std::size_t count, int powers, double reference);
  static double spread_of(const Place* places, const Block& block);
  double largest_weight_sum() const { return largest_weight_sum_; }
  double twofold_share() const;

  std::vector<std::int64_t> order_;
  std::vector<double> weights_;               // in the order of order_
  std::vector<std::size_t> levels_;           // where they begin, and the end
  std::vector<std::vector<Block>> merges_;    // one list for each round of merges
  std::vector<std::vector<Place>> sorted_;    // before each round
  std::vector<std::vector<Window>> windows_;  // of the rows, round by round
  std::vector<double> degrees_;               // the diagonal of the matrix
  std::vector<Twofold> sums_[3];     // of weight (score - reference)^power over the first places of a block
  std::vector<double> column_sums_;  // the same for columns
  double slope_ = 0, largest_weight_sum_ = 0;
};

}  // namespace maxmargin
