#include "engine/frame_scouts.h"

#include <string>
#include <vector>

#include "tests/check.h"
#include "tests/frame_text.h"

namespace tfrkit::test {
namespace {

constexpr uint64_t kLegNbytes = 4 << 10;  // the smallest

// One shard of frames whose payloads are text.
struct OneShard {
  explicit OneShard(size_t num_frames, std::string_view payload = "the payload of a frame") : board(1) {
    for (size_t i = 0; i < num_frames; ++i) {
      offsets.push_back(frames.size());
      AppendSlowFrame(View(payload), &frames);
    }
    board.Ask(0);
    board.Set(0, {{frames, {}}, nullptr});
  }

  std::vector<uint8_t> frames;
  std::vector<uint64_t> offsets;
  ShardBoard board;
};

// The place of the first frame at or after an offset.
size_t IndexAfter(const OneShard& shard, uint64_t offset) {
  size_t index = 0;
  while (shard.offsets[index] < offset) ++index;
  return index;
}

}  // namespace

TEST(FrameScouts, LegsFindTheFramesThatStartInThemAndNoOthers) {
  const OneShard shard(2000);
  FrameScouts scouts(2, Verify::kLengths);
  const std::optional<Leg> first = scouts.Assign(shard.board, 0, 0, kLegNbytes);
  const std::optional<Leg> second = scouts.Assign(shard.board, 0, 0, kLegNbytes);
  REQUIRE(first.has_value() && second.has_value());
  CHECK_EQ(first->start, 2 * kLegNbytes);  // the cut is at work on what comes before
  CHECK_EQ(second->start, first->stop);
  CHECK(!scouts.Assign(shard.board, 0, 0, kLegNbytes).has_value());
  scouts.Walk(*second);  // in any order
  scouts.Walk(*first);
  size_t index = IndexAfter(shard, first->start);
  for (const Leg* leg : {&*first, &*second}) {
    FoundFrames found;
    REQUIRE(scouts.Take(0, shard.offsets[index], &found));
    for (const uint64_t offset : found.offsets) CHECK_EQ(offset, shard.offsets[index++]);
    CHECK_EQ(found.next, shard.offsets[index]);
    CHECK(found.next >= leg->stop && found.offsets.back() < leg->stop);
  }
}

TEST(FrameScouts, LegIsTakenFromTheFrameThatTheCutIsAt) {
  const OneShard shard(2000);
  FrameScouts scouts(1, Verify::kLengths);
  const std::optional<Leg> leg = scouts.Assign(shard.board, 0, 0, kLegNbytes);
  REQUIRE(leg.has_value());
  FoundFrames found;
  CHECK(!scouts.Take(0, 0, &found));
  const size_t inside = IndexAfter(shard, leg->start) + 5;
  CHECK(!scouts.Take(0, shard.offsets[inside], &found));  // not walked yet
  scouts.Walk(*leg);
  CHECK(!scouts.Take(0, 0, &found));  // the cut is not there
  REQUIRE(scouts.Take(0, shard.offsets[inside], &found));
  CHECK_EQ(found.offsets.front(), shard.offsets[inside]);
  CHECK(!scouts.Take(0, found.next, &found));
}

TEST(FrameScouts, LegThatTheCutPassedIsDropped) {
  const OneShard shard(2000);
  FrameScouts scouts(1, Verify::kLengths);
  const std::optional<Leg> leg = scouts.Assign(shard.board, 0, 0, kLegNbytes);
  REQUIRE(leg.has_value());
  FoundFrames found;
  const uint64_t after = shard.offsets[IndexAfter(shard, leg->stop)];
  CHECK(!scouts.Take(0, after, &found));
  scouts.Walk(*leg);  // too late
  CHECK(!scouts.Take(0, after, &found));
  CHECK(scouts.Assign(shard.board, 0, after, kLegNbytes).has_value());
}

TEST(FrameScouts, FramesInsideOfRecordsAreNotTaken) {
  std::vector<uint8_t> inner;
  for (int i = 0; i < 100; ++i) AppendSlowFrame(View("inner"), &inner);
  const OneShard shard(200, {reinterpret_cast<const char*>(inner.data()), inner.size()});
  FrameScouts scouts(1, Verify::kLengths);
  const std::optional<Leg> leg = scouts.Assign(shard.board, 0, 0, kLegNbytes);
  REQUIRE(leg.has_value());
  scouts.Walk(*leg);
  // It starts with inner frames, up to the end of one record, whose checksum is no header.
  FoundFrames found;
  for (const uint64_t offset : shard.offsets) CHECK(!scouts.Take(0, offset, &found));
}

TEST(FrameScouts, DamageEndsTheFramesOfALeg) {
  OneShard shard(2000);
  const size_t damaged = IndexAfter(shard, 1 * kLegNbytes) + 10;
  shard.frames[shard.offsets[damaged] + 9] ^= 1;
  FrameScouts scouts(1, Verify::kLengths);
  const std::optional<Leg> leg = scouts.Assign(shard.board, 0, 0, kLegNbytes);
  REQUIRE(leg.has_value());
  scouts.Walk(*leg);
  FoundFrames found;
  REQUIRE(scouts.Take(0, shard.offsets[IndexAfter(shard, leg->start)], &found));
  CHECK_EQ(found.offsets.size(), 10);
  CHECK_EQ(found.next, shard.offsets[damaged]);
}

TEST(FrameScouts, UselessLegsEndTheScouting) {
  OneShard shard(4000);
  for (const uint64_t offset : shard.offsets) shard.frames[offset + 9] ^= 1;
  FrameScouts scouts(1, Verify::kNone);
  size_t num_legs = 0;
  for (size_t i = 0; i < 4000; i += 8) {
    FoundFrames found;
    CHECK(!scouts.Take(0, shard.offsets[i], &found));
    const std::optional<Leg> leg = scouts.Assign(shard.board, 0, shard.offsets[i], kLegNbytes / 16);
    if (!leg) continue;
    scouts.Walk(*leg);
    ++num_legs;
  }
  CHECK(num_legs > 0 && num_legs <= 40);
}

}  // namespace tfrkit::test
