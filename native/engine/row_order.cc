#include "engine/row_order.h"

#include <algorithm>

namespace tfrkit {

bool RowOrder::Map(std::span<uint64_t> positions) const {
  for (const auto& step : steps_) {
    if (const Slice* slice = std::get_if<Slice>(&step)) {
      for (uint64_t& position : positions) {
        position = static_cast<uint64_t>(slice->start) +
                   position * static_cast<uint64_t>(slice->step);  // modulo 2^64
      }
    } else if (const Permutation* permutation = std::get_if<Permutation>(&step)) {
      for (uint64_t& position : positions) {
        if (position >= permutation->size()) return false;
        position = permutation->At(position);
      }
    } else {
      const List& items = *std::get_if<List>(&step);
      for (uint64_t& position : positions) {
        if (position >= items.size()) return false;
        position = items[position];
      }
    }
  }
  return true;
}

bool BatchPlan::Rows(uint64_t number, std::vector<uint64_t>* positions) const {
  positions->clear();
  if (number >= num_batches) return false;
  const uint64_t begin = start + (first + number * stride) * batch_size;
  const uint64_t num_rows = std::min(batch_size, size - begin);
  const uint64_t rest = num_rows % world_size;
  const uint64_t share = num_rows / world_size + (rest != 0 && pads ? 1 : 0);
  positions->resize(share);
  for (uint64_t i = 0; i < share; ++i) {
    const uint64_t row = begin + rank * share + i;
    // Only the last batch can run past its rows: what is missing is taken from the start of the epoch.
    (*positions)[i] = row < size ? row : row % size;
  }
  return true;
}

}  // namespace tfrkit
