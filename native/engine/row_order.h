// Which record stands at which position of an epoch, and which positions make which batch: as arithmetic.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "core/base/permute.h"

namespace tfrkit {

// A chain of steps from positions of an epoch to record numbers. Immutable once built; any thread.
class RowOrder {
 public:
  // Position p becomes start + p * step.
  void AddSlice(int64_t start, int64_t step) { steps_.push_back(Slice{start, step}); }
  // REQUIRES: size >= 1.
  void AddPermutation(uint64_t size, uint64_t key) { steps_.push_back(Permutation(size, key)); }
  // Position p becomes items[p]. `items` must outlive the order.
  void AddList(std::span<const uint64_t> items) { steps_.push_back(items); }

  // Replaces every position by what stands there; false where one lies outside of a step.
  [[nodiscard]] bool Map(std::span<uint64_t> positions) const;

 private:
  struct Slice {
    int64_t start, step;
  };
  using List = std::span<const uint64_t>;

  std::vector<std::variant<Slice, Permutation, List>> steps_;
};

// Cuts the rows [start, size) of an epoch into batches and gives every rank its slice: the twin of Plan in
// orders/plan.py. Batch `number` here is batch first + number * stride of the plan.
struct BatchPlan {
  uint64_t size = 0;
  uint64_t start = 0;
  uint64_t batch_size = 1;
  uint64_t rank = 0;
  uint64_t world_size = 1;
  bool pads = true;  // evens the last batch out with rows from the start; else rows are left out
  uint64_t num_batches = 0;
  uint64_t first = 0;
  uint64_t stride = 1;

  // The positions of batch `number`; false past the last one.
  [[nodiscard]] bool Rows(uint64_t number, std::vector<uint64_t>* positions) const;
};

}  // namespace tfrkit
