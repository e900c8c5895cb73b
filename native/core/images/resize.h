// Pixels of one image to another size, in fixed point: what tf.image.resize computes, rounded.
//
// Pixel centres are at half-integers in both images. "Bilinear" weighs source pixels by a triangle: two
// pixels wide, or, with `antialias`, as wide as a target pixel when shrinking, so that every source pixel
// counts. Rows are blended first, columns after, with 7 bits kept in between; the result is within one level
// of the exact one, and is the same for every variant on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/bytes.h"

namespace tfrkit {

// Rows of `width * channels` bytes, `stride` bytes apart.
struct ImageView {
  ByteView bytes;
  size_t height = 0;
  size_t width = 0;
  size_t channels = 0;
  size_t stride = 0;
};

struct ImageSpan {
  std::span<uint8_t> bytes;
  size_t height = 0;
  size_t width = 0;
  size_t channels = 0;
  size_t stride = 0;
};

enum class Filter : uint8_t { kBilinear, kNearest };

// The filter that `images/resize.py` calls by this name, if there is one.
[[nodiscard]] constexpr std::optional<Filter> FindFilter(std::string_view name) {
  if (name == "bilinear") return Filter::kBilinear;
  if (name == "nearest") return Filter::kNearest;
  return std::nullopt;
}

struct ResizeOptions {
  Filter filter = Filter::kBilinear;
  bool antialias = true;
  // The size of the whole resized image, and the position of the target in it; a smaller target is a crop,
  // and only that part is computed.
  size_t height = 0;
  size_t width = 0;
  size_t top = 0;
  size_t left = 0;
};

// Images are at most this high and wide; with 8-bit samples no sum overflows.
inline constexpr size_t kMaxImageSide = size_t{1} << 20;
inline constexpr size_t kMaxImageChannels = 4;

// False, with nothing written, if sizes are inconsistent: a side of 0 or over kMaxImageSide, no or
// too many channels, rows that reach past their bytes, a target that is not inside the whole. Source and
// target must not overlap. Any thread.
[[nodiscard]] bool ResizeImage(const ImageView& source, const ImageSpan& target,
                               const ResizeOptions& options);

// ---- variants, listed so that one test suite can run over all of them ----

namespace resize_internal {
struct Axis;
}

struct ResizeVariant {
  const char* name;
  bool (*is_supported)();
  // out[i] = sum over t of rows[t][i] * weights[t], in units of 1/128 level. num_taps is even.
  void (*blend_rows)(const uint8_t* const* rows, const int16_t* weights, size_t num_taps, size_t count,
                     int16_t* out);
  // One target row from one row of 1/128 levels, of which Axis::Padding() more elements must be readable.
  void (*blend_columns)(const int16_t* row, const resize_internal::Axis& axis, size_t channels, uint8_t* out);
  bool takes_spread_weights;  // Axis::spread
};

// Slowest first; the last supported one is what ResizeImage uses. "portable" is always supported.
std::span<const ResizeVariant> ResizeVariants();

// The same with a given variant, for tests.
[[nodiscard]] bool ResizeImageWith(const ResizeVariant& variant, const ImageView& source,
                                   const ImageSpan& target, const ResizeOptions& options);

}  // namespace tfrkit
