#include "core/frames/frame_reader.h"

#include <string>

#include "tests/check.h"
#include "tests/frame_text.h"

namespace tfrkit::test {
namespace {

constexpr uint64_t kNoLimit = UINT64_MAX;
constexpr Verify kModes[] = {Verify::kNone, Verify::kLengths, Verify::kAll};

// Both runs must agree; `offsets` has a guard after the room that IndexFrames may use.
FrameRun RunBoth(ByteView span, uint64_t offset, uint64_t max_frames, Verify verify,
                 std::vector<uint64_t>* offsets) {
  const FrameRun run = CheckFrames(span, offset, max_frames, verify);
  offsets->assign(run.num_frames + 1, 0xabcdu);
  const FrameRun indexed = IndexFrames(span, offset, run.num_frames, verify, offsets->data());
  CHECK_EQ(indexed.num_frames, run.num_frames);
  CHECK_EQ(indexed.next, run.next);
  CHECK_EQ(offsets->back(), 0xabcdu);
  offsets->pop_back();
  return run;
}

void CheckFault(const Fault& fault, FaultKind kind, uint64_t offset, uint64_t stored, uint64_t computed) {
  CHECK_EQ(fault.kind, kind);
  CHECK_EQ(fault.offset, offset);
  CHECK_EQ(fault.stored, stored);
  CHECK_EQ(fault.computed, computed);
}

TEST(FrameReader, WorkedBytesOfTheFormatNoteAreRead) {
  const std::vector<uint8_t> bytes = {0x03, 0,    0,    0,    0,    0,    0,    0,    0xb0, 0x99, 0x49, 0x0e,
                                      0x61, 0x62, 0x63, 0x6e, 0x57, 0xf1, 0x21, 0x00, 0,    0,    0,    0,
                                      0,    0,    0,    0x29, 0x03, 0x98, 0x07, 0xd8, 0xea, 0x82, 0xa2};
  CHECK_EQ(bytes, SlowFrames({"abc", ""}));
  Frame frame;
  CHECK(!ReadFrame(bytes, 0, Verify::kAll, &frame));
  CHECK_EQ(Copy(frame.payload), Copy(View("abc")));
  CHECK_EQ(frame.end, 19u);
  CHECK(!ReadFrame(bytes, 19, Verify::kAll, &frame));
  CHECK(frame.payload.empty());
  CHECK_EQ(frame.end, 35u);
}

TEST(FrameReader, EmptySpanHasNoFramesAndNoFault) {
  for (const Verify verify : kModes) {
    std::vector<uint64_t> offsets;
    const FrameRun run = RunBoth({}, 0, kNoLimit, verify, &offsets);
    CHECK_EQ(run.num_frames, 0u);
    CHECK(!run.fault);
  }
}

TEST(FrameReader, FramesAreCountedAndIndexed) {
  const auto bytes = SlowFrames({"abc", "", std::string(300, 'x'), "z"});
  for (const Verify verify : kModes) {
    std::vector<uint64_t> offsets;
    const FrameRun run = RunBoth(bytes, 0, kNoLimit, verify, &offsets);
    CHECK_EQ(run.num_frames, 4u);
    CHECK_EQ(run.next, bytes.size());
    CHECK(!run.fault);
    CHECK_EQ(offsets, (std::vector<uint64_t>{0, 19, 35, 351}));
  }
}

TEST(FrameReader, LimitStopsBetweenFramesAndTheNextRunContinues) {
  const auto bytes = SlowFrames({"a", "bb", "ccc"});
  std::vector<uint64_t> offsets;
  FrameRun run = RunBoth(bytes, 0, 2, Verify::kAll, &offsets);
  CHECK_EQ(run.num_frames, 2u);
  CHECK_EQ(run.next, 17u + 18u);
  CHECK(!run.fault);
  run = RunBoth(bytes, run.next, 2, Verify::kAll, &offsets);
  CHECK_EQ(run.num_frames, 1u);
  CHECK_EQ(offsets, (std::vector<uint64_t>{35}));
  CHECK_EQ(run.next, bytes.size());
  CHECK_EQ(CheckFrames(bytes, 0, 0, Verify::kAll).num_frames, 0u);
}

TEST(FrameReader, EveryTruncationIsReported) {
  const auto whole = SlowFrames({"abc", "defgh"});
  for (size_t size = 0; size < whole.size(); ++size) {
    const auto bytes = ExactCopy({whole.data(), size});
    for (const Verify verify : kModes) {
      std::vector<uint64_t> offsets;
      const FrameRun run = RunBoth(bytes, 0, kNoLimit, verify, &offsets);
      const uint64_t start = size < 19 ? 0 : 19;
      const uint64_t left = size - start;
      CHECK_EQ(run.num_frames, size < 19 ? 0u : 1u);
      CHECK_EQ(run.next, start);
      if (left == 0) {
        CHECK(!run.fault);
      } else if (left < 12) {
        CheckFault(run.fault, FaultKind::kTruncatedHeader, start, 12, left);
      } else {
        CheckFault(run.fault, FaultKind::kTruncatedPayload, start, start == 0 ? 3 : 5, left - 12);
      }
    }
  }
}

TEST(FrameReader, LengthsThatCannotFitAreReported) {
  for (const uint64_t length : {uint64_t{4}, uint64_t{1} << 31, uint64_t{1} << 32, uint64_t{1} << 63,
                                UINT64_MAX, UINT64_MAX - 3, UINT64_MAX - 15, UINT64_MAX - 16}) {
    std::vector<uint8_t> bytes;
    AppendSlowHeader(length, &bytes);
    bytes.insert(bytes.end(), {1, 2, 3, 4, 5, 6, 7});
    for (const Verify verify : kModes) {
      CheckFault(CheckFrames(ExactCopy(bytes), 0, kNoLimit, verify).fault, FaultKind::kTruncatedPayload, 0,
                 length, 7);
    }
  }
}

TEST(FrameReader, EveryFlippedBitIsReportedByAll) {
  const auto whole = SlowFrames({"abc", "defgh"});
  for (size_t index = 0; index < whole.size(); ++index) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      auto bytes = whole;
      bytes[index] = static_cast<uint8_t>(bytes[index] ^ (1u << bit));
      const uint64_t start = index < 19 ? 0 : 19;
      const FrameRun run = CheckFrames(bytes, 0, kNoLimit, Verify::kAll);
      CHECK_EQ(run.next, start);
      CHECK_EQ(run.fault.offset, start);
      CHECK_EQ(run.fault.kind, index - start < 12 ? FaultKind::kLengthChecksum : FaultKind::kPayloadChecksum);
      CHECK(run.fault.stored != run.fault.computed);
      // A flip in the payload or its checksum passes if only lengths are checked.
      if (index - start >= 12) CHECK_EQ(CheckFrames(bytes, 0, kNoLimit, Verify::kLengths).num_frames, 2u);
    }
  }
}

TEST(FrameReader, ChecksumsAreReportedMasked) {
  auto bytes = SlowFrames({"abc"});
  bytes[13] ^= 1;
  CheckFault(CheckFrames(bytes, 0, kNoLimit, Verify::kAll).fault, FaultKind::kPayloadChecksum, 0, 0x21f1576eu,
             SlowMaskedCrc({bytes.data() + 12, 3}));
  bytes[0] ^= 1;
  CheckFault(CheckFrames(bytes, 0, kNoLimit, Verify::kAll).fault, FaultKind::kLengthChecksum, 0, 0x0e4999b0u,
             SlowMaskedCrc({bytes.data(), 8}));
}

TEST(FrameReader, BadPayloadChecksumStillGivesTheFrame) {
  auto bytes = SlowFrames({"abc", "d"});
  bytes[12] ^= 1;
  Frame frame;
  CHECK_EQ(ReadFrame(bytes, 0, Verify::kAll, &frame).kind, FaultKind::kPayloadChecksum);
  CHECK_EQ(frame.end, 19u);
  CHECK_EQ(frame.payload.size(), 3u);
}

}  // namespace
}  // namespace tfrkit::test
