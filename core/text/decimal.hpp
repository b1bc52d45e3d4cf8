// SPDX-License-Identifier: BSD-3-Clause
// Decimal numbers in text, whatever the locale, rounded as Python's float() rounds them.
//
// Every scan ends at the first character that is not part of a number: text that ends with a newline needs
// no other check of its end.
#pragma once

#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>
#include <locale>
#include <sstream>
#include <string>

#include "data/rows.hpp"

namespace maxmargin {

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }
// Appends the digits at p to `number`, which wraps around after 19 of them.
inline const char* scan_digits(const char* p, std::uint64_t& number) {
  while (is_digit(*p)) number = 10 * number + static_cast<std::uint64_t>(*p++ - '0');
  return p;
}

// The same, eight digits at a time where the text goes on for so long.
inline const char* scan_many_digits(const char* p, const char* end, std::uint64_t& number) {
  if constexpr (std::endian::native == std::endian::little) {
    while (end - p >= 8) {
      std::uint64_t bytes;
      std::memcpy(&bytes, p, 8);
      // A digit is 0x30 to 0x39: its high half is 3, also after 6 is added to the low one.
      constexpr std::uint64_t kHigh = 0xF0F0F0F0F0F0F0F0, kThrees = 0x3030303030303030;
      if (((bytes & kHigh) ^ kThrees) | (((bytes + 0x0606060606060606) & kHigh) ^ kThrees)) break;
      bytes -= kThrees;
      bytes = (10 * bytes + (bytes >> 8)) & 0x00FF00FF00FF00FF;      // four numbers of two digits
      bytes = (100 * bytes + (bytes >> 16)) & 0x0000FFFF0000FFFF;    // two of four
      bytes = (10000 * bytes + (bytes >> 32)) & 0x00000000FFFFFFFF;  // one of eight
      number = 100000000 * number + bytes;
      p += 8;
    }
  }
  return scan_digits(p, number);
}

// The nearest double to unsigned decimal text that is known to be well formed, and below 10^magnitude;
// infinite if there is none.
inline double nearest_double(const char* begin, const char* end, Integer magnitude) {
  for (const char* p = begin; p != end && (*p == '0' || *p == '.'); ++p) magnitude -= *p == '0';
  // Neither way says in which direction a number is out of range, but its magnitude does.
  const double beyond = magnitude > 0 ? std::numeric_limits<double>::infinity() : 0.0;
  double value = 0;
#if defined(__cpp_lib_to_chars)
  if (std::from_chars(begin, end, value).ec == std::errc::result_out_of_range) return beyond;
#else
  std::istringstream stream(std::string(begin, end));
  stream.imbue(std::locale::classic());
  stream >> value;
  if (stream.fail()) return beyond;
#endif
  return value;
}

// [+-] digits [. digits] [e [+-] digits], with at least one digit before the e. Returns the end of what
// it could read, or null where no number begins; a number beyond all doubles is infinite.
inline const char* scan_number(const char* p, const char* end, double& value) {
  static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                       1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  const bool negative = *p == '-';
  if (negative || *p == '+') ++p;
  const char* const begin = p;
  std::uint64_t mantissa = 0;
  p = scan_digits(p, mantissa);
  Integer digits = p - begin, exponent = 0;
  if (*p == ' ' && digits > 0 && digits <= 15) {  // a short whole number: nothing more to look for
    value = negative ? -static_cast<double>(mantissa) : static_cast<double>(mantissa);
    return p;
  }
  if (*p == '.') {
    const char* const fraction = ++p;
    p = scan_many_digits(p, end, mantissa);
    exponent = fraction - p;
    digits -= exponent;
  }
  if (digits == 0) return nullptr;
  if (*p == 'e' || *p == 'E') {
    const char* q = p + 1;
    const bool small = *q == '-';
    if (small || *q == '+') ++q;
    if (!is_digit(*q)) return p;
    Integer power = 0;
    for (; is_digit(*q); ++q) {
      if (power < (Integer{1} << 40)) power = 10 * power + (*q - '0');
    }
    exponent += small ? -power : power;
    p = q;
  }
  // Both factors are exact here, so that one rounding is all there is.
  constexpr std::uint64_t kExact = std::uint64_t{1} << 53;
  if (digits <= 19 && mantissa <= kExact && exponent >= -22 && exponent <= 22) {
    value = static_cast<double>(mantissa);
    if (exponent < 0) {
      value /= kPowers[-exponent];
    } else if (exponent > 0) {
      value *= kPowers[exponent];
    }
  } else {
    value = nearest_double(begin, p, digits + exponent);
  }
  if (negative) value = -value;
  return p;
}

}  // namespace maxmargin
