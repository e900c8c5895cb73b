// Statistics of a block of values, in one pass while the block is in the cache: range, moments, frequent
// values, and input for the sketches of distinct values and quantiles.
//
// The same values in the same order give the same figures, bit for bit. Calls may run in parallel. A block
// has fewer than 2^32 values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/base/bytes.h"
#include "core/base/pool.h"

namespace tfrkit {

// Limits per block.
struct SketchSizes {
  size_t max_values;  // distinct values that are counted individually
  size_t num_hashes;  // smallest hashes of distinct values
  size_t max_ranks;   // samples, evenly spaced in ascending order
};

// Values with their counts, in ascending order.
template <class T>
struct ValueCounts {
  PoolVector<T> values;
  PoolVector<int64_t> counts;
  // True: all values. False: there were more than `max_values`; the table holds the repeated ones, and each
  // count is one too low.
  bool is_whole = true;
};

// Figures of numbers. Zero and empty without values.
template <class T>
struct NumberFigures {
  size_t num_nan = 0;
  size_t num_finite = 0;
  size_t zeros = 0;        // of either sign
  bool has_range = false;  // a number that is not NaN
  T low{}, high{};
  double mean = 0;       // of the finite ones
  double m2 = 0;         // sum of squared deviations of finite numbers from the mean
  ValueCounts<T> table;  // without NaN; zero has no sign there
  // Only if the table is incomplete:
  PoolVector<T> ranks;  // each represents 2^level values
  int level = 0;
  PoolVector<uint64_t> hashes;  // the smallest of distinct values, ascending
};

// Figures of bytes values, which are identified by their `HashValue`.
struct BytesFigures {
  NumberFigures<int64_t> sizes;
  ValueCounts<uint64_t> table;
  PoolVector<int64_t> rows;     // the first one that has each value of the table
  PoolVector<uint64_t> hashes;  // as above
  PoolVector<int64_t> images;   // rows that begin with an image signature
};

// A bijective mix of 64 bits (the finalizer of splitmix64).
inline uint64_t ScatterKey(uint64_t key) {
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
  key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
  return key ^ (key >> 31);
}

// Hashes above `limit` are left out: merging would drop them. False when memory is exhausted.
[[nodiscard]] bool SummarizeInts(std::span<const int64_t> values, const SketchSizes& sizes, uint64_t limit,
                                 NumberFigures<int64_t>* figures);
[[nodiscard]] bool SummarizeFloats(std::span<const float> values, const SketchSizes& sizes, uint64_t limit,
                                   NumberFigures<float>* figures);
// Value i is data[offsets[i], offsets[i + 1]). REQUIRES: AreOffsetsInside(offsets, data.size()).
[[nodiscard]] bool SummarizeBytes(ByteView data, std::span<const int64_t> offsets, const SketchSizes& sizes,
                                  uint64_t limit, BytesFigures* figures);

}  // namespace tfrkit
