// Layout of the map entries in the previous records.
//
// One program writes the features of every record in one order, and most of them in the same number of
// bytes. So the start of the next entry is known before its length is read, and two word comparisons confirm
// the entry: its lengths, its key, and nothing between them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/bytes.h"
#include "core/base/pool.h"
#include "core/wire/key_table.h"

namespace tfrkit {

// A short entry: tag, length, tag, length, key, tag, length | value. All lengths are one byte.
struct EntryStep {
  static constexpr uint64_t kLengthByte = 0xff00;

  // Size of the whole entry; SIZE_MAX, which never matches, for entries that need more than two comparisons:
  // those of varying size or with a long key.
  size_t plain_size = SIZE_MAX;
  uint64_t head = 0, tail = 0;  // first and last word of the part before the value
  uint32_t tail_offset = 0;     // where `tail` is
  uint32_t slot = kNoSlot;
  uint16_t size = 0;    // 0: no entry, the end of a layout
  bool varies = false;  // then `head` and `tail` are without the two lengths that follow from the size
  KeyNode* node = nullptr;
  uint64_t num_changes = 0;  // of the size

  // True when such an entry is at `p`; then `*found` is its size. `left` bytes may be read.
  bool Matches(const uint8_t* p, size_t left, size_t* found) const {
    if (left >= plain_size && ((LoadLE64(p) ^ head) | (LoadLE64(p + tail_offset) ^ tail)) == 0) [[likely]] {
      *found = plain_size;
      return true;
    }
    const size_t head_size = size_t{tail_offset} + sizeof tail;
    if (plain_size != SIZE_MAX || left < head_size || size == 0) return false;
    const uint64_t length = p[1];
    *found = length + 2;
    // The length of the value is that of the entry less the constant part.
    const uint64_t differs = ((LoadLE64(p) & ~kLengthByte) ^ head) |
                             (LoadLE64(p + tail_offset) - (length << 56) - tail) | (length & 0x80);
    return differs == 0 && *found >= head_size && *found <= left &&
           (tail_offset <= sizeof head || node->Matches(p + 2));
  }

  // Where the length of the value is.
  const uint8_t* Value(const uint8_t* p) const { return p + tail_offset + sizeof tail - 1; }
};

// The entries of a map, in the order in which a record had them. One thread at a time.
class EntryLayout {
 public:
  // The first one; after the last is one that matches nothing.
  const EntryStep* begin() const { return steps_.empty() ? &kNothing : steps_.data(); }

  // Records an unexpected entry: at `p`, `size` bytes long, with key `node`. Returns the entry expected after
  // it. `serial` counts records. Pointers into the layout become invalid. REQUIRES: the entry is key and
  // value, in this order, with nothing else.
  const EntryStep* Learn(const EntryStep* expected, KeyNode* node, const uint8_t* p, size_t size,
                         uint64_t serial) {
    return size < kLongSize ? LearnShort(expected, node, p, size, serial) : expected;
  }

 private:
  static constexpr EntryStep kNothing{};
  static constexpr size_t kMinHead = 8;          // so that a word fits
  static constexpr size_t kLongSize = 2 + 0x80;  // with a length of two bytes, more even
  static constexpr uint64_t kPatience = 64;

  const EntryStep* LearnShort(const EntryStep* expected, KeyNode* node, const uint8_t* p, size_t size,
                              uint64_t serial);
  static void SetSize(EntryStep* step, const uint8_t* p, size_t size);
  const EntryStep* Add(KeyNode* node, const uint8_t* p, size_t size, uint64_t serial);

  PoolVector<EntryStep> steps_;
  uint64_t first_serial_ = 0;  // of the record that the order was taken from
  uint64_t num_jumps_ = 0;     // entries out of order since then
};

}  // namespace tfrkit
