// Packed lists of varints: the hot loop for token data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/bytes.h"

namespace tfrkit {

inline constexpr size_t kBadVarints = SIZE_MAX;

// Decodes all varints of `packed` to `out`, and returns how many there were, or kBadVarints when one
// is longer than 10 bytes or does not end. Writes no more than CountVarints(packed) values.
// Any thread.
size_t DecodePackedVarints(ByteView packed, int64_t* out);

// The number of bytes that end a varint: the number of values of a well-formed list.
size_t CountVarints(ByteView packed);

struct PackedVarintVariant {
  const char* name;
  bool (*is_supported)();
  size_t (*decode)(const uint8_t* p, const uint8_t* end, int64_t* out);
};

// Slowest first; the last supported one is what DecodePackedVarints uses.
std::span<const PackedVarintVariant> PackedVarintVariants();

// One file each.
size_t DecodePackedVarintsPortable(const uint8_t* p, const uint8_t* end, int64_t* out);
#if defined(__x86_64__)
size_t DecodePackedVarintsBmi2(const uint8_t* p, const uint8_t* end, int64_t* out);
#endif

}  // namespace tfrkit
