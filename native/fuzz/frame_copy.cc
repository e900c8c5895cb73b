// Whole frames, summed, dealt and gathered: against reading one frame at a time.
#include "core/frames/frame_copy.h"

#include <vector>

#include "fuzz/fuzz_target.h"
#include "fuzz/input.h"

namespace tfrkit::fuzz {
namespace {

struct Slow {
  std::vector<uint64_t> offsets, stops;
  std::vector<uint64_t> digests;
  Fault fault;
};

Slow ReadSlowly(ByteView span, uint64_t offset, uint64_t max_frames, uint64_t max_nbytes, Verify verify) {
  Slow slow;
  const uint64_t start = offset;
  while (slow.offsets.size() < max_frames && offset < span.size() && offset - start < max_nbytes) {
    Frame frame;
    slow.fault = ReadFrame(span, offset, verify, &frame);
    if (slow.fault) break;
    slow.offsets.push_back(offset);
    slow.stops.push_back(frame.end);
    const uint8_t* const footer = frame.payload.data() + frame.payload.size();
    slow.digests.push_back(DigestFrame(frame.payload.size(), LoadLE32(footer)));
    offset = frame.end;
  }
  return slow;
}

void CheckSum(ByteView span, uint64_t offset, uint64_t max_frames, uint64_t max_nbytes, Verify verify,
              const Slow& slow) {
  PoolVector<uint64_t> offsets;
  uint64_t digest = 0, expected = 0;
  FrameRun run;
  Require(SumFrames(span, offset, max_frames, max_nbytes, verify, &offsets, &digest, &run),
          "there is memory");
  Require(run.num_frames == slow.offsets.size() && run.fault.kind == slow.fault.kind,
          "a sum ends where reading ends");
  Require(
      std::equal(slow.offsets.begin(), slow.offsets.end(), offsets.data(), offsets.data() + offsets.size()),
      "a sum lists the frames that were read");
  for (const uint64_t one : slow.digests) expected += one;
  Require(digest == expected, "a sum is that of its frames");
}

void CheckDeal(ByteView span, uint64_t offset, const std::vector<uint32_t>& parts, uint32_t num_parts,
               uint64_t max_nbytes, Verify verify) {
  const Slow slow = ReadSlowly(span, offset, parts.size(), max_nbytes, verify);
  std::vector<std::vector<uint8_t>> expected(num_parts);
  uint64_t digest = 0;
  for (size_t i = 0; i < slow.offsets.size(); ++i) {
    if (parts[i] >= num_parts) continue;
    const ByteView frame = span.subspan(slow.offsets[i], slow.stops[i] - slow.offsets[i]);
    expected[parts[i]].insert(expected[parts[i]].end(), frame.begin(), frame.end());
    digest += slow.digests[i];
  }
  DealtFrames dealt;
  Require(DealFrames(span, offset, parts, num_parts, max_nbytes, verify, &dealt), "there is memory");
  Require(dealt.run.num_frames == slow.offsets.size() && dealt.digest == digest,
          "dealing reads every frame once");
  const uint8_t* p = dealt.frames.data();
  for (uint32_t part = 0; part < num_parts; ++part) {
    Require(dealt.part_nbytes[part] == expected[part].size(), "parts have the sizes of their frames");
    Require(std::equal(expected[part].begin(), expected[part].end(), p), "parts have their frames, in order");
    p += expected[part].size();
  }
  Require(static_cast<size_t>(p - dealt.frames.data()) == dealt.frames.size(),
          "nothing follows the last part");
}

void CheckGather(ByteView span, const std::vector<uint64_t>& offsets, const std::vector<uint8_t>& picks,
                 Verify verify) {
  const FrameSource source{span, offsets};
  const std::vector<uint32_t> shards(picks.size(), 0);
  const std::vector<uint64_t> records(picks.begin(), picks.end());
  const std::span<const FrameSource> sources(&source, 1);
  if (!ArePicksInside(sources, shards, records)) return;
  std::vector<uint8_t> expected;
  uint64_t num_frames = 0;
  for (const uint64_t record : records) {
    Frame frame;
    if (offsets[record] > span.size() || ReadFrame(span, offsets[record], verify, &frame)) break;
    expected.insert(expected.end(), span.begin() + static_cast<ptrdiff_t>(offsets[record]),
                    span.begin() + static_cast<ptrdiff_t>(frame.end));
    ++num_frames;
  }
  PoolVector<uint8_t> frames;
  uint64_t digest = 0;
  PickRun run;
  Require(GatherPicks(sources, shards, records, verify, &frames, &digest, &run), "there is memory");
  Require(run.num_frames == num_frames && static_cast<bool>(run.fault) == (num_frames != records.size()),
          "gathering ends at the first fault");
  Require(std::equal(expected.begin(), expected.end(), frames.data(), frames.data() + frames.size()),
          "gathered frames are those that were picked");
}

}  // namespace

// Input: choices, then frames. The choices are drawn from the bytes themselves, so that frames can be mutated
// alone.
int FuzzOne(ByteView bytes) {
  if (bytes.empty()) return 0;
  const uint8_t choices = bytes[0];
  const std::vector<uint8_t> data(bytes.begin() + 1, bytes.end());
  const ByteView span(data);
  const Verify verify = choices % 3 == 0 ? Verify::kNone : choices % 3 == 1 ? Verify::kLengths : Verify::kAll;
  const uint64_t max_frames = choices & 4 ? UINT64_MAX : choices % 5u;
  const uint64_t max_nbytes = choices & 8 ? UINT64_MAX : choices;
  const Slow all = ReadSlowly(span, 0, UINT64_MAX, UINT64_MAX, verify);
  const uint64_t offset = (choices & 16) != 0 && all.stops.size() > 1 ? all.stops[0] : 0;
  CheckSum(span, offset, max_frames, max_nbytes, verify,
           ReadSlowly(span, offset, max_frames, max_nbytes, verify));
  std::vector<uint32_t> parts;
  for (size_t i = 0; i < data.size() && i < 12; ++i) parts.push_back(data[i] % 5u);
  CheckDeal(span, offset, parts, choices >> 5u, max_nbytes, verify);
  // Offsets as an index has them, and a few that a forged one might have.
  std::vector<uint64_t> offsets = all.offsets;
  if ((choices & 32) != 0) offsets.insert(offsets.end(), {span.size(), span.size() + 1, UINT64_MAX, choices});
  CheckGather(span, offsets,
              {data.begin(), data.begin() + static_cast<ptrdiff_t>(std::min<size_t>(data.size(), 9))},
              verify);
  std::vector<uint8_t> rising;
  for (size_t i = 0; i < offsets.size() && i < 30; ++i)
    rising.push_back(static_cast<uint8_t>(offsets.size() - 1 - i));
  CheckGather(span, offsets, rising, verify);
  return 0;
}

}  // namespace tfrkit::fuzz
