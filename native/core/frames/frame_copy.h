// Whole frames, checksums included: summed, dealt to parts, gathered in another order.
#pragma once

#include <cstdint>
#include <span>

#include "core/base/bytes.h"
#include "core/base/pool.h"
#include "core/frames/frame_batch.h"
#include "core/frames/frame_picks.h"
#include "core/frames/frame_reader.h"

namespace tfrkit {

// Digest of one frame, from its length and stored payload checksum. The sum modulo 2^64 compares two sets of
// frames regardless of order.
inline uint64_t DigestFrame(uint64_t length, uint32_t stored_crc) {
  uint64_t x = (length << 32 | length >> 32) ^ stored_crc;
  // The finalizer of splitmix64: without it, two changes could cancel each other in the sum.
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// Steps over at most `max_frames` frames and `max_nbytes` bytes from `offset`, appends their offsets to
// `offsets` and adds their digests to `digest`. False when memory is exhausted.
[[nodiscard]] bool SumFrames(ByteView span, uint64_t offset, uint64_t max_frames, uint64_t max_nbytes,
                             Verify verify, PoolVector<uint64_t>* offsets, uint64_t* digest, FrameRun* run);

// Frames by part: those of part 0 first, each part in the order of the span.
struct DealtFrames {
  FrameRun run;
  PoolVector<uint8_t> frames;
  PoolVector<uint64_t> part_nbytes;  // one for each part
  uint64_t digest = 0;               // of the frames that went to a part
};

// Copies frames from `offset`, the i-th to part `parts[i]`, until `parts` ends or after `max_nbytes` bytes. A
// part of num_parts or more leaves the frame out. False when memory is exhausted.
[[nodiscard]] bool DealFrames(ByteView span, uint64_t offset, std::span<const uint32_t> parts,
                              uint32_t num_parts, uint64_t max_nbytes, Verify verify, DealtFrames* dealt);

// Appends the frames `records[i]` of `sources[shards[i]]`, in that order, up to the first fault. False when
// memory is exhausted. REQUIRES: ArePicksInside.
[[nodiscard]] bool GatherPicks(std::span<const FrameSource> sources, std::span<const uint32_t> shards,
                               std::span<const uint64_t> records, Verify verify, PoolVector<uint8_t>* frames,
                               uint64_t* digest, PickRun* run);

}  // namespace tfrkit
