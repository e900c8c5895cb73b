#include "core/images/png_filter.h"

#include <cstdlib>
#include <cstring>
#include <vector>

namespace tfrkit {

namespace {

enum PngFilter : uint8_t { kNone, kSub, kUp, kAverage, kPaeth };

// The nearest of left, above and corner to left + above - corner; on a tie the first of them.
inline uint8_t Predict(int left, int above, int corner) {
  const int to_left = std::abs(above - corner);
  const int to_above = std::abs(left - corner);
  const int to_corner = std::abs(left + above - 2 * corner);
  if (to_left <= to_above && to_left <= to_corner) return static_cast<uint8_t>(left);
  return static_cast<uint8_t>(to_above <= to_corner ? above : corner);
}

// `step` is a compile-time constant in the common cases, so that a pixel's neighbours stay in registers.
template <size_t kStep>
bool UndoRow(uint8_t filter, const uint8_t* from, const uint8_t* above, size_t nbytes, size_t any_step,
             uint8_t* out) {
  const size_t step = kStep == 0 ? any_step : kStep;
  switch (filter) {
    case kNone:
      std::memcpy(out, from, nbytes);
      return true;
    case kSub:
      std::memcpy(out, from, step);
      for (size_t i = step; i < nbytes; ++i) out[i] = static_cast<uint8_t>(from[i] + out[i - step]);
      return true;
    case kUp:
      for (size_t i = 0; i < nbytes; ++i) out[i] = static_cast<uint8_t>(from[i] + above[i]);
      return true;
    case kAverage:
      for (size_t i = 0; i < step; ++i) out[i] = static_cast<uint8_t>(from[i] + above[i] / 2);
      for (size_t i = step; i < nbytes; ++i) {
        out[i] = static_cast<uint8_t>(from[i] + (out[i - step] + above[i]) / 2);
      }
      return true;
    case kPaeth:
      for (size_t i = 0; i < step; ++i) out[i] = static_cast<uint8_t>(from[i] + above[i]);
      for (size_t i = step; i < nbytes; ++i) {
        out[i] = static_cast<uint8_t>(from[i] + Predict(out[i - step], above[i], above[i - step]));
      }
      return true;
    default:
      return false;
  }
}

}  // namespace

bool UndoPngFilters(ByteView filtered, size_t height, size_t row_nbytes, size_t bytes_per_pixel,
                    std::span<uint8_t> pixels) {
  if (bytes_per_pixel == 0 || bytes_per_pixel > 8 || bytes_per_pixel > row_nbytes) return false;
  uint64_t num_filtered, num_pixels, one_row;
  if (!CheckedAdd(row_nbytes, 1, &one_row) || !CheckedMul(height, one_row, &num_filtered) ||
      !CheckedMul(height, row_nbytes, &num_pixels)) {
    return false;
  }
  if (filtered.size() != num_filtered || pixels.size() != num_pixels) return false;
  const std::vector<uint8_t> nothing(row_nbytes);
  const uint8_t* above = nothing.data();
  const uint8_t* from = filtered.data();
  uint8_t* out = pixels.data();
  const auto undo = bytes_per_pixel == 3 ? UndoRow<3> : bytes_per_pixel == 4 ? UndoRow<4> : UndoRow<0>;
  for (size_t y = 0; y < height; ++y) {
    if (!undo(*from, from + 1, above, row_nbytes, bytes_per_pixel, out)) return false;
    above = out;
    from += row_nbytes + 1;
    out += row_nbytes;
  }
  return true;
}

}  // namespace tfrkit
