#include "core/frames/frame_copy.h"

#include <string>
#include <vector>

#include "tests/check.h"
#include "tests/frame_text.h"

namespace tfrkit::test {
namespace {

std::vector<uint8_t> Bytes(const PoolVector<uint8_t>& out) { return {out.data(), out.data() + out.size()}; }
std::vector<uint64_t> Numbers(const PoolVector<uint64_t>& out) {
  return {out.data(), out.data() + out.size()};
}

uint64_t DigestOf(std::initializer_list<std::string_view> payloads) {
  uint64_t digest = 0;
  for (const std::string_view payload : payloads) {
    digest += DigestFrame(payload.size(), SlowMaskedCrc(View(payload)));
  }
  return digest;
}

TEST(FrameCopy, SumReturnsOffsetsAndDigest) {
  const auto span = ExactCopy(View(SlowFrames({"abc", "", "de"})));
  PoolVector<uint64_t> offsets;
  uint64_t digest = 0;
  FrameRun run;
  REQUIRE(SumFrames(View(span), 0, 100, UINT64_MAX, Verify::kAll, &offsets, &digest, &run));
  CHECK_EQ(Numbers(offsets), (std::vector<uint64_t>{0, 19, 35}));
  CHECK_EQ(digest, DigestOf({"de", "abc", ""}));
  CHECK_EQ(run.next, span.size());
  CHECK(!run.fault);
}

TEST(FrameCopy, SumStopsAtItsLimits) {
  const auto span = ExactCopy(View(SlowFrames({"abc", "", "de"})));
  PoolVector<uint64_t> offsets;
  uint64_t digest = 0;
  FrameRun run;
  REQUIRE(SumFrames(View(span), 0, 2, UINT64_MAX, Verify::kAll, &offsets, &digest, &run));
  CHECK_EQ(run.next, 35u);
  REQUIRE(SumFrames(View(span), 0, 100, 1, Verify::kAll, &offsets, &digest, &run));
  CHECK_EQ(run.num_frames, 1u);
}

TEST(FrameCopy, DigestDiffersBetweenSets) {
  CHECK(DigestOf({"a", "b"}) == DigestOf({"b", "a"}));
  CHECK(DigestOf({"a", "b"}) != DigestOf({"a", "a"}));
  CHECK(DigestOf({"a", "a", "b"}) != DigestOf({"a", "b", "b"}));
  CHECK(DigestOf({""}) != DigestOf({}));
  CHECK(DigestOf({"ab"}) != DigestOf({"a", "b"}));
}

TEST(FrameCopy, DealtFramesAreGroupedByPart) {
  const auto span = ExactCopy(View(SlowFrames({"0", "1", "22", "3", "", "5"})));
  const std::vector<uint32_t> parts = {2, 0, 2, 7, 0, 2};
  DealtFrames dealt;
  REQUIRE(DealFrames(View(span), 0, parts, 3, UINT64_MAX, Verify::kAll, &dealt));
  CHECK_EQ(Bytes(dealt.frames), SlowFrames({"1", "", "0", "22", "5"}));
  CHECK_EQ(Numbers(dealt.part_nbytes), (std::vector<uint64_t>{17 + 16, 0, 17 + 18 + 17}));
  CHECK_EQ(dealt.digest, DigestOf({"0", "1", "22", "", "5"}));
  CHECK_EQ(dealt.run.num_frames, 6u);
}

TEST(FrameCopy, DealingFromTheMiddleStopsWithItsParts) {
  const auto span = ExactCopy(View(SlowFrames({"0", "1", "2", "3"})));
  const std::vector<uint32_t> parts = {1, 0};
  DealtFrames dealt;
  REQUIRE(DealFrames(View(span), 17, parts, 2, UINT64_MAX, Verify::kAll, &dealt));
  CHECK_EQ(Bytes(dealt.frames), SlowFrames({"2", "1"}));
  CHECK_EQ(dealt.run.next, 51u);
}

TEST(FrameCopy, DealtFramesBeforeAFaultAreKept) {
  auto span = SlowFrames({"00", "11", "22"});
  span[18 + 12] ^= 1;
  const std::vector<uint32_t> parts = {0, 0, 0};
  DealtFrames dealt;
  REQUIRE(DealFrames(View(span), 0, parts, 1, UINT64_MAX, Verify::kAll, &dealt));
  CHECK_EQ(Bytes(dealt.frames), SlowFrames({"00"}));
  CHECK_EQ(dealt.run.fault.kind, FaultKind::kPayloadChecksum);
  CHECK_EQ(dealt.run.next, 18u);
}

TEST(FrameCopy, GatheredFramesAreInTheRequestedOrder) {
  const auto one = ExactCopy(View(SlowFrames({"a", "bb", ""})));
  const auto two = ExactCopy(View(SlowFrames({"ccc"})));
  const std::vector<uint64_t> offsets = {0, 17, 35}, offset = {0};
  const std::vector<FrameSource> sources = {{View(one), offsets}, {View(two), offset}};
  const std::vector<uint32_t> shards = {0, 1, 0, 0, 0};
  const std::vector<uint64_t> records = {2, 0, 1, 0, 1};
  PoolVector<uint8_t> frames;
  uint64_t digest = 0;
  PickRun run;
  REQUIRE(GatherPicks(sources, shards, records, Verify::kAll, &frames, &digest, &run));
  CHECK_EQ(Bytes(frames), SlowFrames({"", "ccc", "bb", "a", "bb"}));
  CHECK_EQ(digest, DigestOf({"", "ccc", "bb", "a", "bb"}));
  CHECK_EQ(run.num_frames, 5u);
}

TEST(FrameCopy, GatheringStopsAtAFault) {
  auto span = SlowFrames({"a", "b"});
  span[17 + 12] ^= 1;
  const std::vector<uint64_t> offsets = {0, 17};
  const std::vector<FrameSource> sources = {{View(span), offsets}};
  const std::vector<uint32_t> shards = {0, 0, 0};
  const std::vector<uint64_t> records = {0, 1, 0};
  PoolVector<uint8_t> frames;
  uint64_t digest = 0;
  PickRun run;
  REQUIRE(GatherPicks(sources, shards, records, Verify::kAll, &frames, &digest, &run));
  CHECK_EQ(Bytes(frames), SlowFrames({"a"}));
  CHECK_EQ(run.num_frames, 1u);
  CHECK_EQ(run.fault.kind, FaultKind::kPayloadChecksum);
}

}  // namespace
}  // namespace tfrkit::test
