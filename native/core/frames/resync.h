// Finding the next frame after damage, in time that grows with the bytes and not with what they claim.
//
// A made-up file can hold a header every 12 bytes, each with a right checksum of a length that reaches to
// the end. Checking each payload from its first byte would take quadratic time; and so would checking one
// such payload after each of many sound frames. A FrameSearch keeps the checksums of prefixes of its span
// once that pays, so that the checksum of any part follows by arithmetic.
#pragma once

#include <cstdint>

#include "core/base/bytes.h"
#include "core/base/pool.h"
#include "core/frames/frame_batch.h"

namespace tfrkit {

struct ResyncResult {
  bool found = false;
  uint64_t offset = 0;  // found: start of a frame whose two checksums hold
                        // not found: first offset that a longer span could still turn into a frame
};

// Searches one span, any number of times. One thread at a time; the span must outlive it.
class FrameSearch {
 public:
  explicit FrameSearch(ByteView span) : span_(span) {}

  // Searches [offset, stop) for the first start of a frame whose length and payload checksums both hold.
  //
  // A candidate longer than `max_length` is passed over. One whose payload runs past the span is passed
  // over when `is_final`; otherwise the search stops there, so that a caller with more bytes can go on from
  // it. REQUIRES: stop <= span.size(); is_final if stop < span.size().
  ResyncResult FindNext(uint64_t offset, uint64_t stop, bool is_final, uint64_t max_length = kMaxLength);

  // Steps over at most `max_frames` sound frames from `offset` to `stop`, as CheckFrames does with
  // Verify::kAll, and says where the faulty one ends if its length can be believed.
  // REQUIRES: offset <= stop <= span.size().
  BatchRun CheckFrames(uint64_t offset, uint64_t stop, uint64_t max_frames);

  // Bytes that went through a checksum so far.
  uint64_t num_checked() const { return num_checked_; }

 private:
  // No file is 64 PiB long, so no later bytes can complete a frame that claims more.
  static constexpr uint64_t kMaxLength = uint64_t{1} << 56;
  static constexpr uint64_t kStep = 1024;         // bytes between stored prefixes
  static constexpr uint64_t kDirect = 2 * kStep;  // up to here prefixes do not pay

  uint32_t Checksum(uint64_t start, uint64_t stop);
  uint32_t Extend(uint32_t crc, uint64_t start, uint64_t size);
  uint32_t Prefix(uint64_t stop);
  bool SpendOrBuild(uint64_t size);

  ByteView span_;
  uint64_t num_checked_ = 0;
  uint64_t num_spent_ = 0;  // on parts that were checked directly although they are long
  bool is_exhausted_ = false;
  PoolVector<uint32_t> prefixes_;
};

// One search of a whole span.
ResyncResult FindNextFrame(ByteView span, uint64_t offset, bool is_final);

}  // namespace tfrkit
