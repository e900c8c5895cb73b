#include "core/base/pool.h"

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <new>

namespace tfrkit {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kMinPooled = size_t{64} << 10;  // below this, malloc is as fast
constexpr size_t kMaxKept = size_t{256} << 20;
constexpr size_t kStepsPerDoubling = 4;                     // at most a quarter of a block is unused
constexpr size_t kNumClasses = 12 * kStepsPerDoubling + 1;  // 64 KiB << 12 is kMaxKept

// A kept block holds the link to the next of its class in its own first bytes.
struct Link {
  Link* next;
};

struct SizeClass {
  Link* first = nullptr;
  uint64_t last_used = 0;
};

// No destructor: blocks may come back while the process is ending.
struct Pool {
  std::mutex mutex;
  std::array<SizeClass, kNumClasses> classes;
  std::atomic<size_t> kept_bytes{0};
  uint64_t clock = 0;
};

constinit Pool g_pool;
constinit std::atomic<int64_t> g_blocks_left{-1};

// Capacity of class c: 64 KiB x 2^(c / 4) x (4 + c % 4) / 4.
constexpr size_t ClassCapacity(size_t index) {
  return (kMinPooled / kStepsPerDoubling * (kStepsPerDoubling + index % kStepsPerDoubling))
         << (index / kStepsPerDoubling);
}
static_assert(ClassCapacity(0) == kMinPooled && ClassCapacity(kNumClasses - 1) == kMaxKept);

// The smallest class of at least `size` bytes. REQUIRES: kMinPooled <= size <= kMaxKept.
constexpr size_t ClassFor(size_t size) {
  const size_t doublings = static_cast<size_t>(std::bit_width(size / kMinPooled)) - 1;
  const size_t step = (kMinPooled / kStepsPerDoubling) << doublings;
  return doublings * kStepsPerDoubling + (size + step - 1) / step - kStepsPerDoubling;
}
static_assert(ClassFor(kMinPooled) == 0 && ClassFor(kMinPooled + 1) == 1 &&
              ClassFor(kMaxKept) == kNumClasses - 1);

PoolBlock AllocateBlock(size_t capacity) {
  void* data = ::operator new(capacity, std::align_val_t{kAlignment}, std::nothrow);
  if (data == nullptr) return {};
  return {static_cast<uint8_t*>(data), capacity};
}

void FreeBlock(uint8_t* data) { ::operator delete(data, std::align_val_t{kAlignment}); }

// REQUIRES: the mutex is held, and the class is not empty.
uint8_t* TakeFirst(size_t index) {
  SizeClass& size_class = g_pool.classes[index];
  Link* link = size_class.first;
  size_class.first = link->next;
  size_class.last_used = ++g_pool.clock;
  g_pool.kept_bytes.fetch_sub(ClassCapacity(index), std::memory_order_relaxed);
  return static_cast<uint8_t*>(static_cast<void*>(link));
}

// Frees a block of the class that has gone unused for longest. REQUIRES: the mutex is held, and
// something is kept.
void Evict() {
  size_t oldest = kNumClasses;
  for (size_t index = 0; index < kNumClasses; ++index) {
    const SizeClass& size_class = g_pool.classes[index];
    if (size_class.first == nullptr) continue;
    if (oldest == kNumClasses || size_class.last_used < g_pool.classes[oldest].last_used) oldest = index;
  }
  const uint64_t last_used = g_pool.classes[oldest].last_used;
  FreeBlock(TakeFirst(oldest));
  g_pool.classes[oldest].last_used = last_used;  // eviction does not count as use
}

}  // namespace

PoolBlock AcquireBlock(size_t min_capacity) {
  if (min_capacity > PTRDIFF_MAX - kAlignment) return {};  // more than any allocator returns
  if (g_blocks_left.load(std::memory_order_relaxed) >= 0) [[unlikely]] {
    if (g_blocks_left.fetch_sub(1, std::memory_order_relaxed) <= 0) {
      g_blocks_left.store(0, std::memory_order_relaxed);
      return {};
    }
  }
  if (min_capacity < kMinPooled || min_capacity > kMaxKept) {
    // Never zero bytes: nullptr must mean that memory is exhausted.
    const size_t wanted = min_capacity == 0 ? 1 : min_capacity;
    return AllocateBlock((wanted + kAlignment - 1) / kAlignment * kAlignment);
  }
  const size_t index = ClassFor(min_capacity);
  if (const std::unique_lock lock(g_pool.mutex, std::try_to_lock); lock.owns_lock()) {
    // A block of up to twice the size is better than fresh pages.
    for (size_t i = index; i < kNumClasses && i <= index + kStepsPerDoubling; ++i) {
      if (g_pool.classes[i].first != nullptr) return {TakeFirst(i), ClassCapacity(i)};
    }
  }
  return AllocateBlock(ClassCapacity(index));
}

void ReleaseBlock(PoolBlock block) {
  if (block.data == nullptr) return;
  if (block.capacity >= kMinPooled && block.capacity <= kMaxKept) {
    if (const std::unique_lock lock(g_pool.mutex, std::try_to_lock); lock.owns_lock()) {
      const size_t index = ClassFor(block.capacity);
      SizeClass& size_class = g_pool.classes[index];
      size_class.last_used = ++g_pool.clock;
      while (PooledBytes() + block.capacity > kMaxKept) Evict();
      size_class.first = new (block.data) Link{size_class.first};
      g_pool.kept_bytes.fetch_add(block.capacity, std::memory_order_relaxed);
      return;
    }
  }
  FreeBlock(block.data);
}

void ClearPool() {
  const std::unique_lock lock(g_pool.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (size_t index = 0; index < kNumClasses; ++index) {
    while (g_pool.classes[index].first != nullptr) FreeBlock(TakeFirst(index));
  }
}

// glibc trims its heap as soon as 128 KiB at its end are free, and maps larger blocks one by one: a loop that
// makes and drops values of 100 KB faults in fresh pages for each of them (measured: 22 faults, six times the
// time of the copy). When a mapped block is freed it takes its size for the new threshold of mapping, and
// twice that for the one of trimming; a block that is never touched costs two system calls.
void KeepLargeBlocks() {
  static constinit std::atomic<bool> is_done{false};
  if (is_done.load(std::memory_order_relaxed) || is_done.exchange(true)) return;
  constexpr size_t kMaxLearned =
      (size_t{32} << 20) - (size_t{64} << 10);  // with its header and rounded to pages
  void* volatile block = std::malloc(kMaxLearned);
  std::free(block);
}

void LimitBlocks(int64_t num_blocks) { g_blocks_left.store(num_blocks, std::memory_order_relaxed); }

size_t PooledBytes() { return g_pool.kept_bytes.load(std::memory_order_relaxed); }

}  // namespace tfrkit
