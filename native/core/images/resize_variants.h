// How the variants of the resize share their tables. Private to resize*.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/images/resize.h"

namespace tfrkit::resize_internal {

// Weights of one target position add up to this. 14 bits: an int16 holds 1.0, and a product of a weight with
// 255 levels of 128 still fits 30 bits.
inline constexpr int kWeightBits = 14;
inline constexpr int kOne = 1 << kWeightBits;
// Fraction bits between the two passes: 255 << 7 is the largest that fits an int16.
inline constexpr int kLevelBits = 7;

// Which source positions make each target position along one axis.
struct Axis {
  // Positions that are computed: a window of the whole axis.
  size_t count = 0;
  // Weights for each position: even, the same for all, padded with zeros.
  size_t num_taps = 0;
  // First source position of each, counted from `origin`.
  std::vector<uint32_t> starts;
  // count * num_taps.
  std::vector<int16_t> weights;
  // Source positions [origin, origin + extent) are used.
  size_t origin = 0;
  size_t extent = 0;
  // The weights in the layout of the wide variants; see SpreadWeights.
  std::vector<int16_t> spread;

  // Elements after the last used one that blend_columns may load but does not use.
  size_t Padding(size_t channels) const { return (num_taps + 8) * channels; }
};

void BlendRowsPortable(const uint8_t* const* rows, const int16_t* weights, size_t num_taps, size_t count,
                       int16_t* out);
void BlendColumnsPortable(const int16_t* row, const Axis& axis, size_t channels, uint8_t* out);

// Target positions that a wide variant computes in one step.
inline constexpr size_t kGroup = 8;

// Empty on other architectures.
std::span<const ResizeVariant> X86Variants();

}  // namespace tfrkit::resize_internal
