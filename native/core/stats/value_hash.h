// A 64-bit hash of bytes, to tell values apart that are counted. Not for secrets: collisions can be made.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/bytes.h"

namespace tfrkit {

// The same for the same bytes on every machine, and spread evenly over 64 bits.
//
//   h = size * kStep
//   Four lanes, from h, h + 1, h + 2 and h + 3, take the words (8 bytes, little-endian) of each whole
//   32 bytes. Where there are some, h takes the lanes, one after the other. Then h takes the words that
//   are left, and last what is left of a word, as a number.
//   To take x is h = (h ^ x) * kStep; h ^= h >> 32. At the end come the last steps of splitmix64.
uint64_t HashValue(ByteView value);

// Do offsets of values rise, and stay inside so many bytes?
bool AreOffsetsInside(std::span<const int64_t> offsets, size_t nbytes);

}  // namespace tfrkit
