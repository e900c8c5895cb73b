#include "core/wire/example_writer.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/wire/feature_encoding.h"

namespace tfrkit {
namespace {

size_t FeaturesSize(std::span<const NamedFeature> features) {
  size_t size = 0;
  for (const NamedFeature& feature : features) {
    size += DelimitedSize(EntrySize(feature.name, FeatureSize(feature.value)));
  }
  return size;
}

uint8_t* WriteFeatures(uint8_t* p, std::span<const NamedFeature> features) {
  for (const NamedFeature& feature : features) {
    const size_t list_size = ListSize(feature.value);
    p = WriteEntryHead(p, feature.name, FeatureSize(feature.value, list_size));
    p = WriteFeature(p, feature.value, list_size);
  }
  return p;
}

// Entries of less bytes have lengths of one byte.
constexpr size_t kSmallSize = 0x80;

// Size of the only value of a feature; kSmallSize for features of several values, none, or a long one.
size_t SingleSize(const FeatureValue& value) {
  switch (value.kind) {
    case Kind::kInt64:
      return value.ints.size() == 1 ? VarintSize(static_cast<uint64_t>(value.ints[0])) : kSmallSize;
    case Kind::kFloat:
      return value.floats.size() == 1 ? sizeof(float) : kSmallSize;
    case Kind::kBytes:
      return value.bytes.size() == 1 ? std::min(value.bytes[0].size(), kSmallSize) : kSmallSize;
    case Kind::kUnset:
      break;
  }
  return kSmallSize;
}

// A call of memcpy takes longer than the copy of a name.
uint8_t* WriteName(uint8_t* p, std::string_view name) {
  const size_t size = name.size();
  if (size < 8 || size > 16) return WriteBytes(p, name.data(), size);
  std::memcpy(p, name.data(), 8);
  std::memcpy(p + size - 8, name.data() + size - 8, 8);
  return p + size;
}

// The lengths of nested messages, outermost last: the value with its tag and length, then what stands around
// it.
constexpr size_t kListExtra = 1 + 1;                   // tag and length of the value
constexpr size_t kFeatureExtra = kListExtra + 1 + 1;   // and of the list
constexpr size_t kEntryExtra = kFeatureExtra + 2 + 2;  // and of the name and the feature
constexpr size_t kSmallExtra = kEntryExtra + 1 + 1;    // and of the entry

// The entry of a feature with a single value. REQUIRES: room for 8 more bytes than the entry has, which is
// small.
uint8_t* WriteSmallEntry(uint8_t* p, const NamedFeature& feature, size_t size) {
  const size_t entry_size = feature.name.size() + size + kEntryExtra;
  *p++ = kFieldOneTag;
  *p++ = static_cast<uint8_t>(entry_size);
  *p++ = kFieldOneTag;
  *p++ = static_cast<uint8_t>(feature.name.size());
  p = WriteName(p, feature.name);
  const FeatureValue& value = feature.value;
  *p++ = kFieldTwoTag;
  *p++ = static_cast<uint8_t>(size + kFeatureExtra);
  *p++ = TagByte(static_cast<uint32_t>(value.kind), WireType::kDelimited);
  *p++ = static_cast<uint8_t>(size + kListExtra);
  *p++ = kFieldOneTag;
  *p++ = static_cast<uint8_t>(size);
  switch (value.kind) {
    case Kind::kInt64:
      return WriteAnyVarint(p, static_cast<uint64_t>(value.ints[0]));
    case Kind::kFloat:
      StoreLE32(p, std::bit_cast<uint32_t>(value.floats[0]));
      return p + sizeof(float);
    default:
      return WriteBytes(p, value.bytes[0].data(), size);
  }
}

size_t FramesSize(const NamedFeatureList& list) {
  size_t size = 0;
  for (const FeatureValue& frame : list.frames) size += DelimitedSize(FeatureSize(frame));
  return size;
}

}  // namespace

bool AppendExample(std::span<const NamedFeature> features, PoolVector<uint8_t>* out) {
  // Features are written at once, after room for a length of two bytes: most records are of 128 to 16383
  // bytes.
  constexpr size_t kRoom = 1 + 2;
  const size_t start = out->size();
  size_t stop = start + kRoom, num_written = 0;
  const auto reserve = [&](size_t size) {
    if (stop + size <= out->capacity()) return true;
    // What was written must lie within the content to be kept.
    if (stop <= out->capacity() && !out->Resize(stop)) return false;
    return out->Reserve(stop + size);
  };
  for (const NamedFeature& feature : features) {
    const size_t single_size = SingleSize(feature.value);
    uint8_t* p = nullptr;
    if (feature.name.size() + single_size + kEntryExtra < kSmallSize) {
      if (!reserve(kSmallSize + kSmallExtra)) break;
      p = WriteSmallEntry(out->data() + stop, feature, single_size);
    } else {
      const size_t list_size = ListSize(feature.value);
      const size_t size = FeatureSize(feature.value, list_size);
      // WriteVarint requires room for the longest varint, so the end needs padding.
      if (!reserve(DelimitedSize(EntrySize(feature.name, size)) + kMaxVarintSize)) break;
      p = WriteFeature(WriteEntryHead(out->data() + stop, feature.name, size), feature.value, list_size);
    }
    stop = static_cast<size_t>(p - out->data());
    ++num_written;
  }
  const size_t size = stop - start - kRoom;
  const size_t room = 1 + VarintSize(size);
  if (num_written != features.size() || !reserve(kMaxVarintSize)) {
    out->Truncate(start);
    return false;
  }
  uint8_t* const first = out->data() + start;
  if (room != kRoom) std::memmove(first + room, first + kRoom, size);
  WriteHead(first, kFieldOneTag, size);
  return out->Resize(start + room + size);
}

bool AppendSequenceExample(std::span<const NamedFeature> context, std::span<const NamedFeatureList> lists,
                           PoolVector<uint8_t>* out) {
  const size_t context_size = FeaturesSize(context);
  size_t lists_size = 0;
  for (const NamedFeatureList& list : lists)
    lists_size += DelimitedSize(EntrySize(list.name, FramesSize(list)));
  const size_t start = out->size();
  if (!out->Reserve(start + DelimitedSize(context_size) + DelimitedSize(lists_size) + kMaxVarintSize))
    return false;
  uint8_t* const first = out->data() + start;
  uint8_t* p = first;
  if (!context.empty()) p = WriteFeatures(WriteHead(p, kFieldOneTag, context_size), context);
  p = WriteHead(p, kFieldTwoTag, lists_size);
  for (const NamedFeatureList& list : lists) {
    p = WriteEntryHead(p, list.name, FramesSize(list));
    for (const FeatureValue& frame : list.frames) {
      const size_t list_size = ListSize(frame);
      p = WriteHead(p, kFieldOneTag, FeatureSize(frame, list_size));
      p = WriteFeature(p, frame, list_size);
    }
  }
  return out->Resize(start + static_cast<size_t>(p - first));
}

}  // namespace tfrkit
