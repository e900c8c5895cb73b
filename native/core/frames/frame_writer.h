// Appending frames to a buffer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/base/bytes.h"
#include "core/base/pool.h"

namespace tfrkit {

// Appends one frame. False when memory is exhausted; nothing is appended then.
[[nodiscard]] bool AppendFrame(ByteView payload, PoolVector<uint8_t>* out);

// For a payload that is produced in place: reserve a header, append the payload to `out`, then
// finish. `start` is what BeginFrame returned.
[[nodiscard]] bool BeginFrame(PoolVector<uint8_t>* out, size_t* start);
[[nodiscard]] bool FinishFrame(PoolVector<uint8_t>* out, size_t start);

}  // namespace tfrkit
