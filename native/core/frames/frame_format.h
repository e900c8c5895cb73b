// The frame of a TFRecord file. See docs/look-up/format.md.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tfrkit {

inline constexpr size_t kHeaderSize = 8 + 4;                         // length, masked crc of length
inline constexpr size_t kFooterSize = 4;                             // masked crc of payload
inline constexpr size_t kFrameOverhead = kHeaderSize + kFooterSize;  // an empty record is 16 bytes

inline constexpr uint32_t kMaskDelta = 0xa282ead8u;

// A checksum of bytes that contain checksums is weak, so stored ones are rotated and shifted.
inline constexpr uint32_t MaskCrc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + kMaskDelta; }

inline constexpr uint32_t UnmaskCrc(uint32_t masked) {
  const uint32_t rotated = masked - kMaskDelta;
  return (rotated >> 17) | (rotated << 15);
}

}  // namespace tfrkit
