#include "core/frames/frame_copy.h"

#include <algorithm>
#include <cstring>

#include "core/frames/frame_format.h"

namespace tfrkit {
namespace {

constexpr uint64_t kMaxReserved = uint64_t{16} << 20;

// A payload that was read is between its header and its footer, in one span.
const uint8_t* StartOf(ByteView payload) { return payload.data() - kHeaderSize; }
size_t SizeOf(ByteView payload) { return payload.size() + kFrameOverhead; }
uint64_t Digest(ByteView payload) {
  return DigestFrame(payload.size(), LoadLE32(payload.data() + payload.size()));
}

}  // namespace

bool SumFrames(ByteView span, uint64_t offset, uint64_t max_frames, uint64_t max_nbytes, Verify verify,
               PoolVector<uint64_t>* offsets, uint64_t* digest, FrameRun* run) {
  bool has_memory = true;
  *run = FeedFrames(span, offset, max_frames, max_nbytes, verify, [&](ByteView payload) {
    has_memory &= offsets->PushBack(static_cast<uint64_t>(StartOf(payload) - span.data()));
    *digest += Digest(payload);
    return Fault{};
  });
  return has_memory;
}

bool DealFrames(ByteView span, uint64_t offset, std::span<const uint32_t> parts, uint32_t num_parts,
                uint64_t max_nbytes, Verify verify, DealtFrames* dealt) {
  if (!dealt->part_nbytes.Resize(num_parts)) return false;
  std::fill_n(dealt->part_nbytes.data(), num_parts, 0);
  // Two passes, sizes first, then copies: frames are still in the cache.
  PoolVector<uint64_t> stops;
  bool has_memory = true;
  size_t number = 0;
  dealt->run = FeedFrames(span, offset, parts.size(), max_nbytes, verify, [&](ByteView payload) {
    const uint32_t part = parts[number++];
    has_memory &=
        stops.PushBack(static_cast<uint64_t>(payload.data() - span.data()) + payload.size() + kFooterSize);
    if (part < num_parts) {
      dealt->part_nbytes[part] += SizeOf(payload);
      dealt->digest += Digest(payload);
    }
    return Fault{};
  });
  if (!has_memory) return false;
  PoolVector<uint64_t> places;
  if (!places.Resize(num_parts)) return false;
  uint64_t total = 0;
  for (uint32_t part = 0; part < num_parts; ++part) {
    places[part] = total;
    total += dealt->part_nbytes[part];
  }
  if (!dealt->frames.Resize(total)) return false;
  uint64_t start = offset;
  for (size_t i = 0; i < stops.size(); start = stops[i++]) {
    if (parts[i] >= num_parts) continue;
    const size_t size = stops[i] - start;
    std::memcpy(dealt->frames.data() + places[parts[i]], span.data() + start, size);
    places[parts[i]] += size;
  }
  return true;
}

bool GatherPicks(std::span<const FrameSource> sources, std::span<const uint32_t> shards,
                 std::span<const uint64_t> records, Verify verify, PoolVector<uint8_t>* frames,
                 uint64_t* digest, PickRun* run) {
  // Reserve for all of them if that is little: growing would copy.
  uint64_t total = frames->size();
  for (size_t i = 0; i < shards.size() && total < kMaxReserved; ++i) {
    const FrameSource& source = sources[shards[i]];
    const uint64_t start = source.offsets[records[i]];
    const bool is_last = records[i] + 1 == source.offsets.size();
    const uint64_t stop = is_last ? source.span.size() : source.offsets[records[i] + 1];
    total += stop > start ? stop - start : 0;
  }
  bool has_memory = frames->Reserve(std::min(total, kMaxReserved));
  *run = FeedPicks(sources, shards, records, verify, [&](ByteView payload, size_t) {
    has_memory &= frames->Append(StartOf(payload), SizeOf(payload));
    *digest += Digest(payload);
    return Fault{};
  });
  return has_memory;
}

}  // namespace tfrkit
