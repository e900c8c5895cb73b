// The header of a JPEG: size, components, orientation. No pixel is decoded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/bytes.h"

namespace tfrkit {

struct JpegHeader {
  uint32_t width = 0;  // 0 is legal for the height: it then comes after the first scan
  uint32_t height = 0;
  uint8_t num_components = 0;
  uint8_t bits = 0;  // per sample
  bool is_progressive = false;
  uint8_t orientation = 1;  // of the Exif segment, 1..8; 1 where there is none or it is out of range
};

// False if the bytes do not begin as a JPEG does, or end before its frame header. Any thread.
[[nodiscard]] bool ReadJpegHeader(ByteView bytes, JpegHeader* header);

struct JpegScans {
  uint64_t num_scans = 0;
  bool has_end = false;  // the end-of-image marker is in place
};

// Walks all segments and the entropy-coded data between them. Linear in the size of the bytes.
JpegScans WalkJpegScans(ByteView bytes);

}  // namespace tfrkit
