// The canonical bytes of one feature: sizes first, then a writer that relies on them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/varint.h"
#include "core/wire/example_writer.h"
#include "core/wire/record_types.h"
#include "core/wire/wire.h"

namespace tfrkit {

// Sizes are of objects in memory, so their sums fit.
inline size_t DelimitedSize(size_t size) { return 1 + VarintSize(size) + size; }

// The size that DelimitedSize was given.
inline size_t InnerSize(size_t delimited_size) {
  size_t length_size = 1;
  while (VarintSize(delimited_size - 1 - length_size) > length_size) ++length_size;
  return delimited_size - 1 - length_size;
}

inline uint8_t* WriteHead(uint8_t* p, uint8_t tag, size_t size) {
  *p++ = tag;
  return WriteVarint(p, size);
}

inline uint8_t* WriteBytes(uint8_t* p, const void* data, size_t size) {
  if (size != 0) std::memcpy(p, data, size);
  return p + size;
}

inline size_t PackedSize(std::span<const int64_t> values) {
  size_t size = 0;
  for (const int64_t value : values) size += VarintSize(static_cast<uint64_t>(value));
  return size;
}

// Size of the content of the list message.
inline size_t ListSize(const FeatureValue& value) {
  size_t size = 0;
  switch (value.kind) {
    case Kind::kInt64:
      return value.ints.empty() ? 0 : DelimitedSize(PackedSize(value.ints));
    case Kind::kFloat:
      return value.floats.empty() ? 0 : DelimitedSize(value.floats.size() * sizeof(float));
    case Kind::kBytes:
      for (const ByteView bytes : value.bytes) size += DelimitedSize(bytes.size());
      return size;
    case Kind::kUnset:
      break;
  }
  return 0;
}

inline size_t FeatureSize(const FeatureValue& value, size_t list_size) {
  return value.kind == Kind::kUnset ? 0 : DelimitedSize(list_size);
}

inline size_t FeatureSize(const FeatureValue& value) { return FeatureSize(value, ListSize(value)); }

inline uint8_t* WriteFloats(uint8_t* p, std::span<const float> values) {
  if constexpr (std::endian::native == std::endian::little) {
    return WriteBytes(p, values.data(), values.size_bytes());
  } else {
    for (const float value : values) {
      StoreLE32(p, std::bit_cast<uint32_t>(value));
      p += sizeof(float);
    }
    return p;
  }
}

// The content of a Feature whose list has `list_size` bytes. REQUIRES: room for kMaxVarintSize more.
inline uint8_t* WriteFeature(uint8_t* p, const FeatureValue& value, size_t list_size) {
  if (value.kind == Kind::kUnset) return p;
  p = WriteHead(p, TagByte(static_cast<uint32_t>(value.kind), WireType::kDelimited), list_size);
  switch (value.kind) {
    case Kind::kInt64:
      if (value.ints.empty()) break;
      p = WriteHead(p, kFieldOneTag, InnerSize(list_size));
      for (const int64_t number : value.ints) p = WriteAnyVarint(p, static_cast<uint64_t>(number));
      break;
    case Kind::kFloat:
      if (value.floats.empty()) break;
      p = WriteHead(p, kFieldOneTag, value.floats.size_bytes());
      p = WriteFloats(p, value.floats);
      break;
    case Kind::kBytes:
      for (const ByteView bytes : value.bytes) {
        p = WriteHead(p, kFieldOneTag, bytes.size());
        p = WriteBytes(p, bytes.data(), bytes.size());
      }
      break;
    case Kind::kUnset:
      break;
  }
  return p;
}

inline size_t EntrySize(std::string_view name, size_t value_size) {
  return DelimitedSize(name.size()) + DelimitedSize(value_size);
}

inline uint8_t* WriteEntryHead(uint8_t* p, std::string_view name, size_t value_size) {
  p = WriteHead(p, kFieldOneTag, EntrySize(name, value_size));
  p = WriteHead(p, kFieldOneTag, name.size());
  p = WriteBytes(p, name.data(), name.size());
  return WriteHead(p, kFieldTwoTag, value_size);
}

}  // namespace tfrkit
