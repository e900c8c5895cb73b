#include "core/wire/example_reader.h"

#include "tests/check.h"
#include "tests/hex.h"

namespace tfrkit::test {
namespace {

struct Finders {
  SlotFinder features, lists;
  Finders() { features.adds_names = lists.adds_names = true; }
};

}  // namespace

TEST(ExampleReader, FeaturesAreMergedByName) {
  Finders finders;
  ExampleReader reader(RecordKind::kExample, &finders.features, nullptr);
  const std::vector<uint8_t> record =
      Hex("0a 1f"
          "0a 0a 0a 01 'a' 12 05 1a 03 0a 01 05"
          "0a 05 0a 01 'b' 12 00"
          "0a 0a 0a 01 'a' 12 05 1a 03 0a 01 07");
  CHECK(!reader.Read(record));
  REQUIRE(reader.feature_slots().size() == 2);
  const MergedEntry* const a = reader.Feature(0);
  REQUIRE(a != nullptr);
  CHECK_EQ(a->feature.kind, Kind::kInt64);
  CHECK_EQ(a->feature.num_values, 1);
  int64_t value = 0;
  reader.CopyInts(a->feature, &value);
  CHECK_EQ(value, 7);
  REQUIRE(reader.Feature(1) != nullptr);
  CHECK_EQ(reader.Feature(1)->feature.kind, Kind::kUnset);
  CHECK(reader.Feature(2) == nullptr);
  CHECK(!reader.Read({}));
  CHECK(reader.Feature(0) == nullptr);
  CHECK(reader.feature_slots().empty());
}

TEST(ExampleReader, ListsOfSeveralPartsAreCopiedInOrder) {
  Finders finders;
  ExampleReader reader(RecordKind::kExample, &finders.features, nullptr);
  const std::vector<uint8_t> texts = Hex("0a 06 0a 01 'x' 0a 01 'y' 0a 03 0a 01 'z'");
  const std::vector<uint8_t> record =
      Delimited(0x0a, Delimited(0x0a, Join({Hex("0a 01 'a'"), Delimited(0x12, texts)})));
  CHECK(!reader.Read(record));
  const MergedFeature& feature = reader.Feature(0)->feature;
  REQUIRE(feature.num_values == 3);
  CHECK_EQ(feature.num_parts, 2);
  ByteView values[3];
  reader.CopyBytes(feature, values);
  CHECK_EQ(Copy(values[0]), Hex("'x'"));
  CHECK_EQ(Copy(values[2]), Hex("'z'"));
}

TEST(ExampleReader, FramesKeepTheirOrderAndKind) {
  Finders finders;
  ExampleReader reader(RecordKind::kSequenceExample, &finders.features, &finders.lists);
  const std::vector<uint8_t> frames = Hex("0a 05 1a 03 0a 01 05 0a 00 0a 08 12 06 0a 04 00 00 80 3f");
  const std::vector<uint8_t> record =
      Delimited(0x12, Delimited(0x0a, Join({Hex("0a 01 'l'"), Delimited(0x12, frames)})));
  CHECK(!reader.Read(record));
  const MergedEntry* const list = reader.List(0);
  REQUIRE(list != nullptr && list->num_frames == 3);
  CHECK_EQ(reader.Frame(list->first_frame).kind, Kind::kInt64);
  CHECK_EQ(reader.Frame(list->first_frame + 1).kind, Kind::kUnset);
  CHECK_EQ(reader.Frame(list->first_frame + 2).kind, Kind::kFloat);
  float value = 0;
  reader.CopyFloats(reader.Frame(list->first_frame + 2), &value);
  CHECK_EQ(value, 1.0f);
  CHECK(reader.feature_slots().empty());
}

TEST(ExampleReader, FaultNamesTheByte) {
  Finders finders;
  ExampleReader reader(RecordKind::kExample, &finders.features, nullptr);
  Fault fault = reader.Read(Hex("0a 00 0f"));
  CHECK_EQ(fault.kind, FaultKind::kWire);
  CHECK_EQ(fault.offset, 2);
  fault = reader.Read(Hex("0a 0b 0a 09 0a 01 'a' 12 04 1a 02 0a 7f"));
  CHECK_EQ(fault.kind, FaultKind::kWire);
  CHECK_EQ(fault.offset, 11);
}

TEST(ExampleReader, TooManyNamesIsReported) {
  Finders finders;
  finders.features.max_slots = 1;
  ExampleReader reader(RecordKind::kExample, &finders.features, nullptr);
  CHECK(!reader.Read(Hex("0a 07 0a 05 0a 01 'a' 12 00")));
  const Fault fault = reader.Read(Hex("0a 07 0a 05 0a 01 'b' 12 00"));
  CHECK_EQ(fault.kind, FaultKind::kTooManyNames);
  CHECK_EQ(fault.computed, 1);
}

TEST(ExampleReader, ListsAreCheckedWhole) {
  const auto count = [](Kind kind, const char* hex) {
    uint64_t num_values = 0;
    return CheckList(kind, Hex(hex), &num_values) == nullptr ? static_cast<int64_t>(num_values) : int64_t{-1};
  };
  CHECK_EQ(count(Kind::kInt64, "0a 03 01 80 01"), 2);
  CHECK_EQ(count(Kind::kInt64, "08 01 0a 09 01 01 01 01 01 01 01 01 01"), 10);
  CHECK_EQ(count(Kind::kInt64, "0a 02 01 80"), -1);
  CHECK_EQ(count(Kind::kInt64, "0a 0b 01 ff ff ff ff ff ff ff ff ff 01"), 2);
  CHECK_EQ(count(Kind::kInt64, "0a 0c 01 ff ff ff ff ff ff ff ff ff ff 01"), -1);
  CHECK_EQ(count(Kind::kInt64, "0a 14 80 80 80 80 80 80 80 80 80 01 80 80 80 80 80 80 80 80 80 01"), 2);
  CHECK_EQ(count(Kind::kFloat, "0a 08 00 00 00 00 00 00 00 00 0d 00 00 00 00"), 3);
  CHECK_EQ(count(Kind::kFloat, "0a 03 00 00 00"), -1);
  CHECK_EQ(count(Kind::kFloat, "0a 04 00 00 00 00 0a 05 00 00 00 00 00"), -1);
  CHECK_EQ(count(Kind::kBytes, "0a 00 0a 01 'x' 08 01"), 2);
  CHECK_EQ(count(Kind::kBytes, "0a 02 'x'"), -1);
}

}  // namespace tfrkit::test
