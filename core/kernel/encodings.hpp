// SPDX-License-Identifier: BSD-3-Clause
// Four ways to hold rows so that common sums of many pairs are cheap: bits, bytes, dense, sparse.
//
// Rows come in tiles of kTile, and in a tile one column after the other, so that a loop over the rows of
// a tile is a loop over neighbours in memory. `Queries` are up to kQueries rows, copied out and
// interleaved, whose sums with all rows of a tile are computed at once.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#if defined(__AVX512VNNI__)
#include <immintrin.h>
#endif

#include "data/columns.hpp"
#include "kernel/kernel_rows.hpp"
#include "kernel/kernels.hpp"

namespace maxmargin {

template <class T>
using TileSums = T[kQueries][kTile];

// One for each kind of common sum; those that the kernel does not use are left as they are.
template <class T>
using CommonSums = TileSums<T>[kCommons];

// Calls visit<common>() for each kind of common sum over columns that the kernel uses.
template <class Visit>
void for_each_common(const KernelSum& kernel, const Visit& visit) {
  if (kernel.uses(Common::product)) visit.template operator()<Common::product>();
  if (kernel.uses(Common::minimum)) visit.template operator()<Common::minimum>();
  if (kernel.uses(Common::harmonic)) visit.template operator()<Common::harmonic>();
}

inline Integer tiles_of(Integer count) { return (count + kTile - 1) / kTile; }

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

  template <class T>
  void commons(const KernelSum& kernel, const Queries& queries, Integer tile, CommonSums<T>& out) const {
    alignas(64) TileSums<std::int32_t> counts;
    count(queries, tile, counts);
    for (int common = 0; common < static_cast<int>(Common::given); ++common) {
      if (!kernel.uses(static_cast<Common>(common))) continue;
      for (int q = 0; q < kQueries; ++q) {
        for (int lane = 0; lane < kTile; ++lane) out[common][q][lane] = static_cast<T>(counts[q][lane]);
      }
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

// Some of such rows: common sums are exact in integers.
//
// Processors multiply unsigned by signed bytes, so tiles have values less 128, and 128 times the sum of a
// query is added back. Four columns in which four queries have nothing but zeros are passed over.
class ByteTiles {
 public:
  static constexpr int kAtOnce = 4;
  struct Queries {
    struct Few {
      std::vector<Integer> places;       // of the quads that are not all zeros
      std::vector<std::uint32_t> quads;  // [place][query]
    };
    Few few[kQueries / kAtOnce];
    std::int32_t sums[kQueries] = {};  // of every query, times 128
  };

  ByteTiles(const ByteRows& rows, std::span<const Integer> which)
      : rows_(rows), which_(which.begin(), which.end()) {
    fill();
  }
  ByteTiles(const ByteTiles& source, std::span<const Integer> which) : rows_(source.rows_) {
    which_.reserve(which.size());
    for (const Integer i : which) which_.push_back(source.which_[i]);
    fill();
  }

  void read(const ByteTiles& source, std::span<const Integer> which, Queries& queries) const {
    std::fill(queries.sums, queries.sums + kQueries, 0);
    for (std::size_t q = 0; q < which.size(); ++q) {
      queries.sums[q] = 128 * source.rows_.sum(source.which_[which[q]]);
    }
    for (std::size_t first = 0; first < kQueries; first += kAtOnce) {
      Queries::Few& few = queries.few[first / kAtOnce];
      few.places.clear();
      few.quads.clear();
      for (Integer k = 0; k < rows_.quads(); ++k) {
        std::uint32_t quads[kAtOnce] = {}, any = 0;
        for (std::size_t q = first; q < std::min(first + kAtOnce, which.size()); ++q) {
          std::memcpy(&quads[q - first], source.rows_.row(source.which_[which[q]]) + 4 * k, 4);
          any |= quads[q - first];
        }
        if (any == 0) continue;
        few.places.push_back(k);
        few.quads.insert(few.quads.end(), quads, quads + kAtOnce);
      }
    }
  }

  // Only products: see `encoding_for`.
  template <class T>
  void commons(const KernelSum&, const Queries& queries, Integer tile, CommonSums<T>& sums) const {
    TileSums<T>& out = sums[static_cast<int>(Common::product)];
    const std::int8_t* rows = tiles_.get() + tile * rows_.quads() * kTile * 4;
    const T unit = static_cast<T>(rows_.squared_unit);
    alignas(64) std::int32_t products[kAtOnce][kTile];
    for (int first = 0; first < kQueries; first += kAtOnce) {
      multiply(rows, queries.few[first / kAtOnce], products);
      for (int q = 0; q < kAtOnce; ++q) {
        const std::int32_t sum = queries.sums[first + q];
        for (int lane = 0; lane < kTile; ++lane) {
          out[first + q][lane] = unit * static_cast<T>(products[q][lane] + sum);
        }
      }
    }
  }

  Integer work() const { return rows_.quads(); }

 private:
  void fill() {
    const Integer quads = rows_.quads(), count = static_cast<Integer>(which_.size());
    const Integer size = tiles_of(count) * quads * kTile * 4;
    tiles_ = std::make_unique_for_overwrite<std::int8_t[]>(static_cast<std::size_t>(size));
    std::fill(tiles_.get() + count / kTile * quads * kTile * 4, tiles_.get() + size, std::int8_t{});
    for (Integer first = 0; first < count; first += kTile) {
      std::int8_t* tile = tiles_.get() + first * quads * 4;
      const Integer lanes = std::min<Integer>(kTile, count - first);
      const std::uint8_t* rows[kTile];
      for (Integer lane = 0; lane < lanes; ++lane) rows[lane] = rows_.row(which_[first + lane]);
      for (Integer k = 0; k < quads; ++k) {
        for (Integer lane = 0; lane < lanes; ++lane) {
          std::uint32_t four;
          std::memcpy(&four, rows[lane] + 4 * k, 4);
          four ^= 0x80808080u;
          std::memcpy(tile + (k * kTile + lane) * 4, &four, 4);
        }
      }
    }
  }

  // A few queries against the rows of a tile.
  static void multiply(const std::int8_t* rows, const Queries::Few& few, std::int32_t (*out)[kTile]) {
    const std::uint32_t* queries = few.quads.data();
#if defined(__AVX512VNNI__)
    __m512i sums[kAtOnce][4] = {};
    for (const Integer k : few.places) {
      __m512i values[4];
      for (int v = 0; v < 4; ++v) values[v] = _mm512_loadu_si512(rows + k * kTile * 4 + v * 64);
      for (int q = 0; q < kAtOnce; ++q) {
        const __m512i query = _mm512_set1_epi32(static_cast<int>(*queries++));
        for (int v = 0; v < 4; ++v) sums[q][v] = _mm512_dpbusd_epi32(sums[q][v], query, values[v]);
      }
    }
    for (int q = 0; q < kAtOnce; ++q) {
      for (int v = 0; v < 4; ++v) _mm512_storeu_si512(out[q] + v * 16, sums[q][v]);
    }
#else
    for (int q = 0; q < kAtOnce; ++q) {
      for (int lane = 0; lane < kTile; ++lane) out[q][lane] = 0;
      for (std::size_t place = 0; place < few.places.size(); ++place) {
        std::uint8_t query[4];
        std::memcpy(query, queries + place * kAtOnce + q, 4);
        const std::int8_t* values = rows + few.places[place] * kTile * 4;
        for (int lane = 0; lane < kTile; ++lane) {
          std::int32_t sum = 0;
          for (int byte = 0; byte < 4; ++byte) sum += values[4 * lane + byte] * query[byte];
          out[q][lane] += sum;
        }
      }
    }
#endif
  }

  ByteRows rows_;
  std::vector<Integer> which_;
  std::unique_ptr<std::int8_t[]> tiles_;  // [tile][quad][lane][4], less 128
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

  void commons(const KernelSum& kernel, const Queries& queries, Integer tile,
               CommonSums<Stored>& out) const {
    for_each_common(kernel, [&]<Common common_sum>() {
      common<common_sum>(queries, tile, out[static_cast<int>(common_sum)]);
    });
  }

  Integer work() const { return columns_; }

 private:
  template <Common common_sum>
  void common(const Queries& queries, Integer tile, TileSums<Stored>& out) const {
    using T = Stored;
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

struct SparseQueries {
  std::vector<float> single;  // [column][query]
  std::vector<double> both;   // one of the two is in use
  std::vector<Integer> touched;
};

// Rows with few values, read where they are. A query lies in a table with a place for every column.
template <class Value>
class SparseTiles {
 public:
  using Queries = SparseQueries;

  SparseTiles(const SparseRows<Value>& rows, std::span<const Integer> which)
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

  template <class T>
  void read(const SparseTiles& source, std::span<const Integer> which, Queries& queries) const {
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

  template <class T>
  void commons(const KernelSum& kernel, const Queries& queries, Integer tile, CommonSums<T>& out) const {
    for_each_common(kernel, [&]<Common common_sum>() {
      common<common_sum>(queries, tile, out[static_cast<int>(common_sum)]);
    });
  }

  auto row(Integer i) const { return rows_[which_[i]]; }
  Integer work() const { return which_.empty() ? 1 : 2 * (rows_.stored() / rows_.count + 1); }
  Integer columns() const { return rows_.columns; }

 private:
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

  SparseRows<Value> rows_;
  std::vector<Integer> which_;
};

struct GivenQueries {
  std::vector<Integer> rows;
};

// Values of a kernel that are given: the rows are those of the matrix itself.
template <class Value>
class GivenTiles {
 public:
  using Queries = GivenQueries;

  GivenTiles(const DenseRows<Value>& matrix, std::span<const Integer> which)
      : matrix_(matrix), which_(which.begin(), which.end()) {}
  GivenTiles(const GivenTiles& source, std::span<const Integer> which) : matrix_(source.matrix_) {
    for (const Integer i : which) which_.push_back(source.which_[i]);
  }

  void read(const GivenTiles& source, std::span<const Integer> which, Queries& queries) const {
    queries.rows.clear();
    for (const Integer i : which) queries.rows.push_back(source.which_[i]);
  }

  template <class T>
  void commons(const KernelSum&, const Queries& queries, Integer tile, CommonSums<T>& sums) const {
    TileSums<T>& out = sums[static_cast<int>(Common::given)];
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

 private:
  DenseRows<Value> matrix_;
  std::vector<Integer> which_;
};

}  // namespace maxmargin
