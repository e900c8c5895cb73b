#include "core/stats/key_sort.h"

#include <algorithm>
#include <vector>

#include "core/stats/column_figures.h"
#include "tests/check.h"

namespace tfrkit::test {
namespace {

template <class Key>
void CheckSorts(std::vector<Key> keys, int bits) {
  std::vector<Key> expected = keys, spare(keys.size());
  std::sort(expected.begin(), expected.end());
  const Key* const sorted = SortKeys(keys.data(), spare.data(), keys.size(), bits);
  CHECK(std::equal(expected.begin(), expected.end(), sorted));
}

// Around the size from which digits are counted, and a whole block.
constexpr size_t kCounts[] = {0, 1, 2, 511, 512, 513, 32768};

}  // namespace

TEST(KeySort, KeysOfEveryWidthAreSorted) {
  for (const size_t count : kCounts) {
    for (int bits = 1; bits <= 64; ++bits) {
      std::vector<uint64_t> keys(count);
      for (size_t i = 0; i < count; ++i) keys[i] = ScatterKey(i + 1) >> (64 - bits);
      CheckSorts(keys, bits);
      if (bits <= 32) CheckSorts(std::vector<uint32_t>(keys.begin(), keys.end()), bits);
    }
  }
}

TEST(KeySort, KeysThatShareTheirFirstBitsAreSortedByTheRest) {
  std::vector<uint64_t> keys(32768);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = ScatterKey(i) >> 30;
  keys[99] = UINT64_MAX;
  CheckSorts(keys, 64);
  std::vector<uint32_t> narrow(keys.size());
  for (size_t i = 0; i < narrow.size(); ++i) narrow[i] = static_cast<uint32_t>(ScatterKey(i) >> 54);
  narrow[99] = UINT32_MAX;
  CheckSorts(narrow, 32);
}

TEST(KeySort, EqualDescendingAndOrderedKeysAreSorted) {
  std::vector<uint32_t> keys(5000, 77);
  CheckSorts(keys, 32);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<uint32_t>(keys.size() - i);
  CheckSorts(keys, 32);
  std::reverse(keys.begin(), keys.end());
  CheckSorts(keys, 32);
}

}  // namespace tfrkit::test
