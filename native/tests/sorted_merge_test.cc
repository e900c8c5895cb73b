#include "core/stats/sorted_merge.h"

#include <algorithm>
#include <set>
#include <vector>

#include "core/stats/column_figures.h"
#include "tests/check.h"

namespace tfrkit::test {
namespace {

// `count` ascending numbers below `range`, with duplicates.
std::vector<uint64_t> Ascending(size_t count, uint64_t range, uint64_t seed) {
  std::vector<uint64_t> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = ScatterKey(seed + i) % range;
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<uint64_t> Different(std::vector<uint64_t> values) {
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::span<const uint64_t> View(const std::vector<uint64_t>& values) { return values; }

constexpr size_t kCounts[] = {0, 1, 2, 3, 10, 500};

}  // namespace

TEST(SortedMerge, AllValuesOfBothComeInOrder) {
  for (const size_t one_count : kCounts) {
    for (const size_t other_count : kCounts) {
      for (const uint64_t range : {uint64_t{1}, uint64_t{3}, uint64_t{100}, uint64_t{1} << 60}) {
        const std::vector<uint64_t> one = Ascending(one_count, range, 1),
                                    other = Ascending(other_count, range, 1000);
        std::vector<uint64_t> expected;
        std::merge(one.begin(), one.end(), other.begin(), other.end(), std::back_inserter(expected));
        PoolVector<uint64_t> merged;
        REQUIRE(MergeSorted(View(one), View(other), &merged));
        REQUIRE(merged.size() == expected.size());
        CHECK(std::equal(expected.begin(), expected.end(), merged.data()));
      }
    }
  }
}

TEST(SortedMerge, UnionHasDistinctValuesUpToTheLimit) {
  for (const uint64_t range : {uint64_t{5}, uint64_t{600}, uint64_t{1} << 60}) {
    const std::vector<uint64_t> one = Different(Ascending(300, range, 1)),
                                other = Different(Ascending(400, range, 9));
    std::set<uint64_t> expected(one.begin(), one.end());
    expected.insert(other.begin(), other.end());
    for (const size_t most : {size_t{0}, size_t{4}, size_t{350}, size_t{10000}}) {
      PoolVector<uint64_t> merged;
      size_t num_different;
      REQUIRE(MergeUnique(View(one), View(other), most, &merged, &num_different));
      CHECK_EQ(num_different, expected.size());
      CHECK_EQ(merged.size(), std::min(most, expected.size()));
      CHECK(std::equal(merged.data(), merged.data() + merged.size(), expected.begin()));
    }
  }
}

TEST(SortedMerge, CountsOfValuesInBothAreAdded) {
  const std::vector<uint64_t> one = {1, 4, 9}, other = {0, 4, 10, 11};
  const std::vector<int64_t> one_counts = {5, 6, 7}, other_counts = {1, 2, 3, 4};
  PoolVector<uint64_t> values;
  PoolVector<int64_t> counts;
  REQUIRE(MergeCounts(View(one), std::span<const int64_t>(one_counts), View(other),
                      std::span<const int64_t>(other_counts), &values, &counts));
  const std::vector<uint64_t> expected = {0, 1, 4, 9, 10, 11};
  const std::vector<int64_t> expected_counts = {1, 5, 8, 7, 3, 4};
  REQUIRE(values.size() == expected.size() && counts.size() == expected.size());
  CHECK(std::equal(expected.begin(), expected.end(), values.data()));
  CHECK(std::equal(expected_counts.begin(), expected_counts.end(), counts.data()));
}

}  // namespace tfrkit::test
