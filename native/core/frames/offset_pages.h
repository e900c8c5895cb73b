// Frame offsets in pages with a checksum each, which is compared when a page is first used. Who forged the
// checksum has not thereby forged the order: offsets that do not ascend from frame to frame are refused, too.
//
// One record of a shard of millions then costs one page of its index instead of all of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace tfrkit {

// `offsets` and `sums` must outlive the pages. Any thread.
class OffsetPages {
 public:
  // `sums` has the crc32c of each run of `page` offsets, the last one perhaps shorter.
  // REQUIRES: page > 0, sums.size() == ceil(offsets.size() / page).
  OffsetPages(std::span<const uint64_t> offsets, std::span<const uint32_t> sums, uint64_t page);

  // True if the page of a record has its checksum and its offsets ascend. REQUIRES: record < offsets.size().
  bool IsWhole(uint64_t record) {
    const uint64_t number = record / page_;
    return is_checked_[number].load(std::memory_order_relaxed) || Check(number);
  }

  // The checksum of a page as it is now.
  uint32_t Sum(uint64_t number) const;

  uint64_t page() const { return page_; }
  size_t num_pages() const { return sums_.size(); }
  uint32_t stored(uint64_t number) const { return sums_[number]; }

 private:
  bool Check(uint64_t number);
  bool Ascends(uint64_t number) const;

  std::span<const uint64_t> offsets_;
  std::span<const uint32_t> sums_;
  uint64_t page_;
  std::unique_ptr<std::atomic<bool>[]> is_checked_;
};

}  // namespace tfrkit
