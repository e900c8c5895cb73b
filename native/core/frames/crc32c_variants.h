// How the CRC-32C variants are listed. Private to crc32c*.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/frames/crc32c.h"

namespace tfrkit::crc32c_internal {

uint32_t ExtendPortable(uint32_t crc, const uint8_t* data, size_t size);
uint32_t OfU64Portable(uint64_t value);

// Empty on other architectures.
std::span<const Crc32cVariant> X86Variants();
std::span<const Crc32cVariant> Arm64Variants();

}  // namespace tfrkit::crc32c_internal
