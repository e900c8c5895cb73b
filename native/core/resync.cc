#include "core/resync.h"

#include "core/crc32c.h"
#include "core/crc32c_algebra.h"
#include "core/frame_format.h"
#include "core/pool.h"

namespace tfrkit {
namespace {

// No file is 64 PiB long, so no later bytes can complete a frame that claims more.
constexpr uint64_t kMaxLength = uint64_t{1} << 56;

// Checksums of any part of a span, in time that does not grow with the part.
//
// A made-up file can hold a header every 12 bytes, each with a right checksum of a length that
// reaches to the end. Checking each payload from its first byte would take quadratic time. With the
// checksums of all prefixes at hand, that of a part follows by arithmetic.
class PartChecksums {
 public:
  explicit PartChecksums(ByteView span) : span_(span) {}

  uint32_t Compute(uint64_t start, uint64_t stop) {
    const uint64_t size = stop - start;
    if (size <= kDirect || !SpendOrBuild(size)) return ExtendCrc32c(0, span_.data() + start, size);
    // crc(prefix + part) = crc(prefix) moved past the part ^ crc(part)
    return Prefix(stop) ^ crc32c_internal::AppendZeros(Prefix(start), size);
  }

 private:
  static constexpr uint64_t kStep = 4096;  // bytes between stored prefixes
  static constexpr uint64_t kDirect = 16384;

  // False while checking directly is still cheap overall, or when memory is exhausted.
  bool SpendOrBuild(uint64_t size) {
    if (!prefixes_.empty()) return true;
    if (is_exhausted_) return false;
    if (size < budget_left()) {
      spent_ += size;
      return false;
    }
    const uint64_t num_steps = span_.size() / kStep + 1;
    if (!prefixes_.Resize(num_steps)) {
      is_exhausted_ = true;
      return false;
    }
    uint32_t crc = 0;
    for (uint64_t i = 0; i < num_steps; ++i) {
      prefixes_[i] = crc;
      if (i + 1 < num_steps) crc = ExtendCrc32c(crc, span_.data() + i * kStep, kStep);
    }
    return true;
  }

  // Twice the span: honest damage never spends it.
  uint64_t budget_left() const { return 2 * span_.size() > spent_ ? 2 * span_.size() - spent_ : 0; }

  uint32_t Prefix(uint64_t stop) const {
    const uint64_t step = stop / kStep;
    return ExtendCrc32c(prefixes_[step], span_.data() + step * kStep, stop % kStep);
  }

  ByteView span_;
  uint64_t spent_ = 0;
  bool is_exhausted_ = false;
  PoolVector<uint32_t> prefixes_;
};

// The first offset from here on where the eight bytes are no more than `max_length`, or where no
// header fits any more. Bytes that are not a length mostly make an absurd one, so that most
// offsets cost a comparison and no checksum.
uint64_t SkipAbsurdLengths(ByteView span, uint64_t offset, uint64_t max_length) {
  const uint64_t stop = span.size() - kHeaderSize + 1;
  while (offset < stop && LoadLE64(span.data() + offset) > max_length) ++offset;
  return offset;
}

}  // namespace

ResyncResult FindNextFrame(ByteView span, uint64_t offset, bool is_final) {
  PartChecksums checksums(span);
  const uint64_t max_length = is_final ? span.size() : kMaxLength;
  for (; offset <= span.size() && span.size() - offset >= kHeaderSize; ++offset) {
    offset = SkipAbsurdLengths(span, offset, max_length);
    if (span.size() - offset < kHeaderSize) break;
    const uint8_t* header = span.data() + offset;
    const uint64_t length = LoadLE64(header);
    if (MaskCrc(Crc32cOfU64(length)) != LoadLE32(header + 8)) continue;
    const uint64_t after_header = span.size() - offset - kHeaderSize;
    if (after_header < kFooterSize || length > after_header - kFooterSize) {
      if (is_final) continue;
      return {false, offset};
    }
    const uint64_t start = offset + kHeaderSize;
    const uint32_t stored = LoadLE32(span.data() + start + length);
    if (MaskCrc(checksums.Compute(start, start + length)) == stored) return {true, offset};
  }
  if (is_final || offset > span.size()) offset = span.size();
  return {false, offset};
}

}  // namespace tfrkit
