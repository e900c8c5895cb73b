// Weights of each axis, the two passes, and choosing the variant for this CPU.
#include "core/images/resize.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <vector>

#include "core/images/resize_variants.h"

namespace tfrkit {
namespace resize_internal {

void BlendRowsPortable(const uint8_t* const* rows, const int16_t* weights, size_t num_taps, size_t count,
                       int16_t* out) {
  constexpr int kShift = kWeightBits - kLevelBits;
  constexpr int32_t kHalf = 1 << (kShift - 1);
  // In blocks that stay in registers or the L1 cache for any number of taps.
  constexpr size_t kBlock = 64;
  std::array<int32_t, kBlock> sums;
  for (size_t start = 0; start < count; start += kBlock) {
    const size_t size = std::min(kBlock, count - start);
    sums.fill(kHalf);
    for (size_t tap = 0; tap < num_taps; ++tap) {
      const uint8_t* row = rows[tap] + start;
      const int32_t weight = weights[tap];
      for (size_t i = 0; i < size; ++i) sums[i] += row[i] * weight;
    }
    for (size_t i = 0; i < size; ++i) out[start + i] = static_cast<int16_t>(sums[i] >> kShift);
  }
}

template <size_t kChannels>
void BlendColumnsOf(const int16_t* row, const Axis& axis, uint8_t* out) {
  constexpr int kShift = kWeightBits + kLevelBits;
  for (size_t i = 0; i < axis.count; ++i) {
    const int16_t* source = row + axis.starts[i] * kChannels;
    const int16_t* weights = axis.weights.data() + i * axis.num_taps;
    std::array<int32_t, kChannels> sums;
    sums.fill(1 << (kShift - 1));
    for (size_t tap = 0; tap < axis.num_taps; ++tap) {
      for (size_t channel = 0; channel < kChannels; ++channel) {
        sums[channel] += source[tap * kChannels + channel] * weights[tap];
      }
    }
    for (size_t channel = 0; channel < kChannels; ++channel) {
      out[i * kChannels + channel] = static_cast<uint8_t>(sums[channel] >> kShift);
    }
  }
}

void BlendColumnsPortable(const int16_t* row, const Axis& axis, size_t channels, uint8_t* out) {
  switch (channels) {
    case 1:
      return BlendColumnsOf<1>(row, axis, out);
    case 2:
      return BlendColumnsOf<2>(row, axis, out);
    case 3:
      return BlendColumnsOf<3>(row, axis, out);
    default:
      return BlendColumnsOf<4>(row, axis, out);
  }
}

namespace {

// A triangle around a position on the source axis. Without std::ceil and std::floor: they are calls unless a
// compiler flag is set.
struct Triangle {
  double centre;
  double radius;
  double one_over_radius;

  double At(double position) const {
    return std::max(0.0, 1 - std::abs(position + 0.5 - centre) * one_over_radius);
  }

  // The first position, from 0, whose centre is inside.
  size_t First() const {
    const double least = centre - radius - 0.5;
    if (least <= 0) return 0;
    const size_t below = static_cast<size_t>(least);
    return static_cast<double>(below) < least ? below + 1 : below;
  }
  // One past the last, of `count`.
  size_t Stop(size_t count) const {
    return std::min(count, static_cast<size_t>(std::max(0.0, centre + radius - 0.5)) + 1);
  }
};

// Writes weights of source positions [first, stop) that sum to kOne; returns the number of leading zeros.
size_t WeighPositions(const Triangle& triangle, size_t first, size_t stop, int16_t* weights) {
  const double last = static_cast<double>(stop);
  double sum = 0;
  for (double position = static_cast<double>(first); position < last; ++position)
    sum += triangle.At(position);
  // Running sums are rounded, not weights: the weights sum to kOne exactly, so a plain area is unchanged, and
  // thousands of small weights do not all round to zero.
  const double scale = kOne / sum;
  double running = 0;
  int32_t given = 0;
  size_t num_leading = 0;
  for (double position = static_cast<double>(first); position < last; ++position) {
    running += triangle.At(position);
    const int32_t until = static_cast<int32_t>(running * scale + 0.5);
    num_leading += until == 0;
    *weights++ = static_cast<int16_t>(until - given);
    given = until;
  }
  return num_leading;
}

Axis MakeAxis(size_t num_source, size_t num_whole, size_t start, size_t count, bool antialias) {
  Axis axis;
  axis.count = count;
  const double scale = static_cast<double>(num_source) / static_cast<double>(num_whole);
  const double radius = antialias ? std::max(scale, 1.0) : 1.0;
  const size_t max_taps = std::min(num_source, static_cast<size_t>(2 * radius) + 2);
  std::vector<int16_t> found(count * max_taps);  // with leading zeros, which are removed later
  std::vector<uint32_t> num_leading(count);
  size_t stop = 0;
  axis.origin = num_source;
  axis.starts.resize(count);
  for (size_t i = 0; i < count; ++i) {
    const Triangle triangle{(static_cast<double>(start + i) + 0.5) * scale, radius, 1 / radius};
    const size_t first = triangle.First();
    int16_t* weights = found.data() + i * max_taps;
    size_t num_taps = std::min(triangle.Stop(num_source) - first, max_taps);
    num_leading[i] = static_cast<uint32_t>(WeighPositions(triangle, first, first + num_taps, weights));
    while (weights[num_taps - 1] == 0) --num_taps;
    axis.starts[i] = static_cast<uint32_t>(first) + num_leading[i];
    axis.num_taps = std::max(axis.num_taps, num_taps - num_leading[i]);
    axis.origin = std::min<size_t>(axis.origin, axis.starts[i]);
    stop = std::max(stop, first + num_taps);
  }
  axis.num_taps += axis.num_taps % 2;
  axis.extent = stop - axis.origin;
  axis.weights.resize(count * axis.num_taps);
  for (size_t i = 0; i < count; ++i) {
    axis.starts[i] -= static_cast<uint32_t>(axis.origin);
    const int16_t* from = found.data() + i * max_taps + num_leading[i];
    const size_t num_taps = std::min(axis.num_taps, max_taps - num_leading[i]);
    for (size_t tap = 0; tap < num_taps; ++tap) axis.weights[i * axis.num_taps + tap] = from[tap];
  }
  return axis;
}

// For the wide variants, per group of positions and pair of taps: both weights of each position side by side.
// With 3 or 4 channels once for each of four channels, and in the order 0 4 1 5 2 6 3 7, because each half of
// a register then holds one position.
void SpreadWeights(size_t channels, Axis* axis) {
  constexpr std::array<size_t, kGroup> kHalves = {0, 4, 1, 5, 2, 6, 3, 7};
  const size_t num_groups = (axis->count + kGroup - 1) / kGroup;
  const size_t num_copies = channels >= 3 ? 4 : 1;
  axis->spread.assign(num_groups * kGroup * axis->num_taps * num_copies, 0);
  int16_t* out = axis->spread.data();
  for (size_t group = 0; group < num_groups; ++group) {
    for (size_t tap = 0; tap < axis->num_taps; tap += 2) {
      for (size_t i = 0; i < kGroup; ++i) {
        const size_t position = group * kGroup + (channels >= 3 ? kHalves[i] : i);
        if (position < axis->count) {
          const int16_t* pair = axis->weights.data() + position * axis->num_taps + tap;
          for (size_t copy = 0; copy < num_copies; ++copy) std::copy_n(pair, 2, out + 2 * copy);
        }
        out += 2 * num_copies;
      }
    }
  }
}

struct AxisKey {
  size_t num_source = 0;
  size_t num_whole = 0;
  size_t start = 0;
  size_t count = 0;
  bool antialias = false;
  size_t spread_channels = 0;  // 0: without spread weights

  bool operator==(const AxisKey&) const = default;
};

// Cache of axes: images of a dataset have a few sizes, and making an axis takes a tenth of a resize. One per
// thread; the result of Find is valid until the next call.
class AxisCache {
 public:
  const Axis& Find(AxisKey key) {
    Entry& entry = entries_[key.num_source % entries_.size()];
    if (entry.key == key) return entry.axis;
    entry.key = {};  // if memory runs out
    entry.axis = MakeAxis(key.num_source, key.num_whole, key.start, key.count, key.antialias);
    if (key.spread_channels != 0) SpreadWeights(key.spread_channels, &entry.axis);
    if (entry.axis.weights.size() <= kMaxKept) entry.key = key;
    return entry.axis;
  }

 private:
  static constexpr size_t kMaxKept = 1 << 14;  // weights: 32 KB of them, four times that when spread
  struct Entry {
    AxisKey key;
    Axis axis;
  };
  std::array<Entry, 8> entries_;
};

void ResizeBilinear(const ResizeVariant& variant, const ImageView& source, const ImageSpan& target,
                    const ResizeOptions& options) {
  const size_t channels = source.channels;
  thread_local AxisCache row_cache, column_cache;
  const Axis& rows =
      row_cache.Find({source.height, options.height, options.top, target.height, options.antialias, 0});
  const Axis& columns = column_cache.Find({source.width, options.width, options.left, target.width,
                                           options.antialias, variant.takes_spread_weights ? channels : 0});
  const size_t used = columns.extent * channels;
  std::vector<int16_t> blended(used + columns.Padding(channels), 0);
  std::vector<const uint8_t*> taken(rows.num_taps);
  const uint8_t* first = source.bytes.data() + rows.origin * source.stride + columns.origin * channels;
  for (size_t y = 0; y < target.height; ++y) {
    for (size_t tap = 0; tap < rows.num_taps; ++tap) {
      // Taps of weight zero may be past the last row.
      const size_t row = std::min<size_t>(rows.starts[y] + tap, rows.extent - 1);
      taken[tap] = first + row * source.stride;
    }
    variant.blend_rows(taken.data(), rows.weights.data() + y * rows.num_taps, rows.num_taps, used,
                       blended.data());
    variant.blend_columns(blended.data(), columns, channels, target.bytes.data() + y * target.stride);
  }
}

// In single precision, like TensorFlow, so that ties between two source pixels resolve the same way.
size_t FindNearest(size_t position, size_t num_source, size_t num_whole) {
  const float scale = static_cast<float>(num_source) / static_cast<float>(num_whole);
  const float nearest = std::floor((static_cast<float>(position) + 0.5f) * scale);
  return std::min(static_cast<size_t>(nearest), num_source - 1);
}

void ResizeNearest(const ImageView& source, const ImageSpan& target, const ResizeOptions& options) {
  const size_t channels = source.channels;
  std::vector<size_t> offsets(target.width);
  for (size_t x = 0; x < target.width; ++x) {
    offsets[x] = FindNearest(options.left + x, source.width, options.width) * channels;
  }
  size_t previous = source.height;
  for (size_t y = 0; y < target.height; ++y) {
    uint8_t* out = target.bytes.data() + y * target.stride;
    const size_t nearest = FindNearest(options.top + y, source.height, options.height);
    if (nearest == previous) {
      std::memcpy(out, out - target.stride, target.width * channels);
      continue;
    }
    previous = nearest;
    const uint8_t* row = source.bytes.data() + nearest * source.stride;
    for (const size_t offset : offsets) {
      for (size_t channel = 0; channel < channels; ++channel) *out++ = row[offset + channel];
    }
  }
}

// Whether every row is inside its bytes.
template <class Image>
bool IsSound(const Image& image) {
  if (image.height == 0 || image.width == 0 || image.channels == 0) return false;
  if (image.height > kMaxImageSide || image.width > kMaxImageSide || image.channels > kMaxImageChannels) {
    return false;
  }
  const uint64_t row = image.width * image.channels;
  if (image.stride < row) return false;
  uint64_t before_last, stop;
  return CheckedMul(image.height - 1, image.stride, &before_last) && CheckedAdd(before_last, row, &stop) &&
         stop <= image.bytes.size();
}

bool IsWindow(size_t start, size_t count, size_t whole) {
  return whole <= kMaxImageSide && count <= whole && start <= whole - count;
}

struct VariantList {
  std::array<ResizeVariant, 4> variants;
  size_t size = 0;
};

VariantList ListVariants() {
  VariantList list;
  list.variants[list.size++] = {"portable", [] { return true; }, BlendRowsPortable, BlendColumnsPortable,
                                false};
  for (const auto& variant : X86Variants()) list.variants[list.size++] = variant;
  return list;
}

const ResizeVariant& FastestVariant() {
  static const ResizeVariant* const fastest = [] {
    const auto variants = ResizeVariants();
    size_t index = variants.size() - 1;
    while (!variants[index].is_supported()) --index;  // ends at "portable"
    return &variants[index];
  }();
  return *fastest;
}

}  // namespace
}  // namespace resize_internal

std::span<const ResizeVariant> ResizeVariants() {
  static const resize_internal::VariantList list = resize_internal::ListVariants();
  return {list.variants.data(), list.size};
}

bool ResizeImageWith(const ResizeVariant& variant, const ImageView& source, const ImageSpan& target,
                     const ResizeOptions& options) {
  using namespace resize_internal;
  if (!IsSound(source) || !IsSound(target) || source.channels != target.channels) return false;
  if (!IsWindow(options.top, target.height, options.height)) return false;
  if (!IsWindow(options.left, target.width, options.width)) return false;
  if (options.filter == Filter::kNearest) {
    ResizeNearest(source, target, options);
  } else {
    ResizeBilinear(variant, source, target, options);
  }
  return true;
}

bool ResizeImage(const ImageView& source, const ImageSpan& target, const ResizeOptions& options) {
  return ResizeImageWith(resize_internal::FastestVariant(), source, target, options);
}

}  // namespace tfrkit
