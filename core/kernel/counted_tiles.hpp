// SPDX-License-Identifier: BSD-3-Clause
// Rows whose common sums are counted in integers, and so are exact: bits and bytes.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "kernel/tiles.hpp"

namespace maxmargin {

// Zeros and ones, 32 to a word: a common sum is a count of bits.
class BitTiles {
 public:
  using Queries = std::vector<std::uint32_t>;

  template <class Rows>
  BitTiles(const Rows& rows, std::span<const Integer> which, const KeptColumns& columns)
      : words_(which.size(), (columns.count + 31) / 32) {
    for (std::size_t i = 0; i < which.size(); ++i) {
      for_each_value(rows[which[i]], [&](Integer column, auto value) {
        const Integer place = columns.places[column];
        if (place < 0 || value == 0) return;
        words_.at(static_cast<Integer>(i), place / 32) |= std::uint32_t{1} << (place % 32);
      });
    }
  }
  BitTiles subset(std::span<const Integer> which) const { return BitTiles(words_.subset(which)); }
  void read(std::span<const Integer> which, Queries& queries) const { words_.read(which, queries); }

  template <class T>
  void commons(const KernelSum& kernel, const Queries& queries, Integer tile, CommonSums<T>& out) const {
    alignas(64) TileSums<std::int32_t> counts;
    count(queries, tile, counts);
    for_each_number_of_common(kernel, [&](int common) {
      for (int q = 0; q < kQueries; ++q) std::copy(counts[q], counts[q] + kTile, out[common][q]);
    });
  }
  void count(const Queries& queries, Integer tile, TileSums<std::int32_t>& counts) const {
    const std::uint32_t* words = words_.tile(tile);
    for (int q = 0; q < kQueries; ++q) {
      std::uint32_t sums[kTile] = {};
      for (Integer w = 0; w < words_.columns(); ++w) {
        const std::uint32_t query = queries[w * kQueries + q];
        for (int lane = 0; lane < kTile; ++lane) sums[lane] += ones(words[w * kTile + lane] & query);
      }
      for (int lane = 0; lane < kTile; ++lane) counts[q][lane] = static_cast<std::int32_t>(sums[lane]);
    }
  }

  Integer work() const { return words_.columns(); }
  Integer tiles_in_block() const { return 1; }

 private:
  explicit BitTiles(Tiled<std::uint32_t> words) : words_(std::move(words)) {}

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

  Tiled<std::uint32_t> words_;
};

// Rows of bytes: common sums are exact in integers.
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

  ByteTiles(const ByteRows& rows, std::vector<Integer> which) : rows_(rows), which_(std::move(which)) {
    fill();
  }
  ByteTiles subset(std::span<const Integer> which) const { return {rows_, picked(which_, which)}; }

  void read(std::span<const Integer> which, Queries& queries) const {
    std::fill(queries.sums, queries.sums + kQueries, 0);
    for (std::size_t q = 0; q < which.size(); ++q) {
      queries.sums[q] = 128 * rows_.sum(which_[which[q]]);
    }
    for (std::size_t first = 0; first < kQueries; first += kAtOnce) {
      Queries::Few& few = queries.few[first / kAtOnce];
      few.places.clear();
      few.quads.clear();
      for (Integer k = 0; k < rows_.quads(); ++k) {
        std::uint32_t quads[kAtOnce] = {}, any = 0;
        for (std::size_t q = first; q < std::min(first + kAtOnce, which.size()); ++q) {
          std::memcpy(&quads[q - first], rows_.row(which_[which[q]]) + 4 * k, 4);
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
  Integer tiles_in_block() const { return 1; }

 private:
  void fill() {
    const Integer quads = rows_.quads(), count = static_cast<Integer>(which_.size());
    const Integer size = tiles_of(which_.size()) * quads * kTile * 4;
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
#elif defined(__AVX2__)
    // As numbers of 16 bits, of which two products are added up at a time, for eight rows.
    constexpr int kRows = 8, kSwapMiddle = 0xd8;
    for (int lane = 0; lane < kTile; lane += kRows) {
      __m256i sums[kAtOnce][2] = {};
      const std::uint32_t* next = queries;
      for (const Integer k : few.places) {
        const auto* const from = reinterpret_cast<const __m128i*>(rows + (k * kTile + lane) * 4);
        const __m256i values[2] = {_mm256_cvtepi8_epi16(_mm_loadu_si128(from)),
                                   _mm256_cvtepi8_epi16(_mm_loadu_si128(from + 1))};
        for (int q = 0; q < kAtOnce; ++q) {
          const __m256i query = _mm256_cvtepu8_epi16(_mm_set1_epi32(static_cast<int>(*next++)));
          for (int half = 0; half < 2; ++half)
            sums[q][half] = _mm256_add_epi32(sums[q][half], _mm256_madd_epi16(values[half], query));
        }
      }
      for (int q = 0; q < kAtOnce; ++q) {  // pairs of a row become one, rows 0, 1, 4, 5 before 2, 3, 6, 7
        const __m256i both = _mm256_hadd_epi32(sums[q][0], sums[q][1]);
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(out[q] + lane),
                            _mm256_permute4x64_epi64(both, kSwapMiddle));
      }
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

}  // namespace maxmargin
