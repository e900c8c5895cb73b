// One suite over every variant that this CPU runs.
#include "core/frames/crc32c.h"

#include <cstring>
#include <string>

#include "core/frames/crc32c_algebra.h"
#include "core/frames/frame_format.h"
#include "tests/check.h"

namespace tfrkit::test {
namespace {

// The definition, bit by bit.
uint32_t ReferenceExtend(uint32_t crc, ByteView bytes) {
  crc = ~crc;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  return ~crc;
}

std::vector<Crc32cVariant> SupportedVariants() {
  std::vector<Crc32cVariant> supported;
  for (const Crc32cVariant& variant : Crc32cVariants()) {
    if (variant.is_supported()) supported.push_back(variant);
  }
  return supported;
}

void CheckCrc(const Crc32cVariant& variant, ByteView bytes, uint32_t expected, const std::string& what) {
  const uint32_t found = variant.extend(0, bytes.data(), bytes.size());
  if (found != expected) {
    RecordFailure(__FILE__, __LINE__,
                  std::string(variant.name) + ", " + what + ": " + Show(found) + " is not " + Show(expected));
  }
}

TEST(Crc32c, KnownVectorsMatch) {
  std::vector<uint8_t> rising(32), falling(32);
  for (size_t i = 0; i < 32; ++i) {
    rising[i] = static_cast<uint8_t>(i);
    falling[i] = static_cast<uint8_t>(31 - i);
  }
  // RFC 3720, B.4: an iSCSI SCSI Read (10) command.
  const std::vector<uint8_t> command = {
      0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
      0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18,
      0x28, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00};
  for (const Crc32cVariant& variant : SupportedVariants()) {
    CheckCrc(variant, {}, 0, "no bytes");
    CheckCrc(variant, View("a"), 0xc1d04330u, "a");
    CheckCrc(variant, View("123456789"), 0xe3069283u, "123456789");
    CheckCrc(variant, std::vector<uint8_t>(32, 0), 0x8a9136aau, "32 zeros");
    CheckCrc(variant, std::vector<uint8_t>(32, 0xff), 0x62a8ab43u, "32 ones");
    CheckCrc(variant, rising, 0x46dd794eu, "rising");
    CheckCrc(variant, falling, 0x113fdb5cu, "falling");
    CheckCrc(variant, command, 0xd9963a56u, "command");
  }
}

TEST(Crc32c, EverySizeAndAlignmentAgreesWithTheDefinition) {
  constexpr size_t kMaxSize = 3000;
  const std::vector<uint8_t> bytes = Random(1).Bytes(kMaxSize + 64);
  const auto variants = SupportedVariants();
  for (const size_t alignment : {0u, 1u, 3u, 8u, 31u, 63u}) {
    uint32_t expected = 0;
    for (size_t size = 0; size <= kMaxSize; ++size) {
      const ByteView part(bytes.data() + alignment, size);
      for (const Crc32cVariant& variant : variants) {
        CheckCrc(variant, part, expected,
                 "size " + std::to_string(size) + " alignment " + std::to_string(alignment));
      }
      expected = ReferenceExtend(expected, {bytes.data() + alignment + size, 1});
    }
  }
}

TEST(Crc32c, LargeSizesAgreeWithPortable) {
  const std::vector<uint8_t> bytes = Random(2).Bytes(300'000);
  for (const size_t size :
       {4095u, 4096u, 6143u, 6144u, 6145u, 65535u, 65537u, 100'000u, 262'144u, 299'999u}) {
    const uint32_t expected = SupportedVariants()[0].extend(0, bytes.data(), size);
    for (const Crc32cVariant& variant : SupportedVariants()) {
      CheckCrc(variant, {bytes.data(), size}, expected, "size " + std::to_string(size));
    }
  }
}

TEST(Crc32c, SplitAnywhereGivesTheSame) {
  Random random(3);
  const std::vector<uint8_t> bytes = random.Bytes(5000);
  for (const Crc32cVariant& variant : SupportedVariants()) {
    for (const size_t size : {1u, 7u, 9u, 64u, 200u, 700u, 1500u, 5000u}) {
      const uint32_t whole = variant.extend(0, bytes.data(), size);
      for (int repeat = 0; repeat < 60; ++repeat) {
        uint32_t crc = 0;
        size_t offset = 0;
        while (offset < size) {
          const size_t part = 1 + random.Below(size - offset);
          crc = variant.extend(crc, bytes.data() + offset, part);
          offset += part;
        }
        CHECK_EQ(crc, whole);
      }
      CHECK_EQ(variant.extend(whole, bytes.data(), 0), whole);
    }
  }
}

TEST(Crc32c, NoByteOutsideIsRead) {
  // Exact heap blocks: the address sanitizer fails this test on an over-read at either end.
  Random random(4);
  for (const Crc32cVariant& variant : SupportedVariants()) {
    for (size_t size = 0; size < 700; ++size) {
      const std::vector<uint8_t> bytes = ExactCopy(random.Bytes(size));
      CHECK_EQ(variant.extend(0, bytes.data(), size), ReferenceExtend(0, bytes));
    }
  }
}

TEST(Crc32c, OfU64IsTheChecksumOfItsBytes) {
  Random random(5);
  std::vector<uint64_t> values = {0, 1, 3, 200, 100'000, UINT64_MAX, UINT64_MAX - 1};
  for (unsigned bit = 0; bit < 64; ++bit) values.push_back(uint64_t{1} << bit);
  for (int i = 0; i < 1000; ++i) values.push_back(random.Next());
  for (const uint64_t value : values) {
    std::vector<uint8_t> bytes(8);
    StoreLE64(bytes.data(), value);
    const uint32_t expected = ReferenceExtend(0, bytes);
    for (const Crc32cVariant& variant : SupportedVariants()) CHECK_EQ(variant.of_u64(value), expected);
    CHECK_EQ(Crc32cOfU64(value), expected);
  }
}

TEST(Crc32c, VariantsStartWithPortableAndTheLastSupportedIsUsed) {
  CHECK_EQ(std::string(Crc32cVariants().front().name), "portable");
  CHECK(Crc32cVariants().front().is_supported());
  CHECK_EQ(std::string(Crc32cVariantInUse()), SupportedVariants().back().name);
  CHECK_EQ(Crc32c(View("123456789")), 0xe3069283u);
}

TEST(Crc32c, PartsCombineByAppendingZeros) {
  const std::vector<uint8_t> bytes = Random(6).Bytes(10'000);
  const uint32_t whole = Crc32c(bytes);
  for (const size_t split : {0u, 1u, 8u, 4095u, 9999u, 10'000u}) {
    const uint32_t left = ExtendCrc32c(0, bytes.data(), split);
    const uint32_t right = ExtendCrc32c(0, bytes.data() + split, bytes.size() - split);
    CHECK_EQ(crc32c_internal::AppendZeros(left, bytes.size() - split) ^ right, whole);
  }
}

TEST(FrameFormat, MaskIsUndoneByUnmask) {
  CHECK_EQ(MaskCrc(0), kMaskDelta);
  for (const uint32_t crc : {0u, 1u, 0x7fffu, 0x8000u, 0x80000000u, 0xffffffffu, 0xe3069283u}) {
    CHECK_EQ(UnmaskCrc(MaskCrc(crc)), crc);
  }
}

}  // namespace
}  // namespace tfrkit::test
