// The resize on x86-64 with AVX2: pairs of taps through one multiply-and-add of 16-bit numbers.
//
// Each function carries its own target attribute, so that the file needs no compiler flags.
#include "core/base/cpu_x86.h"
#include "core/images/resize_variants.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <array>
#include <cstring>

#define TFRKIT_AVX2 __attribute__((target("avx2")))
#define TFRKIT_INLINE inline __attribute__((always_inline))

namespace tfrkit::resize_internal {
namespace {

constexpr size_t kBlock = 32;

TFRKIT_AVX2 TFRKIT_INLINE __m256i Load(const void* p) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(p));
}
TFRKIT_AVX2 TFRKIT_INLINE void Store(void* p, __m256i value) {
  _mm256_storeu_si256(static_cast<__m256i*>(p), value);
}
TFRKIT_AVX2 TFRKIT_INLINE __m128i LoadHalf(const void* p) {
  return _mm_loadu_si128(static_cast<const __m128i*>(p));
}
TFRKIT_AVX2 TFRKIT_INLINE void StoreHalf(void* p, __m128i value) {
  _mm_storeu_si128(static_cast<__m128i*>(p), value);
}

// ---- rows ---------------------------------------------------------------------------------------

// kBlock elements from `offset` on. Bytes of two rows are interleaved and widened, so that one instruction
// multiplies both with their weights and adds; this leaves elements 0..3 and 16..19 in the first sum, and so
// on.
TFRKIT_AVX2 TFRKIT_INLINE void BlendBlock(const uint8_t* const* rows, const int16_t* weights, size_t num_taps,
                                          size_t offset, int16_t* out) {
  constexpr int kShift = kWeightBits - kLevelBits;
  const __m256i zero = _mm256_setzero_si256();
  __m256i sum0 = _mm256_set1_epi32(1 << (kShift - 1)), sum1 = sum0, sum2 = sum0, sum3 = sum0;
  for (size_t tap = 0; tap < num_taps; tap += 2) {
    int32_t pair;
    std::memcpy(&pair, weights + tap, sizeof pair);
    const __m256i weight = _mm256_set1_epi32(pair);
    const __m256i a = Load(rows[tap] + offset);
    const __m256i b = Load(rows[tap + 1] + offset);
    const __m256i low = _mm256_unpacklo_epi8(a, b);
    const __m256i high = _mm256_unpackhi_epi8(a, b);
    sum0 = _mm256_add_epi32(sum0, _mm256_madd_epi16(_mm256_unpacklo_epi8(low, zero), weight));
    sum1 = _mm256_add_epi32(sum1, _mm256_madd_epi16(_mm256_unpackhi_epi8(low, zero), weight));
    sum2 = _mm256_add_epi32(sum2, _mm256_madd_epi16(_mm256_unpacklo_epi8(high, zero), weight));
    sum3 = _mm256_add_epi32(sum3, _mm256_madd_epi16(_mm256_unpackhi_epi8(high, zero), weight));
  }
  const __m256i left = _mm256_packs_epi32(_mm256_srai_epi32(sum0, kShift), _mm256_srai_epi32(sum1, kShift));
  const __m256i right = _mm256_packs_epi32(_mm256_srai_epi32(sum2, kShift), _mm256_srai_epi32(sum3, kShift));
  Store(out + offset, _mm256_permute2x128_si256(left, right, 0x20));
  Store(out + offset + 16, _mm256_permute2x128_si256(left, right, 0x31));
}

TFRKIT_AVX2 void BlendRowsAvx2(const uint8_t* const* rows, const int16_t* weights, size_t num_taps,
                               size_t count, int16_t* out) {
  if (count < kBlock) return BlendRowsPortable(rows, weights, num_taps, count, out);
  size_t offset = 0;
  for (; offset + kBlock <= count; offset += kBlock) BlendBlock(rows, weights, num_taps, offset, out);
  // The last block overlaps the one before it, so that nothing past the rows is read.
  if (offset != count) BlendBlock(rows, weights, num_taps, count - kBlock, out);
}

// ---- columns ------------------------------------------------------------------------------------

TFRKIT_AVX2 TFRKIT_INLINE __m256i Round(__m256i sum) {
  return _mm256_srai_epi32(sum, kWeightBits + kLevelBits);
}

// Two neighbouring pixels of each of two target positions, the channels of both side by side.
template <size_t kChannels>
TFRKIT_AVX2 TFRKIT_INLINE __m256i LoadPairs(const int16_t* a, const int16_t* b) {
  const __m256i pixels = _mm256_inserti128_si256(_mm256_castsi128_si256(LoadHalf(a)), LoadHalf(b), 1);
  const __m256i order = kChannels == 3
                            ? _mm256_setr_epi8(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, -1, -1, -1, -1,  //
                                               0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, -1, -1, -1, -1)
                            : _mm256_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15,  //
                                               0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15);
  return _mm256_shuffle_epi8(pixels, order);
}

template <size_t kChannels>
TFRKIT_AVX2 TFRKIT_INLINE void StoreGroup(__m256i pixels, uint8_t* out) {
  if constexpr (kChannels == 4) {
    Store(out, pixels);
  } else {
    // The fourth byte of each pixel is dropped, and exactly 24 bytes are written.
    const __m256i packed = _mm256_shuffle_epi8(
        pixels, _mm256_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1,  //
                                 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1));
    const __m128i low = _mm256_castsi256_si128(packed);
    const __m128i high = _mm256_extracti128_si256(packed, 1);
    const int64_t next = _mm_cvtsi128_si64(high);
    const int32_t last = _mm_extract_epi32(high, 2);
    StoreHalf(out, low);
    std::memcpy(out + 12, &next, sizeof next);
    std::memcpy(out + 20, &last, sizeof last);
  }
}

// What pair `pair` of taps adds to positions `a` and `b`.
template <size_t kChannels>
TFRKIT_AVX2 TFRKIT_INLINE __m256i Weigh(const int16_t* row, uint32_t a, uint32_t b, const int16_t* weights) {
  return _mm256_madd_epi16(LoadPairs<kChannels>(row + a * kChannels, row + b * kChannels), Load(weights));
}

template <size_t kChannels>
TFRKIT_AVX2 TFRKIT_INLINE void BlendGroup(const int16_t* row, const uint32_t* at, const int16_t* weights,
                                          size_t num_pairs, uint8_t* out) {
  __m256i sum0 = _mm256_set1_epi32(1 << (kWeightBits + kLevelBits - 1)), sum1 = sum0, sum2 = sum0,
          sum3 = sum0;
  for (size_t pair = 0; pair < num_pairs; ++pair) {
    sum0 = _mm256_add_epi32(sum0, Weigh<kChannels>(row, at[0], at[4], weights));
    sum1 = _mm256_add_epi32(sum1, Weigh<kChannels>(row, at[1], at[5], weights + 16));
    sum2 = _mm256_add_epi32(sum2, Weigh<kChannels>(row, at[2], at[6], weights + 32));
    sum3 = _mm256_add_epi32(sum3, Weigh<kChannels>(row, at[3], at[7], weights + 48));
    row += 2 * kChannels;
    weights += 8 * kGroup;
  }
  const __m256i pixels01 = _mm256_packs_epi32(Round(sum0), Round(sum1));
  const __m256i pixels23 = _mm256_packs_epi32(Round(sum2), Round(sum3));
  StoreGroup<kChannels>(_mm256_packus_epi16(pixels01, pixels23), out);
}

template <size_t kChannels>
TFRKIT_AVX2 void BlendColumnsOf(const int16_t* row, const Axis& axis, uint8_t* out) {
  const size_t num_pairs = axis.num_taps / 2;
  const size_t num_whole = axis.count / kGroup;
  const int16_t* weights = axis.spread.data();
  for (size_t group = 0; group < num_whole; ++group) {
    BlendGroup<kChannels>(row, axis.starts.data() + group * kGroup, weights, num_pairs, out);
    weights += num_pairs * 8 * kGroup;
    out += kGroup * kChannels;
  }
  const size_t left = axis.count % kGroup;
  if (left == 0) return;
  std::array<uint32_t, kGroup> starts = {};  // missing ones have weight zero
  std::memcpy(starts.data(), axis.starts.data() + num_whole * kGroup, left * sizeof(uint32_t));
  std::array<uint8_t, kGroup * kChannels> pixels;
  BlendGroup<kChannels>(row, starts.data(), weights, num_pairs, pixels.data());
  std::memcpy(out, pixels.data(), left * kChannels);
}

// One channel: the two pixels of a pair are neighbours already, so a gather fetches a pair for each position.
TFRKIT_AVX2 TFRKIT_INLINE void BlendGrayGroup(const int16_t* row, const uint32_t* at, const int16_t* weights,
                                              size_t num_pairs, uint8_t* out) {
  const __m256i starts = Load(at);
  __m256i sum = _mm256_set1_epi32(1 << (kWeightBits + kLevelBits - 1));
  for (size_t pair = 0; pair < num_pairs; ++pair) {
    const void* from = row + 2 * pair;
    const __m256i pixels = _mm256_i32gather_epi32(static_cast<const int*>(from), starts, sizeof(int16_t));
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pixels, Load(weights + pair * 2 * kGroup)));
  }
  const __m256i words = _mm256_packs_epi32(Round(sum), _mm256_setzero_si256());
  const __m256i bytes = _mm256_packus_epi16(words, words);
  const int32_t low = _mm256_extract_epi32(bytes, 0);
  const int32_t high = _mm256_extract_epi32(bytes, 4);
  std::memcpy(out, &low, sizeof low);
  std::memcpy(out + 4, &high, sizeof high);
}

TFRKIT_AVX2 void BlendGrayColumns(const int16_t* row, const Axis& axis, uint8_t* out) {
  const size_t num_pairs = axis.num_taps / 2;
  const size_t num_whole = axis.count / kGroup;
  const int16_t* weights = axis.spread.data();
  for (size_t group = 0; group < num_whole; ++group) {
    BlendGrayGroup(row, axis.starts.data() + group * kGroup, weights, num_pairs, out + group * kGroup);
    weights += num_pairs * 2 * kGroup;
  }
  const size_t left = axis.count % kGroup;
  if (left == 0) return;
  std::array<uint32_t, kGroup> starts = {};
  std::memcpy(starts.data(), axis.starts.data() + num_whole * kGroup, left * sizeof(uint32_t));
  std::array<uint8_t, kGroup> pixels;
  BlendGrayGroup(row, starts.data(), weights, num_pairs, pixels.data());
  std::memcpy(out + num_whole * kGroup, pixels.data(), left);
}

TFRKIT_AVX2 void BlendColumnsAvx2(const int16_t* row, const Axis& axis, size_t channels, uint8_t* out) {
  if (channels == 1) return BlendGrayColumns(row, axis, out);
  if (channels == 3) return BlendColumnsOf<3>(row, axis, out);
  if (channels == 4) return BlendColumnsOf<4>(row, axis, out);
  BlendColumnsPortable(row, axis, channels, out);
}

constexpr std::array<ResizeVariant, 1> kVariants = {{
    {"avx2", [] { return GetX86Features().has_avx2; }, BlendRowsAvx2, BlendColumnsAvx2, true},
}};

}  // namespace

std::span<const ResizeVariant> X86Variants() { return kVariants; }

}  // namespace tfrkit::resize_internal

#else

namespace tfrkit::resize_internal {

std::span<const ResizeVariant> X86Variants() { return {}; }

}  // namespace tfrkit::resize_internal

#endif
