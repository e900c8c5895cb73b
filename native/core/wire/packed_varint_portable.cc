#include <bit>

#include "core/base/varint.h"
#include "core/wire/packed_varint.h"

namespace tfrkit {

size_t DecodePackedVarintsPortable(const uint8_t* p, const uint8_t* end, int64_t* out) {
  const int64_t* const first = out;
  while (end - p >= 8) {
    const uint64_t word = LoadLE64(p);
    const uint64_t stops = ~word & kContinuationBits;
    if (stops == kContinuationBits) {  // eight values of one byte
      for (int i = 0; i < 8; ++i) out[i] = p[i];
      out += 8;
      p += 8;
      continue;
    }
    if (stops != 0) {
      const uint64_t kept = stops ^ (stops - 1);  // every bit up to the first stop
      *out++ = static_cast<int64_t>(CompactVarint(word & kept & ~kContinuationBits));
      p += (std::countr_zero(stops) + 1) / 8;
      continue;
    }
    uint64_t value;
    p = ReadVarint(p, end, &value);
    if (p == nullptr) return kBadVarints;
    *out++ = static_cast<int64_t>(value);
  }
  while (p < end) {
    uint64_t value;
    p = ReadVarint(p, end, &value);
    if (p == nullptr) return kBadVarints;
    *out++ = static_cast<int64_t>(value);
  }
  return static_cast<size_t>(out - first);
}

}  // namespace tfrkit
