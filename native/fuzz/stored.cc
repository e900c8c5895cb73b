// Arbitrary bytes as image input of a build: a JPEG to check, rows of a PNG, pixels to resize.
#include <vector>

#include "core/images/bicubic.h"
#include "core/images/jpeg_check.h"
#include "core/images/jpeg_header.h"
#include "core/images/png_filter.h"
#include "fuzz/fuzz_target.h"

namespace tfrkit::fuzz {
namespace {

void CheckJpeg(ByteView input) {
  if (!IsSoundJpeg(input)) return;
  JpegHeader header;
  Require(ReadJpegHeader(input, &header), "a sound JPEG has a header");
  Require(header.height > 0 && header.width > 0 && !header.is_progressive,
          "a sound JPEG is baseline and has pixels");
  Require(WalkJpegScans(input).has_end, "a sound JPEG has an end");
}

// Buffers are of exactly the size used, so that the address sanitizer sees one byte too many.
void CheckPng(ByteView input) {
  if (input.size() < 3) return;
  const size_t height = input[0] % 16, row_nbytes = input[1] % 64, step = input[2] % 10;
  std::vector<uint8_t> filtered(input.begin() + 3, input.end());
  filtered.resize(height * (row_nbytes + 1));
  filtered.shrink_to_fit();
  std::vector<uint8_t> pixels(height * row_nbytes);
  bool has_known_filters = true;
  for (size_t y = 0; y < height; ++y) has_known_filters &= filtered[y * (row_nbytes + 1)] <= 4;
  const bool is_done = UndoPngFilters(filtered, height, row_nbytes, step, pixels);
  const bool has_step = step >= 1 && step <= 8 && step <= row_nbytes;
  Require(is_done == (has_known_filters && has_step), "filters are undone exactly where they are known");
}

void CheckBicubic(ByteView input) {
  if (input.size() < 8) return;
  const auto number = [&](size_t i) { return size_t{input[i]}; };
  const size_t channels = number(0) % 5, target_channels = number(1) % 5;
  const size_t height = number(2) % 64, width = number(3) % 64, stride = width * channels + number(4) % 4;
  const size_t rows = number(5) % 64, columns = number(6) % 64;
  const ByteView rest = input.subspan(7);
  std::vector<uint8_t> source(height == 0 ? 0 : (height - 1) * stride + width * channels);
  for (size_t i = 0; i < source.size(); ++i) source[i] = rest[i % rest.size()];
  source.shrink_to_fit();
  std::vector<uint8_t> target(rows * columns * target_channels);
  const ImageView from{source, height, width, channels, stride};
  const bool is_done =
      ResizeBicubic(from, {target, rows, columns, target_channels, columns * target_channels});
  const bool is_known = (channels == 1 || channels == 3) && (target_channels == 1 || target_channels == 3);
  const bool has_pixels = height > 0 && width > 0 && rows > 0 && columns > 0;
  Require(is_done == (is_known && has_pixels && target_channels <= channels),
          "sizes that hold together are resized");
}

}  // namespace

int FuzzOne(ByteView input) {
  CheckJpeg(input);
  CheckPng(input);
  CheckBicubic(input);
  return 0;
}

}  // namespace tfrkit::fuzz
