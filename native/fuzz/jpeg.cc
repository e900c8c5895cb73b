// Arbitrary bytes as a JPEG header and as the sizes of a resize.
#include <algorithm>
#include <vector>

#include "core/images/jpeg_header.h"
#include "core/images/resize.h"
#include "fuzz/fuzz_target.h"

namespace tfrkit::fuzz {
namespace {

void CheckHeader(ByteView input) {
  JpegHeader header;
  if (ReadJpegHeader(input, &header)) {
    Require(header.orientation >= 1 && header.orientation <= 8, "an orientation is 1 to 8");
    Require(header.width <= 0xffff && header.height <= 0xffff, "a side has 16 bits");
  }
  const JpegScans scans = WalkJpegScans(input);
  Require(scans.num_scans <= input.size() / 4, "a scan takes four bytes at least");
}

// The first bytes are sizes, the rest pixels. Buffers are of exactly the size used, so that the address
// sanitizer sees one byte too many.
void CheckResize(ByteView input) {
  if (input.size() < 12) return;
  const auto number = [&](size_t i) { return size_t{input[i]}; };
  const size_t channels = number(0) % 6;
  const size_t height = number(1), width = number(2), stride = width * channels + number(3) % 4;
  const size_t rows = number(4), columns = number(5);
  const ResizeOptions options{number(6) % 2 == 0 ? Filter::kBilinear : Filter::kNearest,
                              number(7) % 2 == 0,
                              rows + number(8) % 16,
                              columns + number(9) % 16,
                              number(10) % 24,
                              number(11) % 24};
  const ByteView rest = input.subspan(12);
  std::vector<uint8_t> source(height == 0 ? 0 : (height - 1) * stride + width * channels);
  for (size_t i = 0; i < source.size(); ++i) source[i] = rest.empty() ? 255 : rest[i % rest.size()];
  source.shrink_to_fit();
  const size_t nbytes = rows * columns * channels;
  const ImageView from{source, height, width, channels, stride};
  std::vector<uint8_t> expected;
  for (const ResizeVariant& variant : ResizeVariants()) {
    if (!variant.is_supported()) continue;
    std::vector<uint8_t> target(nbytes, 1);
    if (!ResizeImageWith(variant, from, {target, rows, columns, channels, columns * channels}, options))
      return;
    if (expected.empty()) expected = target;
    Require(target == expected, "variants agree");
  }
  const auto [low, high] = std::minmax_element(source.begin(), source.end());
  for (const uint8_t level : expected)
    Require(level >= *low && level <= *high, "no level is outside those given");
}

}  // namespace

int FuzzOne(ByteView input) {
  CheckHeader(input);
  CheckResize(input);
  return 0;
}

}  // namespace tfrkit::fuzz
