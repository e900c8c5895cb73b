// CRC-32C (Castagnoli, polynomial 0x1EDC6F41, reflected), the checksum of every TFRecord frame.
//
// `Crc32c` and `ExtendCrc32c` pick the fastest variant this CPU runs, once, at first use. Every
// variant gives the same answer; they are listed so that one test suite can run over all of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/bytes.h"

namespace tfrkit {

// Continues `crc` (0 to start) over `size` bytes. Unmasked. Any thread.
uint32_t ExtendCrc32c(uint32_t crc, const uint8_t* data, size_t size);

inline uint32_t Crc32c(ByteView bytes) { return ExtendCrc32c(0, bytes.data(), bytes.size()); }

// The checksum of exactly 8 bytes, given as the little-endian value they hold: the length field of a frame,
// for which a function call would cost more than the arithmetic.
uint32_t Crc32cOfU64(uint64_t value);

struct Crc32cVariant {
  const char* name;
  bool (*is_supported)();
  uint32_t (*extend)(uint32_t crc, const uint8_t* data, size_t size);
  uint32_t (*of_u64)(uint64_t value);
};

// Slowest first; the last supported one is what ExtendCrc32c uses. "portable" is always supported.
std::span<const Crc32cVariant> Crc32cVariants();

// The name of the variant in use.
const char* Crc32cVariantInUse();

}  // namespace tfrkit
