// Runs of frames into columns or surveys: one native call per batch.
#pragma once

#include <cstdint>

#include "core/base/bytes.h"
#include "core/frames/frame_reader.h"

namespace tfrkit {

// Feeds at most `max_frames` frames from `offset` to `sink`, a callable Fault(ByteView payload), and stops
// after `max_nbytes` bytes. The offset of a fault inside a record is a position in the span, too.
template <class Sink>
FrameRun FeedFrames(ByteView span, uint64_t offset, uint64_t max_frames, uint64_t max_nbytes, Verify verify,
                    Sink&& sink) {
  FrameRun run{0, offset, 0, {}};
  while (run.num_frames < max_frames && run.next < span.size() && run.next - offset < max_nbytes) {
    Frame frame;
    run.fault = ReadFrame(span, run.next, verify, &frame);
    if (run.fault) {
      if (run.fault.kind == FaultKind::kPayloadChecksum) run.resume = frame.end;
      return run;
    }
    run.fault = sink(frame.payload);
    if (run.fault) {
      run.fault.offset += run.next + kHeaderSize;
      run.resume = frame.end;
      return run;
    }
    run.next = frame.end;
    ++run.num_frames;
  }
  return run;
}

}  // namespace tfrkit
