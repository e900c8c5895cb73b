#include "core/frames/offset_pages.h"

#include <algorithm>

#include "core/base/bytes.h"
#include "core/frames/crc32c.h"
#include "core/frames/frame_format.h"

namespace tfrkit {

OffsetPages::OffsetPages(std::span<const uint64_t> offsets, std::span<const uint32_t> sums, uint64_t page)
    : offsets_(offsets), sums_(sums), page_(page), is_checked_(new std::atomic<bool>[sums.size()]()) {}

uint32_t OffsetPages::Sum(uint64_t number) const {
  const uint64_t start = number * page_;
  const auto part = offsets_.subspan(start, std::min<uint64_t>(page_, offsets_.size() - start));
  return Crc32c({reinterpret_cast<const uint8_t*>(part.data()), part.size_bytes()});
}

bool OffsetPages::Ascends(uint64_t number) const {
  const uint64_t start = number * page_;
  const uint64_t stop = std::min<uint64_t>(start + page_, offsets_.size());
  for (uint64_t record = std::max<uint64_t>(start, 1); record < stop; ++record) {
    const uint64_t before = offsets_[record - 1];
    if (offsets_[record] < before || offsets_[record] - before < kHeaderSize + kFooterSize) return false;
  }
  return true;
}

bool OffsetPages::Check(uint64_t number) {
  if (Sum(number) != sums_[number] || !Ascends(number)) return false;
  // The offsets never change, so no other memory depends on the order of this store.
  is_checked_[number].store(true, std::memory_order_relaxed);
  return true;
}

}  // namespace tfrkit
