// Bicubic resize with Pillow's results, several times faster, so that datasets made with Pillow can be
// reproduced.
//
// Columns first, rows after, rounded and clipped to 8 bits in between, with weights of 22 bits. A smaller
// target widens the filter, so that no pixel of the source is left out. Bit for bit what Pillow computes in
// that order; since version 13 Pillow does rows first for some shrinking images, which changes a few pixels
// by a few levels.
#pragma once

#include "core/images/resize.h"

namespace tfrkit {

// Fills the whole target with the whole source. From three channels to one the resized colours become gray as
// Pillow's mode "L" has them: (19595 R + 38470 G + 7471 B + 32768) / 65536.
//
// False, with nothing written, if sizes are inconsistent: as for ResizeImage, or channels other than 1
// or 3, or a target with more channels than the source. Any thread.
[[nodiscard]] bool ResizeBicubic(const ImageView& source, const ImageSpan& target);

}  // namespace tfrkit
