#include "core/frames/frame_writer.h"

#include <string>

#include "core/frames/frame_reader.h"
#include "tests/check.h"
#include "tests/frame_text.h"

namespace tfrkit::test {
namespace {

std::vector<uint8_t> Bytes(const PoolVector<uint8_t>& out) { return {out.data(), out.data() + out.size()}; }

TEST(FrameWriter, FramesMatchTheFormat) {
  PoolVector<uint8_t> out;
  CHECK(AppendFrame(View("abc"), &out));
  CHECK(AppendFrame({}, &out));
  CHECK_EQ(Bytes(out), SlowFrames({"abc", ""}));
}

TEST(FrameWriter, EverySizeReadsBack) {
  Random random(1);
  PoolVector<uint8_t> out;
  std::vector<std::vector<uint8_t>> payloads;
  for (size_t size = 0; size < 600; ++size) payloads.push_back(random.Bytes(size));
  payloads.push_back(random.Bytes(100'000));
  for (const auto& payload : payloads) REQUIRE(AppendFrame(payload, &out));
  uint64_t offset = 0;
  for (const auto& payload : payloads) {
    Frame frame;
    REQUIRE(!ReadFrame({out.data(), out.size()}, offset, Verify::kAll, &frame));
    CHECK_EQ(Copy(frame.payload), payload);
    offset = frame.end;
  }
  CHECK_EQ(offset, out.size());
}

TEST(FrameWriter, PayloadMadeInPlaceGivesTheSameFrame) {
  PoolVector<uint8_t> out;
  CHECK(AppendFrame(View("first"), &out));
  size_t start = 0;
  CHECK(BeginFrame(&out, &start));
  CHECK_EQ(start, 21u);
  const std::string long_text(70'000, 'q');  // moves the buffer between Begin and Finish
  CHECK(out.Append(View(long_text).data(), long_text.size()));
  CHECK(FinishFrame(&out, start));
  CHECK(BeginFrame(&out, &start));
  CHECK(FinishFrame(&out, start));
  CHECK_EQ(Bytes(out), SlowFrames({"first", long_text, ""}));
}

TEST(FrameWriter, SizeThatDoesNotFitAppendsNothing) {
  PoolVector<uint8_t> out;
  CHECK(AppendFrame(View("abc"), &out));
  const uint8_t byte = 0;
  for (const size_t size : {SIZE_MAX, SIZE_MAX - 15, SIZE_MAX - 16, SIZE_MAX / 2}) {
    CHECK(!AppendFrame({&byte, size}, &out));
    CHECK_EQ(Bytes(out), SlowFrames({"abc"}));
  }
}

}  // namespace
}  // namespace tfrkit::test
