#include "core/images/bicubic.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/base/cpu_x86.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define TFRKIT_HAS_AVX2 1
#define TFRKIT_AVX2 __attribute__((target("avx2")))
#endif

namespace tfrkit {

namespace {

// 255 times weights that sum to one, with the overshoot of the cubic, fits 32 bits with two to spare.
constexpr int kWeightBits = 32 - 8 - 2;
constexpr int32_t kHalf = 1 << (kWeightBits - 1);
constexpr double kSupport = 2.0;
// Weights are cut into two signed halves of 16 bits, because one instruction multiplies and adds pairs of
// those. The lower half is unsigned.
constexpr int kLowBits = 15;
// The vector kernel for columns processes this many taps per step, from one load of this many bytes.
constexpr size_t kGroup = 4;
constexpr size_t kLoadNbytes = 16;

// Which source positions make each target position, and with what weights.
struct Taps {
  size_t max_taps = 0;
  std::vector<uint32_t> starts;
  std::vector<uint32_t> counts;
  std::vector<int32_t> weights;  // max_taps per position; zero after the first `counts`
  // The same in groups of kGroup taps: four lower halves, then four upper ones. num_groups per position.
  size_t num_groups = 0;
  std::vector<int16_t> groups;
};

double Cubic(double x) {
  constexpr double a = -0.5;
  x = std::fabs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0.0;
}

Taps MakeTaps(size_t num_source, size_t num_target) {
  Taps taps;
  const double scale = static_cast<double>(num_source) / static_cast<double>(num_target);
  const double filter_scale = std::max(scale, 1.0);
  const double support = kSupport * filter_scale;
  taps.max_taps = static_cast<size_t>(std::ceil(support)) * 2 + 1;
  taps.starts.resize(num_target);
  taps.counts.resize(num_target);
  taps.weights.assign(num_target * taps.max_taps, 0);
  std::vector<double> exact(taps.max_taps);
  for (size_t position = 0; position < num_target; ++position) {
    const double center = (static_cast<double>(position) + 0.5) * scale;
    const auto first = static_cast<int64_t>(std::max(0.0, std::trunc(center - support + 0.5)));
    const auto stop =
        std::min(static_cast<int64_t>(num_source), static_cast<int64_t>(std::trunc(center + support + 0.5)));
    const auto count = static_cast<size_t>(stop - first);
    double sum = 0.0;
    for (size_t tap = 0; tap < count; ++tap) {
      const auto place = static_cast<double>(static_cast<int64_t>(tap) + first);
      exact[tap] = Cubic((place - center + 0.5) / filter_scale);
      sum += exact[tap];
    }
    taps.starts[position] = static_cast<uint32_t>(first);
    taps.counts[position] = static_cast<uint32_t>(count);
    for (size_t tap = 0; tap < count; ++tap) {
      const double weight = (sum != 0.0 ? exact[tap] / sum : exact[tap]) * (1 << kWeightBits);
      taps.weights[position * taps.max_taps + tap] =
          static_cast<int32_t>(weight < 0 ? weight - 0.5 : weight + 0.5);
    }
  }
  // Most positions, often all, have fewer taps than the maximum.
  const size_t widest = *std::max_element(taps.counts.begin(), taps.counts.end());
  for (size_t position = 1; position < num_target && widest < taps.max_taps; ++position) {
    const auto from = taps.weights.begin() + static_cast<std::ptrdiff_t>(position * taps.max_taps);
    std::copy_n(from, widest, taps.weights.begin() + static_cast<std::ptrdiff_t>(position * widest));
  }
  taps.max_taps = widest;
  taps.num_groups = (widest + kGroup - 1) / kGroup;
  taps.groups.assign(num_target * taps.num_groups * 2 * kGroup, 0);
  for (size_t position = 0; position < num_target; ++position) {
    int16_t* groups = taps.groups.data() + position * taps.num_groups * 2 * kGroup;
    for (size_t tap = 0; tap < widest; ++tap) {
      const int32_t weight = taps.weights[position * widest + tap];
      int16_t* halves = groups + tap / kGroup * 2 * kGroup + tap % kGroup;
      halves[0] = static_cast<int16_t>(weight & ((1 << kLowBits) - 1));
      halves[kGroup] = static_cast<int16_t>(weight >> kLowBits);
    }
  }
  return taps;
}

// Cached taps of the two latest sizes: images of a dataset often have one size. Valid until the second next
// call of this thread.
const Taps& FindTaps(size_t num_source, size_t num_target) {
  struct Kept {
    size_t num_source = 0, num_target = 0;
    Taps taps;
  };
  thread_local Kept kept[2];
  thread_local size_t oldest = 0;
  for (const Kept& one : kept) {
    if (one.num_source == num_source && one.num_target == num_target) return one.taps;
  }
  Kept& replaced = kept[oldest];
  oldest = 1 - oldest;
  replaced.num_source = 0;
  replaced.taps = MakeTaps(num_source, num_target);
  replaced.num_source = num_source;
  replaced.num_target = num_target;
  return replaced.taps;
}

uint8_t Clip(int32_t sum) { return static_cast<uint8_t>(std::clamp(sum >> kWeightBits, 0, 255)); }

// One row to another width; channel c of position x goes to out[c * count + x]: planes make the row pass and
// the gray conversion fastest. kGroup taps and kLoadNbytes bytes after the row must be readable: every
// position uses the same number of taps, padded with weight zero, because a varying count is an unpredictable
// branch.
using BlendColumns = void (*)(const uint8_t* row, const Taps& taps, size_t channels, size_t count,
                              uint8_t* out);

// `count` bytes of one target row from `num_taps` rows, `stride` bytes apart.
using BlendRows = void (*)(const uint8_t* rows, size_t stride, const int32_t* weights, size_t num_taps,
                           size_t count, uint8_t* out);

void BlendColumnsPortable(const uint8_t* row, const Taps& taps, size_t channels, size_t count, uint8_t* out) {
  const int32_t* weights = taps.weights.data();
  for (size_t position = 0; position < count; ++position, weights += taps.max_taps) {
    const uint8_t* from = row + channels * taps.starts[position];
    for (size_t channel = 0; channel < channels; ++channel) {
      int32_t sum = kHalf;
      for (size_t tap = 0; tap < taps.counts[position]; ++tap) {
        sum += from[channels * tap + channel] * weights[tap];
      }
      out[channel * count + position] = Clip(sum);
    }
  }
}

void BlendRowsPortable(const uint8_t* rows, size_t stride, const int32_t* weights, size_t num_taps,
                       size_t count, uint8_t* out) {
  for (size_t i = 0; i < count; ++i) {
    int32_t sum = kHalf;
    for (size_t tap = 0; tap < num_taps; ++tap) sum += rows[tap * stride + i] * weights[tap];
    out[i] = Clip(sum);
  }
}

#ifdef TFRKIT_HAS_AVX2

// Where the bytes of four taps go: as 16-bit numbers, the two of a pair side by side for each channel. The
// first pair is made in the lower half of the register, the second in the upper one.
TFRKIT_AVX2 inline __m256i PlaceTaps(size_t channels) {
  if (channels == 1) {
    return _mm256_setr_epi8(0, -1, 1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1,  //
                            2, -1, 3, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1);
  }
  return _mm256_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1,  //
                          6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1);
}

// The channels of one position before clipping, a 32-bit number each.
TFRKIT_AVX2 inline __m128i BlendPosition(const uint8_t* from, const int16_t* groups, size_t num_groups,
                                         size_t channels, __m256i places) {
  const __m256i first_pairs = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
  const __m256i last_pairs = _mm256_setr_epi32(2, 2, 2, 2, 3, 3, 3, 3);
  __m256i low = _mm256_setzero_si256(), high = low;
  for (size_t group = 0; group < num_groups; ++group, from += kGroup * channels, groups += 2 * kGroup) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
    const __m256i pixels = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(bytes), places);
    const __m256i halves = _mm256_castsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(groups)));
    low = _mm256_add_epi32(low, _mm256_madd_epi16(pixels, _mm256_permutevar8x32_epi32(halves, first_pairs)));
    high = _mm256_add_epi32(high, _mm256_madd_epi16(pixels, _mm256_permutevar8x32_epi32(halves, last_pairs)));
  }
  const __m256i sums = _mm256_add_epi32(low, _mm256_slli_epi32(high, kLowBits));
  const __m128i sum = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
  return _mm_srai_epi32(_mm_add_epi32(sum, _mm_set1_epi32(kHalf)), kWeightBits);
}

TFRKIT_AVX2 void BlendColumnsAvx2(const uint8_t* row, const Taps& taps, size_t channels, size_t count,
                                  uint8_t* out) {
  const __m256i places = PlaceTaps(channels);
  const __m128i by_channel = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const size_t num_groups = taps.num_groups;
  const int16_t* groups = taps.groups.data();
  const auto blend = [&](size_t position) TFRKIT_AVX2 {
    return BlendPosition(row + channels * taps.starts[position], groups + position * num_groups * 2 * kGroup,
                         num_groups, channels, places);
  };
  size_t position = 0;
  for (; position + 4 <= count; position += 4) {
    // Packing saturates, which is the clipping.
    const __m128i first = _mm_packus_epi32(blend(position), blend(position + 1));
    const __m128i second = _mm_packus_epi32(blend(position + 2), blend(position + 3));
    const __m128i levels = _mm_shuffle_epi8(_mm_packus_epi16(first, second), by_channel);
    alignas(16) uint8_t planes[16];
    _mm_store_si128(reinterpret_cast<__m128i*>(planes), levels);
    for (size_t channel = 0; channel < channels; ++channel) {
      std::memcpy(out + channel * count + position, planes + 4 * channel, 4);
    }
  }
  for (; position < count; ++position) {
    const __m128i words = _mm_packus_epi32(blend(position), blend(position));
    auto packed = static_cast<uint32_t>(_mm_cvtsi128_si32(_mm_packus_epi16(words, words)));
    for (size_t channel = 0; channel < channels; ++channel, packed >>= 8) {
      out[channel * count + position] = static_cast<uint8_t>(packed);
    }
  }
}

TFRKIT_AVX2 void BlendRowsAvx2(const uint8_t* rows, size_t stride, const int32_t* weights, size_t num_taps,
                               size_t count, uint8_t* out) {
  size_t start = 0;
  for (; start + 32 <= count; start += 32) {
    __m256i sums[4];
    for (auto& sum : sums) sum = _mm256_set1_epi32(kHalf);
    const uint8_t* row = rows + start;
    for (size_t tap = 0; tap < num_taps; ++tap, row += stride) {
      const __m256i weight = _mm256_set1_epi32(weights[tap]);
      for (size_t eight = 0; eight < 4; ++eight) {
        const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(row + 8 * eight));
        sums[eight] = _mm256_add_epi32(sums[eight], _mm256_mullo_epi32(_mm256_cvtepu8_epi32(bytes), weight));
      }
    }
    for (auto& sum : sums) sum = _mm256_srai_epi32(sum, kWeightBits);
    // Packs work within halves of 16 bytes; the permutation puts the groups of four back in order.
    const __m256i low = _mm256_packus_epi32(sums[0], sums[1]);
    const __m256i high = _mm256_packus_epi32(sums[2], sums[3]);
    const __m256i mixed = _mm256_packus_epi16(low, high);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + start), _mm256_permutevar8x32_epi32(mixed, order));
  }
  BlendRowsPortable(rows + start, stride, weights, num_taps, count - start, out + start);
}

#endif  // TFRKIT_HAS_AVX2

using Merge = void (*)(const uint8_t* planes, size_t count, uint8_t* out);

inline __attribute__((always_inline)) void ToGray(const uint8_t* __restrict planes, size_t count,
                                                  uint8_t* __restrict out) {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t sum =
        planes[i] * 19595u + planes[count + i] * 38470u + planes[2 * count + i] * 7471u + 0x8000u;
    out[i] = static_cast<uint8_t>(sum >> 16);
  }
}

void ToGrayPortable(const uint8_t* planes, size_t count, uint8_t* out) { ToGray(planes, count, out); }

#ifdef TFRKIT_HAS_AVX2
TFRKIT_AVX2 void ToGrayAvx2(const uint8_t* planes, size_t count, uint8_t* out) { ToGray(planes, count, out); }
#endif

// An image that keeps its size: copied, or made gray pixel by pixel.
void CopyPixels(const ImageView& source, const ImageSpan& target) {
  for (size_t y = 0; y < source.height; ++y) {
    const uint8_t* from = source.bytes.data() + y * source.stride;
    uint8_t* out = target.bytes.data() + y * target.stride;
    if (source.channels == target.channels) {
      std::memcpy(out, from, source.width * source.channels);
      continue;
    }
    for (size_t x = 0; x < source.width; ++x, from += 3) {
      out[x] = static_cast<uint8_t>((from[0] * 19595u + from[1] * 38470u + from[2] * 7471u + 0x8000u) >> 16);
    }
  }
}

void ToPixels(const uint8_t* planes, size_t count, uint8_t* out) {
  for (size_t i = 0; i < count; ++i) {
    for (size_t channel = 0; channel < 3; ++channel) out[3 * i + channel] = planes[channel * count + i];
  }
}

// Every source row resized to the target width, as planes.
std::vector<uint8_t> ResizeColumns(const ImageView& source, size_t width, BlendColumns blend) {
  const size_t channels = source.channels;
  const size_t row_nbytes = width * channels;
  std::vector<uint8_t> planes(source.height * row_nbytes);
  if (width == source.width) {
    for (size_t y = 0; y < source.height; ++y) {
      const uint8_t* row = source.bytes.data() + y * source.stride;
      uint8_t* out = planes.data() + y * row_nbytes;
      for (size_t x = 0; x < width; ++x) {
        for (size_t channel = 0; channel < channels; ++channel) out[channel * width + x] = *row++;
      }
    }
    return planes;
  }
  const Taps& taps = FindTaps(source.width, width);
  std::vector<uint8_t> padded((source.width + taps.num_groups * kGroup) * channels + kLoadNbytes);
  for (size_t y = 0; y < source.height; ++y) {
    std::memcpy(padded.data(), source.bytes.data() + y * source.stride, source.width * channels);
    blend(padded.data(), taps, channels, width, planes.data() + y * row_nbytes);
  }
  return planes;
}

template <class Image>
bool HoldsTogether(const Image& image) {
  if (image.height == 0 || image.height > kMaxImageSide) return false;
  if (image.width == 0 || image.width > kMaxImageSide) return false;
  if (image.channels != 1 && image.channels != 3) return false;
  const size_t row = image.width * image.channels;
  uint64_t before_last, stop;
  return image.stride >= row && CheckedMul(image.height - 1, image.stride, &before_last) &&
         CheckedAdd(before_last, row, &stop) && stop <= image.bytes.size();
}

}  // namespace

bool ResizeBicubic(const ImageView& source, const ImageSpan& target) {
  if (!HoldsTogether(source) || !HoldsTogether(target) || target.channels > source.channels) return false;
  if (source.height == target.height && source.width == target.width) {
    CopyPixels(source, target);
    return true;
  }
  BlendColumns blend_columns = BlendColumnsPortable;
  BlendRows blend_rows = BlendRowsPortable;
  Merge to_gray = ToGrayPortable;
#ifdef TFRKIT_HAS_AVX2
  if (GetX86Features().has_avx2) {
    blend_columns = BlendColumnsAvx2;
    blend_rows = BlendRowsAvx2;
    to_gray = ToGrayAvx2;
  }
#endif
  const Merge merge = target.channels == 3 ? ToPixels : to_gray;
  const bool is_one_plane = source.channels == 1;
  const size_t row_nbytes = target.width * source.channels;
  const std::vector<uint8_t> planes = ResizeColumns(source, target.width, blend_columns);
  const bool keeps_rows = source.height == target.height;
  static const Taps kNone;
  const Taps& rows = keeps_rows ? kNone : FindTaps(source.height, target.height);
  std::vector<uint8_t> blended(row_nbytes);
  for (size_t y = 0; y < target.height; ++y) {
    uint8_t* out = target.bytes.data() + y * target.stride;
    const uint8_t* row = planes.data() + y * row_nbytes;
    if (!keeps_rows) {
      uint8_t* place = is_one_plane ? out : blended.data();
      blend_rows(planes.data() + rows.starts[y] * row_nbytes, row_nbytes,
                 rows.weights.data() + y * rows.max_taps, rows.counts[y], row_nbytes, place);
      row = place;
    }
    if (!is_one_plane) {
      merge(row, target.width, out);
    } else if (keeps_rows) {
      std::memcpy(out, row, row_nbytes);
    }
  }
  return true;
}

}  // namespace tfrkit
