// What statistics say of a block of values, in one visit while the block is in the cache: range, moments,
// frequent values, and what the sketches of different values and of quantiles take in.
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

// How much is kept of a block.
struct SketchSizes {
  size_t max_values;  // different values that are counted one by one
  size_t num_hashes;  // smallest hashes of different values
  size_t max_ranks;   // values that stand for all, evenly spaced in ascending order
};

// Values with their counts, in ascending order.
template <class T>
struct ValueCounts {
  PoolVector<T> values;
  PoolVector<int64_t> counts;
  // All values. Otherwise there were more than `max_values`: then these are the ones that come more than
  // once, and each count is one too low.
  bool is_whole = true;
};

// Figures of numbers. Without values all is zero and empty.
template <class T>
struct NumberFigures {
  size_t num_nan = 0;
  size_t num_finite = 0;
  size_t zeros = 0;        // of either sign
  bool has_range = false;  // a number that is not NaN
  T low{}, high{};
  double mean = 0;       // of the finite ones
  double m2 = 0;         // sum of the squares of what a finite number is off the mean
  ValueCounts<T> table;  // without NaN; zero has no sign there
  // Only where the table is not whole:
  PoolVector<T> ranks;  // each stands for 2^level values
  int level = 0;
  PoolVector<uint64_t> hashes;  // the smallest ones of different values, in ascending order
};

// Figures of bytes values, which are told apart by their `HashValue`.
struct BytesFigures {
  NumberFigures<int64_t> sizes;
  ValueCounts<uint64_t> table;
  PoolVector<int64_t> rows;     // the first one that has each value of the table
  PoolVector<uint64_t> hashes;  // as above
  PoolVector<int64_t> images;   // rows that begin as an image does
};

// One number scattered over 64 bits (the last steps of splitmix64); different ones stay different.
inline uint64_t ScatterKey(uint64_t key) {
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9u;
  key = (key ^ (key >> 27)) * 0x94d049bb133111ebu;
  return key ^ (key >> 31);
}

// Hashes above `limit` are not wanted: whoever merges them would drop them. False when memory is exhausted.
[[nodiscard]] bool SummarizeInts(std::span<const int64_t> values, const SketchSizes& sizes, uint64_t limit,
                                 NumberFigures<int64_t>* figures);
[[nodiscard]] bool SummarizeFloats(std::span<const float> values, const SketchSizes& sizes, uint64_t limit,
                                   NumberFigures<float>* figures);
// Value i is data[offsets[i], offsets[i + 1]). REQUIRES: AreOffsetsInside(offsets, data.size()).
[[nodiscard]] bool SummarizeBytes(ByteView data, std::span<const int64_t> offsets, const SketchSizes& sizes,
                                  uint64_t limit, BytesFigures* figures);

}  // namespace tfrkit
