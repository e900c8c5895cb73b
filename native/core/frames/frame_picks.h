// Frames by number out of many spans, in any order: one native call per shuffled batch.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/bytes.h"
#include "core/frames/frame_reader.h"
#include "core/frames/offset_pages.h"

namespace tfrkit {

// A shard whose frames are known. `span`, `offsets` and `pages` must outlive the source.
struct FrameSource {
  ByteView span;
  std::span<const uint64_t> offsets;  // where each frame starts
  OffsetPages* pages = nullptr;       // checks offsets when they are used; nullptr where all were checked
};

// A fault if the page that has the offset of a record is damaged.
inline Fault CheckPage(const FrameSource& source, uint64_t record) {
  if (source.pages == nullptr || source.pages->IsWhole(record)) return {};
  const uint64_t page = record / source.pages->page();
  return {FaultKind::kIndexPage, -1, 0, source.pages->stored(page), source.pages->Sum(page)};
}

// Frames passed to a sink before the first fault. fault.offset is a position in the span of
// the faulty pick, also for faults inside a record.
struct PickRun {
  uint64_t num_frames = 0;
  Fault fault;
};

// True if the payload of a frame may be in the part of its span that was overwritten with zeros. Fully
// checked frames are not. The last byte of a frame is zero in one of 256 frames; then the checksum decides.
inline bool MayBeCutOff(ByteView payload, Verify verify) {
  const uint8_t* const footer = payload.data() + payload.size();
  return verify != Verify::kAll && footer[kFooterSize - 1] == 0 &&
         MaskCrc(Crc32c(payload)) != LoadLE32(footer);
}

// True if every pick names a source and a frame of it. REQUIRES: as many shards as records.
inline bool ArePicksInside(std::span<const FrameSource> sources, std::span<const uint32_t> shards,
                           std::span<const uint64_t> records) {
  for (size_t i = 0; i < shards.size(); ++i) {
    if (shards[i] >= sources.size() || records[i] >= sources[shards[i]].offsets.size()) return false;
  }
  return true;
}

// Picks in random order are bound by memory latency unless the next ones are prefetched. Measured with
// records of 470 bytes: any distance from 4 to 24 is as good.
inline constexpr size_t kFrameDistance = 12;
inline constexpr size_t kOffsetDistance = 2 * kFrameDistance;
inline constexpr uint64_t kLineSize = 64;
// The hardware prefetcher continues after a run of lines.
inline constexpr uint64_t kMaxPrefetched = 16 * kLineSize;

// Prefetches the bytes of a frame before they are read. Any record of the source.
//
// Forced inline: GCC considers a function that only prefetches free of effects and drops the call.
[[gnu::always_inline]] inline void PrefetchFrame(const FrameSource& source, uint64_t record) {
  const uint64_t start = source.offsets[record];
  if (start >= source.span.size()) return;
  const uint64_t next = record + 1 < source.offsets.size() ? source.offsets[record + 1] : source.span.size();
  const uint64_t stop =
      std::min<uint64_t>({std::max(next, start + 1), start + kMaxPrefetched, source.span.size()});
  const uint8_t* const data = source.span.data();
  for (uint64_t offset = start; offset < stop; offset += kLineSize) __builtin_prefetch(data + offset);
  __builtin_prefetch(data + stop - 1);
}

// Feeds the frames `records[i]` of `sources[shards[i]]`, in that order, to `sink`, a callable
// Fault(ByteView payload, size_t pick), up to the first fault. An offset outside its span is a
// kTruncatedHeader. REQUIRES: ArePicksInside.
template <class Sink>
PickRun FeedPicks(std::span<const FrameSource> sources, std::span<const uint32_t> shards,
                  std::span<const uint64_t> records, Verify verify, Sink&& sink) {
  PickRun run;
  const size_t count = shards.size();
  for (size_t i = 0; i < std::min(kFrameDistance, count); ++i) PrefetchFrame(sources[shards[i]], records[i]);
  for (size_t i = 0; i < count; ++i) {
    if (i + kOffsetDistance < count) {
      const size_t ahead = i + kOffsetDistance;
      __builtin_prefetch(sources[shards[ahead]].offsets.data() + records[ahead]);
    }
    if (i + kFrameDistance < count) {
      const size_t ahead = i + kFrameDistance;
      PrefetchFrame(sources[shards[ahead]], records[ahead]);
    }
    const FrameSource& source = sources[shards[i]];
    run.fault = CheckPage(source, records[i]);
    if (run.fault) return run;
    const uint64_t offset = source.offsets[records[i]];
    if (offset > source.span.size()) {
      run.fault = {FaultKind::kTruncatedHeader, -1, offset, kHeaderSize, 0};
      return run;
    }
    Frame frame;
    run.fault = ReadFrame(source.span, offset, verify, &frame);
    if (!run.fault) {
      run.fault = sink(frame.payload, i);
      if (run.fault) run.fault.offset += offset + kHeaderSize;
    }
    if (run.fault) return run;
    ++run.num_frames;
  }
  return run;
}

}  // namespace tfrkit
