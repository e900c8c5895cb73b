// The filters of PNG rows, undone: what inflating the IDAT chunks of an image gives becomes its pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/bytes.h"

namespace tfrkit {

// Rows of `row_nbytes` bytes, each after one byte that names its filter, to rows without that byte.
//
// False, with unspecified pixels, where `filtered` is not height rows, `pixels` is not height * row_nbytes, a
// filter is not one of the five, or bytes_per_pixel is not 1 to 8 or larger than a row. Any thread.
[[nodiscard]] bool UndoPngFilters(ByteView filtered, size_t height, size_t row_nbytes, size_t bytes_per_pixel,
                                  std::span<uint8_t> pixels);

}  // namespace tfrkit
