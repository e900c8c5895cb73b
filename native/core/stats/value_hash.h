// A 64-bit hash of bytes, to identify counted values. Not for secrets: collisions can be constructed.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/bytes.h"

namespace tfrkit {

// The same for the same bytes on every machine, and spread evenly over 64 bits.
//
//   h = size * kStep
//   Four lanes, from h, h + 1, h + 2 and h + 3, take the words (8 bytes, little-endian) of each whole
//   32 bytes. If there are any, h takes the lanes, one after the other. Then h takes the remaining words
//   and last the remaining bytes, as a number.
//   To take x is h = (h ^ x) * kStep; h ^= h >> 32. The finalizer of splitmix64 ends it.
uint64_t HashValue(ByteView value);

// True if offsets are non-decreasing and within `nbytes`.
bool AreOffsetsInside(std::span<const int64_t> offsets, size_t nbytes);

}  // namespace tfrkit
