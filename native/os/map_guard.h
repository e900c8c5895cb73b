// Reading a mapped file that another program may cut off.
//
// The pages behind the new end of such a file have nothing behind them any more, and touching one raises
// SIGBUS, which ends the process. Code that reads maps puts a MapGuard around the reading: then the lost
// pages become zeros, the range is marked as torn, and the reading goes on to its end. Whoever reads must
// ask is_torn() afterwards and throw away what was read if it is. Outside of guards nothing changes: a
// fault is a fault.
//
// There is no table of ranges for the handler to search: a guard lives on the stack of the thread that
// reads, so the handler, which runs on that thread, finds it through a thread-local pointer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tfrkit {

#if defined(__linux__)
inline constexpr bool kMapsAreGuarded = true;
#else
inline constexpr bool kMapsAreGuarded = false;  // whoever reads asks for the size of the file before
#endif

// A mapped file. Must outlive the guards that name it. Any number of threads.
class MappedRange {
 public:
  // REQUIRES: `start` is a multiple of the page size.
  MappedRange(uint8_t* start, size_t size) : start_(start), size_(size) {}
  MappedRange(const MappedRange&) = delete;
  MappedRange& operator=(const MappedRange&) = delete;

  // True once pages were lost; never false again.
  bool is_torn() const {
    // What was read before this question must have been read before its answer was true.
    std::atomic_thread_fence(std::memory_order_acquire);
    return lost_.load(std::memory_order_relaxed) != nullptr;
  }

  // Makes the pages that became zeros raise SIGBUS again, so that nobody outside of a guard takes the
  // zeros for data.
  void Seal();

 private:
  friend class MapGuard;

  bool Contains(const uint8_t* address) const { return address >= start_ && address < start_ + size_; }
  bool ReplaceFrom(uint8_t* page);

  uint8_t* const start_;
  const size_t size_;
  std::atomic<uint8_t*> lost_{nullptr};  // first page that became zeros
};

// Installs the handler, once for the process; it passes on what is not for it. Call when a file is mapped.
void InstallMapGuard();

// While it lives, this thread may touch lost pages of these ranges. Guards nest; nullptr is no range.
class MapGuard {
 public:
  explicit MapGuard(MappedRange* range);
  // REQUIRES: the array of `ranges` outlives the guard.
  explicit MapGuard(std::span<MappedRange* const> ranges);
  ~MapGuard();
  MapGuard(const MapGuard&) = delete;
  MapGuard& operator=(const MapGuard&) = delete;

  // For the handler. True if `address` lies in a guarded range and can be read now.
  static bool Mend(uint8_t* address);
  static bool IsActive();

 private:
  void Enter();

  MappedRange* only_;
  std::span<MappedRange* const> ranges_;
  const MapGuard* outer_;
};

}  // namespace tfrkit
