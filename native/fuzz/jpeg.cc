// Arbitrary bytes as a JPEG: its header, its scans, and whether a build may store it as it is.
#include <vector>

#include "core/images/jpeg_check.h"
#include "core/images/jpeg_header.h"
#include "fuzz/fuzz_target.h"

namespace tfrkit::fuzz {

int FuzzOne(ByteView bytes) {
  const std::vector<uint8_t> block(bytes.begin(), bytes.end());
  const ByteView input(block);
  JpegHeader header;
  const bool has_header = ReadJpegHeader(input, &header);
  if (has_header) {
    Require(header.orientation >= 1 && header.orientation <= 8, "an orientation is 1 to 8");
    Require(header.width <= 0xffff && header.height <= 0xffff, "a side has 16 bits");
  }
  const JpegScans scans = WalkJpegScans(input);
  Require(scans.num_scans <= input.size() / 4, "a scan takes four bytes at least");
  if (!IsSoundJpeg(input)) return 0;
  Require(has_header, "a sound JPEG has a header");
  Require(header.height > 0 && header.width > 0 && !header.is_progressive,
          "a sound JPEG is baseline and has pixels");
  Require(scans.has_end, "a sound JPEG has an end");
  return 0;
}

}  // namespace tfrkit::fuzz
