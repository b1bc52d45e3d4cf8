// SPDX-License-Identifier: BSD-3-Clause
// Values k(x_i, x_j) for many pairs of rows, in tiles, never more of them at once than are asked for.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <variant>

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#include "encodings.hpp"
#include "passes.hpp"

namespace maxmargin {

enum class Holding { bits, bytes, dense, sparse, given };

// How rows can be held; see `probe`.
struct Encoding {
  Holding holding;
  double unit = 1;  // of bytes
};

// What one look at the values tells.
struct Probe {
  bool binary = true;     // all values are 0 or 1
  bool negative = false;  // some value is below 0
  double largest = 0;     // and the smallest above 0:
  double smallest = std::numeric_limits<double>::infinity();
  Integer nonzeros = 0;
};

template <class Rows>
void probe(const Rows& rows, Probe& found) {
  for (Integer i = 0; i < rows.count; ++i) {
    for_each_value(rows[i], [&](Integer, auto value) {
      if (value == 0) return;
      const double v = static_cast<double>(value);
      ++found.nonzeros;
      found.binary = found.binary && v == 1;
      found.negative = found.negative || v < 0;
      found.largest = std::max(found.largest, v);
      found.smallest = std::min(found.smallest, v);
    });
  }
}

// Whether all values are multiples 0 .. 255 of `unit`, to the rounding of their type.
template <class Rows>
bool multiples_of(const Rows& rows, double unit) {
  for (Integer i = 0; i < rows.count; ++i) {
    bool fits = true;
    for_each_value(rows[i], [&](Integer, auto value) {
      constexpr double rounding = 2.0 * std::numeric_limits<decltype(value)>::epsilon();
      const double multiple = std::nearbyint(static_cast<double>(value) / unit);
      const double off = std::abs(static_cast<double>(value) - multiple * unit);
      fits = fits && multiple >= 0 && multiple <= 255 && off <= rounding * static_cast<double>(value);
    });
    if (!fits) return false;
  }
  return true;
}

// The unit of data whose values are bytes, or none.
template <class Rows>
std::optional<double> byte_unit(std::span<const Rows* const> all, const Probe& found) {
  if (found.negative || found.largest <= 0) return std::nullopt;
  for (const double unit : {1.0, found.largest / 255, found.smallest}) {
    if (found.largest <= 255.5 * unit &&
        std::all_of(all.begin(), all.end(), [&](const Rows* rows) { return multiples_of(*rows, unit); })) {
      return unit;
    }
  }
  return std::nullopt;
}

// The cheapest way to hold these rows for a kernel, if all of them are to be held alike.
template <class Rows>
Encoding encoding_for(std::initializer_list<const Rows*> all, const KernelSum& kernel) {
  if (kernel.uses(Common::given)) return {Holding::given};
  Probe found;
  Integer count = 1;
  for (const Rows* rows : all) {
    probe(*rows, found);
    count += rows->count;
  }
  const Rows& rows = **all.begin();
  const double width = static_cast<double>(found.nonzeros) / static_cast<double>(count);
  const double columns = static_cast<double>(rows.columns);
  // A bit costs a 32nd of an operation on 16 rows, a value of a sparse row one on 8 queries.
  if (found.binary && columns <= 32 * (8 + width)) return {Holding::bits};
  if (kernel.only_products() && rows.columns >= 32 && rows.columns <= ByteTiles::kMostColumns &&
      columns <= 32 * width) {
    if (const auto unit = byte_unit(std::span(all.begin(), all.size()), found))
      return {Holding::bytes, *unit};
  }
  return {columns <= std::max(64.0, 6 * width) ? Holding::dense : Holding::sparse};
}

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
  using Kind =
      std::variant<BitTiles, ByteTiles, DenseTiles<float>, DenseTiles<double>,
                   SparseTiles<SparseRows<float, std::int32_t>>,
                   SparseTiles<SparseRows<float, std::int64_t>>,
                   SparseTiles<SparseRows<double, std::int32_t>>,
                   SparseTiles<SparseRows<double, std::int64_t>>, GivenTiles<float>, GivenTiles<double>>;
  // T is the type in which values of the kernel will be computed.
  template <class T, class Rows>
  static Encoded of(const Rows& rows, std::span<const Integer> which, const KernelSum& kernel,
                    const Encoding& encoding, const Places& places, Integer columns) {
    // Direct differences cost twice as much: where the columns are few, for the sake of digits.
    const bool distances = kernel.only_distances() && columns <= 64;
    Encoded encoded(make<T>(rows, which, encoding, places, columns, distances),
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
      const bool bytes = encoding.holding == Holding::bytes;
      for (std::size_t i = 0; i < which.size(); ++i) {
        for_each_value(rows[which[i]], [&](Integer column, auto value) {
          if (places[column] < 0) return;
          double x = static_cast<double>(value);
          if (bytes) x = std::nearbyint(x / encoding.unit) * encoding.unit;
          own[i] += own_share(kind, x);
        });
      }
      encoded.single_own_[common].assign(own.begin(), own.end());
    }
    return encoded;
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
                 DenseTiles<double>::Queries, SparseTiles<SparseRows<float, std::int32_t>>::Queries,
                 SparseTiles<SparseRows<float, std::int64_t>>::Queries,
                 SparseTiles<SparseRows<double, std::int32_t>>::Queries,
                 SparseTiles<SparseRows<double, std::int64_t>>::Queries, GivenTiles<float>::Queries,
                 GivenTiles<double>::Queries>
        held_;
    double own_[kCommons][kQueries] = {};
    std::int32_t ones_[kQueries] = {};
    std::int32_t most_ones_ = 0;
  };

  // out[q][lane] = k(query q, row lane of the tile)
  template <class T>
  void values(const KernelSum& kernel, const Queries& queries, Integer tile, TileSums<T>& out) const {
    if (tables_) return table_values<T>(queries, tile, out);
    alignas(64) TileSums<T> commons[kCommons];
    alignas(64) T own[kTile];
    std::visit(
        [&](const auto& tiles) {
          using Tiles = std::decay_t<decltype(tiles)>;
          const auto& held = std::get<typename Tiles::Queries>(queries.held_);
          if constexpr (fits<T, Tiles>) {
            if (kernel.uses(Common::product))
              tiles.template common<Common::product>(held, tile, commons[0]);
            if (kernel.uses(Common::minimum))
              tiles.template common<Common::minimum>(held, tile, commons[1]);
            if (kernel.uses(Common::harmonic))
              tiles.template common<Common::harmonic>(held, tile, commons[2]);
            if constexpr (requires { tiles.is_given(); }) {
              if (kernel.uses(Common::given)) tiles.template common<Common::given>(held, tile, commons[3]);
            }
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

  template <class T, class Rows>
  static Kind make(const Rows& rows, std::span<const Integer> which, const Encoding& encoding,
                   const Places& places, Integer columns, bool distances) {
    if (encoding.holding == Holding::bits) return BitTiles(rows, which, places, columns);
    if (encoding.holding == Holding::bytes) return ByteTiles(rows, which, places, columns, encoding.unit);
    if constexpr (requires { rows.offsets; }) {
      if (encoding.holding == Holding::given) throw std::invalid_argument("a kernel matrix must be dense");
      if (encoding.holding == Holding::sparse) return SparseTiles<Rows>(rows, which);
    } else if (encoding.holding == Holding::given) {
      return GivenTiles(rows, which);
    }
    return DenseTiles<T>(rows, which, places, columns, distances);
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
template <class Rows>
std::pair<Places, Integer> places_of(const Rows& rows, std::span<const Integer> which,
                                     bool only_distances) {
  const std::size_t d = static_cast<std::size_t>(rows.columns);
  std::vector<double> low(d, std::numeric_limits<double>::infinity()), high(d, -low[0]);
  std::vector<Integer> seen(d, 0);
  for (const Integer i : which) {
    for_each_value(rows[i], [&](Integer column, auto value) {
      const double v = static_cast<double>(value);
      low[column] = std::min(low[column], v);
      high[column] = std::max(high[column], v);
      ++seen[column];
    });
  }
  Places places(d, -1);
  Integer kept = 0;
  for (std::size_t column = 0; column < d; ++column) {
    if (seen[column] < static_cast<Integer>(which.size())) {
      low[column] = std::min(low[column], 0.0);
      high[column] = std::max(high[column], 0.0);
    }
    const bool same = low[column] == high[column];
    if (!same || (!only_distances && high[column] != 0)) places[column] = kept++;
  }
  return {std::move(places), kept};
}

inline Places all_places(Integer columns) {
  Places places(static_cast<std::size_t>(columns));
  for (std::size_t k = 0; k < places.size(); ++k) places[k] = static_cast<Integer>(k);
  return places;
}

// Calls work(thread, item) for 0 .. count - 1 on several threads; whoever is free takes the next.
template <class Work>
void share_out(Integer threads, Integer count, const Work& work) {
  std::atomic<Integer> next{0};
  in_parallel(std::max<Integer>(1, std::min(threads, count)), count, [&](Integer thread, Integer, Integer) {
    for (Integer item; (item = next.fetch_add(1, std::memory_order_relaxed)) < count;) work(thread, item);
  });
}

// out[segment][r][target] = sum over the rows s of a segment of coefficients[r][s] k(s, target)
//
// Segments are consecutive shares of `support`; the certificate has one, one-vs-one has one per class. All
// sums are in double; the values of the kernel are computed in T.
template <class T, class Rows>
void expansions(const KernelSum& kernel, const Encoding& encoding, const Rows& support,
                std::span<const Integer> support_which, const double* coefficients,
                Integer coefficient_rows, std::span<const Integer> segments, const Rows& targets,
                std::span<const Integer> target_which, double* out, const Budget& budget) {
  constexpr Integer chunk = 32 * kTile, target_chunk = 4 * kTile;
  const Integer n = static_cast<Integer>(target_which.size());
  const Integer s = static_cast<Integer>(support_which.size());
  const Integer parts = static_cast<Integer>(segments.size()) - 1;
  std::fill(out, out + n * parts * coefficient_rows, 0.0);
  const Places places = all_places(support.columns);
  const Integer columns = support.columns;
  std::vector<Integer> numbers(static_cast<std::size_t>(chunk));
  for (Integer k = 0; k < chunk; ++k) numbers[k] = k;
  for (Integer begin = 0; begin < s; begin += chunk) {
    const Integer count = std::min(chunk, s - begin);
    const auto held =
        Encoded::of<T>(support, support_which.subspan(begin, count), kernel, encoding, places, columns);
    std::vector<Encoded::Queries> batches(static_cast<std::size_t>((count + kQueries - 1) / kQueries));
    for (Integer q = 0; q < count; q += kQueries) {
      const Integer size = std::min<Integer>(kQueries, count - q);
      batches[q / kQueries].template read<T>(held, std::span(numbers).subspan(q, size));
    }
    const Integer items = (n + target_chunk - 1) / target_chunk;
    const Integer threads = budget.threads_for(n * count * held.work());
    share_out(threads, items, [&](Integer, Integer item) {
      const Integer first = item * target_chunk, last = std::min(first + target_chunk, n);
      const auto these = Encoded::of<T>(targets, target_which.subspan(first, last - first), kernel,
                                        encoding, places, columns);
      alignas(64) TileSums<T> values;
      for (Integer tile = 0; tile < these.tiles(); ++tile) {
        const Integer lanes = std::min<Integer>(kTile, last - first - tile * kTile);
        for (std::size_t batch = 0; batch < batches.size(); ++batch) {
          these.template values<T>(kernel, batches[batch], tile, values);
          for (int q = 0; q < kQueries; ++q) {
            const Integer place = begin + static_cast<Integer>(batch) * kQueries + q;
            if (place >= begin + count) break;
            const Integer part =
                std::upper_bound(segments.begin(), segments.end(), place) - segments.begin() - 1;
            for (Integer r = 0; r < coefficient_rows; ++r) {
              const double coefficient = coefficients[r * s + place];
              if (coefficient == 0) continue;
              double* target = out + (part * coefficient_rows + r) * n + first + tile * kTile;
              for (Integer lane = 0; lane < lanes; ++lane) {
                target[lane] += coefficient * static_cast<double>(values[q][lane]);
              }
            }
          }
        }
      }
    });
  }
}

// out_i = k(x_i, x_i)
template <class Rows>
void kernel_diagonal(const KernelSum& kernel, const Rows& rows, std::span<double> out) {
  const bool given = kernel.uses(Common::given);
  for (Integer i = 0; i < rows.count; ++i) {
    double own[kCommons] = {};
    for_each_value(rows[i], [&](Integer column, auto value) {
      const double x = static_cast<double>(value);
      if (given && column == i) own[3] = x;
      for (int common = 0; !given && common < 3; ++common)
        own[common] += own_share(static_cast<Common>(common), x);
    });
    out[i] = 0;
    for (const Term& term : kernel.terms) {
      double product = term.coefficient;
      for (const Factor& factor : term.factors) {
        const double inner = factor.gamma * own[static_cast<int>(factor.common)] + factor.shift;
        if (factor.shape == Shape::tanh) product *= std::tanh(inner);
        if (factor.shape == Shape::power) product *= std::pow(inner, factor.degree);
      }
      out[i] += product;
    }
  }
}

// out[a][b] = k(row which_a of the first, row which_b of the second), in T
template <class T, class Rows>
void kernel_block(const KernelSum& kernel, const Encoding& encoding, const Rows& first,
                  std::span<const Integer> first_which, const Rows& second,
                  std::span<const Integer> second_which, T* out, const Budget& budget) {
  const Integer n = static_cast<Integer>(first_which.size()), m = static_cast<Integer>(second_which.size());
  const auto places = all_places(first.columns);
  const auto columns = Encoded::of<T>(second, second_which, kernel, encoding, places, first.columns);
  const auto rows = Encoded::of<T>(first, first_which, kernel, encoding, places, first.columns);
  share_out(budget.threads_for(n * m * rows.work()), (n + kQueries - 1) / kQueries,
            [&](Integer, Integer item) {
              Integer numbers[kQueries];
              const Integer begin = item * kQueries, size = std::min<Integer>(kQueries, n - begin);
              for (Integer q = 0; q < size; ++q) numbers[q] = begin + q;
              Encoded::Queries queries;
              queries.template read<T>(rows, std::span(numbers, static_cast<std::size_t>(size)));
              alignas(64) TileSums<T> values;
              for (Integer tile = 0; tile < columns.tiles(); ++tile) {
                columns.template values<T>(kernel, queries, tile, values);
                const Integer lanes = std::min<Integer>(kTile, m - tile * kTile);
                for (Integer q = 0; q < size; ++q) {
                  std::copy(values[q], values[q] + lanes, out + (begin + q) * m + tile * kTile);
                }
              }
            });
}

// The matrix of all pairs of n rows, as blocks on its diagonal: what lies outside of them is left out.
//
// Rows are numbered in the order of the blocks. Rows that were computed can be kept for the next time.
template <class T>
class KernelMatrix {
 public:
  // `order` has the rows block by block; block k is order[begins[k]] .. order[begins[k + 1] - 1].
  template <class Rows>
  KernelMatrix(const Rows& rows, KernelSum kernel, const Encoding& encoding, std::span<const Integer> order,
               std::span<const Integer> begins, Integer cache_bytes)
      : kernel_(std::move(kernel)),
        encoding_(encoding),
        count_(static_cast<Integer>(order.size())),
        cache_bytes_(cache_bytes) {
    block_of_.resize(order.size());
    cached_.resize(order.size());
    last_use_.assign(order.size(), 0);
    for (std::size_t k = 0; k + 1 < begins.size(); ++k) {
      const auto which = order.subspan(begins[k], begins[k + 1] - begins[k]);
      const auto [places, columns] = places_of(rows, which, kernel_.only_distances());
      blocks_.push_back({begins[k], Encoded::of<T>(rows, which, kernel_, encoding_, places, columns)});
      std::fill(block_of_.begin() + begins[k], block_of_.begin() + begins[k + 1], static_cast<Integer>(k));
    }
    // Reading a row again is no faster than computing it where that takes a few operations per value.
    for (const Block& block : blocks_) caching_ = caching_ || block.rows.work() > 2;
    caching_ = caching_ || (!kernel_.terms.empty() && encoding_.holding != Holding::bits);
  }

  // The matrix of some of the rows, in ascending order; what was kept of their rows moves there.
  KernelMatrix subset(std::span<const Integer> which) {
    KernelMatrix part(kernel_, encoding_, static_cast<Integer>(which.size()), cache_bytes_, caching_);
    for (std::size_t a = 0; a < which.size();) {
      const Integer number = block_of_[which[a]];
      const std::size_t begin = a;
      std::vector<Integer> members;
      for (; a < which.size() && block_of_[which[a]] == number; ++a) {
        members.push_back(which[a] - blocks_[number].begin);
        part.block_of_[a] = static_cast<Integer>(part.blocks_.size());
      }
      part.blocks_.push_back({static_cast<Integer>(begin), blocks_[number].rows.subset(members)});
      for (std::size_t k = begin; k < a; ++k) {
        const std::vector<T>& row = cached_[which[k]];
        if (row.empty()) continue;
        T* kept = part.keep(static_cast<Integer>(k), static_cast<Integer>(members.size()));
        for (std::size_t m = 0; kept != nullptr && m < members.size(); ++m) kept[m] = row[members[m]];
      }
    }
    forget();
    return part;
  }

  Integer count() const { return count_; }
  // Whether every row that is computed is still there when it is needed again.
  bool keeps_all() const { return caching_ && lost_ == 0; }
  Holding holding() const { return encoding_.holding; }
  Integer cached_bytes() const { return used_; }
  Integer computed() const { return computed_; }

  // f_j += sum_q changes_q K(which_q, j) for all j; `which` must be in ascending order.
  void add(std::span<const Integer> which, std::span<const double> changes, double* f,
           const Budget& budget) {
    if (caching_ && lost_ > kPatience && found_ < computed_ / 4) {
      forget();  // rows are gone before they are asked for again: to keep them is only work
      caching_ = false;
    }
    ++clock_;
    std::vector<Share> shares;
    Integer work = 0;
    for (std::size_t q = 0; q < which.size();) {
      const Integer number = block_of_[which[q]];
      const Block& block = blocks_[number];
      Share share{&block, {}, {}, {}, {}};
      std::vector<Integer> fresh;
      for (; q < which.size() && block_of_[which[q]] == number; ++q) {
        const Integer row = which[q];
        if (!cached_[row].empty()) {
          share.known.push_back({cached_[row].data(), changes[q]});
          last_use_[row] = clock_;
          ++found_;
          continue;
        }
        fresh.push_back(row - block.begin);
        share.changes.push_back(changes[q]);
        share.kept.push_back(keep(row, block.rows.count()));
      }
      for (std::size_t first = 0; first < fresh.size(); first += kQueries) {
        const std::size_t size = std::min<std::size_t>(kQueries, fresh.size() - first);
        share.batches.emplace_back().template read<T>(block.rows, std::span(fresh).subspan(first, size));
      }
      computed_ += static_cast<Integer>(fresh.size());
      work += block.rows.count() * (static_cast<Integer>(fresh.size()) * block.rows.work() +
                                    static_cast<Integer>(share.known.size()));
      shares.push_back(std::move(share));
    }
    std::vector<std::pair<const Share*, Integer>> items;
    for (const Share& share : shares) {
      for (Integer tile = 0; tile < share.block->rows.tiles(); ++tile) items.emplace_back(&share, tile);
    }
    share_out(budget.threads_for(work), static_cast<Integer>(items.size()), [&](Integer, Integer item) {
      const auto& [share, tile] = items[item];
      add_tile(*share, tile, f + share->block->begin);
    });
  }

  // out[a][b] = K(which_a, which_b), in rows of `stride`
  void square(std::span<const Integer> which, T* out, Integer stride, const Budget& budget) const {
    std::vector<std::vector<Integer>> members(blocks_.size()), places(blocks_.size());
    for (std::size_t a = 0; a < which.size(); ++a) {
      const Integer number = block_of_[which[a]];
      members[number].push_back(which[a] - blocks_[number].begin);
      places[number].push_back(static_cast<Integer>(a));
    }
    std::fill(out, out + static_cast<Integer>(which.size()) * stride, T{});
    for (std::size_t k = 0; k < blocks_.size(); ++k) {
      const Integer size = static_cast<Integer>(members[k].size());
      if (size == 0) continue;
      const Encoded part = blocks_[k].rows.subset(members[k]);
      std::vector<Integer> numbers(static_cast<std::size_t>(size));
      for (Integer a = 0; a < size; ++a) numbers[a] = a;
      const Integer items = (size + kQueries - 1) / kQueries;
      share_out(budget.threads_for(size * size * part.work()), items, [&](Integer, Integer item) {
        Encoded::Queries queries;
        const Integer first = item * kQueries, last = std::min(first + kQueries, size);
        queries.template read<T>(part, std::span(numbers).subspan(first, last - first));
        alignas(64) TileSums<T> values;
        for (Integer tile = 0; tile < part.tiles(); ++tile) {
          part.template values<T>(kernel_, queries, tile, values);
          const Integer lanes = std::min<Integer>(kTile, size - tile * kTile);
          for (Integer q = first; q < last; ++q) {
            T* row = out + places[k][q] * stride;
            for (Integer lane = 0; lane < lanes; ++lane)
              row[places[k][tile * kTile + lane]] = values[q - first][lane];
          }
        }
      });
    }
  }

  // Row i, without what lies outside of its block: K(i, j) for j = first(i) .. first(i) + row.size() - 1.
  std::span<const T> row(Integer i, const Budget& budget) {
    ++clock_;
    const Block& block = blocks_[block_of_[i]];
    last_use_[i] = clock_;
    if (!cached_[i].empty()) return cached_[i];
    T* kept = keep(i, block.rows.count());
    if (kept == nullptr) {
      scratch_[next_scratch_ ^= 1].resize(static_cast<std::size_t>(block.rows.count()));
      kept = scratch_[next_scratch_].data();
    }
    ++computed_;
    const Integer local = i - block.begin;
    Encoded::Queries queries;
    queries.template read<T>(block.rows, std::span(&local, 1));
    share_out(budget.threads_for(block.rows.count() * block.rows.work() * kQueries), block.rows.tiles(),
              [&](Integer, Integer tile) {
                alignas(64) TileSums<T> values;
                block.rows.template values<T>(kernel_, queries, tile, values);
                const Integer lanes = std::min<Integer>(kTile, block.rows.count() - tile * kTile);
                std::copy(values[0], values[0] + lanes, kept + tile * kTile);
              });
    return {kept, static_cast<std::size_t>(block.rows.count())};
  }
  Integer first(Integer i) const { return blocks_[block_of_[i]].begin; }

 private:
  static constexpr Integer kPatience = 10'000;  // rows lost before the memory for them is given up

  struct Block {
    Integer begin;
    Encoded rows;
  };

  KernelMatrix(const KernelSum& kernel, const Encoding& encoding, Integer count, Integer cache_bytes,
               bool caching)
      : kernel_(kernel), encoding_(encoding), count_(count), cache_bytes_(cache_bytes), caching_(caching) {
    block_of_.resize(static_cast<std::size_t>(count));
    cached_.resize(static_cast<std::size_t>(count));
    last_use_.assign(static_cast<std::size_t>(count), 0);
  }

  // What one call of `add` does in one block.
  struct Share {
    const Block* block;
    std::vector<std::pair<const T*, double>> known;
    std::vector<Encoded::Queries> batches;
    std::vector<double> changes;  // of the rows in the batches, one after the other
    std::vector<T*> kept;         // where their values go, or null
  };

  void add_tile(const Share& share, Integer tile, double* f) const {
    const Integer first = tile * kTile;
    const Integer lanes = std::min<Integer>(kTile, share.block->rows.count() - first);
    double sums[kTile] = {};
    for (const auto& [row, change] : share.known) {
      for (Integer lane = 0; lane < lanes; ++lane)
        sums[lane] += change * static_cast<double>(row[first + lane]);
    }
    alignas(64) TileSums<T> values;
    for (std::size_t batch = 0; batch < share.batches.size(); ++batch) {
      share.block->rows.template values<T>(kernel_, share.batches[batch], tile, values);
      const std::size_t begin = batch * kQueries;
      const std::size_t size = std::min<std::size_t>(kQueries, share.changes.size() - begin);
      for (std::size_t q = 0; q < size; ++q) {
        const double change = share.changes[begin + q];
        for (int lane = 0; lane < kTile; ++lane)
          sums[lane] += change * static_cast<double>(values[q][lane]);
        if (share.kept[begin + q] != nullptr) {
          std::copy(values[q], values[q] + lanes, share.kept[begin + q] + first);
        }
      }
    }
    for (Integer lane = 0; lane < lanes; ++lane) f[first + lane] += sums[lane];
  }

  // Memory for a row that is about to be computed, taken from rows not used for long; null if there is
  // none.
  T* keep(Integer row, Integer length) {
    const Integer bytes = length * static_cast<Integer>(sizeof(T));
    if (!caching_) return nullptr;
    while (used_ + bytes > cache_bytes_) {
      ++lost_;
      if (!evict()) return nullptr;
    }
    used_ += bytes;
    cached_[row].resize(static_cast<std::size_t>(length));
    last_use_[row] = clock_;
    kept_.push_back(row);
    return cached_[row].data();
  }
  void forget() {
    for (const Integer row : kept_) std::vector<T>().swap(cached_[row]);
    kept_.clear();
    used_ = 0;
  }
  bool evict() {
    // The oldest of a few: as good as the oldest of all, and found at once.
    std::size_t oldest = kept_.size();
    for (int trial = 0; trial < 8 && !kept_.empty(); ++trial) {
      const std::size_t place = (hand_ += 7919) % kept_.size();
      // The row asked for before this one may still be in use.
      if (last_use_[kept_[place]] >= clock_ - 1) continue;
      if (oldest == kept_.size() || last_use_[kept_[place]] < last_use_[kept_[oldest]]) oldest = place;
    }
    if (oldest == kept_.size()) return false;
    std::vector<T>& row = cached_[kept_[oldest]];
    used_ -= static_cast<Integer>(row.size() * sizeof(T));
    std::vector<T>().swap(row);
    kept_[oldest] = kept_.back();
    kept_.pop_back();
    return true;
  }

  KernelSum kernel_;
  Encoding encoding_{};
  Integer count_;
  std::vector<Block> blocks_;
  std::vector<Integer> block_of_;
  std::vector<std::vector<T>> cached_;
  std::vector<Integer> last_use_;
  std::vector<Integer> kept_;
  std::array<std::vector<T>, 2> scratch_;
  int next_scratch_ = 0;
  Integer cache_bytes_, used_ = 0, clock_ = 0, computed_ = 0, found_ = 0, lost_ = 0;
  std::size_t hand_ = 0;
  bool caching_ = false;
};

}  // namespace maxmargin
