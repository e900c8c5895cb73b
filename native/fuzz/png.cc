// Arbitrary bytes as the filtered rows of a PNG, against the formulas of its specification.
#include <cstdlib>
#include <vector>

#include "core/images/png_filter.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/input.h"

namespace tfrkit::fuzz {
namespace {

uint8_t Paeth(int a, int b, int c) {
  const int p = a + b - c, pa = std::abs(p - a), pb = std::abs(p - b), pc = std::abs(p - c);
  return static_cast<uint8_t>(pa <= pb && pa <= pc ? a : pb <= pc ? b : c);
}

std::vector<uint8_t> UndoSlowly(ByteView filtered, size_t height, size_t row_nbytes, size_t step) {
  std::vector<uint8_t> pixels(height * row_nbytes);
  for (size_t y = 0; y < height; ++y) {
    const uint8_t* const row = filtered.data() + y * (row_nbytes + 1);
    for (size_t x = 0; x < row_nbytes; ++x) {
      const int a = x >= step ? pixels[y * row_nbytes + x - step] : 0;
      const int b = y > 0 ? pixels[(y - 1) * row_nbytes + x] : 0;
      const int c = y > 0 && x >= step ? pixels[(y - 1) * row_nbytes + x - step] : 0;
      const int predictions[] = {0, a, b, (a + b) / 2, Paeth(a, b, c)};
      pixels[y * row_nbytes + x] = static_cast<uint8_t>(row[1 + x] + predictions[row[0]]);
    }
  }
  return pixels;
}

}  // namespace

int FuzzOne(ByteView bytes) {
  Input input(bytes);
  const size_t height = input.Byte() % 16u, row_nbytes = input.Byte() % 64u, step = input.Byte() % 10u;
  std::vector<uint8_t> filtered = input.Rest();
  filtered.resize(height * (row_nbytes + 1));
  filtered.shrink_to_fit();
  std::vector<uint8_t> pixels(height * row_nbytes);
  bool is_sound = step >= 1 && step <= 8 && step <= row_nbytes;
  for (size_t y = 0; y < height; ++y) is_sound &= filtered[y * (row_nbytes + 1)] <= 4;
  Require(UndoPngFilters(filtered, height, row_nbytes, step, pixels) == is_sound,
          "filters are undone exactly where they are known");
  if (is_sound)
    Require(pixels == UndoSlowly(filtered, height, row_nbytes, step), "pixels are those of the formulas");
  return 0;
}

}  // namespace tfrkit::fuzz
