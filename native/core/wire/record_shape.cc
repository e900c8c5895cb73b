#include "core/wire/record_shape.h"

#include "core/base/utf8.h"
#include "core/base/varint.h"
#include "core/wire/example_reader.h"
#include "core/wire/wire.h"

namespace tfrkit {
namespace {

// Properties of a message. Stricter than the readers: records what protobuf ignores.
struct Look {
  bool is_valid = true;       // well-formed, and every known name is UTF-8
  bool is_loose = false;      // unknown fields, or a repeated field that writers produce once
  uint64_t num_complete = 0;  // map entries with one key and one value

  void Merge(const Look& part) {
    is_valid = is_valid && part.is_valid;
    is_loose = is_loose || part.is_loose;
    num_complete += part.num_complete;
  }
};

constexpr Look kInvalid{false, false, 0};
constexpr uint8_t kFieldThreeTag = TagByte(3, WireType::kDelimited);

// Calls `visit(field)` for each field of a message until it returns false. False when malformed.
template <class Visit>
bool ForEachField(ByteView message, Visit visit) {
  const uint8_t* p = message.data();
  const uint8_t* const end = p + message.size();
  while (p < end) {
    Field field;
    p = ReadField(p, end, &field);
    if (p == nullptr) return false;
    if (!visit(field)) return false;
  }
  return true;
}

bool IsListValue(Kind kind, const Field& field) {
  if (field.number != 1) return false;
  if (field.type == WireType::kDelimited) return true;
  return (kind == Kind::kFloat && field.type == WireType::kFixed32) ||
         (kind == Kind::kInt64 && field.type == WireType::kVarint);
}

Look LookAtList(Kind kind, ByteView list) {
  Look look;
  uint64_t num_values = 0;
  if (CheckList(kind, list, &num_values) != nullptr) return kInvalid;
  look.is_valid = ForEachField(list, [&](const Field& field) {
    look.is_loose = look.is_loose || !IsListValue(kind, field);
    return true;
  });
  return look;
}

Look LookAtFeature(ByteView feature) {
  Look look;
  int num_lists = 0;
  const bool is_message = ForEachField(feature, [&](const Field& field) {
    if (field.type != WireType::kDelimited || field.number > 3) {
      look.is_loose = true;
      return true;
    }
    if (++num_lists > 1) look.is_loose = true;
    look.Merge(LookAtList(static_cast<Kind>(field.number), field.bytes()));
    return look.is_valid;
  });
  return is_message ? look : kInvalid;
}

Look LookAtFeatureList(ByteView list) {
  Look look;
  const bool is_message = ForEachField(list, [&](const Field& field) {
    if (!field.Is(1, WireType::kDelimited)) {
      look.is_loose = true;
      return true;
    }
    look.Merge(LookAtFeature(field.bytes()));
    return look.is_valid;
  });
  return is_message ? look : kInvalid;
}

Look LookAtEntry(ByteView entry, bool is_list) {
  Look look;
  int num_keys = 0, num_values = 0;
  const bool is_message = ForEachField(entry, [&](const Field& field) {
    if (field.Is(1, WireType::kDelimited)) {
      ++num_keys;
      return IsUtf8(field.bytes());
    }
    if (field.Is(2, WireType::kDelimited)) {
      ++num_values;
      look.Merge(is_list ? LookAtFeatureList(field.bytes()) : LookAtFeature(field.bytes()));
      return look.is_valid;
    }
    look.is_loose = true;
    return true;
  });
  if (!is_message) return kInvalid;
  if (num_keys == 1 && num_values == 1) {
    look.num_complete = 1;
  } else {
    look.is_loose = true;
  }
  return look;
}

Look LookAtMap(ByteView map, bool is_list) {
  Look look;
  const bool is_message = ForEachField(map, [&](const Field& field) {
    if (!field.Is(1, WireType::kDelimited)) {
      look.is_loose = true;
      return true;
    }
    look.Merge(LookAtEntry(field.bytes(), is_list));
    return look.is_valid;
  });
  return is_message ? look : kInvalid;
}

// Reads a field of this tag that fills [p, end). Returns its content, or nullptr when it does not.
const uint8_t* ReadOnly(uint8_t tag, const uint8_t* p, const uint8_t* end) {
  if (p == end || *p != tag) return nullptr;
  size_t size;
  p = ReadLength(p + 1, end, &size);
  return p != nullptr && p + size == end ? p : nullptr;
}

bool IsAscii(const uint8_t* p, size_t size) {
  uint64_t bits = 0;
  for (; size > 8; p += 8, size -= 8) bits |= LoadLE64(p);
  if (size != 0) bits |= LoadShort(p, size);
  return (bits & kContinuationBits) == 0;
}

bool IsUsualList(Kind kind, const uint8_t* p, const uint8_t* end) {
  if (kind != Kind::kBytes && p < end) {
    uint64_t num_values = 0;
    return ReadOnly(kFieldOneTag, p, end) != nullptr &&
           CheckList(kind, ByteView(p, end), &num_values) == nullptr;
  }
  while (p < end) {
    size_t size;
    if (*p != kFieldOneTag) return false;
    p = ReadLength(p + 1, end, &size);
    if (p == nullptr) return false;
    p += size;
  }
  return true;
}

// Whether this is an Example as writers lay it out: one map, and in each entry a plain key and then one
// list. Takes a fifth of the time of the full check; other layouts may still be an Example.
bool IsUsualExample(ByteView record) {
  const uint8_t* const end = record.data() + record.size();
  const uint8_t* p = ReadOnly(kFieldOneTag, record.data(), end);
  if (p == nullptr) return false;
  while (p < end) {
    size_t size;
    if (*p != kFieldOneTag) return false;
    p = ReadLength(p + 1, end, &size);
    if (p == nullptr || size == 0 || *p != kFieldOneTag) return false;
    const uint8_t* const entry_end = p + size;
    p = ReadLength(p + 1, entry_end, &size);
    if (p == nullptr || !IsAscii(p, size)) return false;
    p = ReadOnly(kFieldTwoTag, p + size, entry_end);
    if (p == nullptr || p == entry_end) return false;
    const uint8_t tag = *p;
    if (tag != kFieldOneTag && tag != kFieldTwoTag && tag != kFieldThreeTag) return false;
    p = ReadOnly(tag, p, entry_end);
    if (p == nullptr || !IsUsualList(static_cast<Kind>(tag >> 3), p, entry_end)) return false;
    p = entry_end;
  }
  return true;
}

}  // namespace

RecordShape ClassifyRecord(ByteView record) {
  return IsUsualExample(record) ? RecordShape::kExample : ClassifyClosely(record);
}

RecordShape ClassifyClosely(ByteView record) {
  if (record.empty()) return RecordShape::kEmpty;
  Look look;
  int num_features = 0, num_lists = 0;
  bool has_foreign_field_two = false;
  const bool is_message = ForEachField(record, [&](const Field& field) {
    if (field.Is(1, WireType::kDelimited)) {
      if (++num_features > 1) look.is_loose = true;
      look.Merge(LookAtMap(field.bytes(), false));
      return look.is_valid;
    }
    if (field.Is(2, WireType::kDelimited)) {
      const Look lists = LookAtMap(field.bytes(), true);
      if (lists.is_valid) {
        if (++num_lists > 1) look.is_loose = true;
        look.Merge(lists);
        return true;
      }
      has_foreign_field_two = true;
    }
    look.is_loose = true;
    return true;
  });
  // Allowed next to the features of an Example, but malformed for every reader of SequenceExamples.
  if (!is_message || (has_foreign_field_two && num_lists > 0)) return RecordShape::kOther;
  if (!look.is_loose) return num_lists > 0 ? RecordShape::kSequenceExample : RecordShape::kExample;
  if (look.num_complete == 0) return RecordShape::kOther;
  return num_lists > 0 ? RecordShape::kLooseSequence : RecordShape::kLooseExample;
}

}  // namespace tfrkit
