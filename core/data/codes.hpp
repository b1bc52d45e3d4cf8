// SPDX-License-Identifier: BSD-3-Clause
// Rows as codes of a few bits: a table for each column says which value a code stands for, to the last bit.
// Columns of truth values, categories, whole numbers and few decimals take an eighth of their room or less.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "data/rows.hpp"

namespace maxmargin {

// Rows in bits, one after the other, and what they take to be read again: the width of the codes of each
// column; of sparse rows then those of a row's number of values, and of a column's number.
struct PackedRows {
  std::vector<std::uint32_t> words;
  std::vector<std::uint8_t> widths;
};

class BitWriter {
 public:
  // The lowest bits, at most 32 of them; those above must be 0.
  void put(std::uint64_t bits, int width) {
    held_ |= bits << filled_;
    filled_ += width;
    if (filled_ < 32) return;
    words_.push_back(static_cast<std::uint32_t>(held_));
    held_ >>= 32;
    filled_ -= 32;
  }
  // All words, with two more, so that 64 bits can be read from any bit on.
  std::vector<std::uint32_t> words() && {
    words_.insert(words_.end(), {static_cast<std::uint32_t>(held_), 0U, 0U});
    words_.shrink_to_fit();
    return std::move(words_);
  }

 private:
  std::vector<std::uint32_t> words_;
  std::uint64_t held_ = 0;
  int filled_ = 0;
};

class BitReader {
 public:
  explicit BitReader(std::span<const std::uint32_t> words) : words_(words.data()), size_(words.size()) {}

  // The next 32 bits and more; they stay the next ones.
  std::uint64_t next() const {
    const std::uint32_t* const at = words_ + (place_ >> 5);
    return (at[0] | static_cast<std::uint64_t>(at[1]) << 32) >> (place_ & 31);
  }
  void pass(std::uint64_t width) { place_ += width; }
  std::uint64_t get(int width) {
    const std::uint64_t bits = next() & ((std::uint64_t{1} << width) - 1);
    pass(static_cast<std::uint64_t>(width));
    return bits;
  }
  // Throws where there are fewer bits left than so many.
  void need(std::uint64_t bits) const {
    if (size_ < 2 || place_ + bits > 32 * (size_ - 2))
      throw std::invalid_argument("packed rows are cut off");
  }

 private:
  const std::uint32_t* words_;
  std::size_t size_;
  std::uint64_t place_ = 0;
};

// The values of one column, in the order in which they came.
template <class Value>
class ColumnValues {
 public:
  using Bits = std::conditional_t<sizeof(Value) == 4, std::uint32_t, std::uint64_t>;
  static constexpr int kRaw = 8 * sizeof(Value);  // the width of values that are kept as they are

  // The code of a value, which is found among the others or added.
  std::uint32_t code_of(Value value) {
    if (raw_) return 0;
    ++seen_;
    const Bits bits = std::bit_cast<Bits>(value);
    if (values_.size() <= kFew) {
      for (std::size_t k = 0; k < values_.size(); ++k) {
        if (std::bit_cast<Bits>(values_[k]) == bits) return static_cast<std::uint32_t>(k);
      }
      if (values_.size() < kFew) return added(value);
    }
    if (4 * (values_.size() + 1) > 3 * slots_.size()) grow();
    std::uint32_t& slot = slot_of(bits);
    if (slot != 0) return slot - 1;
    slot = static_cast<std::uint32_t>(values_.size()) + 1;
    return added(value);
  }

  // The width of the codes that were given until now.
  int width() const { return raw_ ? kRaw : std::bit_width(std::max<std::size_t>(values_.size(), 1) - 1); }
  const Value* values() const { return values_.data(); }
  std::size_t nbytes() const {
    return values_.size() * sizeof(Value) + slots_.size() * sizeof(std::uint32_t);
  }
  // Gives back what only new values need.
  void close() {
    slots_ = {};
    values_.shrink_to_fit();
  }

 private:
  static constexpr std::size_t kFew = 4;         // values that are compared one by one
  static constexpr std::size_t kMost = 1 << 16;  // values of a table; more take too much room themselves
  static constexpr std::size_t kSeen = 4096;  // values after which one that is mostly new tells of no table

  std::uint32_t added(Value value) {
    values_.push_back(value);
    raw_ = values_.size() > kMost || (seen_ >= kSeen && 2 * values_.size() > seen_);
    return static_cast<std::uint32_t>(values_.size()) - 1;
  }
  // The slot that has a value, or the one for it, which is 0.
  std::uint32_t& slot_of(Bits bits) {
    const std::size_t most = slots_.size() - 1;
    const int shift = 64 - std::bit_width(most);
    std::size_t at = (static_cast<std::uint64_t>(bits) * 0x9E3779B97F4A7C15ULL) >> shift;
    while (slots_[at] != 0 && std::bit_cast<Bits>(values_[slots_[at] - 1]) != bits) at = (at + 1) & most;
    return slots_[at];
  }
  void grow() {
    slots_.assign(std::max<std::size_t>(16, 2 * slots_.size()), 0);
    for (std::size_t k = 0; k < values_.size(); ++k) {
      slot_of(std::bit_cast<Bits>(values_[k])) = static_cast<std::uint32_t>(k) + 1;
    }
  }

  std::vector<Value> values_;
  std::vector<std::uint32_t> slots_;  // a hash table of codes plus 1
  std::size_t seen_ = 0;
  bool raw_ = false;  // whether values are too many for a table
};

// The tables of all columns. Rows are packed one part after the other; what is packed can be read from
// several threads once the last part is.
template <class Value>
class Codebook {
 public:
  explicit Codebook(Integer columns) : columns_(static_cast<std::size_t>(columns)) {}

  PackedRows pack(const DenseRows<Value>& rows) {
    const std::size_t size = columns_.size();
    std::vector<std::uint32_t> codes(static_cast<std::size_t>(rows.count) * size);
    std::uint32_t* code = codes.data();
    for (Integer i = 0; i < rows.count; ++i) {
      const Value* const x = rows[i].values;
      for (std::size_t j = 0; j < size; ++j) *code++ = columns_[j].code_of(x[j]);
    }
    PackedRows packed{{}, widths()};
    BitWriter writer;
    code = codes.data();
    for (Integer i = 0; i < rows.count; ++i) {
      const Value* const x = rows[i].values;
      for (std::size_t j = 0; j < size; ++j) put(writer, packed.widths[j], x[j], *code++);
    }
    packed.words = std::move(writer).words();
    return packed;
  }

  PackedRows pack(const SparseRows<Value>& rows) {
    std::vector<std::uint32_t> codes(static_cast<std::size_t>(rows.stored()));
    Integer longest = 0;
    for (Integer i = 0; i < rows.count; ++i) {
      longest = std::max(longest, rows.offsets[i + 1] - rows.offsets[i]);
      for (Integer k = rows.offsets[i]; k < rows.offsets[i + 1]; ++k)
        codes[k] = columns_[rows.indices[k]].code_of(rows.values[k]);
    }
    PackedRows packed{{}, widths()};
    const int count_width = std::bit_width(static_cast<std::uint64_t>(longest));
    const int column_width = std::bit_width(columns_.size() - 1);
    packed.widths.push_back(static_cast<std::uint8_t>(count_width));
    packed.widths.push_back(static_cast<std::uint8_t>(column_width));
    BitWriter writer;
    for (Integer i = 0; i < rows.count; ++i) {
      writer.put(static_cast<std::uint64_t>(rows.offsets[i + 1] - rows.offsets[i]), count_width);
      for (Integer k = rows.offsets[i]; k < rows.offsets[i + 1]; ++k) {
        const std::int32_t column = rows.indices[k];
        writer.put(static_cast<std::uint64_t>(column), column_width);
        put(writer, packed.widths[column], rows.values[k], codes[k]);
      }
    }
    packed.words = std::move(writer).words();
    return packed;
  }

  // So many dense rows, one after the other.
  void unpack(std::span<const std::uint32_t> words, std::span<const std::uint8_t> widths, Integer count,
              Value* out) const {
    std::uint64_t bits = 0;
    for (const std::uint8_t width : widths) bits += width;
    const std::vector<Code> codes = readable(widths);
    BitReader reader(words);
    reader.need(bits * static_cast<std::uint64_t>(count));
    for (Integer i = 0; i < count; ++i) {
      for (const Code& code : codes) *out++ = value_of(reader, code);
    }
  }

  // So many sparse rows: their values, the columns of these, and where rows begin and end.
  void unpack(std::span<const std::uint32_t> words, std::span<const std::uint8_t> widths, Integer count,
              std::span<Value> values, std::int32_t* indices, std::int32_t* offsets) const {
    const int count_width = widths[columns_.size()], column_width = widths[columns_.size() + 1];
    const std::vector<Code> codes = readable(widths.first(columns_.size()));
    BitReader reader(words);
    std::size_t done = 0;
    *offsets++ = 0;
    for (Integer i = 0; i < count; ++i) {
      reader.need(static_cast<std::uint64_t>(count_width));
      const std::uint64_t stored = reader.get(count_width);
      if (stored > values.size() - done) throw std::invalid_argument("packed rows have more values");
      for (const std::size_t end = done + stored; done < end; ++done) {
        reader.need(static_cast<std::uint64_t>(column_width));
        const std::uint64_t column = reader.get(column_width);
        if (column >= codes.size()) throw std::invalid_argument("packed rows have more columns");
        reader.need(codes[column].width);
        indices[done] = static_cast<std::int32_t>(column);
        values[done] = value_of(reader, codes[column]);
      }
      *offsets++ = static_cast<std::int32_t>(done);
    }
  }

  std::size_t nbytes() const {
    std::size_t sum = 0;
    for (const auto& column : columns_) sum += column.nbytes();
    return sum;
  }
  void close() {
    for (auto& column : columns_) column.close();
  }

 private:
  using Bits = typename ColumnValues<Value>::Bits;
  static constexpr int kRaw = ColumnValues<Value>::kRaw;

  struct Code {
    const Value* values;
    std::uint64_t mask;
    std::uint64_t width;
  };

  static void put(BitWriter& writer, int width, Value value, std::uint32_t code) {
    if (width < kRaw) {
      writer.put(code, width);
      return;
    }
    const auto bits = static_cast<std::uint64_t>(std::bit_cast<Bits>(value));
    writer.put(bits & 0xFFFFFFFFU, 32);
    if constexpr (kRaw == 64) writer.put(bits >> 32, 32);
  }
  static Value value_of(BitReader& reader, const Code& code) {
    if (code.width < kRaw) {
      const Value value = code.values[reader.next() & code.mask];
      reader.pass(code.width);
      return value;
    }
    std::uint64_t bits = reader.get(32);
    if constexpr (kRaw == 64) bits |= reader.get(32) << 32;
    return std::bit_cast<Value>(static_cast<Bits>(bits));
  }
  std::vector<std::uint8_t> widths() const {
    std::vector<std::uint8_t> widths;
    for (const auto& column : columns_) widths.push_back(static_cast<std::uint8_t>(column.width()));
    return widths;
  }
  std::vector<Code> readable(std::span<const std::uint8_t> widths) const {
    std::vector<Code> codes;
    for (std::size_t j = 0; j < widths.size(); ++j) {
      const std::uint64_t width = widths[j];
      codes.push_back({columns_[j].values(), (std::uint64_t{1} << (width & 63)) - 1, width});
    }
    return codes;
  }

  std::vector<ColumnValues<Value>> columns_;
};

}  // namespace maxmargin
