// What the structure-aware mutators share.
//
// A target that knows the structure of its input links one of mutate_frames.cc and mutate_messages.cc. The
// first byte of its input is left to libFuzzer: it holds the choices of the target.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

// libFuzzer's own mutation of bytes.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace tfrkit::fuzz {

using Bytes = std::vector<uint8_t>;

// A small generator: what is drawn follows from the seed alone.
class Chooser {
 public:
  explicit Chooser(unsigned seed) : state_(seed * 0x9e3779b97f4a7c15u + 1) {}

  // A number below `limit`. REQUIRES: limit > 0.
  size_t Below(size_t limit) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<size_t>(state_ % limit);
  }
  bool Once(size_t of) { return Below(of) == 0; }

 private:
  uint64_t state_;
};

inline void MutateBytes(Bytes* bytes, size_t room) {
  const size_t size = bytes->size();
  bytes->resize(size + room);
  if (bytes->empty()) return;
  bytes->resize(LLVMFuzzerMutate(bytes->data(), size, bytes->size()));
}

// Puts the mutated content after the first byte; the old content stays if it does not fit.
inline size_t Replace(uint8_t* data, size_t size, size_t max_size, const Bytes& content) {
  if (content.size() + 1 > max_size) return size;
  for (size_t i = 0; i < content.size(); ++i) data[1 + i] = content[i];
  return 1 + content.size();
}

}  // namespace tfrkit::fuzz
