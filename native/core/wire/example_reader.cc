#include "core/wire/example_reader.h"

#include <bit>

#include "core/wire/packed_varint.h"
#include "core/wire/record_shape.h"

namespace tfrkit {
namespace {

// Counts the varints of a packed list, eight bytes at a time. False when one is too long or does not end.
bool CheckLongPacked(ByteView packed, uint64_t* num_values) {
  const uint8_t* p = packed.data();
  const uint8_t* const end = p + packed.size();
  size_t run = 0;  // continuation bytes since the last end
  for (; end - p >= 8; p += 8) {
    const uint64_t stops = ~LoadLE64(p) & kContinuationBits;
    run += static_cast<size_t>(std::countr_zero(stops)) / 8;  // 8 when there is none
    if (run >= kMaxVarintSize) return false;
    if (stops == 0) continue;
    *num_values += static_cast<uint64_t>(std::popcount(stops));
    run = static_cast<size_t>(std::countl_zero(stops)) / 8;
  }
  for (; p < end; ++p) {
    if (*p < 0x80) {
      ++*num_values;
      run = 0;
    } else if (++run == kMaxVarintSize) {
      return false;
    }
  }
  return run == 0;
}

// The same; most lists hold one value, whose size the next record does not repeat.
inline bool CheckPackedVarints(ByteView packed, uint64_t* num_values) {
  const size_t size = packed.size();
  if (size - 1 < 8) {
    const uint64_t last = uint64_t{0x80} << (8 * (size - 1));
    const uint64_t stops = ~LoadShort(packed.data(), size) & kContinuationBits & (last | (last - 1));
    if (stops == last) {
      ++*num_values;
      return true;
    }
  }
  return CheckLongPacked(packed, num_values);
}

// REQUIRES: CheckPackedVarints holds.
int64_t* CopyPacked(ByteView packed, int64_t* out) {
  if (packed.size() > kMaxVarintSize) return out + DecodePackedVarints(packed, out);
  const uint8_t* p = packed.data();
  const uint8_t* const end = p + packed.size();
  while (p < end) {
    uint64_t value;
    p = ReadVarint(p, end, &value);
    if (p == nullptr) return out;
    *out++ = static_cast<int64_t>(value);
  }
  return out;
}

const uint8_t* CheckAnyList(Kind kind, ByteView list, uint64_t* num_values) {
  const uint8_t* p = list.data();
  const uint8_t* const end = p + list.size();
  while (p < end) {
    const uint8_t* const start = p;
    Field field;
    p = ReadField(p, end, &field);
    if (p == nullptr) return start;
    if (field.number != 1) continue;
    if (kind == Kind::kBytes) {
      *num_values += field.type == WireType::kDelimited;
    } else if (kind == Kind::kFloat) {
      if (field.type == WireType::kFixed32) ++*num_values;
      if (field.type == WireType::kDelimited) {
        if (field.bytes().size() % sizeof(float) != 0) return start;
        *num_values += field.bytes().size() / sizeof(float);
      }
    } else {
      if (field.type == WireType::kVarint) ++*num_values;
      if (field.type == WireType::kDelimited && !CheckPackedVarints(field.bytes(), num_values)) return start;
    }
  }
  return nullptr;
}

// As CheckList, quicker for a list that is one short run.
inline const uint8_t* CheckUsualList(Kind kind, ByteView list, uint64_t* num_values) {
  if (!IsOneShortField(list)) return CheckAnyList(kind, list, num_values);
  const size_t size = list.size() - 2;
  if (kind == Kind::kInt64) return CheckPackedVarints(list.subspan(2), num_values) ? nullptr : list.data();
  *num_values += kind == Kind::kBytes ? 1 : size / sizeof(float);
  return kind == Kind::kBytes || size % sizeof(float) == 0 ? nullptr : list.data();
}

}  // namespace

const uint8_t* CheckList(Kind kind, ByteView list, uint64_t* num_values) {
  return CheckUsualList(kind, list, num_values);
}

ExampleReader::ExampleReader(RecordKind kind, SlotFinder* features, SlotFinder* lists) : kind_(kind) {
  features_.finder = features;
  lists_.finder = lists;
}

bool ExampleReader::FailAt(const uint8_t* p) {
  fault_ = {FaultKind::kWire, -1, static_cast<uint64_t>(p - record_), 0, 0};
  return false;
}

bool ExampleReader::FailMemory() {
  fault_ = kNoMemory;
  return false;
}

bool ExampleReader::FailUnknown(ByteView name, bool is_list) {
  const uint64_t offset = name.empty() ? 0 : static_cast<uint64_t>(name.data() - record_);
  fault_ = {FaultKind::kUnknown, -1, offset, name.size(), is_list};
  return false;
}

// Feature lists in a record that is read as an Example. If it is not a map of lists, it is an unknown field,
// which an Example may have.
bool ExampleReader::RejectLists(ByteView record, ByteView map) {
  const RecordShape shape = ClassifyClosely(record);
  if (shape != RecordShape::kSequenceExample && shape != RecordShape::kLooseSequence) return true;
  Field entry, key;
  const uint8_t* const end = map.data() + map.size();
  for (const uint8_t* p = map.data(); p < end;) {
    p = ReadField(p, end, &entry);
    if (p == nullptr) return true;
    if (!entry.Is(1, WireType::kDelimited)) continue;
    ByteView name;
    const uint8_t* const entry_end = entry.data + entry.size;
    for (const uint8_t* q = entry.data; q != nullptr && q < entry_end;) {
      q = ReadField(q, entry_end, &key);
      if (q != nullptr && key.Is(1, WireType::kDelimited)) name = key.bytes();
    }
    return FailUnknown(name, true);
  }
  return true;
}

Fault ExampleReader::Read(ByteView record) {
  ++serial_;
  record_ = record.data();
  fault_ = {};
  parts_.Clear();
  frames_.Clear();
  features_.seen.Clear();
  lists_.seen.Clear();
  KeyNode* last_feature = features_.finder->keys.start();
  KeyNode* last_list = lists_.finder == nullptr ? nullptr : lists_.finder->keys.start();
  const uint8_t* p = record.data();
  const uint8_t* const end = p + record.size();
  while (p < end) {
    const uint8_t* const start = p;
    Field field;
    p = ReadField(p, end, &field);
    if (p == nullptr) {
      FailAt(start);
      return fault_;
    }
    if (field.Is(1, WireType::kDelimited)) {
      if (!ReadMap(field.bytes(), &features_, &last_feature)) return fault_;
    } else if (kind_ == RecordKind::kSequenceExample && field.Is(2, WireType::kDelimited)) {
      if (!ReadMap(field.bytes(), &lists_, &last_list)) return fault_;
    } else if (features_.finder->rejects_others && field.Is(2, WireType::kDelimited)) {
      if (!RejectLists(record, field.bytes())) return fault_;
    }
  }
  return {};
}

bool ExampleReader::ReadMap(ByteView map, Side* side, KeyNode** previous) {
  const uint8_t* p = map.data();
  const uint8_t* const end = p + map.size();
  while (p < end) {
    const uint8_t* const start = p;
    Field field;
    p = ReadField(p, end, &field);
    if (p == nullptr) return FailAt(start);
    if (field.Is(1, WireType::kDelimited) && !ReadEntry(field.bytes(), side, previous)) return false;
  }
  return true;
}

// An entry without values for `slot`, in place of an earlier one: the last entry of a key wins.
inline MergedEntry* ExampleReader::NewEntry(const uint8_t* start, Side* side, uint32_t slot) {
  while (side->entries.size() <= slot) {
    if (!side->entries.PushBack(MergedEntry{})) {
      FailMemory();
      return nullptr;
    }
  }
  MergedEntry& entry = side->entries[slot];
  if (entry.serial != serial_ && !side->seen.PushBack(slot)) {
    FailMemory();
    return nullptr;
  }
  entry.serial = serial_;
  entry.offset = static_cast<uint64_t>(start - record_);
  entry.first_frame = frames_.size();
  entry.num_frames = 0;
  entry.feature = {Kind::kUnset, static_cast<uint32_t>(parts_.size()), 0, 0, entry.offset};
  return &entry;
}

// Merges one value of a map entry into the entry.
inline bool ExampleReader::ReadValue(ByteView value, Side* side, MergedEntry* entry) {
  if (side == &features_) return MergeFeature(value, &entry->feature);
  if (!ReadFrames(value)) return false;
  entry->num_frames = frames_.size() - entry->first_frame;
  return true;
}

bool ExampleReader::ReadEntry(ByteView entry, Side* side, KeyNode** previous) {
  // The predicted name and a value that fills the entry, as writers produce it.
  KeyNode* const node = (*previous)->next;
  const size_t head = node->pattern_size;
  if (entry.size() > head && node->Matches(entry.data()) && entry[head] < 0x80 &&
      entry[head] == entry.size() - head - 1) [[likely]] {
    *previous = node;
    if (node->slot == kNoSlot) return true;
    MergedEntry* const merged = NewEntry(entry.data(), side, node->slot);
    return merged != nullptr && ReadValue(entry.subspan(head + 1), side, merged);
  }
  // The key may come last, so it is looked for before any value is read.
  const uint8_t* const end = entry.data() + entry.size();
  ByteView key;
  for (const uint8_t* p = entry.data(); p < end;) {
    const uint8_t* const start = p;
    Field field;
    p = ReadField(p, end, &field);
    if (p == nullptr) return FailAt(start);
    if (field.Is(1, WireType::kDelimited)) key = field.bytes();
  }
  uint32_t slot;
  if (!FindSlot(key, side, previous, &slot)) return false;
  if (slot == kNoSlot) return true;
  MergedEntry* const merged = NewEntry(entry.data(), side, slot);
  if (merged == nullptr) return false;
  for (const uint8_t* p = entry.data(); p < end;) {
    Field field;
    p = ReadField(p, end, &field);
    if (p == nullptr) return FailAt(entry.data());
    if (field.Is(2, WireType::kDelimited) && !ReadValue(field.bytes(), side, merged)) return false;
  }
  return true;
}

bool ExampleReader::FindSlot(ByteView name, Side* side, KeyNode** previous, uint32_t* slot) {
  SlotFinder& finder = *side->finder;
  KeyNode* node = finder.keys.FindAfter(*previous, name);
  if (node == nullptr) {
    if (!finder.adds_names) {
      if (finder.rejects_others) return FailUnknown(name, side == &lists_);
      finder.met_others = true;
      *slot = kNoSlot;
      return true;
    }
    if (finder.num_slots >= finder.max_slots) {
      fault_ = {FaultKind::kTooManyNames, -1, 0, 0, finder.max_slots};
      return false;
    }
    node = finder.keys.Insert(name, finder.num_slots++);
    (*previous)->next = node;
  }
  *previous = node;
  *slot = node->slot;
  return true;
}

bool ExampleReader::ReadFrames(ByteView list) {
  const uint8_t* p = list.data();
  const uint8_t* const end = p + list.size();
  while (p < end) {
    const uint8_t* const start = p;
    Field field;
    p = ReadField(p, end, &field);
    if (p == nullptr) return FailAt(start);
    if (!field.Is(1, WireType::kDelimited)) continue;
    MergedFeature frame;
    frame.first_part = static_cast<uint32_t>(parts_.size());
    frame.offset = static_cast<uint64_t>(start - record_);
    if (!MergeFeature(field.bytes(), &frame)) return false;
    if (!frames_.PushBack(frame)) return FailMemory();
  }
  return true;
}

bool ExampleReader::MergeFeature(ByteView bytes, MergedFeature* feature) {
  const uint8_t* p = bytes.data();
  const uint8_t* const end = p + bytes.size();
  while (p < end) {
    const uint8_t* const start = p;
    Field field;
    p = ReadField(p, end, &field);
    if (p == nullptr) return FailAt(start);
    if (field.type != WireType::kDelimited || field.number > 3) continue;
    const Kind kind = static_cast<Kind>(field.number);
    if (kind != feature->kind) {  // another member of the oneof replaces the one before
      *feature = {kind, static_cast<uint32_t>(parts_.size()), 0, 0, feature->offset};
    }
    uint64_t num_values = 0;
    if (const uint8_t* const bad = CheckUsualList(kind, field.bytes(), &num_values)) return FailAt(bad);
    feature->num_values += num_values;
    ++feature->num_parts;
    if (parts_.size() >= UINT32_MAX || !parts_.PushBack(field.bytes())) return FailMemory();
  }
  return true;
}

void ExampleReader::CopyInts(const MergedFeature& feature, int64_t* out) const {
  for (uint32_t i = 0; i < feature.num_parts; ++i) {
    const ByteView part = parts_[feature.first_part + i];
    const uint8_t* p = part.data();
    const uint8_t* const end = p + part.size();
    while (p < end) {
      Field field;
      p = ReadField(p, end, &field);
      if (p == nullptr) return;  // not reached: CheckList has been here
      if (field.Is(1, WireType::kVarint)) *out++ = static_cast<int64_t>(field.value);
      if (field.Is(1, WireType::kDelimited)) out = CopyPacked(field.bytes(), out);
    }
  }
}

void ExampleReader::CopyFloats(const MergedFeature& feature, float* out) const {
  for (uint32_t i = 0; i < feature.num_parts; ++i) {
    const ByteView part = parts_[feature.first_part + i];
    const uint8_t* p = part.data();
    const uint8_t* const end = p + part.size();
    while (p < end) {
      Field field;
      p = ReadField(p, end, &field);
      if (p == nullptr) return;
      if (field.Is(1, WireType::kFixed32)) *out++ = std::bit_cast<float>(static_cast<uint32_t>(field.value));
      if (field.Is(1, WireType::kDelimited)) out += LoadFloats(field.bytes(), out);
    }
  }
}

void ExampleReader::CopyBytes(const MergedFeature& feature, ByteView* out) const {
  for (uint32_t i = 0; i < feature.num_parts; ++i) {
    const ByteView part = parts_[feature.first_part + i];
    const uint8_t* p = part.data();
    const uint8_t* const end = p + part.size();
    while (p < end) {
      Field field;
      p = ReadField(p, end, &field);
      if (p == nullptr) return;
      if (field.Is(1, WireType::kDelimited)) *out++ = field.bytes();
    }
  }
}

}  // namespace tfrkit
