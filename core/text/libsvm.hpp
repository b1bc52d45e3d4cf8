// SPDX-License-Identifier: BSD-3-Clause
// LIBSVM text: a block of whole lines into rows.
//
//     line  =  [ label [ qid:N ] { index:value } ] [ # comment ]
//
// Indices increase strictly within a line. A line that breaks a rule is reported by its place in the text
// and is no exception; nothing is kept of it.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>

#include "data/rows.hpp"
#include "text/decimal.hpp"

namespace maxmargin {

// What is wrong with a line, by its name in src/maxmargin/files/data/libsvm.py; "none" where nothing is.
using Fault = std::string_view;

struct TextOptions {
  Integer first_index;   // the index of the first column: 1, or 0
  Integer columns;       // columns there may be
  bool drop_extra;       // values in later columns are left out instead of being a fault
  bool labels_optional;  // a line may begin with its first value; its label is then NaN
  bool skip_faulty;      // go on after a faulty line
};

// A piece of the text; lines count from 0.
struct Place {
  Integer line = 0;
  Integer line_begin = 0;
  Integer begin = 0;
  Integer end = 0;
};

struct ParsedRows {
  Integer rows = 0;
  Integer stored = 0;
  Integer lines = 0;
  Integer faulty = 0;      // lines
  Integer dropped = 0;     // values
  Integer with_query = 0;  // rows
  Integer largest = -1;    // column, from 0
  Place largest_place;
  bool too_narrow = false;  // an index does not fit the type of the array, and parsing ended there
  Fault fault = "none";     // the first one
  Place fault_place;
};

// The arrays of the rows of a text: `values` and `indices` have room for every colon, the others for every
// line. From the heap, and not cleared: a reader frees a block before it is two further, and the next one
// then gets memory that the system need not clear again.
template <class Value, class Index>
struct RowArrays {
  explicit RowArrays(std::string_view text) {
    std::size_t all_lines = 0, all_colons = 0;
    // Short runs, so that the sums fit in bytes and many are added at once.
    constexpr std::size_t kRun = 255;
    for (std::size_t begin = 0; begin < text.size(); begin += kRun) {
      const std::size_t end = std::min(begin + kRun, text.size());
      std::uint8_t lines = 0, colons = 0;
      for (std::size_t k = begin; k < end; ++k) {
        lines = static_cast<std::uint8_t>(lines + (text[k] == '\n'));
        colons = static_cast<std::uint8_t>(colons + (text[k] == ':'));
      }
      all_lines += lines;
      all_colons += colons;
    }
    values = std::make_unique_for_overwrite<Value[]>(all_colons);
    indices = std::make_unique_for_overwrite<Index[]>(all_colons);
    ends = std::make_unique_for_overwrite<std::int32_t[]>(all_lines);
    labels = std::make_unique_for_overwrite<double[]>(all_lines);
    queries = std::make_unique_for_overwrite<std::int64_t[]>(all_lines);
  }

  std::unique_ptr<Value[]> values;
  std::unique_ptr<Index[]> indices;
  std::unique_ptr<std::int32_t[]> ends;
  std::unique_ptr<double[]> labels;
  std::unique_ptr<std::int64_t[]> queries;  // -1 for a line that has none
};

// ---- tokens: every scan ends at the newline that ends the text at the latest -------------------

inline bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r' && c != '\n'); }
inline bool ends_token(char c) { return c == ' ' || c == '\n' || c == '#' || is_blank(c); }

inline const char* token_end(const char* p) {
  while (!ends_token(*p)) ++p;
  return p;
}

// ---- what is wrong with a token: off the fast path --------------------------------------------

inline bool says_not_finite(std::string_view text) {
  if (!text.empty() && (text[0] == '+' || text[0] == '-')) text.remove_prefix(1);
  std::string lower(text.substr(0, 9));
  for (char& c : lower) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
  return lower == "nan" || lower == "inf" || lower == "infinity";
}

inline Fault diagnose_label(std::string_view token) {
  if (token.find('\0') != token.npos) return "nul_byte";
  if (token.find(':') != token.npos) return "label_missing";
  if (token.find(',') != token.npos) return "label_not_alone";
  return says_not_finite(token) ? "label_not_finite" : "label_not_a_number";
}

inline Fault diagnose_index(std::string_view token) {
  if (token.find('\0') != token.npos) return "nul_byte";
  const std::size_t colon = token.find(':');
  if (colon == token.npos) return "colon_missing";
  if (colon == 0) return "index_missing";
  std::string_view index = token.substr(0, colon);
  const bool negative = index[0] == '-';
  if (negative || index[0] == '+') index.remove_prefix(1);
  for (const char c : index) {
    if (!is_digit(c)) return "index_not_a_number";
  }
  if (index.empty()) return "index_not_a_number";
  return negative ? "index_negative" : "index_beyond_64_bits";
}

inline Fault diagnose_value(std::string_view token) {
  if (token.empty()) return "value_missing";
  if (token.find('\0') != token.npos) return "nul_byte";
  return says_not_finite(token) ? "value_not_finite" : "value_not_a_number";
}

// ---- lines ------------------------------------------------------------------------------------

template <class Value, class Index>
class LibsvmParser {
 public:
  LibsvmParser(std::string_view text, RowArrays<Value, Index>& out, const TextOptions& options)
      : text_(text.data()),
        end_(text.data() + text.size()),
        values_(out.values.get()),
        indices_(out.indices.get()),
        ends_(out.ends.get()),
        labels_(out.labels.get()),
        queries_(out.queries.get()),
        options_(options) {}

  // The text ends with a newline, or is empty.
  ParsedRows parse() {
    const char* p = text_;
    while (p != end_) {
      line_begin_ = p;
      while (is_blank(*p)) ++p;
      if (*p != '\n' && *p != '#' && !row(p)) {
        if (parsed_.too_narrow) return parsed_;
        ++parsed_.faulty;
        if (!options_.skip_faulty) return parsed_;
      }
      if (*p != '\n')
        p = static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end_ - p)));
      ++p;
      ++parsed_.lines;
    }
    return parsed_;
  }

 private:
  // Reads a line from its label on; p is left somewhere in it. False where it is faulty.
  bool row(const char*& p) {
    double label;
    std::int64_t query = -1;
    const char* q = scan_number(p, end_, label);
    if (q != nullptr && ends_token(*q) && std::isfinite(label)) [[likely]] {
      p = q;
      while (is_blank(*p)) ++p;
      if (*p == 'q') {
        const char* const word = p;
        if (!take_query(p, query)) return fail("query_beyond_64_bits", word, token_end(word));
      }
    } else {
      const Fault fault = q != nullptr && ends_token(*q) ? "label_not_finite" : diagnose_label(token(p));
      if (fault != "label_missing" || !options_.labels_optional) return fail(fault, p, token_end(p));
      label = std::numeric_limits<double>::quiet_NaN();
    }
    Integer stored = parsed_.stored, dropped = 0, previous = -1;
    const char* last = p;
    for (;;) {
      while (is_blank(*p)) ++p;
      if (*p == '\n' || *p == '#') break;
      last = p;
      Integer column = 0;
      if (!pair(p, previous, column)) return false;
      previous = column;
      if (column >= options_.columns) [[unlikely]] {
        if (!options_.drop_extra) return fail("index_beyond_columns", last, token_end(last));
        ++dropped;
        continue;
      }
      if constexpr (sizeof(Index) < sizeof(Integer)) {
        if (column >= std::numeric_limits<Index>::max()) [[unlikely]] {
          parsed_.too_narrow = true;
          return false;
        }
      }
      indices_[stored] = static_cast<Index>(column);
      values_[stored] = value_;
      ++stored;
    }
    if (stored > parsed_.stored) note_largest(indices_[stored - 1], last);
    parsed_.stored = stored;
    parsed_.dropped += dropped;
    labels_[parsed_.rows] = label;
    queries_[parsed_.rows] = query;
    parsed_.with_query += query >= 0;
    ends_[parsed_.rows] = static_cast<std::int32_t>(stored);
    ++parsed_.rows;
    return true;
  }

  // index:value at p, into `column` and value_; p moves behind it.
  bool pair(const char*& p, Integer previous, Integer& column) {
    const char* const begin = p;
    if (*p == '+') ++p;
    const char* const digits = p;
    std::uint64_t index = 0;
    p = scan_digits(p, index);
    constexpr std::ptrdiff_t kMostDigits = 18;  // so many always fit
    if (p == digits || *p != ':' || p - digits > kMostDigits) [[unlikely]] {
      if (!long_index(digits, p, index)) {
        p = begin;
        return fail(diagnose_index(token(begin)), begin, token_end(begin));
      }
    }
    column = static_cast<Integer>(index) - options_.first_index;
    if (column <= previous) [[unlikely]] {
      return fail(column < 0           ? "index_below_first"
                  : column == previous ? "index_repeated"
                                       : "index_unsorted",
                  begin, token_end(begin));
    }
    const char* const text = ++p;
    double value;
    const char* const q = scan_number(p, end_, value);
    if (q == nullptr || !ends_token(*q)) [[unlikely]] {
      const Fault fault = diagnose_value(token(text));
      return fail(fault, fault == "value_missing" ? begin : text, token_end(text));
    }
    value_ = static_cast<Value>(value);
    if (!std::isfinite(value_)) [[unlikely]]
      return fail("value_too_large", text, q);
    p = q;
    return true;
  }

  // An index of many digits: zeros in front, or a number that does or does not fit.
  static bool long_index(const char* digits, const char* p, std::uint64_t& index) {
    if (p == digits || *p != ':') return false;
    const auto result = std::from_chars(digits, p, index);
    return result.ec == std::errc{} &&
           index <= static_cast<std::uint64_t>(std::numeric_limits<Integer>::max());
  }

  // The number of a query says which lines belong together in ranking; p moves behind it. What is no query
  // is left to be no index. False for a number that does not fit.
  static bool take_query(const char*& p, std::int64_t& query) {
    if (p[1] != 'i' || p[2] != 'd' || p[3] != ':' || !is_digit(p[4])) return true;
    const char* q = p + 4;
    while (is_digit(*q)) ++q;
    if (!ends_token(*q)) return true;
    if (std::from_chars(p + 4, q, query).ec != std::errc{}) return false;
    p = q;
    return true;
  }

  void note_largest(Integer column, const char* last) {
    if (column <= parsed_.largest) return;
    parsed_.largest = column;
    parsed_.largest_place = place(last, token_end(last));
  }

  // Not inlined, lest it take registers from the lines that are in order.
  [[gnu::noinline]] bool fail(Fault fault, const char* begin, const char* end) {
    if (parsed_.faulty == 0) {
      parsed_.fault = fault;
      parsed_.fault_place = place(begin, end);
    }
    return false;
  }
  Place place(const char* begin, const char* end) const {
    return {parsed_.lines, line_begin_ - text_, begin - text_, end - text_};
  }
  static std::string_view token(const char* p) { return {p, static_cast<std::size_t>(token_end(p) - p)}; }

  const char* text_;
  const char* end_;
  Value* values_;
  Index* indices_;
  std::int32_t* ends_;
  double* labels_;
  std::int64_t* queries_;
  TextOptions options_;
  ParsedRows parsed_;
  Value value_ = 0;
  const char* line_begin_ = nullptr;
};

}  // namespace maxmargin
