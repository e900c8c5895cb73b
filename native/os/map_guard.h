// Reading a mapped file that another program may truncate.
//
// Pages past the new end of such a file are gone, and touching one raises SIGBUS, which ends the process.
// Code that reads maps holds a MapGuard: lost pages then become zeros, the range is marked as torn, and
// reading continues. The reader must call is_torn() afterwards and discard the data if it is true. Outside of
// guards nothing changes: a fault is a fault.
//
// There is no table of ranges for the handler to search: a guard is on the stack of the reading thread, so
// the handler, which runs on that thread, finds it through a thread-local pointer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tfrkit {

#if defined(__linux__)
inline constexpr bool kMapsAreGuarded = true;
#else
inline constexpr bool kMapsAreGuarded = false;  // the reader checks the file size before
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
    // Reads before this call are not reordered after it.
    std::atomic_thread_fence(std::memory_order_acquire);
    return lost_.load(std::memory_order_relaxed) != nullptr;
  }

  // Makes the pages that became zeros raise SIGBUS again, so that code outside of a guard never reads the
  // zeros as data.
  void Seal();

  // Hints that the whole pages in [start, stop) are not needed for now.
  void Release(uint64_t start, uint64_t stop);

  // The open file, which must stay open as long as the range lives; -1, the default, for none.
  void set_descriptor(int descriptor) { descriptor_ = descriptor; }

  // Should records that lie anywhere be read from the file, not from the map?
  //
  // Touching a page maps in as much as the system has around it, 0.8 MB with large folios, in 24 us: a batch
  // of 1024 records would map in a gigabyte. A read takes 1 us. So records are read until mapping all of the
  // file in would have cost as much.
  bool MayRead() const {
    return descriptor_ >= 0 && num_read_.load(std::memory_order_relaxed) < size_ / kNbytesPerRead;
  }
  // Reads all of [start, start + size) from the file; false where that fails, or the file has become shorter.
  bool Read(uint64_t start, uint8_t* out, size_t size) const;
  void NoteReads(uint64_t count) { num_read_.fetch_add(count, std::memory_order_relaxed); }
  // After pages were released.
  void ForgetReads() { num_read_.store(0, std::memory_order_relaxed); }

 private:
  static constexpr size_t kNbytesPerRead = size_t{64} << 10;

  friend class MapGuard;

  bool Contains(const uint8_t* address) const { return address >= start_ && address < start_ + size_; }
  bool ReplaceFrom(uint8_t* page);

  uint8_t* const start_;
  const size_t size_;
  std::atomic<uint8_t*> lost_{nullptr};  // first page that became zeros
  int descriptor_ = -1;
  std::atomic<uint64_t> num_read_{0};
};

// Puts the handler first if it is not; it forwards other faults. Call when a file is mapped, and before a
// long read without the interpreter lock: another handler may have been installed since, and Python's
// faulthandler reads the stacks of all threads, which may end the process while they run.
void InstallMapGuard();

// During its lifetime this thread may touch lost pages of these ranges. Guards nest; nullptr is no range.
class MapGuard {
 public:
  explicit MapGuard(MappedRange* range);
  // REQUIRES: the array of `ranges` outlives the guard.
  explicit MapGuard(std::span<MappedRange* const> ranges);
  ~MapGuard();
  MapGuard(const MapGuard&) = delete;
  MapGuard& operator=(const MapGuard&) = delete;

  // For the handler. True if `address` is in a guarded range and readable now.
  static bool Mend(uint8_t* address);
  static bool IsActive();

 private:
  void Enter();

  MappedRange* only_;
  std::span<MappedRange* const> ranges_;
  const MapGuard* outer_;
};

}  // namespace tfrkit
