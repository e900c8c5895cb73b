// Finding the next frame after damage, in time linear in the bytes whatever lengths they claim.
//
// A hostile file can hold a header every 12 bytes, each with a valid checksum of a length that reaches to the
// end. Checking each payload from its first byte would take quadratic time, and so would checking one such
// payload after each of many sound frames. A FrameSearch keeps the checksums of prefixes of its span once
// that pays, so that the checksum of any part follows by arithmetic.
#pragma once

#include <cstdint>

#include "core/base/bytes.h"
#include "core/base/pool.h"
#include "core/frames/frame_batch.h"

namespace tfrkit {

struct ResyncResult {
  bool found = false;
  uint64_t offset = 0;  // found: start of a frame with two valid checksums
                        // not found: first offset that may start a frame in a longer span
};

// Searches one span, any number of times. One thread at a time; the span must outlive it.
class FrameSearch {
 public:
  explicit FrameSearch(ByteView span) : span_(span) {}

  // Searches [offset, stop) for the first frame whose length and payload checksums are both valid.
  //
  // Candidates longer than `max_length` are skipped. One whose payload runs past the span is skipped when
  // `is_final`; otherwise the search stops there, so that a caller with more bytes can continue from it.
  // REQUIRES: stop <= span.size(); is_final if stop < span.size().
  ResyncResult FindNext(uint64_t offset, uint64_t stop, bool is_final, uint64_t max_length = kMaxLength);

  // Steps over at most `max_frames` sound frames from `offset` to `stop`, as CheckFrames does with
  // Verify::kAll, and returns the end of the faulty one if its length is trusted.
  // REQUIRES: offset <= stop <= span.size().
  FrameRun CheckFrames(uint64_t offset, uint64_t stop, uint64_t max_frames);

  // Bytes checksummed so far.
  uint64_t num_checked() const { return num_checked_; }

 private:
  // No file is 64 PiB long, so a frame with a larger length can never be complete.
  static constexpr uint64_t kMaxLength = uint64_t{1} << 56;
  static constexpr uint64_t kStep = 1024;         // bytes between stored prefixes
  static constexpr uint64_t kDirect = 2 * kStep;  // up to this size prefixes do not pay

  uint32_t Checksum(uint64_t start, uint64_t stop);
  uint32_t Extend(uint32_t crc, uint64_t start, uint64_t size);
  uint32_t Prefix(uint64_t stop);
  bool SpendOrBuild(uint64_t size);

  ByteView span_;
  uint64_t num_checked_ = 0;
  uint64_t num_spent_ = 0;  // spent on long parts that were checked directly
  bool is_exhausted_ = false;
  PoolVector<uint32_t> prefixes_;
};

// One search of a whole span.
ResyncResult FindNextFrame(ByteView span, uint64_t offset, bool is_final);

}  // namespace tfrkit
