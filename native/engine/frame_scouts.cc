#include "engine/frame_scouts.h"

#include <algorithm>
#include <utility>

#include "core/base/bytes.h"
#include "core/frames/crc32c.h"
#include "core/frames/frame_format.h"

namespace tfrkit {
namespace {

constexpr uint64_t kMinLegNbytes = 4 << 10;
constexpr uint64_t kMaxLegNbytes = 1 << 20;
constexpr uint64_t kSearchNbytes = 16 * FrameScouts::kMaxFrameNbytes;
// This number of useless legs, and a quarter of the useful ones, end the scouting: checksums that are wrong
// on purpose, or records that hold frames themselves.
constexpr uint64_t kMaxMissed = 32;
constexpr uint64_t kPieceFrames = 64;

// The first place in [start, stop) that has the checksum of a length that fits; `stop` if there is none.
uint64_t FindHeader(ByteView span, uint64_t start, uint64_t stop) {
  if (span.size() < kFrameOverhead) return stop;
  const uint64_t last = std::min<uint64_t>(stop, span.size() - kFrameOverhead + 1);
  for (uint64_t offset = start; offset < last; ++offset) {
    const uint8_t* const header = span.data() + offset;
    const uint64_t length = LoadLE64(header);
    if (length > span.size() - kFrameOverhead - offset) continue;
    if (LoadLE32(header + 8) == MaskCrc(Crc32cOfU64(length))) return offset;
  }
  return stop;
}

}  // namespace

std::optional<Leg> FrameScouts::Assign(const ShardBoard& board, uint32_t shard, uint64_t offset,
                                       uint64_t nbytes) {
  if (num_missed_ > kMaxMissed + num_used_ / 4) return {};
  nbytes = std::clamp(nbytes, kMinLegNbytes, kMaxLegNbytes);
  const std::lock_guard lock(mutex_);
  if (walked_.size() >= max_legs_) return {};
  // The cut is at work on what comes next: a leg that is found too late is of no use.
  if (!has_begun_ || shard_ < shard || (shard_ == shard && offset_ < offset)) {
    has_begun_ = true;
    shard_ = shard;
    offset_ = offset + max_legs_ * nbytes;
  }
  while (true) {
    if (shard_ >= board.size() || board.state(shard_) != ShardBoard::State::kReady) return {};
    if (offset_ < board.source(shard_).frames.span.size()) break;
    ++shard_;
    offset_ = 0;
  }
  const ShardSource& source = board.source(shard_);
  Leg leg{num_assigned_++, shard_, offset_, std::min<uint64_t>(offset_ + nbytes, source.frames.span.size()),
          source};
  offset_ = leg.stop;
  walked_.push_back({leg.serial, leg.shard, leg.stop, false, {}});
  return leg;
}

void FrameScouts::Walk(const Leg& leg) {
  const ByteView span = leg.source.frames.span;
  FoundFrames found;
  {
    InstallMapGuard();
    const MapGuard guard(leg.source.range);
    found.next =
        leg.start == 0 ? 0 : FindHeader(span, leg.start, std::min(leg.stop, leg.start + kSearchNbytes));
    while (found.next < leg.stop) {
      const size_t before = found.offsets.size();
      found.offsets.resize(before + kPieceFrames);
      const FrameRun run =
          IndexFrames(span, found.next, kPieceFrames, verify_, found.offsets.data() + before);
      found.offsets.resize(before + run.num_frames);
      found.next = run.next;
      // Frames before a fault are found here, the fault itself by the cut.
      if (run.num_frames < kPieceFrames) break;
    }
  }
  // Frames that start after the leg are those of the next one.
  const auto after = std::lower_bound(found.offsets.begin(), found.offsets.end(), leg.stop);
  if (after != found.offsets.end()) {
    found.next = *after;
    found.offsets.erase(after, found.offsets.end());
  }
  const std::lock_guard lock(mutex_);
  const auto place =
      std::lower_bound(walked_.begin(), walked_.end(), leg.serial,
                       [](const Walked& walked, uint64_t serial) { return walked.serial < serial; });
  if (place == walked_.end() || place->serial != leg.serial) return;  // the cut was faster
  place->frames = std::move(found);
  place->is_done = true;
}

bool FrameScouts::Take(uint32_t shard, uint64_t offset, FoundFrames* found) {
  const std::lock_guard lock(mutex_);
  while (!walked_.empty()) {
    Walked& first = walked_.front();
    const uint64_t stop = std::max(first.stop, first.frames.next);
    if (first.shard < shard || (first.shard == shard && stop <= offset)) {
      ++num_missed_;
      walked_.pop_front();
      continue;
    }
    if (first.shard != shard || !first.is_done) return false;
    const std::vector<uint64_t>& offsets = first.frames.offsets;
    const auto place = std::lower_bound(offsets.begin(), offsets.end(), offset);
    if (place == offsets.end() || *place != offset) {
      if (place == offsets.begin()) return false;  // the cut is not there yet
      // Between two of its frames: they are none of this file.
      ++num_missed_;
      walked_.pop_front();
      continue;
    }
    ++num_used_;
    const auto num_passed = place - offsets.begin();
    *found = std::move(first.frames);
    found->offsets.erase(found->offsets.begin(), found->offsets.begin() + num_passed);
    walked_.pop_front();
    return true;
  }
  return false;
}

}  // namespace tfrkit
