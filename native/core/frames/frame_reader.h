// Reading frames out of a span of bytes.
#pragma once

#include <cstdint>

#include "core/base/bytes.h"
#include "core/base/fault.h"
#include "core/frames/crc32c.h"
#include "core/frames/frame_format.h"

namespace tfrkit {

enum class Verify : uint8_t {
  kNone,     // bounds only
  kLengths,  // bounds and the checksum of each length
  kAll,      // both checksums
};

struct Frame {
  ByteView payload;  // a view into the span
  uint64_t end = 0;  // where the next frame starts
};

// Reads the frame that starts at `offset`.
//
// The length is compared with the rest of the span before it is used. On kPayloadChecksum `frame` is still
// filled in, so that a caller may skip it. REQUIRES: offset <= span.size().
[[nodiscard]] inline Fault ReadFrame(ByteView span, uint64_t offset, Verify verify, Frame* frame) {
  const uint64_t left = span.size() - offset;
  if (left < kHeaderSize) return {FaultKind::kTruncatedHeader, -1, offset, kHeaderSize, left};
  const uint8_t* header = span.data() + offset;
  const uint64_t length = LoadLE64(header);
  if (verify != Verify::kNone) {
    const uint32_t stored = LoadLE32(header + 8);
    const uint32_t computed = MaskCrc(Crc32cOfU64(length));
    if (stored != computed) return {FaultKind::kLengthChecksum, -1, offset, stored, computed};
  }
  const uint64_t after_header = left - kHeaderSize;
  if (after_header < kFooterSize || length > after_header - kFooterSize) {
    return {FaultKind::kTruncatedPayload, -1, offset, length, after_header};
  }
  frame->payload = ByteView(header + kHeaderSize, length);
  frame->end = offset + kFrameOverhead + length;
  if (verify == Verify::kAll) {
    const uint32_t stored = LoadLE32(header + kHeaderSize + length);
    const uint32_t computed = MaskCrc(Crc32c(frame->payload));
    if (stored != computed) return {FaultKind::kPayloadChecksum, -1, offset, stored, computed};
  }
  return {};
}

struct FrameRun {
  uint64_t num_frames = 0;  // whole, valid frames from the start
  uint64_t next = 0;        // offset after the last of them
  uint64_t resume = 0;      // end of the faulty frame if its length is trusted, else 0
  Fault fault;              // why the run stopped, if not by a limit or at the end of the span
};

// Steps over at most `max_frames` frames from `offset`, and stops at the first fault.
FrameRun CheckFrames(ByteView span, uint64_t offset, uint64_t max_frames, Verify verify);

// The same, and writes the offset of each frame to `offsets`, which has room for max_frames.
FrameRun IndexFrames(ByteView span, uint64_t offset, uint64_t max_frames, Verify verify, uint64_t* offsets);

}  // namespace tfrkit
