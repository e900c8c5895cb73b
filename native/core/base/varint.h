// Base-128 varints, one at a time. For whole packed lists see packed_varint.h.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/base/bytes.h"

namespace tfrkit {

inline constexpr size_t kMaxVarintSize = 10;  // ceil(64 / 7)
inline constexpr size_t kMaxLengthSize = 5;  // tags and lengths are 32 bits to protobuf, padded ones included
inline constexpr uint64_t kContinuationBits = 0x8080808080808080u;

// Reads one varint of at most `max_size` bytes from [p, end). Returns the byte after it, or nullptr
// when it does not end in time. Bits above the 64th are dropped, as protobuf does.
[[nodiscard]] inline const uint8_t* ReadVarint(const uint8_t* p, const uint8_t* end, uint64_t* value,
                                               size_t max_size = kMaxVarintSize) {
  if (p < end && *p < 0x80) [[likely]] {
    *value = *p;
    return p + 1;
  }
  const size_t left = static_cast<size_t>(end - p);
  const size_t limit = left < max_size ? left : max_size;
  uint64_t bits = 0;
  for (size_t i = 0; i < limit; ++i) {
    bits |= static_cast<uint64_t>(p[i] & 0x7f) << (7 * i);
    if (p[i] < 0x80) {
      *value = bits;
      return p + i + 1;
    }
  }
  return nullptr;
}

// Reads the length of a field and compares it with what is left of [p, end). Returns the first byte
// of the field's content, or nullptr.
[[nodiscard]] inline const uint8_t* ReadLength(const uint8_t* p, const uint8_t* end, size_t* length) {
  uint64_t value;
  p = ReadVarint(p, end, &value, kMaxLengthSize);
  if (p == nullptr || value > static_cast<uint64_t>(end - p)) return nullptr;
  *length = static_cast<size_t>(value);
  return p;
}

// The byte after a varint that is known to end.
inline const uint8_t* SkipVarint(const uint8_t* p) {
  while (*p >= 0x80) ++p;
  return p + 1;
}

// Closes the gaps between the 7-bit groups of a varint whose continuation bits are already cleared.
inline uint64_t CompactVarint(uint64_t groups) {
  groups = ((groups & 0x7f007f007f007f00u) >> 1) | (groups & 0x007f007f007f007fu);
  groups = ((groups & 0x3fff00003fff0000u) >> 2) | (groups & 0x00003fff00003fffu);
  return ((groups & 0x0fffffff00000000u) >> 4) | (groups & 0x000000000fffffffu);
}

// The `size` bytes at `p` as the low bytes of a word, without a loop and without reading more.
// REQUIRES: 1 <= size <= 8.
inline uint64_t LoadShort(const uint8_t* p, size_t size) {
  if (size >= 4) return LoadLE32(p) | static_cast<uint64_t>(LoadLE32(p + size - 4)) << (8 * (size - 4));
  // First, middle and last: the same byte where there are fewer.
  return p[0] | static_cast<uint64_t>(p[size / 2]) << (8 * (size / 2)) |
         static_cast<uint64_t>(p[size - 1]) << (8 * (size - 1));
}

// Reads the varint that fills exactly the low `size` bytes of `word`. False when it does not.
// REQUIRES: 1 <= size <= 8.
[[nodiscard]] inline bool ReadWholeVarint(uint64_t word, size_t size, uint64_t* value) {
  const uint64_t kept = ~uint64_t{0} >> (64 - 8 * size);
  word &= kept;
  *value = CompactVarint(word & ~kContinuationBits);
  return (word & kContinuationBits) == (kContinuationBits & (kept >> 8));
}

inline size_t VarintSize(uint64_t value) {
  return (static_cast<size_t>(std::bit_width(value | 1)) * 9 + 64) / 64;  // ceil(bits / 7) for 1 to 64 bits
}

// Spreads a value over 7-bit groups, one per byte; the inverse of CompactVarint. REQUIRES: value < 2^56.
inline uint64_t SpreadVarint(uint64_t value) {
  value = ((value << 4) & 0x0fffffff00000000u) | (value & 0x000000000fffffffu);
  value = ((value << 2) & 0x3fff00003fff0000u) | (value & 0x00003fff00003fffu);
  return ((value << 1) & 0x7f007f007f007f00u) | (value & 0x007f007f007f007fu);
}

// Writes the shortest form, byte by byte, and nothing after it: AppendExample writes the length of a record
// when its content is already there, so a wider store would overwrite that. Returns the byte after it.
// REQUIRES: room for kMaxVarintSize bytes.
inline uint8_t* WriteVarint(uint8_t* p, uint64_t value) {
  if (value < 0x80) {
    *p = static_cast<uint8_t>(value);
    return p + 1;
  }
  while (value >= 0x80) {
    *p++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *p++ = static_cast<uint8_t>(value);
  return p;
}

// The same without a branch for the size, which cannot be predicted from one token to the next; the bytes
// after it, up to kMaxVarintSize, may be overwritten.
inline uint8_t* WriteAnyVarint(uint8_t* p, uint64_t value) {
  if (value >> 56 != 0) [[unlikely]]
    return WriteVarint(p, value);
  const size_t size = VarintSize(value);
  const uint64_t continued = kContinuationBits & ((uint64_t{1} << (8 * (size - 1))) - 1);
  StoreLE64(p, SpreadVarint(value) | continued);
  return p + size;
}

}  // namespace tfrkit
