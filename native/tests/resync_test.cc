#include "core/frames/resync.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/frames/frame_reader.h"
#include "tests/check.h"
#include "tests/frame_text.h"

namespace tfrkit::test {
namespace {

void CheckResult(const ResyncResult& result, bool found, uint64_t offset) {
  CHECK_EQ(result.found, found);
  CHECK_EQ(result.offset, offset);
}

std::vector<uint8_t> Join(std::initializer_list<std::vector<uint8_t>> parts) {
  std::vector<uint8_t> joined;
  for (const auto& part : parts) joined.insert(joined.end(), part.begin(), part.end());
  joined.shrink_to_fit();
  return joined;
}

TEST(Resync, FrameAtTheOffsetItselfIsFound) {
  const auto bytes = SlowFrames({"abc", "de"});
  CheckResult(FindNextFrame(bytes, 0, true), true, 0);
  CheckResult(FindNextFrame(bytes, 19, true), true, 19);
}

TEST(Resync, DamagedLengthLeadsToTheNextFrame) {
  auto bytes = SlowFrames({"abc", "de", "f"});
  bytes[1] ^= 0x40;
  CheckResult(FindNextFrame(bytes, 0, true), true, 19);
  CheckResult(FindNextFrame(bytes, 0, false), true, 19);
}

TEST(Resync, FrameAfterEveryAmountOfGarbageIsFound) {
  Random random(1);
  for (size_t size = 0; size < 100; ++size) {
    const auto bytes = Join({random.Bytes(size), SlowFrames({"payload"}), random.Bytes(5)});
    CheckResult(FindNextFrame(bytes, 0, true), true, size);
    CheckResult(FindNextFrame(bytes, 0, false), true, size);
  }
}

TEST(Resync, GarbageOnlyIsNotFoundAndLeavesRoomForAHeader) {
  const auto bytes = ExactCopy(Random(2).Bytes(1000));
  CheckResult(FindNextFrame(bytes, 0, true), false, 1000);
  CheckResult(FindNextFrame(bytes, 0, false), false, 1000 - 11);
  for (size_t size = 0; size < 12; ++size) {
    const auto few = ExactCopy({bytes.data(), size});
    CheckResult(FindNextFrame(few, 0, false), false, 0);
    CheckResult(FindNextFrame(few, 0, true), false, size);
    CheckResult(FindNextFrame(few, size, false), false, size);
  }
}

TEST(Resync, FrameCutByTheSpanStopsTheSearchUntilFinal) {
  const auto whole = Join({{9, 9, 9}, SlowFrames({std::string(50, 'x')}), SlowFrames({"in"})});
  for (size_t size = 3 + 12; size < 3 + 66; ++size) {
    const auto cut = ExactCopy({whole.data(), size});
    CheckResult(FindNextFrame(cut, 0, false), false, 3);
    CheckResult(FindNextFrame(cut, 0, true), false, size);
  }
  CheckResult(FindNextFrame(whole, 0, false), true, 3);
}

TEST(Resync, WholeFrameAfterACutOneIsFoundWhenFinal) {
  std::vector<uint8_t> bytes;
  AppendSlowHeader(1'000'000, &bytes);
  const auto joined = Join({bytes, SlowFrames({"abc"})});
  CheckResult(FindNextFrame(joined, 0, false), false, 0);
  CheckResult(FindNextFrame(joined, 0, true), true, 12);
}

TEST(Resync, ImpossibleLengthIsSkipped) {
  for (const uint64_t length : {UINT64_MAX, uint64_t{1} << 63, (uint64_t{1} << 56) + 1}) {
    std::vector<uint8_t> bytes;
    AppendSlowHeader(length, &bytes);
    const auto joined = Join({bytes, SlowFrames({"abc"})});
    CheckResult(FindNextFrame(joined, 0, false), true, 12);
  }
}

TEST(Resync, ValidLengthChecksumWithWrongPayloadIsSkipped) {
  auto bad = SlowFrames({"abcdef"});
  bad[14] ^= 1;
  const auto bytes = Join({bad, SlowFrames({"g"})});
  CheckResult(FindNextFrame(bytes, 0, true), true, bad.size());
}

TEST(Resync, FrameInsideAPayloadIsNotFound) {
  const auto inner = SlowFrames({"inner"});
  const auto bytes = SlowFrames({std::string(inner.begin(), inner.end())});
  CheckResult(FindNextFrame(bytes, 0, true), true, 0);
}

// A header every 12 bytes, each with a length up to the end: 40 thousand payloads of up to 480 KB
// would be 10 GB of checksums if each were read from its start.
TEST(Resync, HostileHeadersCostLinearTimeAndTheTrueFrameIsFound) {
  constexpr size_t kNumHeaders = 40'000;
  const auto frame = SlowFrames({std::string(20'000, 'p')});
  const size_t size = kNumHeaders * 12 + frame.size();
  std::vector<uint8_t> bytes;
  for (size_t i = 0; i < kNumHeaders; ++i) AppendSlowHeader(size - (i + 1) * 12 - 4, &bytes);
  bytes.insert(bytes.end(), frame.begin(), frame.end());
  CheckResult(FindNextFrame(bytes, 0, true), true, kNumHeaders * 12);
  bytes.back() ^= 1;
  CheckResult(FindNextFrame(bytes, 0, true), false, bytes.size());
}

TEST(Resync, LargeFrameAfterHostileHeadersIsFoundByPrefixes) {
  // The true frame is itself checked through prefix checksums here, for several alignments.
  for (const size_t num_headers : {200u, 1001u, 5003u}) {
    const auto payload = Random(num_headers).Bytes(1'000'003);
    std::vector<uint8_t> bytes;
    const size_t size = num_headers * 12 + payload.size() + 16;
    for (size_t i = 0; i < num_headers; ++i) AppendSlowHeader(size - (i + 1) * 12 - 4, &bytes);
    AppendSlowFrame(payload, &bytes);
    bytes.shrink_to_fit();
    CheckResult(FindNextFrame(bytes, 0, true), true, num_headers * 12);
  }
}

// Headers with a length up to the end, each before a sound frame.
std::vector<uint8_t> ClaimsBetweenFrames(size_t num_units) {
  const size_t size = num_units * (12 + 17) + 1;
  std::vector<uint8_t> bytes;
  bytes.reserve(size);
  while (bytes.size() + 1 < size) {
    AppendSlowHeader(size - bytes.size() - 12 - 4, &bytes);
    AppendSlowFrame(View("x"), &bytes);
  }
  bytes.push_back(0xfe);
  return bytes;
}

// Reads sound frames and skips damage, like a reader: number of frames, and of bytes checksummed.
std::pair<uint64_t, uint64_t> Salvage(ByteView bytes) {
  FrameSearch search(bytes);
  uint64_t num_frames = 0;
  uint64_t offset = 0;
  while (offset < bytes.size()) {
    const FrameRun run = search.CheckFrames(offset, bytes.size(), UINT64_MAX);
    num_frames += run.num_frames;
    if (!run.fault) break;
    offset = search.FindNext(run.next + 1, bytes.size(), true).offset;
  }
  return {num_frames, search.num_checked()};
}

TEST(FrameSearch, WorkOverAllCallsIsLinearInTheSpan) {
  for (const uint64_t num_units : {100, 2'000, 32'000}) {
    const auto bytes = ClaimsBetweenFrames(num_units);
    const auto [num_frames, num_checked] = Salvage(bytes);
    CHECK_EQ(num_frames, num_units);
    // Direct checks read twice the span, prefixes once; after that a header costs at most two steps of 1024
    // bytes.
    CHECK(num_checked < 3 * bytes.size() + num_units * 2 * 1024);
  }
}

TEST(FrameSearch, SearchInWindowsFindsWhatTheWholeDoes) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    auto bytes = SlowFrames({"abc", std::string(random.Below(60), 'x'), "", "defg"});
    for (int i = 0; i < 3; ++i) bytes[random.Below(bytes.size())] ^= 1u << random.Below(8);
    FrameSearch search(bytes);
    for (uint64_t start = 0; start <= bytes.size(); start += 5) {
      const ResyncResult whole = FindNextFrame(bytes, start, true);
      ResyncResult windowed{false, start};
      while (!windowed.found && windowed.offset < bytes.size()) {
        const uint64_t stop = std::min<uint64_t>(windowed.offset + 7, bytes.size());
        windowed = search.FindNext(windowed.offset, stop, true);
      }
      CheckResult(windowed, whole.found, whole.offset);
    }
  }
}

TEST(FrameSearch, CheckedFramesAreThoseThatReadingChecks) {
  Random random(4);
  for (int round = 0; round < 500; ++round) {
    auto whole = SlowFrames({"abc", std::string(random.Below(60), 'x'), "", "defg"});
    if (random.Below(4) != 0) whole[random.Below(whole.size())] ^= 1u << random.Below(8);
    const auto bytes = ExactCopy(View(whole).first(whole.size() - random.Below(3)));
    FrameSearch search(bytes);
    const FrameRun expected = CheckFrames(bytes, 0, UINT64_MAX, Verify::kAll);
    const FrameRun run = search.CheckFrames(0, bytes.size(), UINT64_MAX);
    CHECK_EQ(run.num_frames, expected.num_frames);
    CHECK_EQ(run.next, expected.next);
    CHECK_EQ(run.fault.kind, expected.fault.kind);
    CHECK_EQ(run.fault.stored, expected.fault.stored);
    CHECK_EQ(run.fault.computed, expected.fault.computed);
    CHECK_EQ(run.resume != 0, run.fault.kind == FaultKind::kPayloadChecksum);
  }
}

TEST(FrameSearch, CandidateLongerThanAllowedIsSkipped) {
  const auto bytes = SlowFrames({std::string(100, 'x'), "abc"});
  FrameSearch search(bytes);
  CheckResult(search.FindNext(0, bytes.size(), true, 100), true, 0);
  CheckResult(search.FindNext(0, bytes.size(), true, 99), true, 116);
  CheckResult(search.FindNext(0, bytes.size(), false, 2), false, bytes.size() - 11);
}

}  // namespace
}  // namespace tfrkit::test
