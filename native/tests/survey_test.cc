#include "core/stats/survey.h"

#include <cmath>
#include <string>

#include "core/base/pool.h"
#include "core/wire/record_shape.h"
#include "tests/check.h"
#include "tests/hex.h"

namespace tfrkit::test {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes Entry(std::string_view name, const Bytes& value) {
  return Delimited(0x0a, Join({Delimited(0x0a, Copy(View(name))), Delimited(0x12, value)}));
}

Bytes Example(const std::vector<Bytes>& entries) { return Delimited(0x0a, Join(entries)); }

Bytes TextFeature(std::string_view text) { return Delimited(0x0a, Delimited(0x0a, Copy(View(text)))); }

RecordShape ShapeOf(const Bytes& record) { return ClassifyRecord(ExactCopy(record)); }

const Bytes kFive = Hex("1a 03 0a 01 05");

}  // namespace

TEST(Survey, EachKindIsCounted) {
  Survey survey(RecordKind::kExample);
  CHECK(!survey.Add(
      Example({Entry("i", Hex("1a 04 0a 02 05 09")), Entry("f", Hex("12 06 0a 04 00 00 80 3f"))})));
  CHECK(!survey.Add(Example({Entry("i", Hex("1a 0c 0a 0a ff ff ff ff ff ff ff ff ff 01")),
                             Entry("f", Hex("12 0a 0a 08 00 00 c0 7f 00 00 00 40"))})));
  CHECK(!survey.Add(Example({Entry("i", Hex("1a 00")), Entry("f", {})})));
  CHECK(!survey.Add(Example({Entry("i", TextFeature("x"))})));
  CHECK_EQ(survey.num_records(), 4);
  const std::vector<FeatureStats> features = survey.Features();
  REQUIRE(features.size() == 2);
  const FeatureStats& f = features[0];
  CHECK_EQ(f.name, std::string("f"));
  CHECK_EQ(f.present, 3);
  CHECK_EQ(f.num_unset, 1);
  CHECK_EQ(f.kind_counts[2], 2);
  CHECK_EQ(f.min_length, 1);
  CHECK_EQ(f.max_length, 2);
  CHECK_EQ(f.num_values, 3);
  CHECK_EQ(f.num_nan, 1);
  CHECK_EQ(f.min_float, 1.0f);
  CHECK_EQ(f.max_float, 2.0f);
  CHECK_EQ(f.min_int, 0);
  const FeatureStats& i = features[1];
  CHECK_EQ(i.present, 4);
  CHECK_EQ(i.kind_counts[3], 3);
  CHECK_EQ(i.kind_counts[1], 1);
  CHECK_EQ(i.min_length, 0);
  CHECK_EQ(i.max_length, 2);
  CHECK_EQ(i.min_int, -1);
  CHECK_EQ(i.max_int, 9);
  CHECK_EQ(i.min_bytes, 1);
}

TEST(Survey, BytesAreClassified) {
  Survey survey(RecordKind::kExample);
  for (const char* text : {"text", "", "more text\n", "last"}) {
    CHECK(!survey.Add(Example({Entry("t", TextFeature(text))})));
  }
  CHECK(!survey.Add(Example({Entry("t", Hex("0a 04 0a 02 ff d8"))})));
  const FeatureStats stats = survey.Features()[0];
  CHECK_EQ(stats.num_text, 4);
  CHECK_EQ(stats.min_bytes, 0);
  CHECK_EQ(stats.max_bytes, 10);
  CHECK_EQ(stats.num_tensors, 0);
  CHECK_EQ(stats.heads, (std::vector<std::string>{"text", "", "more text\n"}));
}

TEST(Survey, HeadsAreBounded) {
  Survey survey(RecordKind::kExample);
  CHECK(!survey.Add(Example({Entry("t", TextFeature(std::string(10000, 'x')))})));
  CHECK_EQ(survey.Features()[0].heads[0].size(), 4096);
}

TEST(Survey, TensorsAreCompared) {
  Survey survey(RecordKind::kExample);
  const auto add = [&](const char* hex) {
    CHECK(!survey.Add(Example({Entry("t", Delimited(0x0a, Delimited(0x0a, Hex(hex))))})));
    return survey.Features()[0];
  };
  FeatureStats stats = add("08 04 12 08 12 02 08 01 12 02 08 02 22 02 01 02");
  CHECK_EQ(stats.tensor_dtype, 4);
  CHECK_EQ(stats.tensor_rank, 2);
  CHECK_EQ(stats.tensor_shape, (std::vector<int64_t>{1, 2}));
  stats = add("08 04 12 08 12 02 08 01 12 02 08 03 22 03 01 02 03");
  CHECK_EQ(stats.tensor_shape, (std::vector<int64_t>{1, -1}));
  stats = add("08 06 12 08 12 02 08 01 12 02 08 02 22 02 01 02");
  CHECK_EQ(stats.tensor_dtype, -1);
  CHECK_EQ(stats.tensor_rank, 2);
  stats = add("08 04 12 00 22 01 01");
  CHECK_EQ(stats.tensor_rank, -1);
  CHECK_EQ(stats.num_tensors, 4);
}

TEST(Survey, ListsCountFrames) {
  Survey survey(RecordKind::kSequenceExample);
  const Bytes frame = Delimited(0x0a, kFive);
  const Bytes frames = Join({frame, frame, Hex("0a 00")});
  CHECK(!survey.Add(Join({Example({Entry("l", kFive)}), Delimited(0x12, Entry("l", frames))})));
  CHECK(!survey.Add(Delimited(0x12, Entry("l", {}))));
  const std::vector<FeatureStats> features = survey.Features();
  REQUIRE(features.size() == 2);
  CHECK(!features[0].is_list);
  const FeatureStats& list = features[1];
  CHECK(list.is_list);
  CHECK_EQ(list.present, 2);
  CHECK_EQ(list.min_frames, 0);
  CHECK_EQ(list.max_frames, 3);
  CHECK_EQ(list.num_unset, 1);
  CHECK_EQ(list.kind_counts[3], 2);
  CHECK_EQ(list.min_length, 1);
}

TEST(Survey, FaultyRecordIsNotCounted) {
  Survey survey(RecordKind::kExample);
  CHECK_EQ(survey.Add(Example({Entry("a", kFive), Entry("b", Hex("00"))})).kind, FaultKind::kWire);
  CHECK_EQ(survey.num_records(), 0);
  CHECK(survey.Features().empty());
}

TEST(RecordShape, PlainRecordsAreRecognised) {
  CHECK_EQ(ShapeOf({}), RecordShape::kEmpty);
  CHECK_EQ(ShapeOf(Hex("0a 00")), RecordShape::kExample);
  CHECK_EQ(ShapeOf(Example({Entry("a", kFive), Entry("", {}), Entry("b", Hex("1a 04 08 01 08 02"))})),
           RecordShape::kExample);
  CHECK_EQ(ShapeOf(Hex("12 00")), RecordShape::kSequenceExample);
  CHECK_EQ(ShapeOf(Join({Example({Entry("a", kFive)}), Delimited(0x12, Entry("l", Delimited(0x0a, kFive)))})),
           RecordShape::kSequenceExample);
}

TEST(RecordShape, UnknownOrRepeatedFieldsAreLoose) {
  const Bytes entry = Entry("a", kFive);
  CHECK_EQ(ShapeOf(Join({Example({entry}), Hex("18 01")})), RecordShape::kLooseExample);
  CHECK_EQ(ShapeOf(Join({Example({entry}), Example({entry})})), RecordShape::kLooseExample);
  CHECK_EQ(ShapeOf(Example({entry, Hex("18 01")})), RecordShape::kLooseExample);
  CHECK_EQ(ShapeOf(Example({entry, Delimited(0x0a, Hex("0a 01 'b'"))})), RecordShape::kLooseExample);
  CHECK_EQ(ShapeOf(Example({Entry("a", Join({kFive, kFive}))})), RecordShape::kLooseExample);
  CHECK_EQ(ShapeOf(Example({Entry("a", Delimited(0x1a, Hex("10 01")))})), RecordShape::kLooseExample);
  CHECK_EQ(ShapeOf(Join({Example({entry}), Hex("12 00 18 01")})), RecordShape::kLooseSequence);
  CHECK_EQ(ShapeOf(Join({Example({entry}), Hex("12 01 07")})), RecordShape::kLooseExample);
}

TEST(RecordShape, OtherMessagesAreNotMistaken) {
  CHECK_EQ(ShapeOf(Copy(View("plain text"))), RecordShape::kOther);
  // tensorflow.Event: wall_time, then file_version.
  CHECK_EQ(ShapeOf(Hex("09 00 00 00 00 00 00 f0 3f 1a 0d 'brain.Event:2'")), RecordShape::kOther);
  // ExampleListWithContext: a list of Examples, then one as context. Every entry would be a key without a
  // value.
  const Bytes example = Example({Entry("a", kFive)});
  CHECK_EQ(ShapeOf(Join({Delimited(0x0a, example), Delimited(0x0a, example), Delimited(0x12, example)})),
           RecordShape::kOther);
  CHECK_EQ(ShapeOf(Delimited(0x0a, example)), RecordShape::kOther);
  CHECK_EQ(ShapeOf(Hex("18 01")), RecordShape::kOther);  // only unknown fields
  CHECK_EQ(ShapeOf(Example({Entry("a", Hex("00"))})), RecordShape::kOther);
  CHECK_EQ(ShapeOf(Example({Entry("\xff", kFive)})), RecordShape::kOther);  // protobuf refuses such a name
  CHECK_EQ(ShapeOf(Hex("0a 05 'ab'")), RecordShape::kOther);
}

TEST(RecordShape, FastPathAgreesWithTheFullCheckForEveryChangedByte) {
  const Bytes record =
      Example({Entry("age", kFive), Entry("a key of some length", Hex("12 06 0a 04 00 00 80 3f")),
               Entry("t", TextFeature("word")), Entry("none", Hex("0a 00")),
               Entry("wide", Hex("1a 0d 0a 0b 05 ff ff ff ff ff ff ff ff ff 01"))});
  CHECK_EQ(ShapeOf(record), RecordShape::kExample);
  for (size_t i = 0; i < record.size(); ++i) {
    Bytes changed = record;
    for (int value = 0; value < 256; ++value) {
      changed[i] = static_cast<uint8_t>(value);
      CHECK_EQ(ShapeOf(changed), ClassifyClosely(changed));
    }
    const Bytes cut(record.begin(), record.begin() + static_cast<ptrdiff_t>(i));
    CHECK_EQ(ShapeOf(cut), ClassifyClosely(cut));
  }
}

TEST(Survey, MoreNamesThanTheLimitAreCountedAndNamed) {
  std::vector<Bytes> entries;
  for (uint32_t i = 0; i <= kMaxNames; ++i) entries.push_back(Entry(std::to_string(i), {}));
  Survey survey(RecordKind::kExample);
  const Fault fault = survey.Add(Example(entries));
  CHECK_EQ(fault.kind, FaultKind::kTooManyNames);
  CHECK_EQ(fault.stored, uint64_t{kMaxNames} + 1);
  CHECK_EQ(fault.computed, kMaxNames);
  CHECK_EQ(survey.num_records(), 0);
}

TEST(Survey, NamesAreCountedInFeaturesAndLists) {
  CHECK_EQ(CountNames(Example({Entry("a", {}), Entry("b", kFive)})), 2);
  CHECK_EQ(CountNames(Join({Example({Entry("a", {})}), Delimited(0x12, Entry("l", {}))})), 2);
  CHECK_EQ(CountNames(Hex("0a 05 0a")), 0);
  CHECK_EQ(CountNames({}), 0);
}

TEST(Survey, OutOfMemoryIsNotAFaultOfTheRecord) {
  const Bytes record = Example({Entry("a", kFive), Entry("t", TextFeature("x"))});
  int64_t num_blocks = 0;
  for (;; ++num_blocks) {
    Survey survey(RecordKind::kExample);
    LimitBlocks(num_blocks);
    const Fault fault = survey.Add(record);
    LimitBlocks(-1);
    if (!fault) break;
    CHECK_EQ(fault.kind, FaultKind::kNoMemory);
  }
  CHECK(num_blocks > 1);
}

}  // namespace tfrkit::test
