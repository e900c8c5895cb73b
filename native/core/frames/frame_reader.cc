#include "core/frames/frame_reader.h"

#include <algorithm>

namespace tfrkit {
namespace {

constexpr size_t kCacheLine = 64;

// Prefetches headers ahead of a walk. Each header holds the offset of the next one, so a walk that reads
// nothing else waits for memory at every step: 100 ns per record. Frames of one file have similar sizes, so
// the start of the eighth next one can be guessed: 25 ns per record.
class HeaderPrefetch {
 public:
  explicit HeaderPrefetch(ByteView span) : span_(span) {}

  // Of a frame from `start` to `end`. REQUIRES: both are inside the span.
  void Ask(uint64_t start, uint64_t end) {
    sum_ += end - start - sum_ / kMemory;
    const uint64_t left = span_.size() - start;
    const uint64_t guess = sum_ / kMemory * kAhead;
    if (guess >= left) return;
    const uint8_t* const p = span_.data() + start + guess;
    __builtin_prefetch(p);
    __builtin_prefetch(p + std::min<uint64_t>(kCacheLine, left - guess));
  }

 private:
  static constexpr uint64_t kAhead = 8;
  static constexpr uint64_t kMemory = 16;  // frames in the running mean

  ByteView span_;
  uint64_t sum_ = 0;  // of the sizes of the latest frames
};

// One loop per mode, so that unrequested checks cost nothing.
template <Verify kVerify, bool kIndex>
FrameRun Run(ByteView span, uint64_t offset, uint64_t max_frames, uint64_t* offsets) {
  FrameRun run;
  run.next = offset;
  HeaderPrefetch headers(span);
  while (run.num_frames < max_frames && run.next != span.size()) {
    Frame frame;
    run.fault = ReadFrame(span, run.next, kVerify, &frame);
    if (run.fault) [[unlikely]] {
      if (run.fault.kind == FaultKind::kPayloadChecksum) run.resume = frame.end;
      break;
    }
    if constexpr (kIndex) offsets[run.num_frames] = run.next;
    if constexpr (kVerify != Verify::kAll) headers.Ask(run.next, frame.end);
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
