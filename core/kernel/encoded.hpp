// SPDX-License-Identifier: BSD-3-Clause
// Rows in the cheapest of the four ways, and values of a kernel between a few of them and a tile of others.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <variant>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "data/columns.hpp"
#include "kernel/encodings.hpp"
#include "machine/budget.hpp"
#include "machine/threads.hpp"

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
          Lanes<T> values[] = {distances_ ? Lanes<T>{} : counts};
          const Lanes<T> own[] = {distances_ ? counts : Lanes<T>{}};
          shape<T>(factor, values, own);
          product *= values[0];
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
    if (largest < kInRegisters) {
      // The table fits into registers, two or four; one of doubles is the sum of two of floats.
      const bool two = largest < kInRegisters / 2;
      for (int lane = 0; lane < kTile; lane += 16) {
        const __m512i which = _mm512_load_si512(counts + lane);
        const __m512 coarse = found(coarse_.data(), which, two);
        if constexpr (sizeof(T) == 4) {
          _mm512_storeu_ps(out + lane, coarse);
        } else {
          const __m512 fine = found(fine_.data(), which, two);
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
  static constexpr std::int32_t kInRegisters = 64;  // values

#if defined(__AVX512F__)
  // table[which], of a table of which the first half is enough if `two`.
  static __m512 found(const float* table, __m512i which, bool two) {
    const __m512 low = _mm512_permutex2var_ps(_mm512_loadu_ps(table), which, _mm512_loadu_ps(table + 16));
    if (two) return low;
    const __m512 high =
        _mm512_permutex2var_ps(_mm512_loadu_ps(table + 32), which, _mm512_loadu_ps(table + 48));
    return _mm512_mask_mov_ps(low, _mm512_test_epi32_mask(which, _mm512_set1_epi32(32)), high);
  }
#endif

  bool distances_;
  std::vector<T> values_;
  std::array<float, kInRegisters> coarse_{}, fine_{};  // the first of the values, as sums of two
};

// What each row has alone for a common sum over the columns that are kept.
template <class Rows>
std::vector<double> own_sums(const Rows& rows, std::span<const Integer> which, const KeptColumns& columns,
                             Common kind) {
  std::vector<double> own(which.size());
  for (std::size_t i = 0; i < which.size(); ++i) {
    for_each_value(rows[which[i]], [&](Integer column, auto value) {
      if (columns.places[column] >= 0) own[i] += own_share(kind, static_cast<double>(value));
    });
  }
  return own;
}

// Rows in one of these ways, with the number that each of them has alone for every common sum. T is the
// type in which values of the kernel are computed.
template <class T>
class Encoded {
 public:
  Encoded(const KernelRows& rows, std::span<const Integer> which, const KernelSum& kernel,
          const Encoding& encoding, const KeptColumns& columns)
      : Encoded(std::visit([&](const auto& typed) { return held(typed, which, kernel, encoding, columns); },
                           rows)) {}

  Encoded subset(std::span<const Integer> which) const {
    Encoded part(std::visit([&](const auto& tiles) -> Kind { return tiles.subset(which); }, kind_),
                 which.size());
    for (int common = 0; common < kCommons; ++common) {
      if (!own_[common].empty()) part.own_[common] = part.padded(picked(own_[common], which));
    }
    if (table_) part.set_table(table_, most_ones_);
    return part;
  }

  static constexpr int kMostQueries = std::max(kQueries, kSparseQueries);

  // Some rows, up to queries_at_once() of them, ready to be compared with rows of a like encoding.
  class Queries {
   public:
    void read(const Encoded& source, std::span<const Integer> which) {
      std::visit(
          [&]<class Tiles>(const Tiles& tiles) {
            using Held = typename Tiles::Queries;
            if (!std::holds_alternative<Held>(held_)) held_.template emplace<Held>();
            tiles.read(which, std::get<Held>(held_));
          },
          source.kind_);
      for (int common = 0; common < kCommons; ++common) {
        for (std::size_t q = 0; q < which.size(); ++q) {
          own_[common][q] = source.own_[common].empty() ? T{} : source.own_[common][which[q]];
        }
      }
      std::fill(ones_, ones_ + kMostQueries,
                0);  // a table has no place for counts of rows that are not there
      most_ones_ = source.most_ones_;
      for (std::size_t q = 0; source.table_ && q < which.size(); ++q) ones_[q] = source.ones_[which[q]];
    }

   private:
    friend class Encoded;
    std::variant<BitTiles::Queries, ByteTiles::Queries, typename DenseTiles<T>::Queries, SparseQueries<T>,
                 typename GivenTiles<T>::Queries>
        held_;
    T own_[kCommons][kMostQueries] = {};
    std::int32_t ones_[kMostQueries] = {};
    std::int32_t most_ones_ = 0;
  };

  // Calls use(query, tile, values) for the tiles first .. last - 1, and for every kQueries queries:
  // values[q][lane] = k(query + q, row lane of the tile)
  //
  // What uses them is called by its address: the loops over tiles are compiled once for all uses.
  template <class Use>
  void for_each_tile(const KernelSum& kernel, const Queries& queries, Integer first, Integer last,
                     const Use& use) const {
    compute_tiles(kernel, queries, first, last, std::cref(use));
  }

  Integer count() const { return static_cast<Integer>(count_); }
  Integer tiles() const { return tiles_of(count_); }
  // How many rows may be read as queries together.
  Integer queries_at_once() const { return is_sparse() ? kSparseQueries : kQueries; }
  // How many tiles are best looked at one after the other, by one of so many threads: sparse rows come in
  // blocks, and to begin anywhere else has its price.
  Integer tiles_at_once(Integer threads) const {
    const Integer block = std::visit([](const auto& tiles) { return tiles.tiles_in_block(); }, kind_);
    if (!is_sparse()) return block;
    const Integer some = std::max<Integer>(kLeastSparseTiles, tiles() / (kSharesPerThread * threads));
    return 2 * some < block ? some : std::max<Integer>(1, some / block) * block;
  }
  // What the value of one pair takes, in operations.
  Integer work() const {
    return 2 + std::visit([](const auto& tiles) { return tiles.work(); }, kind_) / 16;
  }

 private:
  using Kind = std::variant<BitTiles, ByteTiles, DenseTiles<T>, SparseTiles<float, T>,
                            SparseTiles<double, T>, GivenTiles<float>, GivenTiles<double>>;

  static constexpr Integer kLeastSparseTiles = 16, kSharesPerThread = 4;

  void compute_tiles(const KernelSum& kernel, const Queries& queries, Integer first, Integer last,
                     const std::function<void(int, Integer, const TileSums<T>&)>& use) const {
    alignas(64) TileSums<T> out;
    if (table_) {
      for (Integer tile = first; tile < last; ++tile) {
        table_values(queries, tile, out);
        use(0, tile, out);
      }
      return;
    }
    std::visit(
        [&]<class Tiles>(const Tiles& tiles) {
          const auto& held = std::get<typename Tiles::Queries>(queries.held_);
          const auto shape = [&](int query, Integer tile, const CommonSums<T>& commons) {
            values(kernel, queries, query, tile, commons, out);
            use(query, tile, out);
          };
          if constexpr (std::is_same_v<typename Tiles::Queries, SparseQueries<T>>) {
            tiles.for_each_tile(kernel, held, first, last, shape);
          } else {
            alignas(64) CommonSums<T> commons;
            for (Integer tile = first; tile < last; ++tile) {
              tiles.commons(kernel, held, tile, commons);
              shape(0, tile, commons);
            }
          }
        },
        kind_);
  }

  bool is_sparse() const {
    return std::holds_alternative<SparseTiles<float, T>>(kind_) ||
           std::holds_alternative<SparseTiles<double, T>>(kind_);
  }

  Encoded(Kind kind, std::size_t count) : kind_(std::move(kind)), count_(count) {}

  // The values of a tile, given its common sums.
  void values(const KernelSum& kernel, const Queries& queries, int query, Integer tile,
              const CommonSums<T>& commons, TileSums<T>& out) const {
    constexpr int registers = 4, step = registers * kLanes<T>;
    const bool single = kernel.terms.size() == 1 && kernel.terms[0].factors.size() == 1;
    for (int q = 0; q < kQueries; ++q) {
      if (!single) std::fill(out[q], out[q] + kTile, T{});
      for (const Term& term : kernel.terms) {
        alignas(64) T product[kTile];
        T* target = single ? out[q] : product;
        bool first = true;
        for (const Factor& factor : term.factors) {
          const int common = static_cast<int>(factor.common);
          const bool distances = factor.shape == Shape::exponential;
          const T mine = distances ? queries.own_[common][query + q] : T{};
          const T* theirs = distances ? own_[common].data() + tile * kTile : nullptr;
          for (int lane = 0; lane < kTile; lane += step) {
            Lanes<T> values[registers], own[registers];
            for (int v = 0; v < registers; ++v) {
              const int place = lane + v * kLanes<T>;
              values[v] = load<T>(commons[common][q] + place);
              own[v] = distances ? mine + load<T>(theirs + place) : Lanes<T>{};
            }
            maxmargin::shape<T>(factor, values, own);
            for (int v = 0; v < registers; ++v) {
              T* const to = target + lane + v * kLanes<T>;
              store<T>(to, values[v] * (first ? all<T>(static_cast<T>(term.coefficient)) : load<T>(to)));
            }
          }
          first = false;
        }
        if (!single) {
          for (int lane = 0; lane < kTile; ++lane) out[q][lane] += product[lane];
        }
      }
    }
  }

  void table_values(const Queries& queries, Integer tile, TileSums<T>& out) const {
    alignas(64) TileSums<std::int32_t> counts;
    std::get<BitTiles>(kind_).count(std::get<BitTiles::Queries>(queries.held_), tile, counts);
    const std::int32_t largest = most_ones_ + queries.most_ones_;
    const std::int32_t* theirs = ones_.data() + tile * kTile;
    for (int q = 0; q < kQueries; ++q) {
      table_->look_up(counts[q], queries.ones_[q], theirs, largest, out[q]);
    }
  }

  template <class Rows>
  static Encoded held(const Rows& rows, std::span<const Integer> which, const KernelSum& kernel,
                      const Encoding& encoding, const KeptColumns& columns) {
    if (encoding.holding == Holding::bytes) {
      std::vector<Integer> numbers(which.size());
      std::iota(numbers.begin(), numbers.end(), Integer{0});
      return held(ByteRows(rows, which, encoding.unit), numbers, kernel, encoding, columns);
    }
    // Direct differences cost twice as much: where the columns are few, for the sake of digits.
    const bool distances = kernel.only_distances() && columns.count <= 64;
    const bool bits = encoding.holding == Holding::bits;
    Encoded encoded(make(rows, which, encoding, columns, distances), which.size());
    const bool dense = std::holds_alternative<DenseTiles<T>>(encoded.kind_);
    for (const Common kind : {Common::product, Common::minimum, Common::harmonic, Common::given}) {
      if (!kernel.uses(kind) && !(bits && kind == Common::product)) continue;
      const bool none = kind == Common::given || (distances && dense && kind == Common::product);
      encoded.own_[static_cast<int>(kind)] =
          encoded.padded(none ? std::vector<double>(which.size()) : own_sums(rows, which, columns, kind));
    }
    if (bits) {
      const auto table = std::make_shared<const CountTable<T>>(kernel, columns.count);
      const auto& ones = encoded.own_[static_cast<int>(Common::product)];
      const T most = ones.empty() ? T{} : *std::ranges::max_element(ones);  // of no rows: none
      if (!table->empty()) encoded.set_table(table, static_cast<std::int32_t>(most));
    }
    return encoded;
  }

  // Rows that are bytes already are shared, with all their columns.
  static Encoded held(const ByteRows& rows, std::span<const Integer> which, const KernelSum&,
                      const Encoding&, const KeptColumns&) {
    Encoded encoded(ByteTiles(rows, {which.begin(), which.end()}), which.size());
    std::vector<double> own;
    for (const Integer i : which) own.push_back(rows.squared_norm(i));
    encoded.own_[static_cast<int>(Common::product)] = encoded.padded(own);
    return encoded;
  }

  template <class Rows>
  static Kind make(const Rows& rows, std::span<const Integer> which, const Encoding& encoding,
                   const KeptColumns& columns, bool distances) {
    std::vector<Integer> numbers(which.begin(), which.end());
    if (encoding.holding == Holding::bits) return BitTiles(rows, which, columns);
    if constexpr (kDense<Rows>) {
      if (encoding.holding == Holding::given) return GivenTiles(rows, std::move(numbers));
    } else {
      if (encoding.holding == Holding::given) throw std::invalid_argument("a kernel matrix must be dense");
      if (encoding.holding == Holding::sparse)
        return SparseTiles<std::decay_t<decltype(*rows.values)>, T>(rows, std::move(numbers));
    }
    return DenseTiles<T>(rows, which, columns, distances);
  }

  // Looks values up from now on, where bits have a table of them; no row has more than `most` ones.
  void set_table(std::shared_ptr<const CountTable<T>> table, std::int32_t most) {
    const std::vector<T>& own = own_[static_cast<int>(Common::product)];
    ones_.assign(own.begin(), own.end());
    most_ones_ = most;
    table_ = std::move(table);
  }

  // Numbers of all rows, up to the end of the last tile.
  template <class Number>
  std::vector<T> padded(const std::vector<Number>& numbers) const {
    std::vector<T> all(numbers.begin(), numbers.end());
    all.resize(static_cast<std::size_t>(tiles() * kTile));
    return all;
  }

  Kind kind_;
  std::size_t count_;
  std::array<std::vector<T>, kCommons> own_;  // per common sum in use, padded to whole tiles
  // Bits may have a table of all values; then it is also known how many ones a row has, and the most.
  std::shared_ptr<const CountTable<T>> table_;
  std::vector<std::int32_t> ones_;
  std::int32_t most_ones_ = 0;
};

// Calls put(a, b, k(row a, column b)) for all pairs. `once`, for columns that are the rows themselves: only
// one of k(x, z) and k(z, x) is computed beyond the tile on the diagonal, and put in both places. Some
// pairs are left out where `ended`, which the calling thread is asked now and then with the work done, is
// true.
template <class T, class Put, class Ended>
void for_each_pair(const KernelSum& kernel, const Encoded<T>& rows, const Encoded<T>& columns, bool once,
                   const Budget& budget, const Put& put, const Ended& ended) {
  const Integer n = rows.count(), batch = rows.queries_at_once(), items = (n + batch - 1) / batch;
  const auto caller = std::this_thread::get_id();
  std::atomic<bool> over{false};
  share_out(budget.threads_for(n * columns.count() * rows.work()), items, [&](Integer item) {
    if (std::this_thread::get_id() == caller && ended(batch * columns.count() * rows.work())) over = true;
    if (over) return;
    // Of a triangle the longest rows come first, so that threads end together; all begin at the first tile,
    // since it takes sparse rows long to find where to begin anywhere else.
    const Integer begin = (once ? items - 1 - item : item) * batch;
    const Integer size = std::min<Integer>(batch, n - begin);
    std::vector<Integer> numbers(static_cast<std::size_t>(size));
    std::iota(numbers.begin(), numbers.end(), begin);
    typename Encoded<T>::Queries queries;
    queries.read(rows, numbers);
    const Integer diagonal = begin / kTile;
    columns.for_each_tile(
        kernel, queries, 0, once ? diagonal + 1 : columns.tiles(),
        [&](int query, Integer tile, const TileSums<T>& values) {
          const Integer first = tile * kTile, lanes = std::min<Integer>(kTile, columns.count() - first);
          const Integer row = begin + query, some = std::min<Integer>(kQueries, size - query);
          for (Integer q = 0; q < some; ++q) {
            for (Integer lane = 0; lane < lanes; ++lane) put(row + q, first + lane, values[q][lane]);
          }
          if (!once || tile == diagonal) return;
          for (Integer lane = 0; lane < lanes; ++lane) {
            for (Integer q = 0; q < some; ++q) put(first + lane, row + q, values[q][lane]);
          }
        });
  });
}

// Every column, where it is in the rows.
inline KeptColumns all_columns(const KernelRows& rows) {
  KeptColumns all{{}, columns_of(rows)};
  all.places.resize(static_cast<std::size_t>(all.count));
  std::iota(all.places.begin(), all.places.end(), Integer{0});
  return all;
}

// Those that differ and, where more than distances count, all that are not zero.
inline KeptColumns columns_that_count(const KernelRows& rows, std::span<const Integer> which,
                                      bool only_distances) {
  KeptColumns kept = all_columns(rows);
  std::visit(
      [&]<class Rows>(const Rows& typed) {
        if constexpr (!std::is_same_v<Rows, ByteRows>) {  // bytes are shared, with all their columns
          std::vector<double> low(kept.places.size()), high(kept.places.size());
          column_ranges(typed, which, low.data(), high.data(), Budget(0.0, 1));
          kept.count = 0;
          for (std::size_t column = 0; column < low.size(); ++column) {
            const bool counts = low[column] != high[column] || (!only_distances && high[column] != 0);
            kept.places[column] = counts ? kept.count++ : -1;
          }
        }
      },
      rows);
  return kept;
}

}  // namespace maxmargin
