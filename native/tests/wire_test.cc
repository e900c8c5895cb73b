#include "core/wire/wire.h"

#include <limits>

#include "core/base/utf8.h"
#include "core/wire/packed_varint.h"
#include "tests/check.h"
#include "tests/hex.h"

namespace tfrkit::test {
namespace {

// The size of the one field these bytes start with; 0 when they are malformed.
size_t FieldSize(const std::vector<uint8_t>& bytes, Field* field) {
  const uint8_t* const end = ReadField(bytes.data(), bytes.data() + bytes.size(), field);
  return end == nullptr ? 0 : static_cast<size_t>(end - bytes.data());
}

size_t FieldSize(std::string_view hex) {
  Field field;
  return FieldSize(Hex(hex), &field);
}

std::vector<uint8_t> Varint(uint64_t value) {
  std::vector<uint8_t> bytes(kMaxVarintSize);
  bytes.resize(static_cast<size_t>(WriteVarint(bytes.data(), value) - bytes.data()));
  return bytes;
}

// Powers of two and their neighbours.
std::vector<uint64_t> BoundaryValues() {
  std::vector<uint64_t> values;
  for (int bit = 0; bit < 64; ++bit) {
    for (const int delta : {-1, 0, 1}) values.push_back((uint64_t{1} << bit) + static_cast<uint64_t>(delta));
  }
  return values;
}

}  // namespace

TEST(Varint, EveryBoundaryRoundTrips) {
  for (const uint64_t value : BoundaryValues()) {
    const std::vector<uint8_t> bytes = Varint(value);
    CHECK_EQ(bytes.size(), VarintSize(value));
    uint64_t read = 0;
    CHECK(ReadVarint(bytes.data(), bytes.data() + bytes.size(), &read) == bytes.data() + bytes.size());
    CHECK_EQ(read, value);
    uint8_t other[kMaxVarintSize];
    const size_t size = static_cast<size_t>(WriteAnyVarint(other, value) - other);
    CHECK_EQ(std::vector<uint8_t>(other, other + size), bytes);
    if (bytes.size() <= 8) {
      uint8_t word[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
      std::memcpy(word, bytes.data(), bytes.size());
      CHECK(ReadWholeVarint(LoadLE64(word), bytes.size(), &read));
      CHECK_EQ(read, value);
      if (bytes.size() < 8) CHECK(!ReadWholeVarint(LoadLE64(word), bytes.size() + 1, &read));
    }
  }
}

TEST(Varint, UnterminatedIsRefusedAtEveryLength) {
  for (size_t size = 0; size <= 12; ++size) {
    const std::vector<uint8_t> bytes = ExactCopy(std::vector<uint8_t>(size, 0x80));
    uint64_t value;
    CHECK(ReadVarint(bytes.data(), bytes.data() + size, &value) == nullptr);
  }
}

TEST(Varint, ElevenBytesAreRefusedAndTenDropTheirHighBits) {
  uint64_t value = 0;
  std::vector<uint8_t> bytes = Hex("80 80 80 80 80 80 80 80 80 80 00");
  CHECK(ReadVarint(bytes.data(), bytes.data() + bytes.size(), &value) == nullptr);
  bytes = Hex("ff ff ff ff ff ff ff ff ff 7f");
  CHECK(ReadVarint(bytes.data(), bytes.data() + bytes.size(), &value) != nullptr);
  CHECK_EQ(value, std::numeric_limits<uint64_t>::max());
}

TEST(PackedVarint, EveryVariantAgreesWithOneAtATime) {
  Random random(7);
  const std::vector<uint64_t> boundaries = BoundaryValues();
  for (const PackedVarintVariant& variant : PackedVarintVariants()) {
    if (!variant.is_supported()) continue;
    for (int round = 0; round < 3000; ++round) {
      const size_t count = random.Below(round % 10 == 0 ? 400 : 40);
      const uint64_t max_bits = 1 + random.Below(64);
      std::vector<int64_t> wanted;
      std::vector<uint8_t> bytes;
      for (size_t i = 0; i < count; ++i) {
        uint64_t value = random.Next() >> (64 - max_bits);
        if (random.Below(20) == 0) value = boundaries[random.Below(boundaries.size())];
        wanted.push_back(static_cast<int64_t>(value));
        std::vector<uint8_t> one = Varint(value);
        if (random.Below(30) == 0) {  // a longer form of the same value
          one.back() |= 0x80;
          one.resize(one.size() + random.Below(kMaxVarintSize + 1 - one.size()), 0x80);
          one.back() &= 0x7f;
        }
        bytes.insert(bytes.end(), one.begin(), one.end());
      }
      const std::vector<uint8_t> exact = ExactCopy(bytes);
      CHECK_EQ(CountVarints(exact), count);
      std::vector<int64_t> got(count);
      got.shrink_to_fit();
      CHECK_EQ(variant.decode(exact.data(), exact.data() + exact.size(), got.data()), count);
      CHECK_EQ(got, wanted);
    }
  }
}

TEST(PackedVarint, BadVarintIsFoundAtEveryPosition) {
  for (const PackedVarintVariant& variant : PackedVarintVariants()) {
    if (!variant.is_supported()) continue;
    for (size_t before = 0; before < 150; ++before) {
      for (const size_t after : {size_t{0}, size_t{1}, size_t{100}}) {
        std::vector<uint8_t> bytes(before, 0x01);
        bytes.insert(bytes.end(), kMaxVarintSize, 0x80);  // the tenth must end it
        bytes.insert(bytes.end(), after, 0x01);
        bytes = ExactCopy(bytes);
        std::vector<int64_t> out(bytes.size());
        CHECK_EQ(variant.decode(bytes.data(), bytes.data() + bytes.size(), out.data()), kBadVarints);
      }
      std::vector<uint8_t> bytes(before, 0x01);
      bytes.push_back(0x80);
      bytes = ExactCopy(bytes);
      std::vector<int64_t> out(bytes.size());
      CHECK_EQ(variant.decode(bytes.data(), bytes.data() + bytes.size(), out.data()), kBadVarints);
    }
  }
}

TEST(Wire, EveryTypeIsRead) {
  Field field;
  CHECK_EQ(FieldSize(Hex("08 96 01"), &field), 3);
  CHECK(field.Is(1, WireType::kVarint));
  CHECK_EQ(field.value, 150);
  CHECK_EQ(FieldSize(Hex("11 01 02 03 04 05 06 07 08"), &field), 9);
  CHECK(field.Is(2, WireType::kFixed64));
  CHECK_EQ(field.value, 0x0807060504030201u);
  CHECK_EQ(FieldSize(Hex("1d 01 02 03 04"), &field), 5);
  CHECK(field.Is(3, WireType::kFixed32));
  CHECK_EQ(field.value, 0x04030201u);
  const std::vector<uint8_t> text = Hex("22 03 'abc'");
  CHECK_EQ(FieldSize(text, &field), 5);
  CHECK(field.Is(4, WireType::kDelimited));
  CHECK_EQ(Copy(field.bytes()), Hex("'abc'"));
}

TEST(Wire, PaddedTagsAndLengthsOfFiveBytesAreRead) {
  CHECK_EQ(FieldSize("8a 80 80 80 00 81 80 80 80 00 'x'"), 11);
  CHECK_EQ(FieldSize("8a 80 80 80 80 00 01 'x'"), 0);
  CHECK_EQ(FieldSize("0a 81 80 80 80 80 00 'x'"), 0);
  CHECK_EQ(FieldSize("f8 ff ff ff 0f 00"), 6);  // the largest field number
  CHECK_EQ(FieldSize("f8 ff ff ff 1f 00"), 0);  // 33 bits
}

TEST(Wire, FieldNumberZeroIsRefused) {
  CHECK_EQ(FieldSize("00 00"), 0);
  CHECK_EQ(FieldSize("02 00"), 0);
  CHECK_EQ(FieldSize("05 00 00 00 00"), 0);
}

TEST(Wire, WireTypesSixAndSevenAreRefused) {
  CHECK_EQ(FieldSize("0e 00"), 0);
  CHECK_EQ(FieldSize("0f 00"), 0);
}

TEST(Wire, ContentPastTheEndIsRefused) {
  for (const char* hex : {"", "0a", "0a 01", "0a 02 'a'", "0a ff ff ff ff 07", "0a ff ff ff ff 0f 'a'", "08",
                          "08 80", "09 01 02 03 04 05 06 07", "0d 01 02 03", "80"}) {
    CHECK_EQ(FieldSize(hex), 0);
  }
}

TEST(Wire, GroupIsReadWithEverythingInIt) {
  CHECK_EQ(FieldSize("0b 0c"), 2);
  CHECK_EQ(FieldSize("0b 08 01 13 12 01 'a' 14 0c 55"), 9);
  CHECK_EQ(FieldSize("0b 14"), 0);     // another group's end
  CHECK_EQ(FieldSize("0b 08 01"), 0);  // no end
  CHECK_EQ(FieldSize("0c"), 0);        // no start
}

TEST(Wire, GroupsNestToTheLimitAndNoDeeper) {
  for (const size_t depth : {size_t{kMaxGroupDepth}, size_t{kMaxGroupDepth} + 1, size_t{1000000}}) {
    std::vector<uint8_t> bytes(depth, 0x0b);
    bytes.insert(bytes.end(), depth, 0x0c);
    Field field;
    CHECK_EQ(FieldSize(bytes, &field), depth <= kMaxGroupDepth ? 2 * depth : 0);
  }
}

TEST(Utf8, WellFormedAndMalformedSequencesAreDistinguished) {
  for (const char* hex :
       {"", "'plain'", "7f", "00", "c2 80", "df bf", "e0 a0 80", "ed 9f bf", "ee 80 80", "ef bf bf",
        "f0 90 80 80", "f4 8f bf bf", "'long enough for a word ' c3 a9 ' and more'"}) {
    CHECK(IsUtf8(Hex(hex)));
  }
  for (const char* hex :
       {"80", "bf", "c0 80", "c1 bf", "c2", "c2 41", "e0 9f bf", "ed a0 80", "e2 82", "f0 8f bf bf",
        "f4 90 80 80", "f5 80 80 80", "ff", "'eight by' ff", "'1234567' e2 82"}) {
    CHECK(!IsUtf8(Hex(hex)));
  }
}

TEST(Utf8, TextHasNoControlsButTabAndLineEnds) {
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_text = byte == '\t' || byte == '\n' || byte == '\r' || (byte >= 0x20 && byte < 0x7f);
    for (const size_t size : {size_t{1}, size_t{8}, size_t{19}}) {
      for (size_t at = 0; at < size; ++at) {
        std::vector<uint8_t> bytes(size, 'a');
        bytes[at] = static_cast<uint8_t>(byte);
        CHECK_EQ(IsText(ExactCopy(bytes)), is_text);
      }
    }
  }
  CHECK(!IsText(Hex("c2 9f")));
  CHECK(IsText(Hex("c2 a0 e2 82 ac")));
}

}  // namespace tfrkit::test
