// Reading any well-formed Example or SequenceExample with protobuf's merge rules.
//
// This is the general reader: every order, repetition and unknown field that protobuf accepts. The column
// builder has a faster one for records in the usual layout and uses this one for the others.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/bytes.h"
#include "core/base/fault.h"
#include "core/base/pool.h"
#include "core/wire/key_table.h"
#include "core/wire/record_types.h"
#include "core/wire/wire.h"

namespace tfrkit {

// A Feature after merging. Its list is the concatenation of parts, each the bytes of a list message: merging
// two lists concatenates their bytes.
struct MergedFeature {
  Kind kind = Kind::kUnset;
  uint32_t first_part = 0;
  uint32_t num_parts = 0;
  uint64_t num_values = 0;
  uint64_t offset = 0;  // of the Feature in the record
};

// Contents of a record for one name.
struct MergedEntry {
  uint64_t serial = 0;                     // of the record it belongs to; an older one means absent
  MergedFeature feature;                   // Example and context
  size_t first_frame = 0, num_frames = 0;  // feature lists
  uint64_t offset = 0;
};

// Name lookup. Names without a slot are skipped unread.
struct SlotFinder {
  KeyTable keys;
  bool adds_names = false;  // give every new name the next slot
  uint32_t num_slots = 0;
  uint32_t max_slots = kNoSlot;  // with adds_names: more names than this is kTooManyNames
  bool rejects_others = false;   // without it: a name that is not in the table is kUnknown
  bool met_others = false;       // without either: a record had a name that is not in the table
};

class ExampleReader {
 public:
  // The finders must outlive the reader; `lists` may be nullptr for Examples.
  ExampleReader(RecordKind kind, SlotFinder* features, SlotFinder* lists);

  // Reads one record. Results of the accessors are valid until the next call, while the record is.
  // May throw std::bad_alloc.
  [[nodiscard]] Fault Read(ByteView record);

  // nullptr when the record has no such name.
  const MergedEntry* Feature(uint32_t slot) const { return Get(features_, slot); }
  const MergedEntry* List(uint32_t slot) const { return Get(lists_, slot); }
  const MergedFeature& Frame(size_t index) const { return frames_[index]; }

  // Slots the record has, in the order they were first met.
  const PoolVector<uint32_t>& feature_slots() const { return features_.seen; }
  const PoolVector<uint32_t>& list_slots() const { return lists_.seen; }

  // The bytes of the one list a feature was read from; empty when it was merged from several.
  ByteView OnlyPart(const MergedFeature& feature) const {
    return feature.num_parts == 1 ? parts_[feature.first_part] : ByteView();
  }

  // Copies all values of a feature. REQUIRES: its kind; room for num_values.
  void CopyInts(const MergedFeature& feature, int64_t* out) const;
  void CopyFloats(const MergedFeature& feature, float* out) const;
  void CopyBytes(const MergedFeature& feature, ByteView* out) const;

 private:
  struct Side {  // the Example or context features, or the feature lists
    SlotFinder* finder = nullptr;
    PoolVector<MergedEntry> entries;  // by slot
    PoolVector<uint32_t> seen;
  };

  const MergedEntry* Get(const Side& side, uint32_t slot) const {
    if (slot >= side.entries.size() || side.entries[slot].serial != serial_) return nullptr;
    return &side.entries[slot];
  }
  bool ReadMap(ByteView map, Side* side, KeyNode** previous);
  bool ReadEntry(ByteView entry, Side* side, KeyNode** previous);
  MergedEntry* NewEntry(const uint8_t* start, Side* side, uint32_t slot);
  bool ReadValue(ByteView value, Side* side, MergedEntry* entry);
  bool ReadFrames(ByteView list);
  bool MergeFeature(ByteView bytes, MergedFeature* feature);
  bool FindSlot(ByteView name, Side* side, KeyNode** previous, uint32_t* slot);
  bool FailAt(const uint8_t* p);
  bool FailMemory();
  bool FailUnknown(ByteView name, bool is_list);
  bool RejectLists(ByteView record, ByteView map);

  RecordKind kind_;
  Side features_;
  Side lists_;
  PoolVector<ByteView> parts_;
  PoolVector<MergedFeature> frames_;
  uint64_t serial_ = 0;
  const uint8_t* record_ = nullptr;
  Fault fault_;
};

// Checks a list message of `kind` and counts its values. Returns where it is malformed, or nullptr.
[[nodiscard]] const uint8_t* CheckList(Kind kind, ByteView list, uint64_t* num_values);

// True when a message is field 1 with a length of one byte, and nothing else: one bytes value, or a short
// packed list.
inline bool IsOneShortField(ByteView message) {
  return message.size() >= 2 && message[0] == kFieldOneTag && message[1] < 0x80 &&
         message[1] == message.size() - 2;
}

}  // namespace tfrkit
