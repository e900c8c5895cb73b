#include "core/tables/csv_cells.h"

#include <string>
#include <vector>

#include "tests/check.h"

namespace tfrkit::test {
namespace {

constexpr auto kInt = CellKind::kInt64;
constexpr auto kReal = CellKind::kFloat;

struct Parsed {
  CsvEnd end;
  uint64_t num_rows = 0;
  size_t other = 0;
  std::vector<CellColumn> columns;
};

Parsed Parse(std::string_view text, std::initializer_list<CellKind> kinds,
             std::span<const std::string_view> missing = {}) {
  Parsed parsed;
  for (const CellKind kind : kinds) parsed.columns.emplace_back().kind = kind;
  const std::vector<uint8_t> bytes(text.begin(),
                                   text.end());  // its own block, so that a sanitizer sees its end
  parsed.end = ParseCells(bytes, {',', missing}, parsed.columns, &parsed.num_rows, &parsed.other);
  return parsed;
}

std::string TextOf(const CellColumn& column, size_t row) {
  const auto start = static_cast<size_t>(column.offsets[row]);
  const auto stop = static_cast<size_t>(column.offsets[row + 1]);
  return std::string(column.text.data() + start, column.text.data() + stop);
}

size_t FindEnd(std::string_view text, RowPlace place) {
  const std::vector<uint8_t> bytes(text.begin(), text.end());
  return FindRowEnd(bytes, ',', place);
}

bool Takes(std::string_view text, CellKind kind) { return Parse(text, {kind}).end == CsvEnd::kDone; }

}  // namespace

TEST(CsvCells, PlainCellsBecomeColumns) {
  const Parsed parsed = Parse("1,0.5,ab\n\n-20,,\r\n,3,d", {kInt, kReal, CellKind::kText});
  REQUIRE(parsed.end == CsvEnd::kDone);
  REQUIRE(parsed.num_rows == 3);
  const CellColumn& ints = parsed.columns[0];
  CHECK(ints.ints[0] == 1 && ints.ints[1] == -20 && ints.ints[2] == 0);
  CHECK_EQ(ints.num_missing, 1u);
  REQUIRE(ints.missing.size() == 3);
  CHECK(ints.missing[0] == 0 && ints.missing[1] == 0 && ints.missing[2] == 1);
  const CellColumn& floats = parsed.columns[1];
  CHECK(floats.floats[0] == 0.5 && floats.floats[1] == 0 && floats.floats[2] == 3);
  CHECK(floats.missing[0] == 0 && floats.missing[1] == 1 && floats.missing[2] == 0);
  const CellColumn& text = parsed.columns[2];
  REQUIRE(text.offsets.size() == 4);
  CHECK(text.offsets[1] == 2 && text.offsets[2] == 2 && text.offsets[3] == 3);
  CHECK_EQ(text.num_simpler, 0u);
}

TEST(CsvCells, IntegersAtTheEndsOfTheirTypeAreTaken) {
  for (const char* text : {"0", "-1", "9223372036854775807", "-9223372036854775808"}) {
    const Parsed parsed = Parse(text, {kInt});
    REQUIRE(parsed.end == CsvEnd::kDone);
    CHECK_EQ(std::to_string(parsed.columns[0].ints[0]), std::string(text));
  }
}

TEST(CsvCells, NumbersInAnUnusualFormAreOfAnotherKind) {
  for (const char* text :
       {"007", "+7", "-0", "-", " 7", "7 ", "0x7", "1.0", "9223372036854775808", "1_0",
        "-9223372036854775809", "10000000000000000000", "99999999999999999999999", "7\r", "x"}) {
    CHECK(!Takes(text, kInt));
  }
  for (const char* text : {"00.5", "+1.5", "-0", ".", "-.", "-", "1e", "1e400", "1e15", "nan", "inf", "-inf",
                           "1.5x", " 1.5", "1.5 ", "0x1p3", "1..5", "1.5.", "1000000000000000"}) {
    CHECK(!Takes(text, kReal));
  }
}

TEST(CsvCells, FloatsAreTheNearestOnes) {
  for (const char* text : {"0.1", "-0.0", "5.", "-.5", "123456789.123456", "0.30000000000000004", "1e-5",
                           "999999999999999", "2.2250738585072014e-308", "1.7976931348623157e-300"}) {
    const Parsed parsed = Parse(text, {kReal});
    REQUIRE(parsed.end == CsvEnd::kDone);
    CHECK(parsed.columns[0].floats[0] == std::stod(text));
  }
}

TEST(CsvCells, RaggedRowsUnsoundQuotesAndBrokenTextNeedTheSlowPath) {
  for (const char* text :
       {"1", "1,2,3", "1,2\n3", "1,2\r3,4", "1,\xff", "1,\xe6\x97", "1,\"", "1,\"x", "1,\"x\"\"", "1,\"x\"y",
        "1,\"x\" ", "1,\"x\"\r2,y", "1,\"x\"\r", "1,\"x\ny", "1,\"x,y\",z", "\"1\"0,x"}) {
    CHECK(Parse(text, {kInt, CellKind::kText}).end == CsvEnd::kNeedsCloserLook);
  }
  CHECK(Parse("1,\xe6\x97\xa5", {kInt, CellKind::kText}).end == CsvEnd::kDone);
}

TEST(CsvCells, CellOfAnotherKindNamesItsColumn) {
  for (const char* text :
       {"x,1", "x,\"1,2\"", "x,\"1\n\"", "x,\"\"\"1\"", "x,1\"", "x, \"1\"", "x,1\ny,NA", "x,\"1"}) {
    const Parsed parsed = Parse(text, {CellKind::kText, CellKind::kNone});
    CHECK(parsed.end == CsvEnd::kOtherKind);
    CHECK_EQ(parsed.other, 1u);
  }
  const Parsed parsed = Parse("1,2\n3,NA\nNA,4", {kInt, kInt});
  CHECK(parsed.end == CsvEnd::kOtherKind);
  CHECK_EQ(parsed.other, 1u);  // the first one in the order of rows
}

TEST(CsvCells, QuotedCellsAreTakenWithoutTheirQuotes) {
  const Parsed parsed = Parse(
      "\"7\",\"-0.5\",\"a,b\"\r\n8,1,\"x\r\n\n\"\"y\"\"\"\n\"9\",\"1e-3\",\"\"\"\"\n1,2,b\"c\"\n1,2, "
      "\"d\"\n1,2,\"e\"",
      {kInt, kReal, CellKind::kText});
  REQUIRE(parsed.end == CsvEnd::kDone);
  REQUIRE(parsed.num_rows == 6);
  CHECK(parsed.columns[0].ints[0] == 7 && parsed.columns[0].ints[2] == 9);
  CHECK(parsed.columns[1].floats[0] == -0.5 && parsed.columns[1].floats[2] == 1e-3);
  const char* const texts[] = {"a,b", "x\r\n\n\"y\"", "\"", "b\"c\"", " \"d\"", "e"};
  for (size_t row = 0; row < 6; ++row) CHECK_EQ(TextOf(parsed.columns[2], row), std::string(texts[row]));
}

TEST(CsvCells, QuotedCellsAreMissingAsOthersAre) {
  const std::string_view words[] = {"NA", "a,\"b"};
  const Parsed parsed = Parse("\"\",\"NA\"\n\"NA\",\"\"\n\"5\",\"a,\"\"b\"", {kInt, CellKind::kText}, words);
  REQUIRE(parsed.end == CsvEnd::kDone);
  CHECK_EQ(parsed.columns[0].num_missing, 2u);
  CHECK_EQ(parsed.columns[1].num_missing, 3u);
  CHECK(parsed.columns[0].ints[2] == 5);
}

TEST(CsvCells, QuotedEmptyCellIsARowAndAnEmptyLineIsNot) {
  const Parsed parsed = Parse("\"\"\n\n\"x\"\n", {CellKind::kText});
  REQUIRE(parsed.end == CsvEnd::kDone);
  CHECK_EQ(parsed.num_rows, 2u);
  CHECK_EQ(parsed.columns[0].num_missing, 1u);
}

TEST(CsvCells, RowEndsAreOutsideOfQuotes) {
  struct Case {
    const char* text;
    size_t first, last;
  };
  for (const Case& c : {Case{"", 0, 0},
                        {"a", 0, 0},
                        {"a\nb\nc", 2, 4},
                        {"\"a\nb\"\nc\n", 6, 8},
                        {"\"a\nb\"\n\"c\n", 6, 6},
                        {"\"a\nb", 0, 0},
                        {"x,\"a\"\"\nb\"\n\"", 10, 10},
                        {"5\"\n\"\n\"\n", 3, 7},
                        {" \"\n\"\n", 3, 3},
                        {"a\n\r\"\n\"", 2, 2}}) {
    CHECK_EQ(FindEnd(c.text, RowPlace::kFirst), c.first);
    CHECK_EQ(FindEnd(c.text, RowPlace::kLast), c.last);
  }
}

TEST(CsvCells, WordsForMissingAreMissing) {
  const std::string_view words[] = {"NA", "-1"};
  const Parsed parsed = Parse("NA,NA\n-1,x\n5,-1", {kInt, CellKind::kText}, words);
  REQUIRE(parsed.end == CsvEnd::kDone);
  CHECK_EQ(parsed.columns[0].num_missing, 2u);
  CHECK_EQ(parsed.columns[1].num_missing, 2u);
  CHECK(parsed.columns[0].ints[2] == 5);
}

TEST(CsvCells, ColumnWithoutKindAcceptsMissingCellsOnly) {
  CHECK(Takes("\n", CellKind::kNone));
  CHECK(Parse("1,\n2,\n", {kInt, CellKind::kNone}).end == CsvEnd::kDone);
  CHECK(Parse("1,\n2,x\n", {kInt, CellKind::kNone}).end == CsvEnd::kOtherKind);
}

TEST(CsvCells, NumbersAmongTextAreCounted) {
  const auto count = [](std::string_view rows) {
    const Parsed parsed = Parse(rows, {CellKind::kText});
    return parsed.end == CsvEnd::kDone ? parsed.columns[0].num_simpler : 99;
  };
  CHECK_EQ(count("5\n-0.5\n-7\n-0\n+.5\n5.\n5.e3\n1E-9\nnan\nNaN\nInfinity\n+inf\n\"7\""), 13u);
  CHECK_EQ(count("+7\n007\n-\n+\n.\n-.\n.e5\n1e\n1e+\n1.5x\n1.2.3\n5 apples\nword\nnation\n-nan\ninfinit"),
           0u);
}

TEST(CsvCells, WholeNumbersAmongFloatsAreCounted) {
  const Parsed parsed = Parse("5\n5.\n\"-7\"\n1e3\n0.5\n\n0", {kReal});
  REQUIRE(parsed.end == CsvEnd::kDone);
  CHECK_EQ(parsed.columns[0].num_simpler, 3u);
}

TEST(CsvCells, EmptyTextHasNoRows) {
  const Parsed parsed = Parse("", {kInt, CellKind::kText});
  CHECK(parsed.end == CsvEnd::kDone);
  CHECK_EQ(parsed.num_rows, 0u);
}

}  // namespace tfrkit::test
