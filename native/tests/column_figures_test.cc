#include "core/stats/column_figures.h"

#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "core/stats/value_hash.h"
#include "tests/check.h"

namespace tfrkit::test {
namespace {

constexpr SketchSizes kSizes{16, 8, 32};

NumberFigures<int64_t> OfInts(const std::vector<int64_t>& values, uint64_t limit = UINT64_MAX) {
  NumberFigures<int64_t> figures;
  CHECK(SummarizeInts(values, kSizes, limit, &figures));
  return figures;
}

NumberFigures<float> OfFloats(const std::vector<float>& values) {
  NumberFigures<float> figures;
  CHECK(SummarizeFloats(values, kSizes, UINT64_MAX, &figures));
  return figures;
}

std::vector<int64_t> Multiples(size_t count, int64_t factor) {
  std::vector<int64_t> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<int64_t>(i) * factor;
  return values;
}

}  // namespace

TEST(ColumnFigures, EmptyBlockHasNoFigures) {
  CHECK(!OfInts({}).has_range);
  CHECK(!OfFloats({}).has_range);
  BytesFigures figures;
  const int64_t offset = 0;
  CHECK(SummarizeBytes({}, {&offset, 1}, kSizes, UINT64_MAX, &figures));
  CHECK_EQ(figures.table.values.size(), size_t{0});
}

TEST(ColumnFigures, IntegersAtTheEndsOfTheirRangeAreCounted) {
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min(), kHigh = std::numeric_limits<int64_t>::max();
  const NumberFigures<int64_t> figures = OfInts({kHigh, kLow, 0, kHigh});
  CHECK(figures.low == kLow && figures.high == kHigh && figures.zeros == 1);
  REQUIRE(figures.table.is_whole && figures.table.values.size() == 3);
  CHECK(figures.table.values[0] == kLow && figures.table.values[1] == 0 && figures.table.values[2] == kHigh);
  CHECK(figures.table.counts[2] == 2);
}

TEST(ColumnFigures, NarrowAndWideIntegersAreCountedAlike) {
  // The same values, counted by value and (with one outlier) sorted.
  const NumberFigures<int64_t> narrow = OfInts({3, 1, 3, 0, 3});
  const NumberFigures<int64_t> wide = OfInts({3, 1, 3, 0, 3, 1000});
  REQUIRE(narrow.table.values.size() == 3 && wide.table.values.size() == 4);
  for (size_t i = 0; i < 3; ++i) {
    CHECK_EQ(narrow.table.values[i], wide.table.values[i]);
    CHECK_EQ(narrow.table.counts[i], wide.table.counts[i]);
  }
  CHECK(narrow.zeros == 1 && wide.zeros == 1);
  CHECK_EQ(narrow.mean, 2.0);
  CHECK_EQ(narrow.m2, 8.0);
}

TEST(ColumnFigures, ManyValuesKeepRepeatedOnesAndSketches) {
  std::vector<int64_t> values = Multiples(100, 1000);
  for (const int64_t again : {5000, 5000, 7000}) values.push_back(again);
  const NumberFigures<int64_t> figures = OfInts(values);
  REQUIRE(!figures.table.is_whole && figures.table.values.size() == 2);
  CHECK(figures.table.values[0] == 5000 && figures.table.counts[0] == 2);
  CHECK(figures.table.values[1] == 7000 && figures.table.counts[1] == 1);
  CHECK_EQ(figures.level, 2);  // 103 values in 32 places: every fourth, from the third on
  REQUIRE(figures.ranks.size() == 26);
  CHECK(figures.ranks[0] == 2000 && figures.ranks[1] == 5000);
  REQUIRE(figures.hashes.size() == kSizes.num_hashes);
  for (size_t i = 1; i < figures.hashes.size(); ++i) CHECK(figures.hashes[i - 1] < figures.hashes[i]);
}

TEST(ColumnFigures, HashesAboveTheLimitAreLeftOutAndNoOthers) {
  const std::vector<int64_t> values = Multiples(1000, 17);
  const NumberFigures<int64_t> all = OfInts(values);
  REQUIRE(all.hashes.size() == 8);
  const NumberFigures<int64_t> some = OfInts(values, all.hashes[4]);
  REQUIRE(some.hashes.size() == 5);
  for (size_t i = 0; i < 5; ++i) CHECK_EQ(some.hashes[i], all.hashes[i]);
}

TEST(ColumnFigures, NanIsCountedAndInfinitiesAreNotInTheMean) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const NumberFigures<float> figures = OfFloats({NAN, 1, -kInfinity, 3, kInfinity, -0.0f, 0.0f, NAN});
  CHECK(figures.num_nan == 2 && figures.num_finite == 4 && figures.zeros == 2);
  CHECK(figures.low == -kInfinity && figures.high == kInfinity);
  CHECK_EQ(figures.mean, 1.0);
  CHECK_EQ(figures.m2, 6.0);
  REQUIRE(figures.table.values.size() == 5);
  CHECK(figures.table.counts[1] == 2 && !std::signbit(figures.table.values[1]));
}

TEST(ColumnFigures, FloatsOfBothSignsAreInOrder) {
  std::vector<float> values;
  for (int i = 0; i < 2000; ++i) values.push_back(static_cast<float>((i * 7919) % 2000 - 1000) / 3);
  const NumberFigures<float> figures = OfFloats(values);
  CHECK(figures.low == -1000.0f / 3 && figures.high == 333.0f);
  REQUIRE(!figures.ranks.empty());
  for (size_t i = 1; i < figures.ranks.size(); ++i) CHECK(figures.ranks[i - 1] < figures.ranks[i]);
}

TEST(ColumnFigures, BytesAreCountedByTheirHashes) {
  constexpr std::string_view kText = "catdogcat\x89PNG01234567catBM";
  const ByteView data(reinterpret_cast<const uint8_t*>(kText.data()), kText.size());
  const std::vector<int64_t> offsets = {0, 3, 6, 9, 21, 24, 26};
  BytesFigures figures;
  REQUIRE(SummarizeBytes(data, offsets, kSizes, UINT64_MAX, &figures));
  CHECK(figures.sizes.low == 2 && figures.sizes.high == 12 && figures.sizes.num_finite == 6);
  REQUIRE(figures.table.values.size() == 4 && figures.rows.size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    const size_t row = static_cast<size_t>(figures.rows[i]);
    const auto start = static_cast<size_t>(offsets[row]), stop = static_cast<size_t>(offsets[row + 1]);
    CHECK_EQ(HashValue(data.subspan(start, stop - start)), figures.table.values[i]);
    CHECK_EQ(figures.table.counts[i], row == 0 ? 3 : 1);
  }
  REQUIRE(figures.images.size() == 1);  // two bytes are too few for an image
  CHECK_EQ(figures.images[0], 3);
}

}  // namespace tfrkit::test
