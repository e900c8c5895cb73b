#include "core/frame_reader.h"

namespace tfrkit {
namespace {

// One loop for each mode, so that what is not asked for costs nothing.
template <Verify kVerify, bool kIndex>
FrameRun Run(ByteView span, uint64_t offset, uint64_t max_frames, uint64_t* offsets) {
  FrameRun run;
  run.next = offset;
  while (run.num_frames < max_frames && run.next != span.size()) {
    Frame frame;
    run.fault = ReadFrame(span, run.next, kVerify, &frame);
    if (run.fault) [[unlikely]] {
      if (run.fault.kind == FaultKind::kPayloadChecksum) run.resume = frame.end;
      break;
    }
    if constexpr (kIndex) offsets[run.num_frames] = run.next;
    ++run.num_frames;
    run.next = frame.end;
  }
  return run;
}

template <bool kIndex>
FrameRun RunMode(ByteView span, uint64_t offset, uint64_t max_frames, Verify verify, uint64_t* offsets) {
  switch (verify) {
    case Verify::kNone:
      return Run<Verify::kNone, kIndex>(span, offset, max_frames, offsets);
    case Verify::kLengths:
      return Run<Verify::kLengths, kIndex>(span, offset, max_frames, offsets);
    case Verify::kAll:
      break;
  }
  return Run<Verify::kAll, kIndex>(span, offset, max_frames, offsets);
}

}  // namespace

FrameRun CheckFrames(ByteView span, uint64_t offset, uint64_t max_frames, Verify verify) {
  return RunMode<false>(span, offset, max_frames, verify, nullptr);
}

FrameRun IndexFrames(ByteView span, uint64_t offset, uint64_t max_frames, Verify verify, uint64_t* offsets) {
  return RunMode<true>(span, offset, max_frames, verify, offsets);
}

}  // namespace tfrkit
