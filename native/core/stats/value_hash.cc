#include "core/stats/value_hash.h"

namespace tfrkit {
namespace {

constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;
constexpr size_t kWord = 8;
constexpr size_t kBlock = 4 * kWord;

uint64_t Take(uint64_t hash, uint64_t word) {
  hash = (hash ^ word) * kStep;
  return hash ^ (hash >> 32);
}

}  // namespace

uint64_t HashValue(ByteView value) {
  const uint8_t* p = value.data();
  size_t left = value.size();
  uint64_t hash = left * kStep;
  if (left >= kBlock) {
    // Each multiplication depends on the one before; four lanes are independent.
    uint64_t a = hash, b = hash + 1, c = hash + 2, d = hash + 3;
    for (; left >= kBlock; p += kBlock, left -= kBlock) {
      a = Take(a, LoadLE64(p));
      b = Take(b, LoadLE64(p + kWord));
      c = Take(c, LoadLE64(p + 2 * kWord));
      d = Take(d, LoadLE64(p + 3 * kWord));
    }
    hash = Take(Take(Take(Take(hash, a), b), c), d);
  }
  for (; left >= kWord; p += kWord, left -= kWord) hash = Take(hash, LoadLE64(p));
  if (left > 0) {
    uint64_t word = 0;
    for (size_t i = 0; i < left; ++i) word |= static_cast<uint64_t>(p[i]) << (8 * i);
    hash = Take(hash, word);
  }
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
  return hash ^ (hash >> 31);
}

bool AreOffsetsInside(std::span<const int64_t> offsets, size_t nbytes) {
  if (offsets.empty()) return true;
  bool is_rising = offsets.front() >= 0 && static_cast<uint64_t>(offsets.back()) <= nbytes;
  for (size_t i = 1; i < offsets.size(); ++i) is_rising &= offsets[i - 1] <= offsets[i];
  return is_rising;
}

}  // namespace tfrkit
