// Resizing: all sizes that an image may claim, in buffers of exactly the size used. Small ones, so that an
// execution takes microseconds; the native tests have large ones.
#include "core/images/resize.h"

#include <algorithm>
#include <vector>

#include "core/images/bicubic.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/input.h"

namespace tfrkit::fuzz {
namespace {

constexpr size_t kMaxSide = 12;

struct Image {
  size_t channels = 0, height = 0, width = 0, stride = 0;
  std::vector<uint8_t> bytes;
  ImageView view() const { return {bytes, height, width, channels, stride}; }
};

Image TakeImage(Input* input) {
  Image image;
  image.channels = input->Byte() % 6u;
  image.height = input->Byte() % kMaxSide;
  image.width = input->Byte() % kMaxSide;
  image.stride = image.width * image.channels + input->Byte() % 4u;
  image.bytes.resize(image.height == 0 ? 0
                                       : (image.height - 1) * image.stride + image.width * image.channels);
  return image;
}

void Fill(Input* input, Image* image) {
  const std::vector<uint8_t> rest = input->Rest();
  for (size_t i = 0; i < image->bytes.size(); ++i)
    image->bytes[i] = rest.empty() ? 255 : rest[i % rest.size()];
}

void CheckResize(Input* input) {
  Image image = TakeImage(input);
  const size_t rows = input->Byte() % kMaxSide, columns = input->Byte() % kMaxSide;
  const uint8_t choices = input->Byte();
  const ResizeOptions options{(choices & 1) != 0 ? Filter::kBilinear : Filter::kNearest,
                              (choices & 2) != 0,
                              rows + input->Byte() % 16u,
                              columns + input->Byte() % 16u,
                              input->Byte() % 24u,
                              input->Byte() % 24u};
  Fill(input, &image);
  std::vector<uint8_t> expected;
  for (const ResizeVariant& variant : ResizeVariants()) {
    if (!variant.is_supported()) continue;
    std::vector<uint8_t> target(rows * columns * image.channels, 1);
    if (!ResizeImageWith(variant, image.view(),
                         {target, rows, columns, image.channels, columns * image.channels}, options))
      return;
    if (expected.empty()) expected = target;
    Require(target == expected, "variants agree");
  }
  const auto [low, high] = std::minmax_element(image.bytes.begin(), image.bytes.end());
  for (const uint8_t level : expected)
    Require(level >= *low && level <= *high, "no level is outside those given");
}

void CheckBicubic(Input* input) {
  Image image = TakeImage(input);
  const size_t channels = input->Byte() % 5u, rows = input->Byte() % kMaxSide,
               columns = input->Byte() % kMaxSide;
  Fill(input, &image);
  std::vector<uint8_t> target(rows * columns * channels);
  const bool is_done = ResizeBicubic(image.view(), {target, rows, columns, channels, columns * channels});
  const bool is_known = (image.channels == 1 || image.channels == 3) && (channels == 1 || channels == 3);
  const bool has_pixels = image.height > 0 && image.width > 0 && rows > 0 && columns > 0;
  Require(is_done == (is_known && has_pixels && channels <= image.channels),
          "sizes that hold together are resized");
}

}  // namespace

int FuzzOne(ByteView bytes) {
  Input input(bytes);
  if ((input.Byte() & 1) != 0) {
    CheckResize(&input);
  } else {
    CheckBicubic(&input);
  }
  return 0;
}

}  // namespace tfrkit::fuzz
