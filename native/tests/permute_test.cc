#include "core/base/permute.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "tests/check.h"

namespace tfrkit::test {
namespace {

std::vector<uint64_t> Items(uint64_t size, uint64_t key, uint64_t start, uint64_t stop) {
  const Permutation permutation(size, key);
  std::vector<uint64_t> items;
  for (uint64_t position = start; position < stop; ++position) items.push_back(permutation.At(position));
  return items;
}

// Sum of (found - expected)^2 / expected, in standard deviations from its mean.
double ChiSquareDeviation(const std::vector<uint64_t>& counts, double expected) {
  double sum = 0;
  for (const uint64_t count : counts) {
    const double difference = static_cast<double>(count) - expected;
    sum += difference * difference / expected;
  }
  const double freedom = static_cast<double>(counts.size() - 1);
  return (sum - freedom) / std::sqrt(2 * freedom);
}

void CheckUniform(const std::vector<uint64_t>& counts, double expected, const std::string& what) {
  const double deviation = ChiSquareDeviation(counts, expected);
  if (std::abs(deviation) > 5)
    RecordFailure(__FILE__, __LINE__, what + ": " + std::to_string(deviation) + " sigma");
}

void CheckBijection(uint64_t size, uint64_t key) {
  const Permutation permutation(size, key);
  std::vector<bool> is_taken(size, false);
  for (uint64_t position = 0; position < size; ++position) {
    const uint64_t item = permutation.At(position);
    if (item >= size || is_taken[item] || permutation.PositionOf(item) != position) {
      RecordFailure(__FILE__, __LINE__,
                    "size " + Show(size) + " key " + Show(key) + " position " + Show(position));
      return;
    }
    is_taken[item] = true;
  }
}

TEST(Permutation, EverySmallSizeIsABijection) {
  Random random(1);
  for (uint64_t size = 1; size <= 600; ++size) {
    for (const uint64_t key : {uint64_t{0}, uint64_t{1}, UINT64_MAX, random.Next(), random.Next()})
      CheckBijection(size, key);
  }
}

TEST(Permutation, LargerSizesAreBijections) {
  for (const uint64_t size :
       {1023u, 1024u, 1025u, 4095u, 4096u, 4097u, 65535u, 65536u, 65537u, 99'856u, 100'000u, 1'000'003u}) {
    CheckBijection(size, size * 31);
  }
}

TEST(Permutation, HugeSizesInvertAndStayInRange) {
  Random random(2);
  for (unsigned bit = 31; bit < 64; ++bit) {
    for (const uint64_t size : {(uint64_t{1} << bit) - 1, uint64_t{1} << bit, (uint64_t{1} << bit) + 1}) {
      const Permutation permutation(size, random.Next());
      std::vector<uint64_t> positions = {0, 1, size / 2, size - 2, size - 1};
      for (int i = 0; i < 100; ++i) positions.push_back(random.Below(size));
      for (const uint64_t position : positions) {
        const uint64_t item = permutation.At(position);
        CHECK(item < size);
        CHECK_EQ(permutation.PositionOf(item), position);
      }
    }
  }
  const Permutation widest(UINT64_MAX, 3);
  for (const uint64_t position : {uint64_t{0}, UINT64_MAX - 1})
    CHECK_EQ(widest.PositionOf(widest.At(position)), position);
}

// Every order of five items must come up equally often.
TEST(Permutation, OrdersOfFewItemsAreEquallyLikely) {
  for (const uint64_t size : {2u, 3u, 4u, 5u}) {
    std::map<std::vector<uint64_t>, uint64_t> counts;
    constexpr uint64_t kNumKeys = 60'000;
    for (uint64_t key = 0; key < kNumKeys; ++key) ++counts[Items(size, key, 0, size)];
    double num_orders = 1;
    for (uint64_t i = 2; i <= size; ++i) num_orders *= static_cast<double>(i);
    CHECK_EQ(counts.size(), static_cast<size_t>(num_orders));
    std::vector<uint64_t> values;
    for (const auto& [order, count] : counts) values.push_back(count);
    CheckUniform(values, kNumKeys / num_orders, "orders of " + std::to_string(size));
  }
}

// Which item comes first, which item is followed by which: uniform over keys, on both sides of the
// size where the table gives way to the network.
TEST(Permutation, ItemsAndPairsAreUniformOverKeys) {
  for (const uint64_t size : {6u, 17u, 64u, 255u, 256u, 257u, 258u, 273u, 300u, 600u}) {
    constexpr uint64_t kNumKeys = 200'000;
    std::vector<uint64_t> first(size), middle(size), last(size), distance(size);
    for (uint64_t key = 0; key < kNumKeys; ++key) {
      const Permutation permutation(size, key);
      const uint64_t a = permutation.At(0), b = permutation.At(1);
      ++first[a];
      ++middle[permutation.At(size / 2)];
      ++last[permutation.At(size - 1)];
      ++distance[(b + size - a) % size];
    }
    const double expected = static_cast<double>(kNumKeys) / static_cast<double>(size);
    CheckUniform(first, expected, "first of " + std::to_string(size));
    CheckUniform(middle, expected, "middle of " + std::to_string(size));
    CheckUniform(last, expected, "last of " + std::to_string(size));
    CHECK_EQ(distance[0], 0u);
    distance.erase(distance.begin());
    CheckUniform(distance, static_cast<double>(kNumKeys) / static_cast<double>(size - 1),
                 "step of " + std::to_string(size));
  }
}

// Within one permutation: steps between neighbours, and where the first tenth of positions lands.
TEST(Permutation, NeighboursShowNoStructure) {
  for (const uint64_t size : {1000u, 10'007u, 65'536u, 1'000'000u}) {
    for (const uint64_t key : {0u, 1u, 2u}) {
      const auto items = Items(size, key, 0, size);
      constexpr size_t kNumBins = 50;
      for (const uint64_t gap :
           {uint64_t{1}, uint64_t{2}, static_cast<uint64_t>(std::ceil(std::sqrt(size)))}) {
        std::vector<uint64_t> steps(kNumBins);
        for (uint64_t i = 0; i + gap < size; ++i)
          ++steps[(items[i + gap] + size - items[i]) % size * kNumBins / size];
        CheckUniform(
            steps, static_cast<double>(size - gap) / kNumBins,
            "size " + std::to_string(size) + " key " + std::to_string(key) + " gap " + std::to_string(gap));
      }
      std::vector<uint64_t> landing(kNumBins);
      for (uint64_t i = 0; i < size / 10; ++i) ++landing[items[i] * kNumBins / size];
      CheckUniform(landing, static_cast<double>(size / 10) / kNumBins,
                   "landing, size " + std::to_string(size));
    }
  }
}

// Two keys, or two sizes, agree about as often as unrelated permutations: at one position.
TEST(Permutation, NeighbouringKeysAreUnrelated) {
  for (const uint64_t size : {40u, 256u, 257u, 1000u, 5000u}) {
    uint64_t num_same = 0, num_near = 0;
    constexpr uint64_t kNumKeys = 400;
    auto before = Items(size, 0, 0, size);
    for (uint64_t key = 1; key <= kNumKeys; ++key) {
      const auto items = Items(size, key, 0, size);
      for (uint64_t i = 0; i < size; ++i) {
        num_same += items[i] == before[i];
        num_near += items[i] == (before[i] + 1) % size;
      }
      before = items;
    }
    CHECK(num_same > kNumKeys - 100 && num_same < kNumKeys + 100);  // 5 standard deviations
    CHECK(num_near > kNumKeys - 100 && num_near < kNumKeys + 100);
  }
  const auto a = Items(5000, 9, 0, 5000), b = Items(5001, 9, 0, 5000);
  uint64_t num_same = 0;
  for (size_t i = 0; i < 5000; ++i) num_same += a[i] == b[i];
  CHECK(num_same < 10);
}

TEST(Permutation, NumberOfCyclesIsThatOfARandomOne) {
  // A random permutation of n has ln n + 0.577 cycles on average, with a variance near that.
  for (const uint64_t size : {257u, 1000u, 20'000u}) {
    constexpr uint64_t kNumKeys = 300;
    uint64_t num_cycles = 0;
    for (uint64_t key = 0; key < kNumKeys; ++key) {
      const auto items = Items(size, key, 0, size);
      std::vector<bool> is_seen(size);
      for (uint64_t start = 0; start < size; ++start) {
        if (is_seen[start]) continue;
        ++num_cycles;
        for (uint64_t at = start; !is_seen[at]; at = items[at]) is_seen[at] = true;
      }
    }
    const double expected = std::log(static_cast<double>(size)) + 0.5772;
    const double found = static_cast<double>(num_cycles) / kNumKeys;
    CHECK(std::abs(found - expected) < 5 * std::sqrt(expected / kNumKeys));
  }
}

// Orders are stable across versions. If one of these fails, the code is wrong.
TEST(Permutation, OrdersArePinned) {
  CHECK_EQ(Items(1u, 0u, 0, 1), (std::vector<uint64_t>{0u}));
  CHECK_EQ(Items(2u, 0u, 0, 2), (std::vector<uint64_t>{0u, 1u}));
  CHECK_EQ(Items(5u, 0u, 0, 5), (std::vector<uint64_t>{0u, 4u, 2u, 3u, 1u}));
  CHECK_EQ(Items(10u, 0u, 0, 10), (std::vector<uint64_t>{5u, 4u, 6u, 1u, 3u, 7u, 0u, 2u, 9u, 8u}));
  CHECK_EQ(Items(10u, 1u, 0, 10), (std::vector<uint64_t>{9u, 7u, 6u, 1u, 5u, 0u, 8u, 3u, 4u, 2u}));
  CHECK_EQ(Items(10u, 7u, 0, 10), (std::vector<uint64_t>{9u, 7u, 2u, 3u, 0u, 8u, 4u, 1u, 5u, 6u}));
  CHECK_EQ(Items(256u, 42u, 0, 10),
           (std::vector<uint64_t>{108u, 199u, 83u, 218u, 149u, 5u, 137u, 132u, 157u, 24u}));
  CHECK_EQ(Items(257u, 42u, 0, 10),
           (std::vector<uint64_t>{120u, 9u, 8u, 0u, 239u, 17u, 125u, 86u, 213u, 69u}));
  CHECK_EQ(Items(1000u, 0u, 0, 10),
           (std::vector<uint64_t>{371u, 76u, 163u, 324u, 422u, 114u, 383u, 929u, 728u, 138u}));
  CHECK_EQ(Items(1000u, 1u, 0, 10),
           (std::vector<uint64_t>{18u, 161u, 267u, 687u, 725u, 946u, 783u, 76u, 448u, 381u}));
  CHECK_EQ(Items(1000000u, 7u, 0, 10), (std::vector<uint64_t>{101923u, 219185u, 146582u, 712295u, 463914u,
                                                              385932u, 911885u, 302800u, 436424u, 575557u}));
  CHECK_EQ(Items(1099511627776u, 123456789u, 0, 10),
           (std::vector<uint64_t>{651286407759u, 174105603901u, 654090241307u, 60001480131u, 903289339431u,
                                  67053427029u, 670149636343u, 661016822537u, 3605062378u, 913910558020u}));
  CHECK_EQ(Items(9223372036854775808u, 18446744073709551615u, 0, 10),
           (std::vector<uint64_t>{1893240315121952234u, 7507834834287136924u, 7776365144133100793u,
                                  4701742391933451189u, 8826852256585607621u, 3839317669792331380u,
                                  1222927006071587035u, 7511308103945634948u, 7423877124860847265u,
                                  4800615284645216603u}));
}

}  // namespace
}  // namespace tfrkit::test
