// Hashes of values, sorted keys and merged lists: against the definition and the standard library.
#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "core/stats/key_sort.h"
#include "core/stats/sorted_merge.h"
#include "core/stats/value_hash.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/input.h"

namespace tfrkit::fuzz {
namespace {

// Word for word what value_hash.h says.
uint64_t HashSlowly(ByteView value) {
  constexpr uint64_t kStep = 0x9e3779b97f4a7c15u;
  const auto take = [](uint64_t* h, uint64_t x) {
    *h = (*h ^ x) * kStep;
    *h ^= *h >> 32;
  };
  std::vector<uint64_t> words;
  for (size_t i = 0; i < value.size(); i += 8) {
    words.push_back(0);
    for (size_t k = i; k < std::min(i + 8, value.size()); ++k)
      words.back() |= static_cast<uint64_t>(value[k]) << (8 * (k - i));
  }
  uint64_t h = value.size() * kStep;
  const size_t num_lane_words = value.size() / 32 * 4;
  if (num_lane_words != 0) {
    uint64_t lanes[] = {h, h + 1, h + 2, h + 3};
    for (size_t i = 0; i < num_lane_words; ++i) take(&lanes[i % 4], words[i]);
    for (const uint64_t lane : lanes) take(&h, lane);
  }
  for (size_t i = num_lane_words; i < words.size(); ++i) take(&h, words[i]);
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
  return h ^ (h >> 31);
}

template <class Key>
void CheckSort(const std::vector<uint64_t>& numbers, int bits) {
  std::vector<Key> keys;
  for (const uint64_t number : numbers) keys.push_back(static_cast<Key>(number >> (64 - bits)));
  std::vector<Key> expected = keys, spare(keys.size());
  std::sort(expected.begin(), expected.end());
  const Key* const sorted = SortKeys(keys.data(), spare.data(), keys.size(), bits);
  Require(std::equal(expected.begin(), expected.end(), sorted), "keys are sorted");
}

void CheckMerges(std::vector<uint64_t> one, std::vector<uint64_t> other, size_t most) {
  using Span = std::span<const uint64_t>;
  std::sort(one.begin(), one.end());
  std::sort(other.begin(), other.end());
  std::vector<uint64_t> expected;
  std::merge(one.begin(), one.end(), other.begin(), other.end(), std::back_inserter(expected));
  PoolVector<uint64_t> merged;
  Require(MergeSorted(Span(one), Span(other), &merged), "there is memory");
  Require(std::equal(expected.begin(), expected.end(), merged.data(), merged.data() + merged.size()),
          "both lists are merged");
  one.erase(std::unique(one.begin(), one.end()), one.end());
  other.erase(std::unique(other.begin(), other.end()), other.end());
  expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
  PoolVector<uint64_t> unique;
  size_t num_different;
  Require(MergeUnique(Span(one), Span(other), most, &unique, &num_different), "there is memory");
  Require(num_different == expected.size() && unique.size() == std::min(most, expected.size()) &&
              std::equal(unique.data(), unique.data() + unique.size(), expected.begin()),
          "a union has each value once, up to the limit");
  const std::vector<int64_t> ones(one.size(), 1), twos(other.size(), 2);
  PoolVector<uint64_t> values;
  PoolVector<int64_t> counts;
  Require(MergeCounts(Span(one), std::span<const int64_t>(ones), Span(other), std::span<const int64_t>(twos),
                      &values, &counts),
          "there is memory");
  Require(std::equal(expected.begin(), expected.end(), values.data(), values.data() + values.size()),
          "counted values are those of both");
  for (size_t i = 0; i < counts.size(); ++i) {
    const bool in_one = std::binary_search(one.begin(), one.end(), values[i]);
    const bool in_other = std::binary_search(other.begin(), other.end(), values[i]);
    Require(counts[i] == in_one + 2 * in_other, "counts are added");
  }
}

}  // namespace

int FuzzOne(ByteView bytes) {
  Input input(bytes);
  const uint8_t choices = input.Byte();
  const size_t size = 1 + choices % 8u;
  const std::vector<uint8_t> value = input.Rest();
  Require(HashValue(value) == HashSlowly(value), "a hash is as it is described");
  std::vector<uint64_t> numbers;
  for (Input more{ByteView(value)}; !more.empty();) numbers.push_back(more.Number(size) << (8 * (8 - size)));
  const int bits = 1 + value.size() % 64;
  CheckSort<uint64_t>(numbers, bits);
  if (bits <= 32) CheckSort<uint32_t>(numbers, bits);
  const size_t middle = numbers.size() * (choices >> 3u) / 32;
  const auto cut = numbers.begin() + static_cast<ptrdiff_t>(middle);
  CheckMerges({numbers.begin(), cut}, {cut, numbers.end()}, choices);
  std::vector<int64_t> offsets;
  for (const uint64_t number : numbers) offsets.push_back(static_cast<int64_t>(number));
  const bool is_inside = std::is_sorted(offsets.begin(), offsets.end()) &&
                         (offsets.empty() || (offsets.front() >= 0 && offsets.back() <= int64_t{choices}));
  Require(AreOffsetsInside(offsets, choices) == is_inside, "offsets rise inside their bytes, or are refused");
  return 0;
}

}  // namespace tfrkit::fuzz
