#if defined(__x86_64__)

#include <immintrin.h>

#include "core/base/varint.h"
#include "core/wire/packed_varint.h"

namespace tfrkit {

// The byte-wise walk is bound by the chain "load a byte, decide, move on". Here the ends of all values
// in 64 bytes are found at once, so the loads of the values do not wait for each other.
__attribute__((target("avx2,bmi,bmi2"))) size_t DecodePackedVarintsBmi2(const uint8_t* p, const uint8_t* end,
                                                                        int64_t* out) {
  const int64_t* const first = out;
  // 64 bytes to look at, and 8 more because a value that starts on the last one is read as a word.
  while (end - p >= 64 + 8) {
    const __m256i low = _mm256_loadu_si256(static_cast<const __m256i*>(static_cast<const void*>(p)));
    const __m256i high = _mm256_loadu_si256(static_cast<const __m256i*>(static_cast<const void*>(p + 32)));
    const uint64_t continued = static_cast<uint32_t>(_mm256_movemask_epi8(low)) |
                               static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(high))) << 32;
    uint64_t stops = ~continued;
    const uint64_t pairs = continued & (continued >> 1);
    const uint64_t fours = pairs & (pairs >> 2);
    if ((fours & (fours >> 4)) != 0 || stops == 0) {
      // A value of nine bytes or more: rare (negative numbers), and does not fit a word.
      const uint8_t* const stop = p + 48;
      while (p < stop) {
        uint64_t value;
        p = ReadVarint(p, end, &value);
        if (p == nullptr) return kBadVarints;
        *out++ = static_cast<int64_t>(value);
      }
      continue;
    }
    uint32_t start = 0;
    do {
      const uint32_t stop = static_cast<uint32_t>(_tzcnt_u64(stops));
      const uint64_t word = LoadLE64(p + start);
      const uint64_t kept = _bzhi_u64(0x7f7f7f7f7f7f7f7fu, 8 * (stop + 1 - start));
      *out++ = static_cast<int64_t>(_pext_u64(word, kept));
      start = stop + 1;
      stops &= stops - 1;
    } while (stops != 0);
    p += start;
  }
  const size_t rest = DecodePackedVarintsPortable(p, end, out);
  if (rest == kBadVarints) return kBadVarints;
  return static_cast<size_t>(out - first) + rest;
}

}  // namespace tfrkit

#endif  // defined(__x86_64__)
