#include "core/stats/value_hash.h"

#include <set>
#include <vector>

#include "tests/check.h"

namespace tfrkit::test {

TEST(ValueHash, EveryBitOfEverySizeCounts) {
  for (size_t size = 0; size < 100; ++size) {
    std::vector<uint8_t> value(size, 0);
    std::set<uint64_t> seen = {HashValue(value)};
    for (size_t bit = 0; bit < 8 * size; ++bit) {
      value[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
      seen.insert(HashValue(value));
      value[bit / 8] ^= static_cast<uint8_t>(1u << (bit % 8));
    }
    CHECK_EQ(seen.size(), 8 * size + 1);
  }
}

TEST(ValueHash, ZerosOfDifferentSizesDiffer) {
  const std::vector<uint8_t> zeros(1000, 0);
  std::set<uint64_t> seen;
  for (size_t size = 0; size <= zeros.size(); ++size) seen.insert(HashValue(ByteView(zeros).first(size)));
  CHECK_EQ(seen.size(), zeros.size() + 1);
}

}  // namespace tfrkit::test
