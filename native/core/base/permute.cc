#include "core/base/permute.h"

#include <utility>

namespace tfrkit {
namespace {

using Uint128 = unsigned __int128;

// SplitMix64 (Steele, Lea, Flood 2014): a counter through a mixer, so any seed is a good one.
class Stream {
 public:
  explicit Stream(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // Uniform in [0, bound), without bias: draws that would favour some values are thrown away.
  uint64_t Below(uint64_t bound) {
    Uint128 product = static_cast<Uint128>(Next()) * bound;
    if (static_cast<uint64_t>(product) < bound) {
      const uint64_t threshold = (0 - bound) % bound;  // 2^64 mod bound
      while (static_cast<uint64_t>(product) < threshold) product = static_cast<Uint128>(Next()) * bound;
    }
    return static_cast<uint64_t>(product >> 64);
  }

 private:
  uint64_t state_;
};

// A value in [0, bound) that depends on every bit of `half` and `round_key`.
uint64_t Mix(uint64_t half, uint64_t round_key, uint64_t bound) {
  uint64_t z = (half ^ round_key) * 0xff51afd7ed558ccdu;
  z = (z ^ (z >> 32)) * 0xc4ceb9fe1a85ec53u;
  z ^= z >> 29;
  return static_cast<uint64_t>((static_cast<Uint128>(z * 0x9e3779b97f4a7c15u) * bound) >> 64);
}

uint64_t AddModulo(uint64_t a, uint64_t b, uint64_t bound) {
  const uint64_t sum = a + b;  // both below 2^32 + 1
  return sum >= bound ? sum - bound : sum;
}

uint64_t SubtractModulo(uint64_t a, uint64_t b, uint64_t bound) { return a >= b ? a - b : a + bound - b; }

// The smallest r with r * r >= value, in integers: float rounding must not affect an order.
uint64_t CeilSquareRoot(uint64_t value) {
  uint64_t low = 0, high = uint64_t{1} << 32;
  while (low < high) {
    const uint64_t middle = low + (high - low) / 2;
    if (static_cast<Uint128>(middle) * middle >= value) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

}  // namespace

Permutation::Permutation(uint64_t size, uint64_t key) : size_(size) {
  // The size enters the seed, so that two sizes under one key are unrelated too.
  Stream stream(Stream(key).Next() ^ Stream(~size).Next());
  if (size <= kMaxTable) {
    for (size_t i = 0; i < size; ++i) items_[i] = static_cast<uint8_t>(i);
    for (size_t i = size; i > 1; --i) std::swap(items_[i - 1], items_[stream.Below(i)]);
    for (size_t i = 0; i < size; ++i) positions_[items_[i]] = static_cast<uint8_t>(i);
    return;
  }
  num_rows_ = CeilSquareRoot(size);
  num_columns_ = (size - 1) / num_rows_ + 1;
  for (uint64_t& round_key : round_keys_) round_key = stream.Next();
}

uint64_t Permutation::Forward(uint64_t cell) const {
  uint64_t row = cell / num_columns_;
  uint64_t column = cell % num_columns_;
  for (size_t round = 0; round < kNumRounds; round += 2) {
    row = AddModulo(row, Mix(column, round_keys_[round], num_rows_), num_rows_);
    column = AddModulo(column, Mix(row, round_keys_[round + 1], num_columns_), num_columns_);
  }
  return row * num_columns_ + column;
}

uint64_t Permutation::Backward(uint64_t cell) const {
  uint64_t row = cell / num_columns_;
  uint64_t column = cell % num_columns_;
  for (size_t round = kNumRounds; round > 0; round -= 2) {
    column = SubtractModulo(column, Mix(row, round_keys_[round - 1], num_columns_), num_columns_);
    row = SubtractModulo(row, Mix(column, round_keys_[round - 2], num_rows_), num_rows_);
  }
  return row * num_columns_ + column;
}

uint64_t Permutation::At(uint64_t position) const {
  if (size_ <= kMaxTable) return items_[position];
  // A cell past the end is on the cycle of one inside: following the cycle keeps this a permutation.
  uint64_t cell = Forward(position);
  while (cell >= size_) cell = Forward(cell);
  return cell;
}

uint64_t Permutation::PositionOf(uint64_t item) const {
  if (size_ <= kMaxTable) return positions_[item];
  uint64_t cell = Backward(item);
  while (cell >= size_) cell = Backward(cell);
  return cell;
}

}  // namespace tfrkit
