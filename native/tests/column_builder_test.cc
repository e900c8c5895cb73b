#include "core/columns/column_builder.h"

#include <cmath>

#include "core/wire/example_writer.h"
#include "tests/check.h"
#include "tests/hex.h"

namespace tfrkit::test {
namespace {

using Bytes = std::vector<uint8_t>;
using Ints = std::vector<int64_t>;

template <class T>
std::vector<T> Values(const PoolVector<T>& vector) {
  return {vector.data(), vector.data() + vector.size()};
}

Bytes Entry(std::string_view name, const Bytes& value) {
  return Delimited(0x0a, Join({Delimited(0x0a, Copy(View(name))), Delimited(0x12, value)}));
}

Bytes Example(const std::vector<Bytes>& entries) { return Delimited(0x0a, Join(entries)); }

// An Int64List with these bytes as its packed values.
Bytes IntFeature(const Bytes& packed) { return Delimited(0x1a, Delimited(0x0a, packed)); }

// One int64 column "a" of varying length, over one record.
struct IntResult {
  Fault fault;
  Ints values;
  Bytes presence;
};

IntResult ReadInts(const Bytes& record, int64_t length = -1) {
  ColumnBuilder builder(RecordKind::kExample, {{"a", Kind::kInt64, false, length}});
  IntResult result;
  result.fault = builder.Append(record);
  CHECK_EQ(builder.num_rows(), result.fault ? 0 : 1);
  const std::vector<Column> columns = builder.Finish();
  result.values = Values(columns[0].ints);
  result.presence = Values(columns[0].presence);
  return result;
}

Ints ReadIntsOf(const Bytes& record) {
  const IntResult result = ReadInts(record);
  CHECK_EQ(result.fault.kind, FaultKind::kNone);
  CHECK(result.presence.empty());
  return result.values;
}

}  // namespace

TEST(ColumnBuilder, LargeValuesAreViewedOnceTheirSizeIsKnown) {
  ColumnSpec spec{"b", Kind::kBytes, false, 1};
  spec.may_view = true;
  ColumnBuilder builder(RecordKind::kExample, {spec});
  // Sizes of the values of each batch, and whether the batch has views: the mean of the one before decides.
  const std::vector<std::pair<std::vector<size_t>, bool>> batches = {
      {{5000, 5000}, false}, {{9000, 0}, true}, {{4000, 4191}, true}, {{8192, 1}, false},
      {{3, 4}, true},        {{5000}, false},   {{}, true},           {{5000}, false}};
  for (const auto& [sizes, is_viewed] : batches) {
    CHECK_EQ(builder.has_views(), is_viewed);
    std::vector<Bytes> records;
    for (const size_t size : sizes) {
      const Bytes value(size, static_cast<uint8_t>(size));
      records.push_back(Example({Entry("b", Delimited(0x0a, Delimited(0x0a, value)))}));
    }
    for (const Bytes& record : records) CHECK(!builder.Append(record));
    const std::vector<Column> columns = builder.Finish();
    CHECK_EQ(columns[0].views.size(), is_viewed ? sizes.size() : 0);
    CHECK_EQ(columns[0].byte_offsets.empty(), is_viewed);
    for (size_t i = 0; i < columns[0].views.size(); ++i) {
      const ByteView view = columns[0].views[i];
      CHECK_EQ(view.size(), sizes[i]);
      CHECK(view.empty() || (view.data() > records[i].data() && view.back() == records[i].back()));
    }
  }
}

TEST(ColumnBuilder, ScalarsOfEachKindFillFixedColumns) {
  ColumnBuilder builder(
      RecordKind::kExample,
      {{"f", Kind::kFloat, false, 1}, {"i", Kind::kInt64, false, 1}, {"b", Kind::kBytes, false, 1}});
  for (int row = 0; row < 3; ++row) {
    const uint8_t digit = static_cast<uint8_t>(row);
    const Bytes record =
        Example({Entry("b", Delimited(0x0a, Delimited(0x0a, Bytes(digit, 'x')))),
                 Entry("f", Hex("12 06 0a 04 00 00 80 3f")), Entry("i", IntFeature({digit}))});
    CHECK(!builder.Append(ExactCopy(record)));
  }
  CHECK_EQ(builder.num_rows(), 3);
  const std::vector<Column> columns = builder.Finish();
  CHECK_EQ(Values(columns[0].floats), (std::vector<float>{1, 1, 1}));
  CHECK_EQ(Values(columns[1].ints), (Ints{0, 1, 2}));
  CHECK_EQ(Values(columns[2].bytes), Hex("'xxx'"));
  CHECK_EQ(Values(columns[2].byte_offsets), (Ints{0, 0, 1, 3}));
  for (const Column& column : columns) {
    CHECK(column.splits.empty());
    CHECK(column.list_splits.empty());
    CHECK(column.presence.empty());
  }
  CHECK_EQ(builder.num_rows(), 0);
}

TEST(ColumnBuilder, ViewedValuesStayWhereTheyAre) {
  const Bytes feature =
      Delimited(0x0a, Join({Delimited(0x0a, {1, 2}), Delimited(0x0a, {}), Delimited(0x0a, {3})}));
  const Bytes record = Example({Entry("b", feature)});
  ColumnBuilder builder(RecordKind::kExample, {{"b", Kind::kBytes, false, -1, true}});
  CHECK_EQ(builder.Append(record).kind, FaultKind::kNone);
  CHECK(static_cast<bool>(builder.Append(Bytes(record.begin(), record.end() - 1))));
  CHECK_EQ(builder.Append(record).kind, FaultKind::kNone);
  const std::vector<Column> columns = builder.Finish();
  CHECK(columns[0].bytes.empty() && columns[0].byte_offsets.empty());
  CHECK_EQ(columns[0].views.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    const ByteView view = columns[0].views[i];
    CHECK(view.data() > record.data() && view.data() + view.size() <= record.data() + record.size());
    CHECK_EQ(view.size(), i % 3 == 0 ? 2u : i % 3 == 1 ? 0u : 1u);
  }
  CHECK_EQ(columns[0].views[2].front(), 3);
}

TEST(ColumnBuilder, NoRowsGiveFirstOffsetsOnly) {
  ColumnBuilder builder(
      RecordKind::kSequenceExample,
      {{"i", Kind::kInt64, false, -1}, {"b", Kind::kBytes, false, 1}, {"l", Kind::kFloat, true, -1}});
  for (int round = 0; round < 2; ++round) {
    const std::vector<Column> columns = builder.Finish();
    CHECK_EQ(Values(columns[0].splits), Ints{0});
    CHECK_EQ(Values(columns[1].byte_offsets), Ints{0});
    CHECK_EQ(Values(columns[2].splits), Ints{0});
    CHECK_EQ(Values(columns[2].list_splits), Ints{0});
    CHECK(columns[0].ints.empty());
  }
}

TEST(ColumnBuilder, IntegerExtremesSurvive) {
  const struct {
    int64_t value;
    const char* packed;
  } cases[] = {{0, "00"},
               {127, "7f"},
               {128, "80 01"},
               {-1, "ff ff ff ff ff ff ff ff ff 01"},
               {INT64_MAX, "ff ff ff ff ff ff ff ff 7f"},
               {INT64_MIN, "80 80 80 80 80 80 80 80 80 01"},
               {int64_t{1} << 55, "80 80 80 80 80 80 80 40"}};
  for (const auto& item : cases) {
    CHECK_EQ(ReadIntsOf(ExactCopy(Example({Entry("a", IntFeature(Hex(item.packed)))}))), Ints{item.value});
    CHECK_EQ(ReadInts(ExactCopy(Example({Entry("a", IntFeature(Hex(item.packed)))})), 1).values,
             Ints{item.value});
  }
}

TEST(ColumnBuilder, AbsentUnsetAndEmptyAreDistinguished) {
  ColumnBuilder builder(RecordKind::kExample,
                        {{"a", Kind::kInt64, false, -1}, {"b", Kind::kBytes, false, -1}});
  const Bytes five = Entry("a", IntFeature(Hex("05")));
  const Bytes text = Entry("b", Hex("0a 03 0a 01 'x'"));
  CHECK(!builder.Append(Example({five, text})));
  CHECK(!builder.Append(Example({text})));
  CHECK(!builder.Append(Example({Entry("a", {}), text})));
  CHECK(!builder.Append(Example({Entry("a", Hex("1a 00")), Entry("b", Hex("0a 00"))})));
  CHECK(!builder.Append({}));
  CHECK(!builder.Append(Hex("0a 00")));
  CHECK(!builder.Append(Example({five, text})));
  const std::vector<Column> columns = builder.Finish();
  CHECK_EQ(Values(columns[0].splits), (Ints{0, 1, 1, 1, 1, 1, 1, 2}));
  CHECK_EQ(Values(columns[0].ints), (Ints{5, 5}));
  CHECK_EQ(Values(columns[0].presence), (Bytes{2, 0, 1, 2, 0, 0, 2}));
  CHECK_EQ(Values(columns[1].splits), (Ints{0, 1, 2, 3, 3, 3, 3, 4}));
  CHECK_EQ(Values(columns[1].presence), (Bytes{2, 2, 2, 2, 0, 0, 2}));
}

// Protobuf's rules, one by one. Every record here is a well-formed Example.

TEST(ColumnBuilder, UnpackedAndMixedValuesAreConcatenated) {
  CHECK_EQ(ReadIntsOf(Example({Entry("a", Delimited(0x1a, Hex("08 01 08 96 01 0a 02 03 04 08 05")))})),
           (Ints{1, 150, 3, 4, 5}));
  ColumnBuilder builder(RecordKind::kExample, {{"f", Kind::kFloat, false, -1}});
  CHECK(!builder.Append(Example({Entry("f", Delimited(0x12, Hex("0d 00 00 80 3f 0a 04 00 00 00 40")))})));
  CHECK_EQ(Values(builder.Finish()[0].floats), (std::vector<float>{1, 2}));
}

TEST(ColumnBuilder, PackedRunsAreConcatenated) {
  CHECK_EQ(ReadIntsOf(Example({Entry("a", Delimited(0x1a, Hex("0a 01 01 0a 00 0a 02 02 03")))})),
           (Ints{1, 2, 3}));
}

TEST(ColumnBuilder, LastEntryOfAKeyWinsWhole) {
  CHECK_EQ(ReadIntsOf(Example({Entry("a", IntFeature(Hex("01 02"))), Entry("a", IntFeature(Hex("03")))})),
           Ints{3});
  // Also over another kind, which alone would be a fault.
  CHECK_EQ(ReadIntsOf(Example({Entry("a", Hex("0a 03 0a 01 'x'")), Entry("a", IntFeature(Hex("03")))})),
           Ints{3});
  CHECK_EQ(ReadInts(Example({Entry("a", IntFeature(Hex("01"))), Entry("a", {})})).presence, Bytes{1});
}

TEST(ColumnBuilder, RepeatedValueOfAnEntryMerges) {
  const Bytes key = Hex("0a 01 'a'");
  const Bytes one = Delimited(0x12, IntFeature(Hex("01"))), two = Delimited(0x12, IntFeature(Hex("02")));
  CHECK_EQ(ReadIntsOf(Example({Delimited(0x0a, Join({key, one, two}))})), (Ints{1, 2}));
  CHECK_EQ(ReadIntsOf(Example({Delimited(0x0a, Join({one, key, two}))})), (Ints{1, 2}));
  const Bytes text = Delimited(0x12, Hex("0a 03 0a 01 'x'"));
  CHECK_EQ(ReadIntsOf(Example({Delimited(0x0a, Join({key, one, text, two}))})), Ints{2});
}

TEST(ColumnBuilder, LastKeyOfAnEntryCounts) {
  const Bytes value = Delimited(0x12, IntFeature(Hex("07")));
  CHECK_EQ(ReadIntsOf(Example({Delimited(0x0a, Join({Hex("0a 01 'z'"), value, Hex("0a 01 'a'")}))})),
           Ints{7});
  CHECK_EQ(ReadInts(Example({Delimited(0x0a, Join({Hex("0a 01 'a'"), value, Hex("0a 01 'z'")}))})).presence,
           Bytes{0});
  // The same after "z" was cached as an unrequested name.
  ColumnBuilder builder(RecordKind::kExample, {{"a", Kind::kInt64, false, -1}});
  CHECK(!builder.Append(Example({Entry("z", IntFeature(Hex("01")))})));
  CHECK(!builder.Append(Example({Delimited(0x0a, Join({Hex("0a 01 'z'"), value, Hex("0a 01 'a'")}))})));
  CHECK_EQ(Values(builder.Finish()[0].ints), Ints{7});
}

TEST(ColumnBuilder, MissingKeyIsTheEmptyName) {
  ColumnBuilder builder(RecordKind::kExample, {{"", Kind::kInt64, false, 1}});
  CHECK(!builder.Append(Example({Delimited(0x0a, Delimited(0x12, IntFeature(Hex("07"))))})));
  CHECK(!builder.Append(Example({Entry("", IntFeature(Hex("08")))})));
  CHECK_EQ(Values(builder.Finish()[0].ints), (Ints{7, 8}));
}

TEST(ColumnBuilder, MissingValueIsAnUnsetFeature) {
  CHECK_EQ(ReadInts(Example({Delimited(0x0a, Hex("0a 01 'a'"))})).presence, Bytes{1});
}

TEST(ColumnBuilder, RepeatedFeaturesMessagesMerge) {
  const Bytes first = Example({Entry("a", IntFeature(Hex("01"))), Entry("b", IntFeature(Hex("02")))});
  const Bytes second = Example({Entry("a", IntFeature(Hex("03")))});
  CHECK_EQ(ReadIntsOf(Join({first, second})), Ints{3});
  CHECK_EQ(ReadIntsOf(Join({second, first})), Ints{1});
}

TEST(ColumnBuilder, LaterMemberOfTheOneofReplaces) {
  CHECK_EQ(ReadIntsOf(Example({Entry("a", Hex("0a 03 0a 01 'x' 1a 03 0a 01 05"))})), Ints{5});
  CHECK_EQ(ReadIntsOf(Example({Entry("a", Hex("1a 03 0a 01 05 12 00 1a 03 0a 01 06"))})), Ints{6});
  CHECK_EQ(ReadIntsOf(Example({Entry("a", Hex("1a 03 0a 01 05 1a 03 0a 01 06"))})), (Ints{5, 6}));
}

TEST(ColumnBuilder, UnknownFieldsAreSkippedAtEveryLevel) {
  for (const char* hex : {"20 96 01", "21 01 02 03 04 05 06 07 08", "22 02 'zz'", "23 08 01 24",
                          "25 01 02 03 04", "f8 ff ff ff 0f 01"}) {
    const Bytes unknown = Hex(hex);
    const Bytes list = Join({unknown, Hex("0a 01 05"), unknown});
    const Bytes feature = Join({unknown, Delimited(0x1a, list), unknown});
    const Bytes entry = Join({unknown, Hex("0a 01 'a'"), unknown, Delimited(0x12, feature), unknown});
    const Bytes features = Join({unknown, Delimited(0x0a, entry), unknown});
    CHECK_EQ(ReadIntsOf(Join({unknown, Delimited(0x0a, features), unknown})), Ints{5});
  }
}

TEST(ColumnBuilder, KnownFieldsOfAnotherWireTypeAreSkipped) {
  CHECK_EQ(ReadIntsOf(Join({Hex("08 01"), Example({Entry("a", IntFeature(Hex("05")))})})), Ints{5});
  CHECK_EQ(ReadIntsOf(Example({Hex("08 01"), Entry("a", IntFeature(Hex("05")))})), Ints{5});
  CHECK_EQ(ReadIntsOf(Example({Entry("a", Hex("18 01 1a 03 0a 01 05"))})), Ints{5});
  CHECK_EQ(ReadIntsOf(Example({Entry("a", Delimited(0x1a, Hex("0d 01 02 03 04 0a 01 05")))})), Ints{5});
}

TEST(ColumnBuilder, PaddedLengthsAreRead) {
  // Every tag and length of {"a": [5]} with a byte more than it needs.
  CHECK_EQ(
      ReadIntsOf(Hex("8a 00 96 00  8a 00 92 00  8a 00 81 00 'a'  92 00 89 00  9a 00 85 00  8a 00 81 00 05")),
      Ints{5});
}

TEST(ColumnBuilder, WireFaultsAreReported) {
  const Bytes good = Entry("a", IntFeature(Hex("05")));
  const std::vector<Bytes> records = {
      Hex("0a"),
      Hex("0a 05 0a"),
      Hex("00 00"),
      Hex("0e 00"),
      Hex("0c"),
      Hex("0b"),
      Example({good, Hex("0a 7f")}),
      Example({good, Hex("07")}),
      Example({Entry("a", Hex("1a 7f"))}),
      Example({Entry("a", Hex("00"))}),
      Example({Entry("a", IntFeature(Hex("80")))}),
      Example({Entry("a", IntFeature(Hex("80 80 80 80 80 80 80 80 80 80 00")))}),
      Example({Entry("a", Hex("12 05 0a 03 00 00 80")), good}),  // floats of three bytes, even if replaced
      Join({Example({good}), Hex("0f")}),
  };
  for (const Bytes& record : records) {
    const IntResult result = ReadInts(ExactCopy(record));
    CHECK_EQ(result.fault.kind, FaultKind::kWire);
    CHECK(result.fault.offset <= record.size());
    CHECK(result.fault.kind != FaultKind::kNoMemory);
    CHECK(result.values.empty());
  }
}

TEST(ColumnBuilder, OtherKindIsReported) {
  const IntResult result = ReadInts(Example({Entry("b", {}), Entry("a", Hex("12 06 0a 04 00 00 80 3f"))}));
  CHECK_EQ(result.fault.kind, FaultKind::kFeatureKind);
  CHECK_EQ(result.fault.stored, 2);
  CHECK_EQ(result.fault.computed, 3);
  CHECK_EQ(result.fault.column, 0);
  // An empty list has a kind, too.
  CHECK_EQ(ReadInts(Example({Entry("a", Hex("0a 00"))})).fault.kind, FaultKind::kFeatureKind);
}

TEST(ColumnBuilder, OtherLengthIsReported) {
  const IntResult result = ReadInts(Example({Entry("a", IntFeature(Hex("01 02 03")))}), 2);
  CHECK_EQ(result.fault.kind, FaultKind::kLength);
  CHECK_EQ(result.fault.stored, 3);
  CHECK_EQ(result.fault.computed, 2);
  CHECK_EQ(ReadInts(Example({Entry("a", Hex("1a 00"))}), 1).fault.kind, FaultKind::kLength);
  CHECK_EQ(ReadInts(Example({Entry("a", IntFeature(Hex("01")))}), 0).fault.kind, FaultKind::kLength);
}

TEST(ColumnBuilder, MissingFixedColumnIsReported) {
  CHECK_EQ(ReadInts({}, 1).fault.kind, FaultKind::kMissing);
  CHECK_EQ(ReadInts(Example({Entry("b", IntFeature(Hex("01")))}), 1).fault.kind, FaultKind::kMissing);
  CHECK_EQ(ReadInts(Example({Entry("a", {})}), 1).fault.kind, FaultKind::kMissing);
}

TEST(ColumnBuilder, FaultLeavesTheColumnsUnchanged) {
  const std::vector<ColumnSpec> specs = {
      {"a", Kind::kInt64, false, -1}, {"b", Kind::kBytes, false, -1}, {"c", Kind::kFloat, false, 1}};
  const Bytes a = Entry("a", IntFeature(Hex("01 02"))), b = Entry("b", Hex("0a 06 0a 01 'x' 0a 01 'y'"));
  const Bytes c = Entry("c", Hex("12 06 0a 04 00 00 80 3f"));
  ColumnBuilder builder(RecordKind::kExample, specs);
  CHECK(!builder.Append(Example({a, b, c})));
  CHECK_EQ(builder.Append(Example({a, b})).kind, FaultKind::kMissing);
  CHECK_EQ(builder.Append(Example({b, a, Entry("c", {})})).column, 2);
  CHECK_EQ(builder.Append(Example({b, Entry("a", Hex("00"))})).kind, FaultKind::kWire);
  CHECK_EQ(builder.Append(Example({b})).kind, FaultKind::kMissing);  // leaves a mark of "a" being absent
  CHECK(!builder.Append(Example({a, b, c})));
  const std::vector<Column> columns = builder.Finish();
  CHECK_EQ(Values(columns[0].ints), (Ints{1, 2, 1, 2}));
  CHECK_EQ(Values(columns[0].splits), (Ints{0, 2, 4}));
  CHECK(columns[0].presence.empty());
  CHECK_EQ(Values(columns[1].bytes), Hex("'xyxy'"));
  CHECK_EQ(Values(columns[1].byte_offsets), (Ints{0, 1, 2, 3, 4}));
  CHECK_EQ(Values(columns[2].floats), (std::vector<float>{1, 1}));
}

TEST(ColumnBuilder, UnrequestedNamesAreNotRead) {
  // The content of "z" is not a Feature.
  CHECK_EQ(ReadIntsOf(Example({Entry("z", Hex("ff ff ff")), Entry("a", IntFeature(Hex("05")))})), Ints{5});
}

TEST(ColumnBuilder, UnrequestedNamesAreReported) {
  const Bytes known = Entry("a", IntFeature(Hex("05")));
  const Bytes other = Entry("z", {});
  // In the usual layout; with the key after its value, for the general reader; in a list.
  const Bytes odd = Delimited(0x0a, Join({Hex("12 00"), Hex("0a 01 'z'")}));
  for (const Bytes& record :
       {Example({known, other}), Example({known, odd}), Join({Example({known}), Delimited(0x12, other)})}) {
    ColumnBuilder builder(RecordKind::kSequenceExample, {{"a", Kind::kInt64, false, -1}});
    CHECK(!builder.Append(Example({known})));
    CHECK(!builder.has_others());
    CHECK(!builder.Append(record));
    CHECK(builder.has_others());
    builder.Finish();
    CHECK(builder.has_others());
  }
}

TEST(ColumnBuilder, AnyNumberOfUnrequestedNamesIsSkipped) {
  ColumnBuilder builder(RecordKind::kExample, {{"a", Kind::kInt64, false, 1}});
  for (int i = 0; i < 10000; ++i) {
    const Bytes record = Example({Entry("other" + std::to_string(i), {}), Entry("a", IntFeature(Hex("05"))),
                                  Entry("more" + std::to_string(i), {})});
    CHECK(!builder.Append(record));
  }
  CHECK_EQ(builder.Finish()[0].ints.size(), 10000);
}

TEST(ColumnBuilder, NamesOfEverySizeAreMatched) {
  Random random(5);
  std::vector<ColumnSpec> specs;
  for (size_t size = 0; size < 140; ++size) specs.push_back({std::string(size, 'n'), Kind::kInt64, false, 1});
  ColumnBuilder builder(RecordKind::kExample, specs);
  for (int row = 0; row < 3; ++row) {
    std::vector<Bytes> entries;
    for (size_t size = 0; size < 140; ++size) {
      entries.push_back(Entry(specs[size].name, IntFeature({static_cast<uint8_t>(size / 2)})));
    }
    CHECK(!builder.Append(ExactCopy(Example(entries))));
    // A name that differs from the predicted one in any one byte is another name.
    for (size_t size = 1; size < 140; ++size) {
      const size_t key_end = entries[size].size() - Hex("12 05 1a 03 0a 01 00").size();
      std::vector<Bytes> others = entries;
      others[size][key_end - 1 - random.Below(size)] = 'm';
      CHECK_EQ(builder.Append(ExactCopy(Example(others))).kind, FaultKind::kMissing);
    }
  }
  const std::vector<Column> columns = builder.Finish();
  for (size_t size = 0; size < 140; ++size) {
    const int64_t value = static_cast<int64_t>(size / 2);
    CHECK_EQ(Values(columns[size].ints), (Ints{value, value, value}));
  }
}

// Frames of a SequenceExample.

TEST(ColumnBuilder, SequenceExampleFillsContextAndLists) {
  ColumnBuilder builder(
      RecordKind::kSequenceExample,
      {{"n", Kind::kInt64, false, 1}, {"n", Kind::kInt64, true, 1}, {"v", Kind::kBytes, true, -1}});
  const Bytes context = Example({Entry("n", IntFeature(Hex("09")))});
  const Bytes ints =
      Entry("n", Join({Delimited(0x0a, IntFeature(Hex("01"))), Delimited(0x0a, IntFeature(Hex("02")))}));
  const Bytes texts =
      Entry("v", Join({Hex("0a 08 0a 06 0a 01 'x' 0a 01 'y'"), Hex("0a 00"), Hex("0a 02 0a 00")}));
  CHECK(!builder.Append(ExactCopy(Join({context, Delimited(0x12, Join({ints, texts}))}))));
  CHECK(!builder.Append(ExactCopy(Join({context, Delimited(0x12, Join({Entry("v", {}), Entry("n", {})}))}))));
  CHECK(!builder.Append(ExactCopy(Join({Delimited(0x12, Join({ints})), context}))));  // lists first
  const std::vector<Column> columns = builder.Finish();
  CHECK_EQ(Values(columns[0].ints), (Ints{9, 9, 9}));
  CHECK_EQ(Values(columns[1].ints), (Ints{1, 2, 1, 2}));
  CHECK_EQ(Values(columns[1].list_splits), (Ints{0, 2, 2, 4}));
  CHECK(columns[1].splits.empty());
  CHECK_EQ(Values(columns[2].list_splits), (Ints{0, 3, 3, 3}));
  CHECK_EQ(Values(columns[2].splits), (Ints{0, 2, 2, 2}));
  CHECK_EQ(Values(columns[2].bytes), Hex("'xy'"));
  CHECK_EQ(Values(columns[2].presence), (Bytes{2, 2, 0}));
}

TEST(ColumnBuilder, FrameFaultsAreReported) {
  const auto read = [](const Bytes& frames) {
    ColumnBuilder builder(RecordKind::kSequenceExample, {{"n", Kind::kInt64, true, 1}});
    return builder.Append(Delimited(0x12, Entry("n", frames))).kind;
  };
  CHECK_EQ(read(Delimited(0x0a, IntFeature(Hex("01 02")))), FaultKind::kLength);
  CHECK_EQ(read(Hex("0a 00")), FaultKind::kMissing);
  CHECK_EQ(read(Hex("0a 02 0a 00")), FaultKind::kFeatureKind);
  CHECK_EQ(read(Hex("0a 02 1a 01")), FaultKind::kWire);
  CHECK_EQ(read({}), FaultKind::kNone);
}

TEST(ColumnBuilder, AbsentListIsARowWithoutFrames) {
  ColumnBuilder builder(RecordKind::kSequenceExample,
                        {{"n", Kind::kInt64, true, 1}, {"v", Kind::kInt64, true, -1}});
  CHECK(!builder.Append({}));
  CHECK(!builder.Append(Hex("12 00 18 01")));  // and for the general reader
  CHECK(!builder.Append(Delimited(0x12, Entry("n", {}))));
  const std::vector<Column> columns = builder.Finish();
  CHECK_EQ(Values(columns[0].list_splits), (Ints{0, 0, 0, 0}));
  CHECK_EQ(Values(columns[0].presence), (Bytes{0, 0, 2}));
  CHECK_EQ(Values(columns[1].presence), (Bytes{0, 0, 0}));
}

TEST(ColumnBuilder, RepeatedListsMergeAndReplaceAsProtobufDoes) {
  const auto read = [](const Bytes& lists) {
    ColumnBuilder builder(RecordKind::kSequenceExample, {{"n", Kind::kInt64, true, 1}});
    CHECK(!builder.Append(lists));
    return Values(builder.Finish()[0].ints);
  };
  const Bytes key = Hex("0a 01 'n'");
  const Bytes one = Delimited(0x0a, IntFeature(Hex("01"))), two = Delimited(0x0a, IntFeature(Hex("02")));
  // Repeated value in one entry: frames are concatenated. Repeated key: the last entry wins.
  CHECK_EQ(read(Delimited(0x12, Delimited(0x0a, Join({key, Delimited(0x12, one), Delimited(0x12, two)})))),
           (Ints{1, 2}));
  CHECK_EQ(read(Delimited(0x12, Join({Entry("n", one), Entry("n", two)}))), Ints{2});
  CHECK_EQ(read(Join({Delimited(0x12, Entry("n", one)), Delimited(0x12, Entry("n", two))})), Ints{2});
  CHECK_EQ(read(Delimited(0x12, Entry("n", Join({one, Hex("20 01"), two})))), (Ints{1, 2}));
}

// The fast reader and the general one give the same columns.
TEST(ColumnBuilder, FastAndGeneralReadersAgree) {
  Random random(11);
  const std::vector<ColumnSpec> specs = {
      {"bytes", Kind::kBytes, false, -1}, {"float", Kind::kFloat, false, -1},
      {"int", Kind::kInt64, false, -1},   {"one", Kind::kInt64, false, 1},
      {"three", Kind::kFloat, false, 3},  {"word", Kind::kBytes, false, 1}};
  ColumnBuilder quick(RecordKind::kExample, specs), general(RecordKind::kExample, specs);
  for (int row = 0; row < 2000; ++row) {
    const std::vector<uint8_t> pool = random.Bytes(400);
    std::vector<int64_t> ints(random.Below(random.Below(8) == 0 ? 300 : 4));
    for (int64_t& value : ints) value = static_cast<int64_t>(random.Next() >> random.Below(64));
    const std::vector<float> floats(random.Below(20), 1.5f);
    std::vector<ByteView> texts(random.Below(4));
    for (ByteView& text : texts) text = ByteView(pool.data(), random.Below(200));
    const int64_t one = static_cast<int64_t>(random.Next() >> random.Below(64));
    const float three[] = {1, 2, 3};
    const ByteView word[] = {ByteView(pool.data(), random.Below(150))};
    std::vector<NamedFeature> features;
    const auto add = [&](std::string_view name, Kind kind, std::span<const int64_t> i,
                         std::span<const float> f,
                         std::span<const ByteView> b) { features.push_back({name, {kind, i, f, b}}); };
    if (random.Below(5) != 0) add("bytes", Kind::kBytes, {}, {}, texts);
    if (random.Below(5) != 0) add("float", Kind::kFloat, {}, floats, {});
    if (random.Below(5) != 0) add("int", random.Below(5) == 0 ? Kind::kUnset : Kind::kInt64, ints, {}, {});
    add("one", Kind::kInt64, {&one, 1}, {}, {});
    add("three", Kind::kFloat, {}, three, {});
    add("word", Kind::kBytes, {}, {}, word);
    PoolVector<uint8_t> out;
    REQUIRE(AppendExample(features, &out));
    const Bytes record = ExactCopy({out.data(), out.size()});
    CHECK(!quick.Append(record));
    CHECK(!general.Append(Join({record, Hex("78 01")})));  // the fast reader does not handle unknown fields
  }
  const std::vector<Column> a = quick.Finish(), b = general.Finish();
  for (size_t i = 0; i < specs.size(); ++i) {
    CHECK(Values(a[i].ints) == Values(b[i].ints));
    CHECK(Values(a[i].floats) == Values(b[i].floats));
    CHECK(Values(a[i].bytes) == Values(b[i].bytes));
    CHECK(Values(a[i].byte_offsets) == Values(b[i].byte_offsets));
    CHECK(Values(a[i].splits) == Values(b[i].splits));
    CHECK(Values(a[i].presence) == Values(b[i].presence));
  }
}

// Predictions from earlier records do not change the result of the next.
TEST(ColumnBuilder, RecordsReadTheSameAfterAnyOthers) {
  Random random(12);
  const std::string long_name(20, 'l'), longer_name(50, 'm');
  const std::vector<std::string> names = {"first", "x",       "second", "image/height", long_name,
                                          "third", "wanted1", "fourth", longer_name,    "wanted2"};
  const std::vector<ColumnSpec> specs = {{"wanted1", Kind::kInt64, false, -1},
                                         {"wanted2", Kind::kInt64, false, 1},
                                         {long_name, Kind::kInt64, false, -1}};
  ColumnBuilder learned(RecordKind::kExample, specs);
  std::vector<std::string> order = names;
  size_t num_faults = 0, num_read = 0;
  for (int row = 0; row < 6000; ++row) {
    if (random.Below(500) == 0) std::swap(order[random.Below(10)], order[random.Below(10)]);
    std::vector<Bytes> entries;
    for (const std::string& name : order) {
      if (random.Below(100) == 0) continue;
      // Of one size, of one of two sizes, of any.
      const size_t size = name == "second" ? 1 + random.Below(2) : name == "third" ? random.Below(120) : 1;
      entries.push_back(Entry(name, IntFeature(Bytes(size, static_cast<uint8_t>(row & 0x7f)))));
      if (random.Below(200) == 0) entries.push_back(entries[random.Below(entries.size())]);
    }
    Bytes record = Example(entries);
    // Any byte of one entry may differ: tags, lengths, keys, values.
    if (random.Below(3) == 0) {
      const size_t at = 2 + random.Below(record.size() - 2);
      record[at] =
          static_cast<uint8_t>(random.Below(4) == 0 ? random.Next() : record[at] + 1 - random.Below(3));
    }
    record = ExactCopy(record);
    ColumnBuilder fresh(RecordKind::kExample, specs);
    const Fault expected = fresh.Append(record), fault = learned.Append(record);
    CHECK_EQ(fault.kind, expected.kind);
    CHECK_EQ(fault.offset, expected.offset);
    CHECK_EQ(fault.column, expected.column);
    CHECK_EQ(learned.num_rows(), fresh.num_rows());
    num_faults += static_cast<bool>(fault);
    num_read += !fault;
    const std::vector<Column> a = learned.Finish(), b = fresh.Finish();
    for (size_t i = 0; i < specs.size(); ++i) {
      CHECK(Values(a[i].ints) == Values(b[i].ints));
      CHECK(Values(a[i].presence) == Values(b[i].presence));
    }
  }
  CHECK(num_faults > 100);
  CHECK(num_read > 1000);
}

// Padded lengths, two bytes where one suffices, are valid, and so are their faults.
TEST(ColumnBuilder, PaddedLengthsDoNotMatchThePrediction) {
  const Bytes wanted = Entry("a", IntFeature(Hex("05")));
  const auto entry_with = [&](const Bytes& length) {
    return Delimited(0x0a, Join({Delimited(0x0a, Hex("'other'")), Hex("12"), length, Bytes(5, 0x20)}));
  };
  ColumnBuilder builder(RecordKind::kExample, {{"a", Kind::kInt64, false, 1}});
  for (int row = 0; row < 300; ++row) {
    CHECK(!builder.Append(ExactCopy(Example({entry_with(Hex("85 00")), wanted}))));
    CHECK_EQ(builder.Append(ExactCopy(Example({entry_with(Hex("85 01")), wanted}))).kind, FaultKind::kWire);
  }
}

// A varying entry size is accepted only if the general reader would accept it.
TEST(ColumnBuilder, LengthsThatContradictEachOtherAreFaults) {
  // Its key holds an entry whose value is the bytes after the key.
  const std::string name = "ab\x0a\x0a\x0a\x01z\x12\x05";
  const Bytes wanted = Entry("a", IntFeature(Hex("05")));
  const size_t head_size = 2 + 2 + name.size() + 2;
  const auto with_lengths = [&](size_t value_size, uint8_t length, uint8_t value_length, bool is_last) {
    Bytes entry = Entry(name, Bytes(value_size, 0x20));
    if (value_size >= 0x70)
      entry = Join({Hex("0a 00 0a 09"), Copy(View(name)), Hex("12 00"), Bytes(value_size, 0x20)});
    entry[1] = length;
    entry[head_size - 1] = value_length;
    return ExactCopy(
        Example(is_last ? std::vector<Bytes>{wanted, entry} : std::vector<Bytes>{entry, wanted}));
  };
  const auto length_of = [&](size_t value_size) { return static_cast<uint8_t>(head_size - 2 + value_size); };
  for (const bool is_last : {false, true}) {
    ColumnBuilder builder(RecordKind::kExample, {{"a", Kind::kInt64, false, 1}});
    for (int row = 0; row < 300; ++row) {
      const uint8_t size = static_cast<uint8_t>(row % 7);
      CHECK(!builder.Append(with_lengths(size, length_of(size), size, is_last)));
    }
    // The entry ends within its key, and the one in the key follows.
    CHECK_EQ(builder.Append(with_lengths(3, 4, static_cast<uint8_t>(4 - 13), is_last)).kind,
             FaultKind::kWire);
    // It ends past the record, or where the next begins.
    CHECK_EQ(builder.Append(with_lengths(3, length_of(6), 6, is_last)).kind, FaultKind::kWire);
    // Its lengths are the first bytes of longer ones.
    CHECK_EQ(builder.Append(with_lengths(0x85, length_of(0x85), 0x85, is_last)).kind, FaultKind::kWire);
    CHECK_EQ(builder.num_rows(), 300);
  }
}

TEST(ColumnBuilder, EveryCutAndEveryFlipIsSafe) {
  const Bytes record =
      Example({Entry("a", IntFeature(Hex("05 80 01"))), Entry("b", Hex("0a 06 0a 01 'x' 0a 01 'y'")),
               Entry("c", Hex("12 06 0a 04 00 00 80 3f"))});
  const std::vector<ColumnSpec> specs = {
      {"a", Kind::kInt64, false, -1}, {"b", Kind::kBytes, false, -1}, {"c", Kind::kFloat, false, -1}};
  ColumnBuilder builder(RecordKind::kExample, specs);
  for (size_t size = 1; size < record.size(); ++size) {
    CHECK_EQ(builder.Append(ExactCopy({record.data(), size})).kind, FaultKind::kWire);
  }
  size_t num_rows = 0;
  for (size_t at = 0; at < record.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      Bytes changed = ExactCopy(record);
      changed[at] = static_cast<uint8_t>(byte);
      num_rows += !builder.Append(changed);
      CHECK_EQ(builder.num_rows(), num_rows);
    }
  }
  for (const Column& column : builder.Finish()) CHECK_EQ(column.splits.size(), num_rows + 1);
}

TEST(ColumnBuilder, UnknownNameIsReportedWithItsName) {
  const Bytes five = IntFeature(Hex("05"));
  const Bytes plain = Example({Entry("a", five), Entry("b", five)});
  const Bytes odd = Example({Entry("a", five), Entry("rare", five), Entry("b", five)});
  ColumnBuilder builder(RecordKind::kExample, {{"a", Kind::kInt64, false, 1}}, {{"b", false}});
  for (int i = 0; i < 3; ++i) CHECK(!builder.Append(plain));
  const Fault fault = builder.Append(ExactCopy(odd));
  CHECK_EQ(fault.kind, FaultKind::kUnknown);
  CHECK_EQ(builder.unknown_name(), std::string("rare"));
  CHECK_EQ(Copy(View(odd).subspan(fault.offset, fault.stored)), Copy(View("rare")));
  CHECK_EQ(fault.computed, 0);
  CHECK(!builder.Append(plain));
  CHECK_EQ(builder.num_rows(), 4);
  CHECK_EQ(Values(builder.Finish()[0].ints), (Ints{5, 5, 5, 5}));
}

TEST(ColumnBuilder, UnknownNameIsReportedInEveryLayout) {
  const Bytes value = Delimited(0x12, IntFeature(Hex("05")));
  const std::vector<Bytes> entries = {
      Delimited(0x0a, Join({Delimited(0x0a, Copy(View("x"))), value})),
      Delimited(0x0a, Join({value, Delimited(0x0a, Copy(View("x")))})),  // the key comes last
      Delimited(0x0a, Delimited(0x0a, Copy(View("x")))),                 // without a value
      Delimited(0x0a, value),                                            // without a key
  };
  for (const Bytes& entry : entries) {
    ColumnBuilder builder(RecordKind::kExample, {{"a", Kind::kInt64, false, -1}}, {});
    CHECK_EQ(builder.Append(ExactCopy(Example({entry}))).kind, FaultKind::kUnknown);
    CHECK_EQ(builder.num_rows(), 0);
  }
}

TEST(ColumnBuilder, UnknownListIsReportedAlsoInAnExample) {
  const Bytes lists = Delimited(0x12, Entry("steps", Delimited(0x0a, IntFeature(Hex("05")))));
  const Bytes record = Join({Example({Entry("a", IntFeature(Hex("05")))}), lists});
  for (const RecordKind kind : {RecordKind::kExample, RecordKind::kSequenceExample}) {
    ColumnBuilder builder(kind, {{"a", Kind::kInt64, false, 1}}, {});
    const Fault fault = builder.Append(ExactCopy(record));
    CHECK_EQ(fault.kind, FaultKind::kUnknown);
    CHECK_EQ(fault.computed, 1);
    CHECK_EQ(builder.unknown_name(), std::string("steps"));
  }
  ColumnBuilder knows(RecordKind::kSequenceExample, {{"a", Kind::kInt64, false, 1}}, {{"steps", true}});
  CHECK(!knows.Append(record));
  // An empty map of lists, or a field that is not a map, holds no feature.
  ColumnBuilder builder(RecordKind::kExample, {{"a", Kind::kInt64, false, 1}}, {});
  CHECK(!builder.Append(Join({Example({Entry("a", IntFeature(Hex("05")))}), Hex("12 00")})));
  CHECK(!builder.Append(Join({Example({Entry("a", IntFeature(Hex("05")))}), Hex("12 02 ff ff")})));
}

TEST(ColumnBuilder, OutOfMemoryIsNotAFaultOfTheRecord) {
  const Bytes text = Delimited(0x0a, Delimited(0x0a, Bytes(100, 'x')));
  const Bytes usual = Example({Entry("a", IntFeature(Hex("05"))), Entry("t", text)});
  const Bytes odd = Join({usual, usual});  // for the general reader
  for (const Bytes& record : {usual, odd}) {
    size_t num_failed = 0;
    for (int64_t num_blocks = 0;; ++num_blocks) {
      ColumnBuilder builder(RecordKind::kExample,
                            {{"a", Kind::kInt64, false, -1}, {"t", Kind::kBytes, false, -1}});
      LimitBlocks(num_blocks);
      const Fault fault = builder.Append(record);
      LimitBlocks(-1);
      if (!fault) break;
      CHECK_EQ(fault.kind, FaultKind::kNoMemory);
      CHECK_EQ(builder.num_rows(), 0);
      CHECK(!builder.Append(record));
      CHECK_EQ(builder.num_rows(), 1);
      ++num_failed;
    }
    CHECK(num_failed > 2);
  }
}

}  // namespace tfrkit::test
