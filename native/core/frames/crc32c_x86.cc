// CRC-32C on x86-64: the crc32 instruction, and folding by carry-less multiplication.
//
// Each function carries its own target attribute, so that the file needs no compiler flags and the
// program runs on a CPU that has none of this.
#include "core/frames/crc32c_variants.h"

#if defined(__x86_64__)

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"  // gcc 12 warns about its own AVX-512 header
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>

#include <array>

#include "core/base/bytes.h"
#include "core/base/cpu_x86.h"
#include "core/frames/crc32c_algebra.h"

// For clang 14 and newer the instruction is a separate target feature that sse4.2 does not always imply.
#if defined(__clang__) && __clang_major__ >= 14
#define TFRKIT_CRC "sse4.2,crc32"
#else
#define TFRKIT_CRC "sse4.2"
#endif
#define TFRKIT_SSE42 __attribute__((target(TFRKIT_CRC)))
#define TFRKIT_PCLMUL __attribute__((target(TFRKIT_CRC ",pclmul")))
#define TFRKIT_VPCLMUL256 __attribute__((target(TFRKIT_CRC ",pclmul,avx2,vpclmulqdq")))
#define TFRKIT_VPCLMUL512 __attribute__((target(TFRKIT_CRC ",pclmul,avx2,avx512f,avx512vl,vpclmulqdq")))
#define TFRKIT_INLINE inline __attribute__((always_inline))

namespace tfrkit::crc32c_internal {
namespace {

// ---- the crc32 instruction -----------------------------------------------------------------

TFRKIT_SSE42 TFRKIT_INLINE uint32_t Step64(uint32_t state, uint64_t word) {
  return static_cast<uint32_t>(_mm_crc32_u64(state, word));
}

// The last `size` bytes of a buffer, size < 8, when at least 8 bytes lie before `stop`. No branches:
// the size of a record is random, and a wrong guess costs more than the arithmetic.
//
// Zero bytes before a message change nothing when the state is zero. So the bytes go to the top of
// a word with the state mixed in, and what of the state reaches beyond them is shifted past.
TFRKIT_SSE42 TFRKIT_INLINE uint32_t FinishOverlapped(uint32_t state, const uint8_t* stop, size_t size) {
  const uint64_t last8 = LoadLE64(stop - 8);
  const unsigned unused = static_cast<unsigned>(7 - size) * 8;  // one byte less, so that it is
  const uint64_t mask = (~uint64_t{0} << unused) << 8;          // never a shift by 64
  const uint64_t mixed = ((static_cast<uint64_t>(state) << unused) << 8) ^ (last8 & mask);
  return Step64(0, mixed) ^ static_cast<uint32_t>(static_cast<uint64_t>(state) >> (size * 8));
}

TFRKIT_SSE42 TFRKIT_INLINE uint32_t ExtendUnder8(uint32_t state, const uint8_t* data, size_t size) {
  if ((size & 4) != 0) {
    state = _mm_crc32_u32(state, LoadLE32(data));
    data += 4;
  }
  if ((size & 2) != 0) {
    state = _mm_crc32_u16(state, static_cast<uint16_t>(data[0] | data[1] << 8));
    data += 2;
  }
  if ((size & 1) != 0) state = _mm_crc32_u8(state, *data);
  return state;
}

// One instruction after the other: 8 bytes in 3 cycles. Successive records overlap in the CPU, so this is
// fastest for short ones.
TFRKIT_SSE42 TFRKIT_INLINE uint32_t ExtendSerial(uint32_t state, const uint8_t* data, size_t size) {
  if (size < 8) return ExtendUnder8(state, data, size);
  const uint8_t* const stop = data + size;
  for (; size >= 32; data += 32, size -= 32) {
    state = Step64(state, LoadLE64(data));
    state = Step64(state, LoadLE64(data + 8));
    state = Step64(state, LoadLE64(data + 16));
    state = Step64(state, LoadLE64(data + 24));
  }
  for (; size >= 8; data += 8, size -= 8) state = Step64(state, LoadLE64(data));
  return FinishOverlapped(state, stop, size);
}

TFRKIT_SSE42 uint32_t OfU64Sse42(uint64_t value) { return ~Step64(0xffffffffu, value); }

// ---- sse4.2: three streams in parallel ---------------------------------------------------------

// The instruction starts every cycle but takes three, so three independent streams fill it. Joining
// them costs eight lookups, hence a long and a short stream length.
inline constexpr size_t kLongStream = 2048;
inline constexpr size_t kShortStream = 128;
inline constexpr ZerosTable kLongZeros = MakeZerosTable(kLongStream);
inline constexpr ZerosTable kShortZeros = MakeZerosTable(kShortStream);

template <size_t kStream>
TFRKIT_SSE42 TFRKIT_INLINE uint32_t ThreeStreams(uint32_t state, const uint8_t* data,
                                                 const ZerosTable& zeros) {
  uint32_t second = 0, third = 0;
  for (size_t i = 0; i < kStream; i += 8) {
    state = Step64(state, LoadLE64(data + i));
    second = Step64(second, LoadLE64(data + kStream + i));
    third = Step64(third, LoadLE64(data + 2 * kStream + i));
  }
  return zeros.Apply(zeros.Apply(state) ^ second) ^ third;
}

TFRKIT_SSE42 uint32_t ExtendSse42(uint32_t crc, const uint8_t* data, size_t size) {
  uint32_t state = ~crc;
  for (; size >= 3 * kLongStream; data += 3 * kLongStream, size -= 3 * kLongStream) {
    state = ThreeStreams<kLongStream>(state, data, kLongZeros);
  }
  for (; size >= 3 * kShortStream; data += 3 * kShortStream, size -= 3 * kShortStream) {
    state = ThreeStreams<kShortStream>(state, data, kShortZeros);
  }
  return ~ExtendSerial(state, data, size);
}

// ---- pclmul: three streams of any length, joined by multiplication --------------------------

// What moves a state past one and past two streams of k words, by k. The reduction that follows
// moves it another 32 bits.
struct JoinFactors {
  uint64_t one, two;
};
inline constexpr size_t kMaxStreamWords = 128;

constexpr std::array<JoinFactors, kMaxStreamWords + 1> MakeJoinFactors() {
  std::array<JoinFactors, kMaxStreamWords + 1> factors = {};
  for (size_t words = 1; words <= kMaxStreamWords; ++words) {
    factors[words] = {FoldFactor(64 * words - 32), FoldFactor(128 * words - 32)};
  }
  return factors;
}
inline constexpr auto kJoinFactors = MakeJoinFactors();

TFRKIT_PCLMUL TFRKIT_INLINE __m128i Move64(uint64_t value) {
  return _mm_cvtsi64_si128(static_cast<int64_t>(value));
}

// REQUIRES: 1 <= num_words <= kMaxStreamWords; 24 * num_words bytes are there.
TFRKIT_PCLMUL TFRKIT_INLINE uint32_t JoinedStreams(uint32_t state, const uint8_t* data, size_t num_words) {
  const size_t stream = 8 * num_words;
  const uint8_t* const last = data + stream - 8;
  uint32_t second = 0, third = 0;
  for (; data != last; data += 8) {
    state = Step64(state, LoadLE64(data));
    second = Step64(second, LoadLE64(data + stream));
    third = Step64(third, LoadLE64(data + 2 * stream));
  }
  state = Step64(state, LoadLE64(data));
  second = Step64(second, LoadLE64(data + stream));
  const __m128i first_moved = _mm_clmulepi64_si128(Move64(state), Move64(kJoinFactors[num_words].two), 0);
  const __m128i second_moved = _mm_clmulepi64_si128(Move64(second), Move64(kJoinFactors[num_words].one), 0);
  const __m128i moved = _mm_xor_si128(first_moved, second_moved);
  return Step64(third, LoadLE64(data + 2 * stream) ^ static_cast<uint64_t>(_mm_cvtsi128_si64(moved)));
}

inline constexpr size_t kStreamsFrom = 144;  // bytes; below this, joining costs more than it saves

// Any size.
TFRKIT_PCLMUL TFRKIT_INLINE uint32_t ExtendStreams(uint32_t state, const uint8_t* data, size_t size) {
  if (size < kStreamsFrom) return ExtendSerial(state, data, size);
  const uint8_t* const stop = data + size;
  for (; size >= 24 * kMaxStreamWords; data += 24 * kMaxStreamWords, size -= 24 * kMaxStreamWords) {
    state = JoinedStreams(state, data, kMaxStreamWords);
  }
  if (size >= 24) {
    const size_t num_words = size / 24;
    state = JoinedStreams(state, data, num_words);
    data += 24 * num_words;
    size -= 24 * num_words;
  }
  for (; size >= 8; data += 8, size -= 8) state = Step64(state, LoadLE64(data));
  return FinishOverlapped(state, stop, size);
}

TFRKIT_PCLMUL uint32_t ExtendPclmul(uint32_t crc, const uint8_t* data, size_t size) {
  return ~ExtendStreams(~crc, data, size);
}

// ---- 128-bit lanes -------------------------------------------------------------------------

TFRKIT_PCLMUL TFRKIT_INLINE __m128i Factors128(uint64_t low, uint64_t high) {
  return _mm_set_epi64x(static_cast<int64_t>(high), static_cast<int64_t>(low));
}

TFRKIT_PCLMUL TFRKIT_INLINE __m128i Fold128(__m128i lane, __m128i factors, __m128i next) {
  const __m128i low = _mm_clmulepi64_si128(lane, factors, 0x00);
  const __m128i high = _mm_clmulepi64_si128(lane, factors, 0x11);
  return _mm_xor_si128(_mm_xor_si128(low, next), high);
}

// A lane is a message of 16 bytes; its checksum from a zero state is what the lane stands for.
TFRKIT_PCLMUL TFRKIT_INLINE uint32_t Reduce128(__m128i lane) {
  const uint32_t state = Step64(0, static_cast<uint64_t>(_mm_cvtsi128_si64(lane)));
  return Step64(state, static_cast<uint64_t>(_mm_extract_epi64(lane, 1)));
}

// ---- vpclmulqdq, 256 bits: fold 128 bytes per step -------------------------------------------

TFRKIT_VPCLMUL256 TFRKIT_INLINE __m256i Load256(const uint8_t* data) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(static_cast<const void*>(data)));
}

TFRKIT_VPCLMUL256 TFRKIT_INLINE __m256i Factors256(uint64_t low, uint64_t high) {
  return _mm256_broadcastsi128_si256(Factors128(low, high));
}

TFRKIT_VPCLMUL256 TFRKIT_INLINE __m256i Fold256(__m256i lanes, __m256i factors, __m256i next) {
  const __m256i low = _mm256_clmulepi64_epi128(lanes, factors, 0x00);
  const __m256i high = _mm256_clmulepi64_epi128(lanes, factors, 0x11);
  return _mm256_xor_si256(_mm256_xor_si256(low, next), high);
}

// REQUIRES: *size >= 128. Leaves less than 32 bytes.
TFRKIT_VPCLMUL256 TFRKIT_INLINE uint32_t FoldBlocks256(uint32_t state, const uint8_t** data, size_t* size) {
  constexpr uint64_t kLow1024 = FoldLow(1024), kHigh1024 = FoldHigh(1024);
  constexpr uint64_t kLow768 = FoldLow(768), kHigh768 = FoldHigh(768);
  constexpr uint64_t kLow512 = FoldLow(512), kHigh512 = FoldHigh(512);
  constexpr uint64_t kLow256 = FoldLow(256), kHigh256 = FoldHigh(256);
  constexpr uint64_t kLow128 = FoldLow(128), kHigh128 = FoldHigh(128);
  const uint8_t* p = *data;
  const __m256i start = _mm256_zextsi128_si256(_mm_cvtsi32_si128(static_cast<int>(state)));
  __m256i a = _mm256_xor_si256(Load256(p), start);
  __m256i b = Load256(p + 32), c = Load256(p + 64), d = Load256(p + 96);
  size_t left = *size - 128;
  p += 128;
  const __m256i step = Factors256(kLow1024, kHigh1024);
  for (; left >= 128; p += 128, left -= 128) {
    a = Fold256(a, step, Load256(p));
    b = Fold256(b, step, Load256(p + 32));
    c = Fold256(c, step, Load256(p + 64));
    d = Fold256(d, step, Load256(p + 96));
  }
  const __m256i one = Factors256(kLow256, kHigh256);
  d = Fold256(a, Factors256(kLow768, kHigh768), d);
  b = Fold256(b, Factors256(kLow512, kHigh512), _mm256_setzero_si256());
  d = Fold256(c, one, d);
  d = _mm256_xor_si256(b, d);
  for (; left >= 32; p += 32, left -= 32) d = Fold256(d, one, Load256(p));
  *data = p;
  *size = left;
  return Reduce128(
      Fold128(_mm256_castsi256_si128(d), Factors128(kLow128, kHigh128), _mm256_extracti128_si256(d, 1)));
}

inline constexpr size_t kFold256From = 640;

TFRKIT_VPCLMUL256 __attribute__((noinline)) uint32_t ExtendFolded256(uint32_t state, const uint8_t* data,
                                                                     size_t size) {
  state = FoldBlocks256(state, &data, &size);
  return ~ExtendSerial(state, data, size);
}

// Short records avoid the function with wide registers and its clean-up.
TFRKIT_PCLMUL uint32_t ExtendVpclmul256(uint32_t crc, const uint8_t* data, size_t size) {
  if (size >= kFold256From) return ExtendFolded256(~crc, data, size);
  return ~ExtendStreams(~crc, data, size);
}

// ---- vpclmulqdq, 512 bits: fold 256 bytes per step -------------------------------------------

TFRKIT_VPCLMUL512 TFRKIT_INLINE __m512i Load512(const uint8_t* data) { return _mm512_loadu_si512(data); }

TFRKIT_VPCLMUL512 TFRKIT_INLINE __m512i Factors512(uint64_t low, uint64_t high) {
  return _mm512_broadcast_i32x4(Factors128(low, high));
}

TFRKIT_VPCLMUL512 TFRKIT_INLINE __m512i Fold512(__m512i lanes, __m512i factors, __m512i next) {
  constexpr int kXorOfThree = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(lanes, factors, 0x00),
                                   _mm512_clmulepi64_epi128(lanes, factors, 0x11), next, kXorOfThree);
}

// REQUIRES: *size >= 256. Leaves less than 64 bytes.
TFRKIT_VPCLMUL512 TFRKIT_INLINE uint32_t FoldBlocks512(uint32_t state, const uint8_t** data, size_t* size) {
  constexpr uint64_t kLow2048 = FoldLow(2048), kHigh2048 = FoldHigh(2048);
  constexpr uint64_t kLow1536 = FoldLow(1536), kHigh1536 = FoldHigh(1536);
  constexpr uint64_t kLow1024 = FoldLow(1024), kHigh1024 = FoldHigh(1024);
  constexpr uint64_t kLow512 = FoldLow(512), kHigh512 = FoldHigh(512);
  constexpr uint64_t kLow256 = FoldLow(256), kHigh256 = FoldHigh(256);
  constexpr uint64_t kLow128 = FoldLow(128), kHigh128 = FoldHigh(128);
  const uint8_t* p = *data;
  const __m512i start = _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(state)));
  __m512i a = _mm512_xor_si512(Load512(p), start);
  __m512i b = Load512(p + 64), c = Load512(p + 128), d = Load512(p + 192);
  size_t left = *size - 256;
  p += 256;
  const __m512i step = Factors512(kLow2048, kHigh2048);
  for (; left >= 256; p += 256, left -= 256) {
    a = Fold512(a, step, Load512(p));
    b = Fold512(b, step, Load512(p + 64));
    c = Fold512(c, step, Load512(p + 128));
    d = Fold512(d, step, Load512(p + 192));
  }
  const __m512i one = Factors512(kLow512, kHigh512);
  d = Fold512(a, Factors512(kLow1536, kHigh1536), d);
  b = Fold512(b, Factors512(kLow1024, kHigh1024), _mm512_setzero_si512());
  d = Fold512(c, one, d);
  d = _mm512_xor_si512(b, d);
  for (; left >= 64; p += 64, left -= 64) d = Fold512(d, one, Load512(p));
  *data = p;
  *size = left;
  const __m256i half =
      Fold256(_mm512_castsi512_si256(d), Factors256(kLow256, kHigh256), _mm512_extracti64x4_epi64(d, 1));
  return Reduce128(Fold128(_mm256_castsi256_si128(half), Factors128(kLow128, kHigh128),
                           _mm256_extracti128_si256(half, 1)));
}

inline constexpr size_t kFold512From = 512;

TFRKIT_VPCLMUL512 __attribute__((noinline)) uint32_t ExtendFolded512(uint32_t state, const uint8_t* data,
                                                                     size_t size) {
  state = FoldBlocks512(state, &data, &size);
  return ~ExtendSerial(state, data, size);
}

TFRKIT_PCLMUL uint32_t ExtendVpclmul512(uint32_t crc, const uint8_t* data, size_t size) {
  if (size >= kFold512From) return ExtendFolded512(~crc, data, size);
  return ~ExtendStreams(~crc, data, size);
}

// ---- the list ------------------------------------------------------------------------------

bool HasSse42() { return GetX86Features().has_sse42; }
bool HasPclmul() { return HasSse42() && GetX86Features().has_pclmul; }
bool HasVpclmul256() { return HasPclmul() && GetX86Features().has_avx2 && GetX86Features().has_vpclmul; }
bool HasVpclmul512() { return HasVpclmul256() && GetX86Features().has_avx512; }

constexpr Crc32cVariant kVariants[] = {
    {"sse42", HasSse42, ExtendSse42, OfU64Sse42},
    {"pclmul", HasPclmul, ExtendPclmul, OfU64Sse42},
    {"vpclmul256", HasVpclmul256, ExtendVpclmul256, OfU64Sse42},
    {"vpclmul512", HasVpclmul512, ExtendVpclmul512, OfU64Sse42},
};

}  // namespace

std::span<const Crc32cVariant> X86Variants() { return kVariants; }

}  // namespace tfrkit::crc32c_internal

#else

namespace tfrkit::crc32c_internal {

std::span<const Crc32cVariant> X86Variants() { return {}; }

}  // namespace tfrkit::crc32c_internal

#endif
