// Growable arrays whose memory is kept and reused.
//
// A fresh page of memory costs more to fault in than to fill (measured: 1.4 GB/s against 39 GB/s),
// and a reader requests the same few megabytes for every batch. So large blocks go back to a small
// process-wide pool instead of to the system.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

namespace tfrkit {

// Raw blocks. Thread-safe; never blocks: a caller that finds the pool busy goes to malloc, which
// also keeps a child forked while another thread held the pool from hanging.
struct PoolBlock {
  uint8_t* data = nullptr;
  size_t capacity = 0;
};
PoolBlock AcquireBlock(size_t min_capacity);  // data is nullptr when memory is exhausted
void ReleaseBlock(PoolBlock block);
void ClearPool();  // frees all kept blocks
size_t PooledBytes();

// From this size on a block that is not pooled, such as the memory of a bytes object, costs page faults.
inline constexpr size_t kLargeBlock = size_t{32} << 10;
// Makes malloc keep what is freed, up to 64 MiB, instead of giving it back to the system at once. Costs
// nothing after the first call. Does nothing where malloc is not glibc's, or was given thresholds by its
// environment.
void KeepLargeBlocks();

void LimitBlocks(int64_t num_blocks);  // for tests: allocations that succeed; -1: no limit

// Like std::vector for trivial types, but does not clear what it grows.
template <class T>
class PoolVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  PoolVector() = default;
  PoolVector(PoolVector&& other) noexcept { *this = std::move(other); }
  PoolVector& operator=(PoolVector&& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(size_, other.size_);
    return *this;
  }
  PoolVector(const PoolVector&) = delete;
  PoolVector& operator=(const PoolVector&) = delete;
  ~PoolVector() {
    if (block_.data != nullptr) ReleaseBlock(block_);
  }

  // data() points at T-aligned memory owned by the block.
  T* data() { return static_cast<T*>(static_cast<void*>(block_.data)); }
  const T* data() const { return static_cast<const T*>(static_cast<const void*>(block_.data)); }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t capacity() const { return block_.capacity / sizeof(T); }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T& back() { return data()[size_ - 1]; }

  // False when memory is exhausted; the content is unchanged then.
  [[nodiscard]] bool Reserve(size_t wanted) {
    if (wanted <= capacity()) return true;
    const size_t doubled = capacity() * 2;
    PoolBlock bigger = AcquireBlock((wanted > doubled ? wanted : doubled) * sizeof(T));
    if (bigger.data == nullptr) return false;
    if (size_ != 0) std::memcpy(bigger.data, block_.data, size_ * sizeof(T));
    if (block_.data != nullptr) ReleaseBlock(block_);
    block_ = bigger;
    return true;
  }
  // New elements are unspecified.
  [[nodiscard]] bool Resize(size_t size) {
    if (!Reserve(size)) return false;
    size_ = size;
    return true;
  }
  // REQUIRES: size <= size().
  void Truncate(size_t size) { size_ = size; }
  [[nodiscard]] bool PushBack(T value) {
    if (size_ == capacity() && !Reserve(size_ + 1)) return false;
    data()[size_++] = value;
    return true;
  }
  [[nodiscard]] bool Append(const T* values, size_t count) {
    if (count > capacity() - size_ && !Reserve(size_ + count)) return false;
    if (count != 0) std::memcpy(data() + size_, values, count * sizeof(T));
    size_ += count;
    return true;
  }
  void Clear() { size_ = 0; }

 private:
  PoolBlock block_;
  size_t size_ = 0;
};

}  // namespace tfrkit
