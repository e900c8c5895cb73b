#include "core/wire/example_writer.h"

#include <string>
#include <vector>

#include "core/base/pool.h"
#include "core/frames/frame_reader.h"
#include "tests/check.h"
#include "tests/frame_text.h"
#include "tests/hex.h"

namespace tfrkit::test {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes WriteExample(std::span<const NamedFeature> features) {
  PoolVector<uint8_t> out;
  CHECK(AppendExample(features, &out));
  return {out.data(), out.data() + out.size()};
}

FeatureValue IntValue(std::span<const int64_t> values) { return {Kind::kInt64, values, {}, {}}; }

}  // namespace

// The expected bytes are those of protobuf's writer.
TEST(ExampleWriter, EachKindIsWrittenCanonically) {
  const int64_t ints[] = {1, 300, -1};
  const float floats[] = {1.0f};
  const Bytes x = Hex("'x'");
  const ByteView texts[] = {x, {}};
  const NamedFeature features[] = {
      {"b", {Kind::kBytes, {}, {}, texts}}, {"f", {Kind::kFloat, {}, floats, {}}}, {"i", IntValue(ints)}};
  CHECK_EQ(WriteExample(features),
           Hex("0a 35"
               "0a 0c 0a 01 'b' 12 07 0a 05 0a 01 'x' 0a 00"
               "0a 0d 0a 01 'f' 12 08 12 06 0a 04 00 00 80 3f"
               "0a 16 0a 01 'i' 12 11 1a 0f 0a 0d 01 ac 02 ff ff ff ff ff ff ff ff ff 01"));
}

TEST(ExampleWriter, EmptyListsAndUnsetAreWritten) {
  const NamedFeature features[] = {{"b", {Kind::kBytes, {}, {}, {}}},
                                   {"f", {Kind::kFloat, {}, {}, {}}},
                                   {"i", {Kind::kInt64, {}, {}, {}}},
                                   {"u", {}}};
  CHECK_EQ(WriteExample(features), Hex("0a 22"
                                       "0a 07 0a 01 'b' 12 02 0a 00"
                                       "0a 07 0a 01 'f' 12 02 12 00"
                                       "0a 07 0a 01 'i' 12 02 1a 00"
                                       "0a 05 0a 01 'u' 12 00"));
  CHECK_EQ(WriteExample({}), Hex("0a 00"));
}

TEST(ExampleWriter, LengthsAreMinimalAtEveryBoundary) {
  std::vector<size_t> sizes = {0, 1};
  for (size_t size = 110; size <= 130; ++size) sizes.push_back(size);
  for (size_t size = 16360; size <= 16386; ++size) sizes.push_back(size);
  for (const size_t size : sizes) {
    const Bytes text(size, 'x');
    const ByteView texts[] = {text};
    const NamedFeature features[] = {{"b", {Kind::kBytes, {}, {}, texts}}};
    const Bytes wanted = Delimited(
        0x0a,
        Delimited(0x0a, Join({Hex("0a 01 'b'"), Delimited(0x12, Delimited(0x0a, Delimited(0x0a, text)))})));
    CHECK_EQ(WriteExample(features), wanted);

    const std::vector<int64_t> ints(size, 1);
    const NamedFeature numbers[] = {{"b", IntValue(ints)}};
    const Bytes list = size == 0 ? Bytes{} : Delimited(0x0a, Bytes(size, 1));
    CHECK_EQ(
        WriteExample(numbers),
        Delimited(0x0a, Delimited(0x0a, Join({Hex("0a 01 'b'"), Delimited(0x12, Delimited(0x1a, list))}))));
  }
}

TEST(ExampleWriter, SingleValuesAreWrittenForNamesOfAnyLength) {
  for (size_t length = 0; length < 140; ++length) {
    const std::string name(length, 'n');
    const Bytes name_field = Delimited(0x0a, Bytes(length, 'n'));
    for (int bits = 0; bits <= 64; ++bits) {
      const int64_t number[] = {static_cast<int64_t>(bits == 64 ? ~uint64_t{0} : uint64_t{1} << bits)};
      Bytes varint;
      for (auto rest = static_cast<uint64_t>(number[0]); varint.empty() || rest != 0; rest >>= 7)
        varint.push_back(static_cast<uint8_t>(rest < 0x80 ? rest : rest | 0x80));
      const NamedFeature features[] = {{name, IntValue(number)}};
      const Bytes feature = Delimited(0x12, Delimited(0x1a, Delimited(0x0a, varint)));
      CHECK_EQ(WriteExample(features), Delimited(0x0a, Delimited(0x0a, Join({name_field, feature}))));
    }
    const float half[] = {0.5f};
    const NamedFeature features[] = {{name, {Kind::kFloat, {}, half, {}}}};
    const Bytes feature = Delimited(0x12, Delimited(0x12, Delimited(0x0a, Hex("00 00 00 3f"))));
    CHECK_EQ(WriteExample(features), Delimited(0x0a, Delimited(0x0a, Join({name_field, feature}))));
  }
}

TEST(ExampleWriter, GrowingKeepsWhatWasWritten) {
  const Bytes text(100, 'x');
  const ByteView texts[] = {text};
  const NamedFeature feature{"b", {Kind::kBytes, {}, {}, texts}};
  const Bytes entry =
      Delimited(0x0a, Join({Hex("0a 01 'b'"), Delimited(0x12, Delimited(0x0a, Delimited(0x0a, text)))}));
  PoolVector<uint8_t> out;
  Bytes wanted;
  for (size_t count = 0; count < 300; count += 7) {
    CHECK(AppendExample(std::vector<NamedFeature>(count, feature), &out));
    Bytes entries;
    for (size_t i = 0; i < count; ++i) entries.insert(entries.end(), entry.begin(), entry.end());
    wanted = Join({wanted, Delimited(0x0a, entries)});
  }
  CHECK_EQ(Bytes(out.data(), out.data() + out.size()), wanted);
}

TEST(ExampleWriter, OutOfMemoryLeavesWhatWasThere) {
  const Bytes text(100, 'x');
  const ByteView texts[] = {text};
  const std::vector<NamedFeature> features(1 << 16, NamedFeature{"b", {Kind::kBytes, {}, {}, texts}});
  for (int64_t num_blocks = 0; num_blocks < 3; ++num_blocks) {
    PoolVector<uint8_t> out;
    CHECK(out.PushBack(7));
    ClearPool();
    LimitBlocks(num_blocks);
    const bool is_written = AppendExample(features, &out);
    LimitBlocks(-1);
    CHECK(!is_written);
    CHECK_EQ(Bytes(out.data(), out.data() + out.size()), Hex("07"));
  }
}

TEST(ExampleWriter, SequenceExampleAlwaysHasLists) {
  PoolVector<uint8_t> out;
  CHECK(AppendSequenceExample({}, {}, &out));
  CHECK_EQ(Bytes(out.data(), out.data() + out.size()), Hex("12 00"));
  out.Clear();
  const int64_t five[] = {5};
  const NamedFeature context[] = {{"c", IntValue(five)}};
  const FeatureValue frames[] = {IntValue(five), {}};
  const NamedFeatureList lists[] = {{"e", {}}, {"l", frames}};
  CHECK(AppendSequenceExample(context, lists, &out));
  CHECK_EQ(Bytes(out.data(), out.data() + out.size()),
           Hex("0a 0c 0a 0a 0a 01 'c' 12 05 1a 03 0a 01 05"
               "12 17 0a 05 0a 01 'e' 12 00"
               "0a 0e 0a 01 'l' 12 09 0a 05 1a 03 0a 01 05 0a 00"));
}

// Rows of columns equal the same rows written one by one.
TEST(ExampleWriter, FramedColumnsEqualSingleRows) {
  Random random(3);
  for (const size_t name_size : {1, 26, 27, 28, 60, 119, 120, 121, 140}) {
    constexpr size_t kRows = 40;
    const std::string name_a(name_size, 'a'), name_b(name_size, 'b'), name_c(name_size, 'c'),
        name_d(name_size, 'd');
    std::vector<int64_t> ints, many, splits{0};
    std::vector<float> floats;
    Bytes data, presence;
    std::vector<int64_t> offsets{0};
    for (size_t row = 0; row < kRows; ++row) {
      ints.push_back(static_cast<int64_t>(random.Next() >> random.Below(64)));
      floats.push_back(static_cast<float>(row));
      const Bytes text = random.Bytes(random.Below(150));
      data.insert(data.end(), text.begin(), text.end());
      offsets.push_back(static_cast<int64_t>(data.size()));
      for (uint64_t i = random.Below(4); i > 0; --i) many.push_back(static_cast<int64_t>(random.Next()));
      splits.push_back(static_cast<int64_t>(many.size()));
      const bool is_empty = splits[row] == splits[row + 1];
      presence.push_back(is_empty ? static_cast<uint8_t>(random.Below(3)) : 2);
    }
    std::vector<ColumnSource> columns(4);
    columns[0] = {name_a, Kind::kInt64, ints.data(), nullptr, nullptr, nullptr, 1, nullptr, nullptr};
    columns[1] = {name_b, Kind::kFloat, nullptr, floats.data(), nullptr, nullptr, 1, nullptr, nullptr};
    columns[2] = {name_c, Kind::kBytes, nullptr, nullptr, data.data(), offsets.data(), 1, nullptr, nullptr};
    columns[3] = {name_d, Kind::kInt64,  many.data(),    nullptr, nullptr, nullptr,
                  1,      splits.data(), presence.data()};
    PoolVector<uint8_t> out;
    REQUIRE(AppendFramedExamples(columns, 3, kRows, &out));
    Bytes wanted;
    for (size_t row = 3; row < kRows; ++row) {
      const ByteView text(data.data() + offsets[row], static_cast<size_t>(offsets[row + 1] - offsets[row]));
      std::vector<NamedFeature> features = {{name_a, IntValue({&ints[row], 1})},
                                            {name_b, {Kind::kFloat, {}, {&floats[row], 1}, {}}},
                                            {name_c, {Kind::kBytes, {}, {}, {&text, 1}}}};
      const size_t count = static_cast<size_t>(splits[row + 1] - splits[row]);
      if (presence[row] == 1) features.push_back({name_d, {}});
      if (presence[row] == 2) features.push_back({name_d, IntValue({many.data() + splits[row], count})});
      AppendSlowFrame(WriteExample(features), &wanted);
    }
    CHECK(Bytes(out.data(), out.data() + out.size()) == wanted);
  }
}

TEST(ExampleWriter, RowsInAnyOrderAreTheFramesOfThoseRows) {
  const std::vector<int64_t> ints = {7, 8, 9};
  const Bytes missing = {0, 1, 0};
  std::vector<ColumnSource> columns(1);
  columns[0] = {.name = "a", .ints = ints.data(), .missing = missing.data()};
  PoolVector<uint8_t> out;
  PoolVector<uint64_t> starts;
  REQUIRE(AppendFramedRows(columns, std::vector<int64_t>{2, 1, 0, 2}, &out, &starts));
  Bytes wanted;
  std::vector<uint64_t> wanted_starts;
  for (const size_t row : {2, 1, 0, 2}) {
    wanted_starts.push_back(wanted.size());
    const std::vector<NamedFeature> features = {{"a", IntValue({&ints[row], 1})}};
    AppendSlowFrame(WriteExample(missing[row] != 0 ? std::vector<NamedFeature>{} : features), &wanted);
  }
  CHECK_EQ(Bytes(out.data(), out.data() + out.size()), wanted);
  CHECK(std::vector<uint64_t>(starts.data(), starts.data() + starts.size()) == wanted_starts);
}

TEST(ExampleWriter, ColumnsThatDoNotHoldTheirRowsAreRefused) {
  const int64_t rising[] = {0, 2, 4};
  const int64_t falling[] = {0, 3, 2};
  const int64_t negative[] = {-1, 2, 4};
  const ColumnSource ints = {.name = "a", .ints = rising};
  CHECK(HoldsRows(ints, {.num_values = 2}, 2));
  CHECK(!HoldsRows(ints, {.num_values = 1}, 2));
  CHECK(!HoldsRows({.name = "a", .ints = rising, .length = -1}, {.num_values = 2}, 2));
  for (const auto& [offsets, holds] : {std::pair{rising, true}, {falling, false}, {negative, false}}) {
    const ColumnSource text = {.name = "a", .kind = Kind::kBytes, .byte_offsets = offsets};
    CHECK_EQ(HoldsRows(text, {.num_values = 4, .num_byte_offsets = 3}, 2), holds);
    const ColumnSource lists = {.name = "a", .ints = rising, .splits = offsets};
    CHECK_EQ(HoldsRows(lists, {.num_values = 4, .num_splits = 3}, 2), holds);
  }
  const ColumnSource text = {.name = "a", .kind = Kind::kBytes, .byte_offsets = rising};
  CHECK(!HoldsRows(text, {.num_values = 3, .num_byte_offsets = 3}, 2));  // the last value ends past the bytes
  CHECK(!HoldsRows(text, {.num_values = 4, .num_byte_offsets = 3}, 3));
  CHECK(!HoldsRows(text, {.num_values = 4, .num_byte_offsets = 0}, 0));
  const uint8_t flags[] = {0, 1};
  CHECK(!HoldsRows({.name = "a", .ints = rising, .missing = flags}, {.num_values = 3, .num_missing = 2}, 3));
  CHECK(
      !HoldsRows({.name = "a", .ints = rising, .presence = flags}, {.num_values = 3, .num_presence = 2}, 3));
}

TEST(ExampleWriter, FramedRowsWithoutColumnsAreEmptyExamples) {
  PoolVector<uint8_t> out;
  REQUIRE(AppendFramedExamples({}, 0, 2, &out));
  Bytes wanted;
  AppendSlowFrame(Hex("0a 00"), &wanted);
  AppendSlowFrame(Hex("0a 00"), &wanted);
  CHECK_EQ(Bytes(out.data(), out.data() + out.size()), wanted);
}

}  // namespace tfrkit::test
