// Feature names seen so far, with a prediction of the next one.
//
// One program writes the features of every record in one order, so the name after "height" is
// nearly always the one that followed it last time: one comparison instead of a hash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "core/base/bytes.h"

namespace tfrkit {

inline constexpr uint32_t kNoSlot = UINT32_MAX;

// A pattern is the start of a map entry as every protobuf writer produces it: the key field, then the
// tag of the value field. Keys of 28 bytes or less are compared inside the node.
struct KeyNode {
  static constexpr size_t kInlinePattern = 32;
  static constexpr uint32_t kNoPattern = UINT32_MAX;  // more than any entry holds
  static constexpr uint32_t kNoStep = UINT32_MAX;

  KeyNode* next = nullptr;  // its successor last time; never nullptr in a table
  uint32_t slot = kNoSlot;  // the caller's number for it; kNoSlot: a name that was not requested
  uint32_t pattern_size = kNoPattern;
  uint32_t step = kNoStep;  // where an EntryLayout has it
  uint8_t pattern[kInlinePattern] = {};
  std::string long_pattern;
  std::string name;

  // True when the `pattern_size` bytes at `p` are the pattern.
  bool Matches(const uint8_t* p) const;
};

class KeyTable {
 public:
  KeyTable();
  KeyTable(const KeyTable&) = delete;
  KeyTable& operator=(const KeyTable&) = delete;

  // Adds a name, or returns its existing node. May throw std::bad_alloc.
  KeyNode* Insert(ByteView name, uint32_t slot);

  // nullptr if the name is unknown.
  KeyNode* Find(ByteView name) const;

  // Looks a name up after `previous`, then one further, then in the hash table, and stores the result as the
  // prediction.
  KeyNode* FindAfter(KeyNode* previous, ByteView name);

  // The node before the first name of a record. Its own pattern matches nothing.
  KeyNode* start() { return &start_; }
  size_t size() const { return nodes_.size(); }
  const std::deque<KeyNode>& nodes() const { return nodes_; }  // in the order they were added

 private:
  uint64_t Hash(ByteView name) const;
  void Grow();

  KeyNode start_;
  std::deque<KeyNode> nodes_;
  std::vector<KeyNode*> buckets_;  // open addressing, a power of two, at most half full
};

inline bool KeyNode::Matches(const uint8_t* p) const {
  const size_t size = pattern_size;
  if (size > kInlinePattern) [[unlikely]]
    return std::memcmp(p, long_pattern.data(), size) == 0;
  // Two loads from each end cover 8 to 16 bytes, four cover 16 to 32: no loop, nothing past the end.
  if (size >= 16) {
    const uint8_t* const p_tail = p + size - 16;
    const uint8_t* const tail = pattern + size - 16;
    return ((LoadLE64(p) ^ LoadLE64(pattern)) | (LoadLE64(p + 8) ^ LoadLE64(pattern + 8)) |
            (LoadLE64(p_tail) ^ LoadLE64(tail)) | (LoadLE64(p_tail + 8) ^ LoadLE64(tail + 8))) == 0;
  }
  if (size >= 8) {
    return ((LoadLE64(p) ^ LoadLE64(pattern)) | (LoadLE64(p + size - 8) ^ LoadLE64(pattern + size - 8))) == 0;
  }
  if (size >= 4) {
    return ((LoadLE32(p) ^ LoadLE32(pattern)) | (LoadLE32(p + size - 4) ^ LoadLE32(pattern + size - 4))) == 0;
  }
  return std::memcmp(p, pattern, size) == 0;
}

}  // namespace tfrkit
