#include "core/base/pool.h"

#include <atomic>
#include <thread>

#include "tests/check.h"

namespace tfrkit::test {
namespace {

constexpr size_t kKiB = 1024, kMiB = 1024 * 1024;
constexpr size_t kMaxKept = 256 * kMiB;

bool IsAligned(const PoolBlock& block) { return reinterpret_cast<uintptr_t>(block.data) % 64 == 0; }

TEST(Pool, BlocksAreAlignedAndLargeEnough) {
  for (const size_t size :
       {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, 64 * kKiB - 1, 64 * kKiB, 64 * kKiB + 1,
        80 * kKiB, 80 * kKiB + 1, kMiB - 1, kMiB, kMiB + 1, 3 * kMiB + 7}) {
    ClearPool();
    const PoolBlock block = AcquireBlock(size);
    REQUIRE(block.data != nullptr);
    CHECK(block.capacity >= size);
    CHECK(block.capacity <= size + size / 4 + 64);
    CHECK(IsAligned(block));
    std::memset(block.data, 0x5a, block.capacity);
    ReleaseBlock(block);
  }
  ClearPool();
}

TEST(Pool, LargeBlockIsReusedAndSmallIsNotKept) {
  ClearPool();
  const PoolBlock small = AcquireBlock(kKiB);
  ReleaseBlock(small);
  CHECK_EQ(PooledBytes(), 0u);
  const PoolBlock first = AcquireBlock(kMiB);
  ReleaseBlock(first);
  CHECK_EQ(PooledBytes(), first.capacity);
  const PoolBlock second = AcquireBlock(kMiB);
  CHECK(second.data == first.data);
  CHECK_EQ(PooledBytes(), 0u);
  ReleaseBlock(second);
  ClearPool();
  CHECK_EQ(PooledBytes(), 0u);
}

TEST(Pool, KeptBlockUpToTwiceTheSizeIsTaken) {
  ClearPool();
  const PoolBlock big = AcquireBlock(2 * kMiB);
  ReleaseBlock(big);
  const PoolBlock too_small = AcquireBlock(800 * kKiB);
  CHECK(too_small.data != big.data);
  const PoolBlock fits = AcquireBlock(kMiB);
  CHECK(fits.data == big.data);
  CHECK_EQ(fits.capacity, big.capacity);
  ReleaseBlock(too_small);
  ReleaseBlock(fits);
  ClearPool();
}

TEST(Pool, LimitIsKeptAndTheOldestSizeIsFreedFirst) {
  ClearPool();
  std::vector<PoolBlock> blocks;
  for (int i = 0; i < 40; ++i) blocks.push_back(AcquireBlock(8 * kMiB));
  for (const PoolBlock& block : blocks) {
    ReleaseBlock(block);
    CHECK(PooledBytes() <= kMaxKept);
  }
  CHECK_EQ(PooledBytes(), kMaxKept);
  const PoolBlock other = AcquireBlock(64 * kMiB);
  ReleaseBlock(other);
  CHECK(PooledBytes() <= kMaxKept);
  const PoolBlock again = AcquireBlock(64 * kMiB);
  CHECK(again.data == other.data);
  ReleaseBlock(again);
  const PoolBlock whole = AcquireBlock(kMaxKept);
  ReleaseBlock(whole);
  CHECK_EQ(PooledBytes(), kMaxKept);
  const PoolBlock beyond = AcquireBlock(kMaxKept + 1);
  ReleaseBlock(beyond);
  CHECK_EQ(PooledBytes(), kMaxKept);
  ClearPool();
}

TEST(Pool, ImpossibleSizeGivesNoBlock) {
  for (const size_t size : {SIZE_MAX, SIZE_MAX - 63, SIZE_MAX - 64, SIZE_MAX / 2})
    CHECK(AcquireBlock(size).data == nullptr);
  ReleaseBlock({});
}

TEST(Pool, ThreadsShareWithoutMixingUpBlocks) {
  std::atomic<int> num_wrong{0};
  std::vector<std::thread> threads;
  for (uint8_t mark = 1; mark <= 4; ++mark) {
    threads.emplace_back([mark, &num_wrong] {
      Random random(mark);
      for (int i = 0; i < 300; ++i) {
        const PoolBlock block = AcquireBlock(64 * kKiB + random.Below(64 * kKiB));
        if (block.data == nullptr) continue;
        std::memset(block.data, mark, block.capacity);
        for (size_t at = 0; at < block.capacity; at += 997) num_wrong += block.data[at] != mark;
        ReleaseBlock(block);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_EQ(num_wrong.load(), 0);
  ClearPool();
}

TEST(PoolVector, GrowthKeepsContent) {
  PoolVector<int64_t> values;
  for (int64_t i = 0; i < 100'000; ++i) REQUIRE(values.PushBack(i));
  for (int64_t i = 0; i < 100'000; ++i) REQUIRE(values[static_cast<size_t>(i)] == i);
  PoolVector<int64_t> moved = std::move(values);
  CHECK_EQ(moved.size(), 100'000u);
  CHECK_EQ(moved.back(), 99'999);
  moved.Truncate(5);
  CHECK_EQ(moved.back(), 4);
  const int64_t more[] = {7, 8};
  CHECK(moved.Append(more, 2));
  CHECK_EQ(moved.size(), 7u);
  CHECK_EQ(moved.back(), 8);
}

}  // namespace
}  // namespace tfrkit::test
