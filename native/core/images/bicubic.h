// Bicubic resize in the manner of Pillow: scripts that made datasets with it are to be repeated, pixel by
// pixel, several times faster.
//
// Columns first, rows after, rounded and clipped to 8 bits in between, with weights of 22 bits. A smaller
// target widens the filter, so that no pixel of the source is left out. Bit for bit what Pillow computes in
// that order; since version 13 it takes rows first for some images that shrink, which moves a few pixels by a
// few levels.
#pragma once

#include "core/images/resize.h"

namespace tfrkit {

// Fills the whole target with the whole source. From three channels to one the resized colours become gray as
// Pillow's mode "L" has them: (19595 R + 38470 G + 7471 B + 32768) / 65536.
//
// False, with nothing written, where sizes do not hold together: as for ResizeImage, or channels other than 1
// or 3, or a target with more channels than the source. Any thread.
[[nodiscard]] bool ResizeBicubic(const ImageView& source, const ImageSpan& target);

}  // namespace tfrkit
