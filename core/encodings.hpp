// SPDX-License-Identifier: BSD-3-Clause
// Four ways to hold rows so that common sums of many pairs are cheap: bits, bytes, dense, sparse.
//
// Rows come in tiles of kTile, and in a tile one column after the other, so that a loop over the rows of
// a tile is a loop over neighbours in memory. `Queries` are up to kQueries rows, copied out and
// interleaved, whose sums with all rows of a tile are computed at once.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#if defined(__AVX512VNNI__)
#include <immintrin.h>
#endif

#include "kernels.hpp"

namespace maxmargin {

template <class T>
using TileSums = T[kQueries][kTile];

inline Integer tiles_of(Integer count) { return (count + kTile - 1) / kTile; }

// Calls visit(column, value) for the stored values of a row.
template <class Value, class Visit>
void for_each_value(const DenseRow<Value>& row, const Visit& visit) {
  for (Integer k = 0; k < row.columns; ++k) visit(k, row.values[k]);
}
template <class Value, class Index, class Visit>
void for_each_value(const SparseRow<Value, Index>& row, const Visit& visit) {
  for (Integer k = 0; k < row.count; ++k) visit(static_cast<Integer>(row.columns[k]), row.values[k]);
}

// Where each column goes, or -1 for columns that are left out because they are the same in all rows.
using Places = std::vector<Integer>;

// Zeros and ones, 32 to a word: a common sum is a count of bits.
class BitTiles {
 public:
  struct Queries {
    std::vector<std::uint32_t> words;  // [query][word]
  };

  template <class Rows>
  BitTiles(const Rows& rows, std::span<const Integer> which, const Places& places, Integer columns)
      : words_((columns + 31) / 32) {
    tiles_.assign(static_cast<std::size_t>(tiles_of(static_cast<Integer>(which.size())) * words_ * kTile),
                  0);
    for (std::size_t i = 0; i < which.size(); ++i) {
      for_each_value(rows[which[i]], [&](Integer column, auto value) {
        const Integer place = places[column];
        if (place >= 0 && value != 0) *at(static_cast<Integer>(i), place / 32) |= 1u << (place % 32);
      });
    }
  }

  // The rows `which` of another one.
  BitTiles(const BitTiles& source, std::span<const Integer> which) : words_(source.words_) {
    tiles_.assign(static_cast<std::size_t>(tiles_of(static_cast<Integer>(which.size())) * words_ * kTile),
                  0);
    for (std::size_t i = 0; i < which.size(); ++i) {
      for (Integer w = 0; w < words_; ++w) *at(static_cast<Integer>(i), w) = *source.at(which[i], w);
    }
  }

  void read(const BitTiles& source, std::span<const Integer> which, Queries& queries) const {
    queries.words.assign(static_cast<std::size_t>(kQueries * words_), 0);
    for (std::size_t q = 0; q < which.size(); ++q) {
      for (Integer w = 0; w < words_; ++w) queries.words[q * words_ + w] = *source.at(which[q], w);
    }
  }

  template <Common, class T>
  void common(const Queries& queries, Integer tile, TileSums<T>& out) const {
    alignas(64) TileSums<std::int32_t> counts;
    count(queries, tile, counts);
    for (int q = 0; q < kQueries; ++q) {
      for (int lane = 0; lane < kTile; ++lane) out[q][lane] = static_cast<T>(counts[q][lane]);
    }
  }
  void count(const Queries& queries, Integer tile, TileSums<std::int32_t>& counts) const {
    const std::uint32_t* words = tiles_.data() + tile * words_ * kTile;
    for (int q = 0; q < kQueries; ++q) {
      std::uint32_t sums[kTile] = {};
      for (Integer w = 0; w < words_; ++w) {
        const std::uint32_t query = queries.words[q * words_ + w];
        for (int lane = 0; lane < kTile; ++lane) sums[lane] += ones(words[w * kTile + lane] & query);
      }
      for (int lane = 0; lane < kTile; ++lane) counts[q][lane] = static_cast<std::int32_t>(sums[lane]);
    }
  }

  Integer work() const { return words_; }

 private:
  static std::uint32_t ones(std::uint32_t x) {
#if defined(__AVX512VPOPCNTDQ__) || defined(__ARM_NEON)
    return static_cast<std::uint32_t>(__builtin_popcount(x));
#else
    // Sums of neighbours in pairs, fours and eights: unlike the instruction for one word, this vectorises.
    x -= (x >> 1) & 0x55555555u;
    x = (x & 0x33333333u) + ((x >> 2) & 0x33333333u);
    x = (x + (x >> 4)) & 0x0f0f0f0fu;
    x += x >> 8;
    return (x + (x >> 16)) & 0x3fu;
#endif
  }
  const std::uint32_t* at(Integer row, Integer word) const {
    return tiles_.data() + ((row / kTile) * words_ + word) * kTile + row % kTile;
  }
  std::uint32_t* at(Integer row, Integer word) {
    return const_cast<std::uint32_t*>(std::as_const(*this).at(row, word));
  }

  Integer words_;
  std::vector<std::uint32_t> tiles_;  // [tile][word][lane]
};

// Multiples 0 .. 255 of one number: common sums are exact in integers.
//
// Processors multiply unsigned by signed bytes, so queries are stored less 128, and 128 times the sum of a
// row is added back.
class ByteTiles {
 public:
  struct Queries {
    std::vector<std::int8_t> quads;  // [quad][query][4]
  };
  static constexpr Integer kMostColumns = 1 << 15;  // 2^15 * 255 * 128 < 2^31

  template <class Rows>
  ByteTiles(const Rows& rows, std::span<const Integer> which, const Places& places, Integer columns,
            double unit)
      : quads_((columns + 3) / 4), squared_unit_(unit * unit) {
    const std::size_t tiles = static_cast<std::size_t>(tiles_of(static_cast<Integer>(which.size())));
    tiles_.assign(tiles * quads_ * kTile * 4, 0);
    sums_.assign(tiles * kTile, 0);
    for (std::size_t i = 0; i < which.size(); ++i) {
      for_each_value(rows[which[i]], [&](Integer column, auto value) {
        const Integer place = places[column];
        if (place < 0) return;
        const auto multiple = static_cast<std::uint8_t>(static_cast<double>(value) / unit + 0.5);
        at(static_cast<Integer>(i), place / 4)[place % 4] = multiple;
        sums_[i] += multiple;
      });
    }
    for (std::int32_t& sum : sums_) sum *= 128;
  }

  ByteTiles(const ByteTiles& source, std::span<const Integer> which)
      : quads_(source.quads_), squared_unit_(source.squared_unit_) {
    const std::size_t tiles = static_cast<std::size_t>(tiles_of(static_cast<Integer>(which.size())));
    tiles_.assign(tiles * quads_ * kTile * 4, 0);
    sums_.assign(tiles * kTile, 0);
    for (std::size_t i = 0; i < which.size(); ++i) {
      for (Integer k = 0; k < quads_; ++k) {
        std::memcpy(at(static_cast<Integer>(i), k), source.at(which[i], k), 4);
      }
      sums_[i] = source.sums_[which[i]];
    }
  }

  void read(const ByteTiles& source, std::span<const Integer> which, Queries& queries) const {
    queries.quads.assign(static_cast<std::size_t>(quads_ * kQueries * 4), -128);
    for (std::size_t q = 0; q < which.size(); ++q) {
      for (Integer k = 0; k < quads_; ++k) {
        for (int byte = 0; byte < 4; ++byte) {
          const int value = source.at(which[q], k)[byte];
          queries.quads[(k * kQueries + q) * 4 + byte] = static_cast<std::int8_t>(value - 128);
        }
      }
    }
  }

  template <Common, class T>
  void common(const Queries& queries, Integer tile, TileSums<T>& out) const {
    const std::uint8_t* rows = tiles_.data() + tile * quads_ * kTile * 4;
    const std::int32_t* sums = sums_.data() + tile * kTile;
    alignas(64) std::int32_t products[kQueries][kTile];
    for (int q = 0; q < kQueries; q += 4) multiply(rows, queries.quads.data() + q * 4, products + q);
    for (int q = 0; q < kQueries; ++q) {
      for (int lane = 0; lane < kTile; ++lane) {
        out[q][lane] = static_cast<T>(squared_unit_) * static_cast<T>(products[q][lane] + sums[lane]);
      }
    }
  }

  Integer work() const { return quads_; }

 private:
  // Four queries against the rows of a tile.
  void multiply(const std::uint8_t* rows, const std::int8_t* queries, std::int32_t (*out)[kTile]) const {
#if defined(__AVX512VNNI__)
    __m512i sums[4][4] = {};
    for (Integer k = 0; k < quads_; ++k) {
      __m512i values[4];
      for (int v = 0; v < 4; ++v) values[v] = _mm512_loadu_si512(rows + k * kTile * 4 + v * 64);
      for (int q = 0; q < 4; ++q) {
        std::int32_t four;
        std::memcpy(&four, queries + (k * kQueries + q) * 4, 4);
        const __m512i query = _mm512_set1_epi32(four);
        for (int v = 0; v < 4; ++v) sums[q][v] = _mm512_dpbusd_epi32(sums[q][v], values[v], query);
      }
    }
    for (int q = 0; q < 4; ++q) {
      for (int v = 0; v < 4; ++v) _mm512_storeu_si512(out[q] + v * 16, sums[q][v]);
    }
#else
    for (int q = 0; q < 4; ++q) {
      for (int lane = 0; lane < kTile; ++lane) out[q][lane] = 0;
      for (Integer k = 0; k < quads_; ++k) {
        const std::int8_t* query = queries + (k * kQueries + q) * 4;
        const std::uint8_t* values = rows + k * kTile * 4;
        for (int lane = 0; lane < kTile; ++lane) {
          std::int32_t sum = 0;
          for (int byte = 0; byte < 4; ++byte) sum += values[4 * lane + byte] * query[byte];
          out[q][lane] += sum;
        }
      }
    }
#endif
  }
  const std::uint8_t* at(Integer row, Integer quad) const {
    return tiles_.data() + (((row / kTile) * quads_ + quad) * kTile + row % kTile) * 4;
  }
  std::uint8_t* at(Integer row, Integer quad) {
    return const_cast<std::uint8_t*>(std::as_const(*this).at(row, quad));
  }

  Integer quads_;
  double squared_unit_;
  std::vector<std::uint8_t> tiles_;  // [tile][quad][lane][4]
  std::vector<std::int32_t> sums_;   // of every row, times 128
};

// Any values, zeros included. With `distances`, the common product is replaced by -1/2 |x - z|^2: twice the
// work, but no digits are lost where two long rows lie close together.
template <class Stored>
class DenseTiles {
 public:
  struct Queries {
    std::vector<Stored> values;  // [column][query]
  };

  template <class Rows>
  DenseTiles(const Rows& rows, std::span<const Integer> which, const Places& places, Integer columns,
             bool distances)
      : columns_(columns), distances_(distances) {
    tiles_.resize(
        static_cast<std::size_t>(tiles_of(static_cast<Integer>(which.size())) * columns_ * kTile));
    for (std::size_t i = 0; i < which.size(); ++i) {
      for_each_value(rows[which[i]], [&](Integer column, auto value) {
        const Integer place = places[column];
        if (place >= 0) *at(static_cast<Integer>(i), place) = static_cast<Stored>(value);
      });
    }
  }

  DenseTiles(const DenseTiles& source, std::span<const Integer> which)
      : columns_(source.columns_), distances_(source.distances_) {
    tiles_.resize(
        static_cast<std::size_t>(tiles_of(static_cast<Integer>(which.size())) * columns_ * kTile));
    for (std::size_t i = 0; i < which.size(); ++i) {
      for (Integer k = 0; k < columns_; ++k) *at(static_cast<Integer>(i), k) = *source.at(which[i], k);
    }
  }

  void read(const DenseTiles& source, std::span<const Integer> which, Queries& queries) const {
    queries.values.assign(static_cast<std::size_t>(columns_ * kQueries), Stored{});
    for (std::size_t q = 0; q < which.size(); ++q) {
      for (Integer k = 0; k < columns_; ++k) queries.values[k * kQueries + q] = *source.at(which[q], k);
    }
  }

  template <Common common_sum, class T>
  void common(const Queries& queries, Integer tile, TileSums<T>& out) const {
    static_assert(std::is_same_v<T, Stored>);
    const T* rows = tiles_.data() + tile * columns_ * kTile;
    constexpr int width = kVectorsAtOnce * kLanes<T>;
    for (int q = 0; q < kQueries; q += 4) {
      for (int lane = 0; lane < kTile; lane += width) {
        if (distances_ && common_sum == Common::product) {
          sum<true, common_sum>(rows + lane, queries.values.data() + q, out[q] + lane);
        } else {
          sum<false, common_sum>(rows + lane, queries.values.data() + q, out[q] + lane);
        }
      }
    }
  }

  Integer work() const { return columns_; }

 private:
  template <bool distances, Common common_sum>
  void sum(const Stored* rows, const Stored* queries, Stored* out) const {
    using V = Lanes<Stored>;
    constexpr int lanes = kLanes<Stored>;
    V sums[4][kVectorsAtOnce] = {};
    for (Integer k = 0; k < columns_; ++k) {
      V values[kVectorsAtOnce];
      for (int v = 0; v < kVectorsAtOnce; ++v) values[v] = load<Stored>(rows + k * kTile + v * lanes);
      for (int q = 0; q < 4; ++q) {
        const V query = all<Stored>(queries[k * kQueries + q]);
        for (int v = 0; v < kVectorsAtOnce; ++v) {
          if constexpr (distances) {
            const V difference = values[v] - query;
            sums[q][v] += difference * difference;
          } else {
            sums[q][v] += lane_share<common_sum>(values[v], query);
          }
        }
      }
    }
    for (int q = 0; q < 4; ++q) {
      for (int v = 0; v < kVectorsAtOnce; ++v) {
        if constexpr (distances) sums[q][v] *= Stored{-0.5};
        store<Stored>(out + q * kTile + v * lanes, sums[q][v]);
      }
    }
  }
  template <Common common_sum>
  static Lanes<Stored> lane_share(Lanes<Stored> x, Lanes<Stored> z) {
    const Lanes<Stored> zero{};
    if constexpr (common_sum == Common::product) {
      return x * z;
    } else if constexpr (common_sum == Common::harmonic) {
      const Lanes<Stored> sum = x + z;
      return sum > zero ? Stored{2} * x * z / sum : zero;
    } else {
      const Lanes<Stored> least = smaller<Stored>(x, z), most = larger<Stored>(x, z);
      return least > zero ? least : (most < zero ? -most : zero);
    }
  }
  const Stored* at(Integer row, Integer column) const {
    return tiles_.data() + ((row / kTile) * columns_ + column) * kTile + row % kTile;
  }
  Stored* at(Integer row, Integer column) {
    return const_cast<Stored*>(std::as_const(*this).at(row, column));
  }

  Integer columns_;
  bool distances_;
  std::vector<Stored> tiles_;  // [tile][column][lane]
};

// How many rows with few values may be queries at once: the tables for them grow with the columns.
inline Integer sparse_queries(Integer columns) {
  constexpr Integer values = Integer{1} << 23;  // 64 MB of double
  return std::max<Integer>(1, values / std::max<Integer>(columns, 1) / kQueries) * kQueries;
}

// Rows with few values, read where they are. A query lies in a table with a place for every column.
template <class Rows>
class SparseTiles {
 public:
  struct Queries {
    std::vector<float> single;  // [column][query]
    std::vector<double> both;   // one of the two is in use
    std::vector<Integer> touched;
  };

  SparseTiles(const Rows& rows, std::span<const Integer> which)
      : rows_(rows), which_(which.begin(), which.end()) {}

  SparseTiles(const SparseTiles& source, std::span<const Integer> which) : rows_(source.rows_) {
    for (const Integer i : which) which_.push_back(source.which_[i]);
  }

  template <class T>
  static std::vector<T>& table(Queries& queries) {
    if constexpr (sizeof(T) == 4)
      return queries.single;
    else
      return queries.both;
  }
  template <class T>
  static const std::vector<T>& table(const Queries& queries) {
    if constexpr (sizeof(T) == 4)
      return queries.single;
    else
      return queries.both;
  }

  template <class T, class Other>
  void read(const SparseTiles<Other>& source, std::span<const Integer> which, Queries& queries) const {
    std::vector<T>& values = table<T>(queries);
    const std::size_t size = static_cast<std::size_t>(rows_.columns * kQueries);
    if (values.size() != size) values.assign(size, T{});
    for (const Integer place : queries.touched) values[place] = 0;
    queries.touched.clear();
    for (std::size_t q = 0; q < which.size(); ++q) {
      for_each_value(source.row(which[q]), [&](Integer column, auto value) {
        const Integer place = column * kQueries + static_cast<Integer>(q);
        values[place] = static_cast<T>(value);
        queries.touched.push_back(place);
      });
    }
  }

  template <Common common_sum, class T>
  void common(const Queries& queries, Integer tile, TileSums<T>& out) const {
    const T* values = table<T>(queries).data();
    const Integer first = tile * kTile;
    const Integer last = std::min<Integer>(first + kTile, static_cast<Integer>(which_.size()));
    for (Integer i = first; i < last; ++i) {
      T sums[kQueries] = {};
      for_each_value(row(i), [&](Integer column, auto value) {
        const T* query = values + column * kQueries;
        const T x = static_cast<T>(value);
#pragma omp simd
        for (int q = 0; q < kQueries; ++q) sums[q] += share<common_sum>(x, query[q]);
      });
      for (int q = 0; q < kQueries; ++q) out[q][i - first] = sums[q];
    }
    for (Integer i = last; i < first + kTile; ++i) {
      for (int q = 0; q < kQueries; ++q) out[q][i - first] = 0;
    }
  }

  auto row(Integer i) const { return rows_[which_[i]]; }
  Integer work() const { return which_.empty() ? 1 : 2 * (rows_.stored() / rows_.count + 1); }
  Integer columns() const { return rows_.columns; }

 private:
  Rows rows_;
  std::vector<Integer> which_;
};

// Values of a kernel that are given: the rows are those of the matrix itself.
template <class Value>
class GivenTiles {
 public:
  struct Queries {
    std::vector<Integer> rows;
  };

  GivenTiles(const DenseRows<Value>& matrix, std::span<const Integer> which)
      : matrix_(matrix), which_(which.begin(), which.end()) {}
  GivenTiles(const GivenTiles& source, std::span<const Integer> which) : matrix_(source.matrix_) {
    for (const Integer i : which) which_.push_back(source.which_[i]);
  }

  void read(const GivenTiles& source, std::span<const Integer> which, Queries& queries) const {
    queries.rows.clear();
    for (const Integer i : which) queries.rows.push_back(source.which_[i]);
  }

  template <Common, class T>
  void common(const Queries& queries, Integer tile, TileSums<T>& out) const {
    const Integer first = tile * kTile;
    const Integer last = std::min<Integer>(first + kTile, static_cast<Integer>(which_.size()));
    for (std::size_t q = 0; q < kQueries; ++q) {
      std::fill(out[q], out[q] + kTile, T{});
      if (q >= queries.rows.size()) continue;
      const Value* row = matrix_.values + queries.rows[q] * matrix_.stride;
      for (Integer i = first; i < last; ++i) out[q][i - first] = static_cast<T>(row[which_[i]]);
    }
  }

  Integer work() const { return 1; }
  static constexpr bool is_given() { return true; }

 private:
  DenseRows<Value> matrix_;
  std::vector<Integer> which_;
};

}  // namespace maxmargin
