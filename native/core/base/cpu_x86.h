// What this x86 processor can do, and the system lets programs use. Not by the compiler's builtin, which
// needs a run-time library that not every compiler links into a shared library.
#pragma once

#if defined(__x86_64__)

#include <cpuid.h>

#include <cstdint>

namespace tfrkit {

struct X86Features {
  bool has_sse42 = false;
  bool has_pclmul = false;
  bool has_avx2 = false;
  bool has_bmi2 = false;
  bool has_vpclmul = false;
  bool has_avx512 = false;  // F and VL
};

inline X86Features FindX86Features() {
  constexpr uint64_t kAvxState = 0x6;      // xmm and ymm registers
  constexpr uint64_t kAvx512State = 0xE6;  // and mask and zmm registers
  X86Features found;
  unsigned a, b, c, d;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return found;
  found.has_sse42 = (c & bit_SSE4_2) != 0;
  found.has_pclmul = (c & bit_PCLMUL) != 0;
  uint64_t saved = 0;  // the registers that the system saves for a thread
  if ((c & bit_OSXSAVE) != 0) {
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    saved = static_cast<uint64_t>(high) << 32 | low;
  }
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return found;
  const bool has_avx = (saved & kAvxState) == kAvxState;
  found.has_avx2 = has_avx && (b & bit_AVX2) != 0;
  found.has_bmi2 = (b & bit_BMI2) != 0;
  found.has_vpclmul = has_avx && (c & bit_VPCLMULQDQ) != 0;
  found.has_avx512 =
      (saved & kAvx512State) == kAvx512State && (b & bit_AVX512F) != 0 && (b & bit_AVX512VL) != 0;
  return found;
}

// Found once; asking the processor takes as long as a small checksum.
inline const X86Features& GetX86Features() {
  static const X86Features features = FindX86Features();
  return features;
}

}  // namespace tfrkit

#endif
