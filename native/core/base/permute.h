// A keyed permutation of [0, size): the order of a global shuffle, with no array in memory.
//
// The order is stable: the same (size, key) gives the same permutation in every version and on
// every machine. Literal values are pinned in the tests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tfrkit {

// Up to kMaxTable items the permutation is drawn outright, each order equally likely, and kept as a
// table. Above, it is a Feistel network on a rows x columns grid that holds [0, size) with less than one
// spare row; the few grid cells past the end are skipped by cycle walking. Not for secrets: good mixing, but
// no cryptographic claim.
class Permutation {
 public:
  // REQUIRES: size >= 1.
  Permutation(uint64_t size, uint64_t key);

  // The item at `position`. REQUIRES: position < size. Any thread.
  uint64_t At(uint64_t position) const;

  // The position of `item`; the inverse of At. REQUIRES: item < size. Any thread.
  uint64_t PositionOf(uint64_t item) const;

  uint64_t size() const { return size_; }

 private:
  static constexpr uint64_t kMaxTable = 256;
  static constexpr size_t kNumRounds = 8;  // even: rows and columns take turns

  uint64_t Forward(uint64_t cell) const;
  uint64_t Backward(uint64_t cell) const;

  uint64_t size_;
  uint64_t num_rows_ = 1;
  uint64_t num_columns_ = 1;
  std::array<uint64_t, kNumRounds> round_keys_ = {};
  std::array<uint8_t, kMaxTable> items_ = {};
  std::array<uint8_t, kMaxTable> positions_ = {};
};

}  // namespace tfrkit
