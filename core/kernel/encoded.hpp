// SPDX-License-Identifier: BSD-3-Clause
// Rows in the cheapest of the four ways, and values of a kernel between a few of them and a tile of others.
#pragma once

#include <array>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <variant>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "data/columns.hpp"
#include "kernel/encodings.hpp"

namespace maxmargin {

// The values of a kernel on zeros and ones: they depend on a count, so all of them fit into a table.
//
// The count is that of common ones or, if only distances matter, that of differing columns.
template <class T>
class CountTable {
 public:
  CountTable(const KernelSum& kernel, Integer columns) : distances_(kernel.only_distances()) {
    if (!distances_ && kernel.any_distances()) return;
    const Integer size = (columns + 1 + kLanes<T> - 1) / kLanes<T> * kLanes<T>;
    values_.assign(static_cast<std::size_t>(std::max<Integer>(size, 2 * kLanes<T>)), T{});
    for (Integer count = 0; count <= columns; count += kLanes<T>) {
      Lanes<T> counts, sum{};
      for (int lane = 0; lane < kLanes<T>; ++lane) counts[lane] = static_cast<T>(count + lane);
      for (const Term& term : kernel.terms) {
        Lanes<T> product = all<T>(static_cast<T>(term.coefficient));
        for (const Factor& factor : term.factors) {
          product *=
              distances_ ? shaped<T>(factor, Lanes<T>{}, counts) : shaped<T>(factor, counts, Lanes<T>{});
        }
        sum += product;
      }
      store<T>(values_.data() + count, sum);
    }
    for (std::size_t count = 0; count < coarse_.size() && count < values_.size(); ++count) {
      coarse_[count] = static_cast<float>(values_[count]);
      fine_[count] = static_cast<float>(values_[count] - static_cast<T>(coarse_[count]));
    }
  }
  bool empty() const { return values_.empty(); }

  // `own` and `theirs` are numbers of ones; `largest` is the largest count that can occur.
  void look_up(const std::int32_t* common, std::int32_t own, const std::int32_t* theirs,
               std::int32_t largest, T* out) const {
    alignas(64) std::int32_t counts[kTile];
    for (int lane = 0; lane < kTile; ++lane) {
      counts[lane] = distances_ ? own + theirs[lane] - 2 * common[lane] : common[lane];
    }
#if defined(__AVX512F__)
    if (largest < 32) {
      // The table fits into two registers; one of doubles is the sum of two of floats.
      const __m512 first = _mm512_loadu_ps(coarse_.data()), second = _mm512_loadu_ps(coarse_.data() + 16);
      const __m512 third = _mm512_loadu_ps(fine_.data()), fourth = _mm512_loadu_ps(fine_.data() + 16);
      for (int lane = 0; lane < kTile; lane += 16) {
        const __m512i which = _mm512_load_si512(counts + lane);
        const __m512 coarse = _mm512_permutex2var_ps(first, which, second);
        if constexpr (sizeof(T) == 4) {
          _mm512_storeu_ps(out + lane, coarse);
        } else {
          const __m512 fine = _mm512_permutex2var_ps(third, which, fourth);
          const __m512d low = _mm512_add_pd(_mm512_cvtps_pd(_mm512_castps512_ps256(coarse)),
                                            _mm512_cvtps_pd(_mm512_castps512_ps256(fine)));
          const __m512d high = _mm512_add_pd(_mm512_cvtps_pd(_mm512_extractf32x8_ps(coarse, 1)),
                                             _mm512_cvtps_pd(_mm512_extractf32x8_ps(fine, 1)));
          _mm512_storeu_pd(out + lane, low);
          _mm512_storeu_pd(out + lane + 8, high);
        }
      }
      return;
    }
#endif
    static_cast<void>(largest);
    for (int lane = 0; lane < kTile; ++lane) out[lane] = values_[counts[lane]];
  }

 private:
  bool distances_;
  std::vector<T> values_;
  std::array<float, 32> coarse_{}, fine_{};  // the first of the values, as sums of two
};

// Rows in one of the four ways, with the numbers that each of them has alone.
class Encoded {
 public:
  using Kind = std::variant<BitTiles, ByteTiles, DenseTiles<float>, DenseTiles<double>, SparseTiles<float>,
                            SparseTiles<double>, GivenTiles<float>, GivenTiles<double>>;

  // T is the type in which values of the kernel will be computed.
  template <class T>
  static Encoded of(const KernelRows& rows, std::span<const Integer> which, const KernelSum& kernel,
                    const Encoding& encoding, const Places& places, Integer columns) {
    const bool single = std::is_same_v<T, float>;
    return std::visit(
        [&](const auto& typed) { return held(typed, which, kernel, encoding, places, columns, single); },
        rows);
  }

  Encoded subset(std::span<const Integer> which) const {
    Encoded part(
        std::visit([&](const auto& tiles) -> Kind { return std::decay_t<decltype(tiles)>(tiles, which); },
                   kind_),
        static_cast<Integer>(which.size()));
    for (int common = 0; common < kCommons; ++common) {
      if (own_[common].empty()) continue;
      part.own_[common].assign(static_cast<std::size_t>(part.tiles() * kTile), 0.0);
      for (std::size_t i = 0; i < which.size(); ++i) part.own_[common][i] = own_[common][which[i]];
      part.single_own_[common].assign(part.own_[common].begin(), part.own_[common].end());
    }
    if (!ones_.empty()) {
      part.ones_.assign(static_cast<std::size_t>(part.tiles() * kTile), 0);
      for (std::size_t i = 0; i < which.size(); ++i) part.ones_[i] = ones_[which[i]];
    }
    part.most_ones_ = most_ones_;
    part.tables_ = tables_;
    return part;
  }

  // Up to kQueries rows of `source`, ready to be compared with rows of a like encoding.
  class Queries {
   public:
    template <class T>
    void read(const Encoded& source, std::span<const Integer> which) {
      std::visit(
          [&](const auto& tiles) {
            using Tiles = std::decay_t<decltype(tiles)>;
            using Held = typename Tiles::Queries;
            if (!std::holds_alternative<Held>(held_)) held_.template emplace<Held>();
            if constexpr (requires { tiles.template read<T>(tiles, which, std::get<Held>(held_)); }) {
              tiles.template read<T>(tiles, which, std::get<Held>(held_));
            } else {
              tiles.read(tiles, which, std::get<Held>(held_));
            }
          },
          source.kind_);
      for (int common = 0; common < kCommons; ++common) {
        for (std::size_t q = 0; q < which.size(); ++q) {
          own_[common][q] = source.own_[common].empty() ? 0.0 : source.own_[common][which[q]];
        }
      }
      std::fill(ones_, ones_ + kQueries, 0);  // a table has no place for counts of rows that are not there
      if (source.ones_.empty()) return;
      most_ones_ = source.most_ones_;
      for (std::size_t q = 0; q < which.size(); ++q) ones_[q] = source.ones_[which[q]];
    }

   private:
    friend class Encoded;
    std::variant<BitTiles::Queries, ByteTiles::Queries, DenseTiles<float>::Queries,
                 DenseTiles<double>::Queries, SparseQueries, GivenQueries>
        held_;
    double own_[kCommons][kQueries] = {};
    std::int32_t ones_[kQueries] = {};
    std::int32_t most_ones_ = 0;
  };

  // out[q][lane] = k(query q, row lane of the tile)
  template <class T>
  void values(const KernelSum& kernel, const Queries& queries, Integer tile, TileSums<T>& out) const {
    if (tables_) return table_values<T>(queries, tile, out);
    alignas(64) CommonSums<T> commons;
    alignas(64) T own[kTile];
    std::visit(
        [&](const auto& tiles) {
          using Tiles = std::decay_t<decltype(tiles)>;
          const auto& held = std::get<typename Tiles::Queries>(queries.held_);
          if constexpr (fits<T, Tiles>) {
            tiles.commons(kernel, held, tile, commons);
          } else {
            throw std::logic_error("rows held for another precision");
          }
        },
        kind_);
    const bool single = kernel.terms.size() == 1 && kernel.terms[0].factors.size() == 1;
    for (int q = 0; q < kQueries; ++q) {
      if (!single) std::fill(out[q], out[q] + kTile, T{});
      for (const Term& term : kernel.terms) {
        alignas(64) T product[kTile];
        T* target = single ? out[q] : product;
        bool first = true;
        for (const Factor& factor : term.factors) {
          const int common = static_cast<int>(factor.common);
          if (factor.shape == Shape::exponential) {
            const T mine = static_cast<T>(queries.own_[common][q]);
            const T* theirs = own_numbers<T>(common) + tile * kTile;
            for (int lane = 0; lane < kTile; ++lane) own[lane] = mine + theirs[lane];
          }
          for (int lane = 0; lane < kTile; lane += kLanes<T>) {
            const Lanes<T> sums = load<T>(commons[common][q] + lane);
            const Lanes<T> owns = factor.shape == Shape::exponential ? load<T>(own + lane) : Lanes<T>{};
            Lanes<T> value = shaped<T>(factor, sums, owns);
            value *= first ? all<T>(static_cast<T>(term.coefficient)) : load<T>(target + lane);
            store<T>(target + lane, value);
          }
          first = false;
        }
        if (!single) {
          for (int lane = 0; lane < kTile; ++lane) out[q][lane] += product[lane];
        }
      }
    }
  }

  Integer count() const { return count_; }
  Integer tiles() const { return tiles_of(count_); }
  // How many rows may be read as queries without much memory.
  Integer queries_at_once() const {
    return std::visit(
        [](const auto& tiles) {
          if constexpr (requires { tiles.columns(); }) return sparse_queries(tiles.columns());
          return std::numeric_limits<Integer>::max();
        },
        kind_);
  }
  // Of one pair, in operations.
  Integer work() const {
    return 2 + std::visit([](const auto& tiles) { return tiles.work(); }, kind_) / 16;
  }

 private:
  struct CountTables {
    CountTables(const KernelSum& kernel, Integer columns)
        : single(kernel, columns), both(kernel, columns) {}
    CountTable<float> single;
    CountTable<double> both;
  };

  template <class T>
  void table_values(const Queries& queries, Integer tile, TileSums<T>& out) const {
    alignas(64) TileSums<std::int32_t> counts;
    std::get<BitTiles>(kind_).count(std::get<BitTiles::Queries>(queries.held_), tile, counts);
    const std::int32_t largest = most_ones_ + queries.most_ones_;
    const std::int32_t* theirs = ones_.data() + tile * kTile;
    for (int q = 0; q < kQueries; ++q) {
      if constexpr (sizeof(T) == 4)
        tables_->single.look_up(counts[q], queries.ones_[q], theirs, largest, out[q]);
      else
        tables_->both.look_up(counts[q], queries.ones_[q], theirs, largest, out[q]);
    }
  }
  template <class T>
  const T* own_numbers(int common) const {
    if constexpr (sizeof(T) == 4)
      return single_own_[common].data();
    else
      return own_[common].data();
  }

  template <class T, class Tiles>
  static constexpr bool fits = !(std::is_same_v<Tiles, DenseTiles<float>> && sizeof(T) == 8) &&
                               !(std::is_same_v<Tiles, DenseTiles<double>> && sizeof(T) == 4);

  Encoded(Kind kind, Integer count) : kind_(std::move(kind)), count_(count) {}

  template <class Rows>
  static Encoded held(const Rows& rows, std::span<const Integer> which, const KernelSum& kernel,
                      const Encoding& encoding, const Places& places, Integer columns, bool single) {
    if (encoding.holding == Holding::bytes) {
      std::vector<Integer> numbers(which.size());
      std::iota(numbers.begin(), numbers.end(), Integer{0});
      return held(ByteRows(rows, which, encoding.unit), numbers, kernel, encoding, places, columns, single);
    }
    // Direct differences cost twice as much: where the columns are few, for the sake of digits.
    const bool distances = kernel.only_distances() && columns <= 64;
    Encoded encoded(make(rows, which, encoding, places, columns, distances, single),
                    static_cast<Integer>(which.size()));
    if (encoding.holding == Holding::bits) {
      const auto table = std::make_shared<const CountTables>(kernel, columns);
      if (!table->single.empty()) encoded.tables_ = table;
      encoded.ones_.assign(static_cast<std::size_t>(encoded.tiles() * kTile), 0);
      for (std::size_t i = 0; i < which.size(); ++i) {
        for_each_value(rows[which[i]], [&](Integer column, auto value) {
          if (places[column] >= 0 && value != 0) ++encoded.ones_[i];
        });
      }
      encoded.most_ones_ = *std::max_element(encoded.ones_.begin(), encoded.ones_.end());
    }
    for (int common = 0; common < kCommons; ++common) {
      const Common kind = static_cast<Common>(common);
      if (!kernel.uses(kind)) continue;
      std::vector<double>& own = encoded.own_[common];
      own.assign(static_cast<std::size_t>(tiles_of(encoded.count_) * kTile), 0.0);
      encoded.single_own_[common].assign(own.size(), 0.0f);
      if (kind == Common::given) continue;
      if (distances && encoding.holding == Holding::dense && kind == Common::product) continue;
      for (std::size_t i = 0; i < which.size(); ++i) {
        for_each_value(rows[which[i]], [&](Integer column, auto value) {
          if (places[column] >= 0) own[i] += own_share(kind, static_cast<double>(value));
        });
      }
      encoded.single_own_[common].assign(own.begin(), own.end());
    }
    return encoded;
  }

  // Of rows that are bytes already; they are shared, with all their columns.
  static Encoded held(const ByteRows& rows, std::span<const Integer> which, const KernelSum&,
                      const Encoding&, const Places&, Integer, bool) {
    Encoded encoded(ByteTiles(rows, which), static_cast<Integer>(which.size()));
    std::vector<double>& own = encoded.own_[static_cast<int>(Common::product)];
    own.assign(static_cast<std::size_t>(encoded.tiles() * kTile), 0.0);
    for (std::size_t i = 0; i < which.size(); ++i) own[i] = rows.squared_norm(which[i]);
    encoded.single_own_[static_cast<int>(Common::product)].assign(own.begin(), own.end());
    return encoded;
  }

  template <class Rows>
  static Kind make(const Rows& rows, std::span<const Integer> which, const Encoding& encoding,
                   const Places& places, Integer columns, bool distances, bool single) {
    if (encoding.holding == Holding::bits) return BitTiles(rows, which, places, columns);
    if constexpr (requires { rows.offsets; }) {
      if (encoding.holding == Holding::given) throw std::invalid_argument("a kernel matrix must be dense");
      if (encoding.holding == Holding::sparse) return SparseTiles(rows, which);
    } else if (encoding.holding == Holding::given) {
      return GivenTiles(rows, which);
    }
    if (single) return DenseTiles<float>(rows, which, places, columns, distances);
    return DenseTiles<double>(rows, which, places, columns, distances);
  }

  Kind kind_;
  Integer count_;
  std::array<std::vector<double>, kCommons> own_;  // per common sum in use, padded to whole tiles
  std::array<std::vector<float>, kCommons> single_own_;
  std::vector<std::int32_t> ones_;  // of bits: how many a row has
  std::int32_t most_ones_ = 0;
  std::shared_ptr<const CountTables> tables_;
};

// Which columns a block of rows has to hold: those that differ, and, where more than distances count, all
// that are not zero.
inline std::pair<Places, Integer> places_of(const KernelRows& rows, std::span<const Integer> which,
                                            bool only_distances) {
  if (std::holds_alternative<ByteRows>(rows)) return {Places{}, columns_of(rows)};
  const std::size_t d = static_cast<std::size_t>(columns_of(rows));
  std::vector<double> low(d), high(d);
  std::visit(
      [&]<class Rows>(const Rows& typed) {
        if constexpr (!std::is_same_v<Rows, ByteRows>) {
          column_ranges(typed, which, low.data(), high.data());
        }
      },
      rows);
  Places places(d, -1);
  Integer kept = 0;
  for (std::size_t column = 0; column < d; ++column) {
    const bool same = low[column] == high[column];
    if (!same || (!only_distances && high[column] != 0)) places[column] = kept++;
  }
  return {std::move(places), kept};
}

}  // namespace maxmargin
