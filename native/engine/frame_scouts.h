// Frames found ahead of the cut, by several threads.
//
// Headers are a chain: each has the place of the next one, so one thread at a time walks them. That takes 20
// to 45 ns per frame, memory and page faults most of it, a fifth of all work on small records: five threads
// would wait for each other. A scout begins in the middle instead, at the first place whose checksum is that
// of a length. What it finds counts only if the chain from the start of the file arrives at one of its
// frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "core/frames/frame_reader.h"
#include "engine/shard_board.h"

namespace tfrkit {

// The bytes of a shard in which one scout looks for frames.
struct Leg {
  uint64_t serial = 0;
  uint32_t shard = 0;
  uint64_t start = 0;
  uint64_t stop = 0;
  ShardSource source;
};

// Frames that lie one after the other.
struct FoundFrames {
  std::vector<uint64_t> offsets;
  uint64_t next = 0;  // the end of the last one
};

// `Assign` and `Take` are called by one thread at a time, `Walk` by any.
class FrameScouts {
 public:
  // Larger frames are walked quickly, and looking for one takes long.
  static constexpr uint64_t kMaxFrameNbytes = 4 << 10;

  // As many legs as `max_legs` are assigned and not taken.
  FrameScouts(size_t max_legs, Verify verify) : max_legs_(max_legs), verify_(verify) {}

  // The next leg to walk, of `nbytes`, while frames before `offset` of `shard` are cut; none if enough are
  // ahead, or if the shard they would lie in is not open. With the lock that protects `board`.
  std::optional<Leg> Assign(const ShardBoard& board, uint32_t shard, uint64_t offset, uint64_t nbytes);

  // Looks for the frames that start in the leg.
  void Walk(const Leg& leg);

  // The frames from `offset` on, where a scout was.
  bool Take(uint32_t shard, uint64_t offset, FoundFrames* found);

 private:
  struct Walked {
    uint64_t serial;
    uint32_t shard;
    uint64_t stop;
    bool is_done = false;
    FoundFrames frames;
  };

  const size_t max_legs_;
  const Verify verify_;

  // Of the thread that assigns and takes.
  bool has_begun_ = false;
  uint32_t shard_ = 0;  // the next leg starts here
  uint64_t offset_ = 0;
  uint64_t num_assigned_ = 0;
  uint64_t num_missed_ = 0;  // legs that were of no use
  uint64_t num_used_ = 0;

  std::mutex mutex_;           // for all below
  std::deque<Walked> walked_;  // in file order, with those that are being walked
};

}  // namespace tfrkit
