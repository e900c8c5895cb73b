#include "core/images/jpeg_header.h"

#include <initializer_list>
#include <vector>

#include "tests/check.h"

namespace tfrkit::test {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes Join(std::initializer_list<Bytes> parts) {
  Bytes joined;
  for (const Bytes& part : parts) joined.insert(joined.end(), part.begin(), part.end());
  return joined;
}

Bytes Segment(uint8_t marker, const Bytes& content) {
  const size_t size = content.size() + 2;
  return Join({{0xff, marker, static_cast<uint8_t>(size >> 8), static_cast<uint8_t>(size)}, content});
}

const Bytes kStart = {0xff, 0xd8};
const Bytes kEnd = {0xff, 0xd9};
const Bytes kFrame = Segment(0xc0, {8, 0x01, 0x77, 0x01, 0xf4, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1});
const Bytes kScan = Join({Segment(0xda, {1, 1, 0, 0, 63, 0}), {0x12, 0xff, 0x00, 0x34, 0xff, 0xd0, 0x56}});

// An Exif segment whose directory holds one other entry, then the orientation.
Bytes Exif(bool is_big, uint8_t orientation, uint8_t type = 3) {
  const auto number = [&](uint32_t value, size_t size) {
    Bytes bytes(size);
    for (size_t i = 0; i < size; ++i)
      bytes[is_big ? size - 1 - i : i] = static_cast<uint8_t>(value >> (8 * i));
    return bytes;
  };
  const auto entry = [&](uint32_t tag, uint32_t kind, uint32_t value) {
    return Join({number(tag, 2), number(kind, 2), number(1, 4), number(value, 2), {0, 0}});
  };
  const Bytes tiff =
      Join({is_big ? Bytes{'M', 'M'} : Bytes{'I', 'I'}, number(42, 2), number(8, 4), number(2, 2),
            entry(0x0100, 3, 500), entry(0x0112, type, orientation), number(0, 4)});
  return Segment(0xe1, Join({{'E', 'x', 'i', 'f', 0, 0}, tiff}));
}

uint8_t OrientationOf(const Bytes& exif) {
  JpegHeader header;
  return ReadJpegHeader(ExactCopy(Join({kStart, exif, kFrame, kScan, kEnd})), &header) ? header.orientation
                                                                                       : 0;
}

TEST(JpegHeader, FrameHeaderIsRead) {
  JpegHeader header;
  REQUIRE(ReadJpegHeader(Join({kStart, Segment(0xe0, {'J', 'F'}), kFrame}), &header));
  CHECK_EQ(header.height, 375);
  CHECK_EQ(header.width, 500);
  CHECK_EQ(header.num_components, 3);
  CHECK_EQ(header.bits, 8);
  CHECK_EQ(header.is_progressive, false);
  CHECK_EQ(header.orientation, 1);
}

TEST(JpegHeader, ProgressiveIsReported) {
  Bytes frame = kFrame;
  frame[1] = 0xc2;
  JpegHeader header;
  REQUIRE(ReadJpegHeader(Join({kStart, frame}), &header));
  CHECK_EQ(header.is_progressive, true);
}

TEST(JpegHeader, OrientationIsReadInBothByteOrders) {
  for (uint8_t orientation = 1; orientation <= 8; ++orientation) {
    CHECK_EQ(OrientationOf(Exif(false, orientation)), orientation);
    CHECK_EQ(OrientationOf(Exif(true, orientation)), orientation);
  }
}

TEST(JpegHeader, InvalidOrientationIsUpright) {
  CHECK_EQ(OrientationOf(Exif(false, 0)), 1);
  CHECK_EQ(OrientationOf(Exif(true, 9)), 1);
  CHECK_EQ(OrientationOf(Exif(true, 6, /*type=*/4)), 1);
  CHECK_EQ(OrientationOf(Segment(0xe1, {'E', 'x', 'i', 'f', 0, 0, 'I', 'I', 42, 0, 0xff, 0xff, 0xff, 0xff})),
           1);
  CHECK_EQ(OrientationOf(Segment(0xe1, {'h', 't', 't', 'p'})), 1);
  CHECK_EQ(OrientationOf(Segment(0xe1, {})), 1);
}

TEST(JpegHeader, OnlyTheFirstExifSegmentCounts) {
  CHECK_EQ(OrientationOf(Join({Exif(true, 6), Exif(true, 3)})), 6);
}

TEST(JpegHeader, EveryCutBeforeTheFrameHeaderEndsIsRefused) {
  const Bytes whole = Join({kStart, Exif(true, 6), kFrame});
  JpegHeader header;
  CHECK(ReadJpegHeader(whole, &header));
  for (size_t size = 0; size < whole.size(); ++size) {
    CHECK(!ReadJpegHeader(ExactCopy(ByteView(whole).first(size)), &header));
  }
}

TEST(JpegHeader, EveryFlippedByteOfAnExifSegmentStaysInBounds) {
  const Bytes whole = Join({kStart, Exif(true, 6), kFrame});
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const uint8_t value : {0x00, 0x7f, 0x80, 0xff}) {
      Bytes changed = ExactCopy(whole);
      changed[i] = value;
      JpegHeader header;
      if (ReadJpegHeader(changed, &header)) CHECK(header.orientation >= 1 && header.orientation <= 8);
      WalkJpegScans(changed);
    }
  }
}

TEST(JpegHeader, BytesBetweenSegmentsAreSkipped) {
  JpegHeader header;
  CHECK(ReadJpegHeader(Join({kStart, {0x12, 0x34}, {0xff, 0xff, 0xff}, kFrame}), &header));
}

TEST(JpegHeader, OtherBytesAreRefused) {
  JpegHeader header;
  CHECK(!ReadJpegHeader(View("\x89PNG\r\n"), &header));
  CHECK(!ReadJpegHeader({}, &header));
  CHECK(!ReadJpegHeader(Join({kStart, kScan, kFrame}), &header));  // a scan before the frame
  CHECK(!ReadJpegHeader(Join({kStart, kEnd, kFrame}), &header));
}

TEST(JpegHeader, ScansAreCountedAndTheEndIsFound) {
  JpegScans scans = WalkJpegScans(Join({kStart, kFrame, kScan, kScan, kScan, kEnd}));
  CHECK_EQ(scans.num_scans, 3);
  CHECK_EQ(scans.has_end, true);
  scans = WalkJpegScans(Join({kStart, kFrame, kScan}));
  CHECK_EQ(scans.num_scans, 1);
  CHECK_EQ(scans.has_end, false);
}

TEST(JpegHeader, EndOfAnEmbeddedThumbnailIsNotTheEnd) {
  const Bytes thumbnail = Segment(0xe1, Join({{'E', 'x', 'i', 'f', 0, 0}, kStart, kFrame, kScan, kEnd}));
  const JpegScans scans = WalkJpegScans(Join({kStart, thumbnail, kFrame, kScan}));
  CHECK_EQ(scans.num_scans, 1);
  CHECK_EQ(scans.has_end, false);
}

}  // namespace
}  // namespace tfrkit::test
