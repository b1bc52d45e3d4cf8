// SPDX-License-Identifier: BSD-3-Clause
#include "kernel/kernel_rows.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

namespace maxmargin {
namespace {

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
std::optional<double> byte_unit(std::span<const StoredRows* const> all, const Probe& found) {
  if (found.negative || found.largest <= 0) return std::nullopt;
  for (const double unit : {1.0, found.largest / 255, found.smallest}) {
    const auto fits = [unit](const StoredRows* any) {
      return std::visit([&](const auto& rows) { return multiples_of(rows, unit); }, *any);
    };
    if (found.largest <= 255.5 * unit && std::all_of(all.begin(), all.end(), fits)) return unit;
  }
  return std::nullopt;
}

}  // namespace

Encoding encoding_for(std::initializer_list<const StoredRows*> all, const KernelSum& kernel) {
  if (kernel.uses(Common::given)) return {Holding::given};
  Probe found;
  Integer count = 1, width_of_all = 0;
  for (const StoredRows* any : all) {
    std::visit(
        [&](const auto& rows) {
          probe(rows, found);
          count += rows.count;
          width_of_all = rows.columns;
        },
        *any);
  }
  const double width = static_cast<double>(found.nonzeros) / static_cast<double>(count);
  const double columns = static_cast<double>(width_of_all);
  // A bit costs a 32nd of an operation on 16 rows, a value of a sparse row one on 8 queries.
  if (found.binary && columns <= 32 * (8 + width)) return {Holding::bits};
  if (kernel.only_products() && columns >= 32 && columns <= ByteRows::kMostColumns &&
      columns <= 32 * width) {
    if (const auto unit = byte_unit(std::span(all.begin(), all.size()), found))
      return {Holding::bytes, *unit};
  }
  return {columns <= std::max(64.0, 6 * width) ? Holding::dense : Holding::sparse};
}

double largest_of_whole_numbers(const StoredRows& rows) {
  return std::visit(
      [](const auto& kind) {
        double largest = 0;
        for (Integer i = 0; i < kind.count && largest < std::numeric_limits<double>::infinity(); ++i) {
          double squares = 0;
          for_each_value(kind[i], [&](Integer, auto value) {
            const double v = static_cast<double>(value);
            squares += v == std::nearbyint(v) ? v * v : std::numeric_limits<double>::infinity();
          });
          largest = std::max(largest, squares);
        }
        return largest;
      },
      rows);
}

ByteRows byte_rows(const StoredRows& rows, double unit) {
  return std::visit(
      [&](const auto& kind) {
        std::vector<Integer> all(static_cast<std::size_t>(kind.count));
        std::iota(all.begin(), all.end(), Integer{0});
        return ByteRows(kind, all, unit);
      },
      rows);
}

}  // namespace maxmargin
