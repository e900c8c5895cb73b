// The plan of an epoch: batches, ranks, shuffles and slices as arithmetic, against lists.
#include <algorithm>
#include <vector>

#include "engine/row_order.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/input.h"

namespace tfrkit::fuzz {
namespace {

using Rows = std::vector<uint64_t>;

BatchPlan TakePlan(Input* input) {
  BatchPlan plan;
  plan.size = input->Byte();
  plan.world_size = 1 + input->Byte() % 4u;
  plan.batch_size = plan.world_size * (1 + input->Byte() % 16u);
  plan.start = plan.size == 0 ? 0 : input->Byte() % (plan.size + 1);
  const uint8_t choices = input->Byte();
  plan.pads = (choices & 1) != 0;
  // As BatchPlan.num_batches of orders/plan.py.
  const uint64_t num_rows = plan.size - plan.start, rest = num_rows % plan.batch_size;
  const bool is_dropped = (choices & 2) != 0 || rest == 0 || (!plan.pads && rest < plan.world_size);
  plan.num_batches = num_rows / plan.batch_size + !is_dropped;
  return plan;
}

// All ranks of a batch together are its rows, with a few from the start of the epoch or without the last
// ones.
void CheckPlan(BatchPlan plan) {
  for (uint64_t number = 0; number < plan.num_batches; ++number) {
    const uint64_t begin = plan.start + number * plan.batch_size;
    const uint64_t end = std::min(begin + plan.batch_size, plan.size);
    Rows all;
    size_t share = 0;
    for (plan.rank = 0; plan.rank < plan.world_size; ++plan.rank) {
      Rows rows;
      Require(plan.Rows(number, &rows), "a batch of the plan has rows");
      Require(plan.rank == 0 || rows.size() == share, "ranks get the same number of rows");
      share = rows.size();
      all.insert(all.end(), rows.begin(), rows.end());
    }
    for (size_t i = 0; i < all.size(); ++i) {
      Require(all[i] < plan.size, "a row lies in the epoch");
      Require(begin + i >= end || all[i] == begin + i, "ranks follow each other");
    }
    const uint64_t num_rows = end - begin;
    Require(plan.pads ? all.size() >= num_rows && all.size() < num_rows + plan.world_size
                      : all.size() <= num_rows && num_rows < all.size() + plan.world_size,
            "a batch is evened out by less than a row for each rank");
    // A worker that makes every third batch makes the same ones.
    BatchPlan worker = plan;
    worker.rank = 0;
    worker.stride = 3;
    worker.first = number % 3;
    Rows one, other;
    worker.num_batches = (plan.num_batches - worker.first + 2) / 3;
    plan.rank = 0;
    Require(plan.Rows(number, &one) && worker.Rows(number / 3, &other) && one == other,
            "a worker makes the batches of the plan");
  }
  Rows rows;
  Require(!plan.Rows(plan.num_batches, &rows), "there is nothing after the last batch");
}

void CheckPermutation(uint64_t size, uint64_t key, uint64_t position) {
  const Permutation permutation(size, key);
  position %= size;
  const uint64_t item = permutation.At(position);
  Require(item < size && permutation.PositionOf(item) == position, "an item is at its position");
  if (size > 300) return;
  std::vector<bool> is_taken(size);
  for (uint64_t i = 0; i < size; ++i) {
    const uint64_t at = permutation.At(i);
    Require(at < size && !is_taken[at], "every item comes once");
    is_taken[at] = true;
  }
}

// A chain of steps is applied to a list of positions, one position at a time.
void CheckOrder(Input* input) {
  RowOrder order;
  std::vector<Rows> lists(4);
  Rows positions;
  for (size_t i = 0; i < 8; ++i) positions.push_back(input->Byte() % 32u);
  Rows expected = positions;
  bool is_inside = true;
  for (Rows& list : lists) {
    const uint8_t choices = input->Byte();
    if (choices % 4 == 0) break;
    if (choices % 4 == 1) {
      const auto start = static_cast<int64_t>(input->AnySize()),
                 step = static_cast<int64_t>(input->AnySize());
      order.AddSlice(start, step);
      for (uint64_t& row : expected) row = static_cast<uint64_t>(start) + row * static_cast<uint64_t>(step);
    } else if (choices % 4 == 2) {
      const uint64_t size = 1 + input->Number(2), key = input->Byte();
      order.AddPermutation(size, key);
      const Permutation permutation(size, key);
      for (uint64_t& row : expected) {
        is_inside &= row < size;
        if (row < size) row = permutation.At(row);
      }
    } else {
      list.resize(choices / 4u);
      for (size_t i = 0; i < list.size(); ++i) list[i] = (i * choices) % 40;
      order.AddList(list);
      for (uint64_t& row : expected) {
        is_inside &= row < list.size();
        if (row < list.size()) row = list[row];
      }
    }
    if (!is_inside) break;
  }
  Require(order.Map(positions) == is_inside, "a position outside of a step is refused");
  if (is_inside) Require(positions == expected, "a chain of steps is one after the other");
}

}  // namespace

int FuzzOne(ByteView bytes) {
  Input input(bytes);
  CheckPlan(TakePlan(&input));
  const uint64_t size = input.AnySize(), key = input.Number(2);
  CheckPermutation(size == 0 ? 1 : size, key, input.AnySize());
  CheckOrder(&input);
  return 0;
}

}  // namespace tfrkit::fuzz
