// Finding the next frame after damage.
#pragma once

#include <cstdint>
#include <optional>

#include "core/bytes.h"

namespace tfrkit {

struct ResyncResult {
  bool found = false;
  uint64_t offset = 0;  // found: start of a frame whose two checksums hold
                        // not found: first offset that a longer span could still turn into a frame
};

// Searches [offset, span.size()) for the first frame whose length and payload checksums both hold.
//
// A candidate whose payload runs past the span is passed over when `is_final`; otherwise the search
// stops there, so that a caller with more bytes can go on from `offset`.
// Cost: about one 8-byte checksum per byte searched.
ResyncResult FindNextFrame(ByteView span, uint64_t offset, bool is_final);

}  // namespace tfrkit
