// The protobuf wire format: one field at a time, with every bound checked.
//
// https://protobuf.dev/programming-guides/encoding/ is the format; where it leaves a choice, these
// functions do what protobuf's own parsers do.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/base/bytes.h"
#include "core/base/varint.h"

namespace tfrkit {

enum class WireType : uint8_t {
  kVarint = 0,
  kFixed64 = 1,
  kDelimited = 2,
  kGroupStart = 3,
  kGroupEnd = 4,
  kFixed32 = 5,
};

// The tag byte of a field whose number is below 16.
inline constexpr uint8_t TagByte(uint32_t number, WireType type) {
  return static_cast<uint8_t>(number << 3 | static_cast<uint8_t>(type));
}

// The only fields of an Example: features, map entries, keys and the values of lists are field 1 of their
// messages; feature_lists and the values of map entries are field 2.
inline constexpr uint8_t kFieldOneTag = TagByte(1, WireType::kDelimited);
inline constexpr uint8_t kFieldTwoTag = TagByte(2, WireType::kDelimited);

inline constexpr int kMaxGroupDepth = 100;  // protobuf's own limit

// Filled in by ReadField; only the members of its type.
struct Field {
  uint32_t number;
  WireType type;
  uint64_t value;       // kVarint, kFixed64, kFixed32
  const uint8_t* data;  // kDelimited; for a group, its content with the end tag
  size_t size;

  ByteView bytes() const { return ByteView(data, size); }

  bool Is(uint32_t wanted_number, WireType wanted_type) const {
    return number == wanted_number && type == wanted_type;
  }
};

// As ReadField, for fields of every kind.
[[nodiscard]] const uint8_t* ReadAnyField(const uint8_t* p, const uint8_t* end, Field* field);

// Reads the field at `p`, a group with everything in it. Returns the byte after it, or nullptr when the
// bytes are not a field: number 0, wire type 6 or 7, an end tag without a group, or past the end.
[[nodiscard]] inline const uint8_t* ReadField(const uint8_t* p, const uint8_t* end, Field* field) {
  if (end - p >= 2 && (p[0] & 0x87) == static_cast<uint8_t>(WireType::kDelimited) && p[0] > 7 &&
      p[1] < 0x80 && p[1] <= end - p - 2) [[likely]] {
    field->number = p[0] >> 3;
    field->type = WireType::kDelimited;
    field->data = p + 2;
    field->size = p[1];
    return p + 2 + p[1];
  }
  return ReadAnyField(p, end, field);
}

// Copies packed floats and returns how many. REQUIRES: a whole number of them.
inline size_t LoadFloats(ByteView packed, float* out) {
  const size_t count = packed.size() / sizeof(float);
  if constexpr (std::endian::native == std::endian::little) {
    if (count != 0) std::memcpy(out, packed.data(), count * sizeof(float));
  } else {
    for (size_t i = 0; i < count; ++i) out[i] = std::bit_cast<float>(LoadLE32(packed.data() + 4 * i));
  }
  return count;
}

}  // namespace tfrkit
