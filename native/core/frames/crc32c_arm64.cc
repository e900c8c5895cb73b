// CRC-32C on 64-bit ARM: the crc32c instructions, and folding by polynomial multiplication.
#include "core/frames/crc32c_variants.h"

#if defined(__aarch64__)

#include <arm_acle.h>
#include <arm_neon.h>
#if defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "core/base/bytes.h"
#include "core/frames/crc32c_algebra.h"

#if defined(__clang__)
#define TFRKIT_CRC __attribute__((target("crc")))
#define TFRKIT_PMULL __attribute__((target("crc,aes")))
#else
#define TFRKIT_CRC __attribute__((target("+crc")))
#define TFRKIT_PMULL __attribute__((target("+crc+crypto")))
#endif
#define TFRKIT_INLINE inline __attribute__((always_inline))

namespace tfrkit::crc32c_internal {
namespace {

TFRKIT_CRC TFRKIT_INLINE uint32_t ExtendSerial(uint32_t state, const uint8_t* data, size_t size) {
  for (; size >= 32; data += 32, size -= 32) {
    state = __crc32cd(state, LoadLE64(data));
    state = __crc32cd(state, LoadLE64(data + 8));
    state = __crc32cd(state, LoadLE64(data + 16));
    state = __crc32cd(state, LoadLE64(data + 24));
  }
  for (; size >= 8; data += 8, size -= 8) state = __crc32cd(state, LoadLE64(data));
  if ((size & 4) != 0) {
    state = __crc32cw(state, LoadLE32(data));
    data += 4;
  }
  if ((size & 2) != 0) {
    state = __crc32ch(state, static_cast<uint16_t>(data[0] | data[1] << 8));
    data += 2;
  }
  if ((size & 1) != 0) state = __crc32cb(state, *data);
  return state;
}

TFRKIT_CRC uint32_t OfU64Crc(uint64_t value) { return ~__crc32cd(0xffffffffu, value); }

// Three streams, because the instruction starts every cycle but takes two or three.
inline constexpr size_t kLongStream = 2048;
inline constexpr size_t kShortStream = 128;
inline constexpr ZerosTable kLongZeros = MakeZerosTable(kLongStream);
inline constexpr ZerosTable kShortZeros = MakeZerosTable(kShortStream);

template <size_t kStream>
TFRKIT_CRC TFRKIT_INLINE uint32_t ThreeStreams(uint32_t state, const uint8_t* data, const ZerosTable& zeros) {
  uint32_t second = 0, third = 0;
  for (size_t i = 0; i < kStream; i += 8) {
    state = __crc32cd(state, LoadLE64(data + i));
    second = __crc32cd(second, LoadLE64(data + kStream + i));
    third = __crc32cd(third, LoadLE64(data + 2 * kStream + i));
  }
  return zeros.Apply(zeros.Apply(state) ^ second) ^ third;
}

TFRKIT_CRC uint32_t ExtendCrc(uint32_t crc, const uint8_t* data, size_t size) {
  uint32_t state = ~crc;
  for (; size >= 3 * kLongStream; data += 3 * kLongStream, size -= 3 * kLongStream) {
    state = ThreeStreams<kLongStream>(state, data, kLongZeros);
  }
  for (; size >= 3 * kShortStream; data += 3 * kShortStream, size -= 3 * kShortStream) {
    state = ThreeStreams<kShortStream>(state, data, kShortZeros);
  }
  return ~ExtendSerial(state, data, size);
}

TFRKIT_PMULL TFRKIT_INLINE uint64x2_t Load128(const uint8_t* data) {
  return vreinterpretq_u64_u8(vld1q_u8(data));
}

TFRKIT_PMULL TFRKIT_INLINE uint64x2_t Multiply(uint64_t a, uint64_t b) {
  return vreinterpretq_u64_p128(vmull_p64(static_cast<poly64_t>(a), static_cast<poly64_t>(b)));
}

TFRKIT_PMULL TFRKIT_INLINE uint64x2_t Fold(uint64x2_t lane, uint64_t low, uint64_t high, uint64x2_t next) {
  const uint64x2_t a = Multiply(vgetq_lane_u64(lane, 0), low);
  const uint64x2_t b = Multiply(vgetq_lane_u64(lane, 1), high);
  return veorq_u64(veorq_u64(a, next), b);
}

TFRKIT_PMULL uint32_t ExtendPmull(uint32_t crc, const uint8_t* data, size_t size) {
  constexpr size_t kFoldFrom = 512;
  uint32_t state = ~crc;
  if (size >= kFoldFrom) {
    constexpr uint64_t kLow512 = FoldLow(512), kHigh512 = FoldHigh(512);
    constexpr uint64_t kLow128 = FoldLow(128), kHigh128 = FoldHigh(128);
    uint64x2_t a = veorq_u64(Load128(data), vsetq_lane_u64(state, vdupq_n_u64(0), 0));
    uint64x2_t b = Load128(data + 16), c = Load128(data + 32), d = Load128(data + 48);
    data += 64;
    size -= 64;
    for (; size >= 64; data += 64, size -= 64) {
      a = Fold(a, kLow512, kHigh512, Load128(data));
      b = Fold(b, kLow512, kHigh512, Load128(data + 16));
      c = Fold(c, kLow512, kHigh512, Load128(data + 32));
      d = Fold(d, kLow512, kHigh512, Load128(data + 48));
    }
    b = Fold(a, kLow128, kHigh128, b);
    c = Fold(b, kLow128, kHigh128, c);
    d = Fold(c, kLow128, kHigh128, d);
    state = __crc32cd(__crc32cd(0, vgetq_lane_u64(d, 0)), vgetq_lane_u64(d, 1));
  }
  return ~ExtendSerial(state, data, size);
}

#if defined(__linux__)
bool HasCrc() { return (getauxval(AT_HWCAP) & HWCAP_CRC32) != 0; }
bool HasPmull() { return HasCrc() && (getauxval(AT_HWCAP) & HWCAP_PMULL) != 0; }
#else
// The other systems that run on 64-bit ARM require a CPU with both.
bool HasCrc() { return true; }
bool HasPmull() { return true; }
#endif

constexpr Crc32cVariant kVariants[] = {
    {"arm64_crc", HasCrc, ExtendCrc, OfU64Crc},
    {"arm64_pmull", HasPmull, ExtendPmull, OfU64Crc},
};

}  // namespace

std::span<const Crc32cVariant> Arm64Variants() { return kVariants; }

}  // namespace tfrkit::crc32c_internal

#else

namespace tfrkit::crc32c_internal {

std::span<const Crc32cVariant> Arm64Variants() { return {}; }

}  // namespace tfrkit::crc32c_internal

#endif
