// Undoes the filters of PNG rows: inflated IDAT data to pixels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/bytes.h"

namespace tfrkit {

// Converts rows of a filter byte and `row_nbytes` bytes to plain rows.
//
// False, with unspecified pixels, where `filtered` is not height rows, `pixels` is not height * row_nbytes, a
// filter is not one of the five, or bytes_per_pixel is not 1 to 8 or larger than a row. Any thread.
[[nodiscard]] bool UndoPngFilters(ByteView filtered, size_t height, size_t row_nbytes, size_t bytes_per_pixel,
                                  std::span<uint8_t> pixels);

}  // namespace tfrkit
