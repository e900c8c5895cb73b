// Whether a JPEG is complete, from its codes alone, without decoding pixels.
#pragma once

#include "core/base/bytes.h"

namespace tfrkit {

// True for a baseline JPEG of one or three components in one scan, in which every code is valid, every block
// is present, restart markers are in place, and the end follows the last block: any decoder decodes it
// without a warning. False is inconclusive: the image may be damaged, or of an unsupported kind (progressive,
// arithmetic, 12 bits, several scans, CMYK). Takes about a sixth of the time of decoding. Any thread.
[[nodiscard]] bool IsSoundJpeg(ByteView data);

// True for a JPEG of that kind in which a code is invalid or a block is missing. False is inconclusive, too:
// additional bytes and a missing end are not reported, and of other kinds nothing is checked.
[[nodiscard]] bool IsDamagedJpeg(ByteView data);

}  // namespace tfrkit
