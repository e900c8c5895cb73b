// What a fuzz target takes from the bytes it is given.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/base/bytes.h"
#include "core/wire/wire.h"

namespace tfrkit::fuzz {

// Takes numbers from the front; zeros once the bytes are used up.
class Input {
 public:
  explicit Input(ByteView bytes) : rest_(bytes) {}

  uint8_t Byte() {
    if (rest_.empty()) return 0;
    const uint8_t byte = rest_[0];
    rest_ = rest_.subspan(1);
    return byte;
  }
  // `size` bytes, little-endian. REQUIRES: size <= 8.
  uint64_t Number(size_t size) {
    uint64_t number = 0;
    for (size_t i = 0; i < size; ++i) number |= static_cast<uint64_t>(Byte()) << (8 * i);
    return number;
  }
  // A number that is small in most inputs, and of any size in some.
  uint64_t AnySize() { return Number(Byte() % 9u); }
  // At most `size` bytes in a block of exactly their size, so that the address sanitizer sees one byte too
  // many.
  std::vector<uint8_t> Block(size_t size) {
    size = std::min(size, rest_.size());
    std::vector<uint8_t> block(rest_.begin(), rest_.begin() + static_cast<ptrdiff_t>(size));
    rest_ = rest_.subspan(size);
    return block;
  }
  std::vector<uint8_t> Rest() { return Block(rest_.size()); }
  bool empty() const { return rest_.empty(); }
  size_t size() const { return rest_.size(); }

 private:
  ByteView rest_;
};

// Records in a message of their own, each a field of bytes, so that one mutator of messages serves all
// targets. Bytes that are no such message are one record.
inline std::vector<std::vector<uint8_t>> TakeRecords(ByteView bytes) {
  std::vector<std::vector<uint8_t>> records;
  const uint8_t* const end = bytes.data() + bytes.size();
  for (const uint8_t* p = bytes.data(); p < end;) {
    Field field;
    p = ReadField(p, end, &field);
    if (p == nullptr || field.type != WireType::kDelimited) return {{bytes.begin(), bytes.end()}};
    records.emplace_back(field.bytes().begin(), field.bytes().end());
  }
  return records;
}

}  // namespace tfrkit::fuzz
