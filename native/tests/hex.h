// Literal bytes for tests: "0a 03 'abc' 12 00" is a key field and an empty value.
#pragma once

#include <string_view>
#include <vector>

#include "tests/check.h"

namespace tfrkit::test {

inline uint8_t HexDigit(char digit) {
  return static_cast<uint8_t>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
}

// Pairs of lower-case digits, spaces, and text in single quotes.
inline std::vector<uint8_t> Hex(std::string_view text) {
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\'') {
      for (++i; text[i] != '\''; ++i) bytes.push_back(static_cast<uint8_t>(text[i]));
    } else if (text[i] != ' ') {
      bytes.push_back(static_cast<uint8_t>(HexDigit(text[i]) << 4 | HexDigit(text[i + 1])));
      ++i;
    }
  }
  bytes.shrink_to_fit();
  return bytes;
}

// A field of wire type 2.
inline std::vector<uint8_t> Delimited(uint8_t tag, const std::vector<uint8_t>& content) {
  std::vector<uint8_t> bytes{tag};
  size_t size = content.size();
  for (; size >= 0x80; size >>= 7) bytes.push_back(static_cast<uint8_t>(size | 0x80));
  bytes.push_back(static_cast<uint8_t>(size));
  for (const uint8_t byte : content) bytes.push_back(byte);
  bytes.shrink_to_fit();
  return bytes;
}

inline std::vector<uint8_t> Join(const std::vector<std::vector<uint8_t>>& parts) {
  std::vector<uint8_t> bytes;
  for (const auto& part : parts) {
    for (const uint8_t byte : part) bytes.push_back(byte);
  }
  bytes.shrink_to_fit();
  return bytes;
}

}  // namespace tfrkit::test
