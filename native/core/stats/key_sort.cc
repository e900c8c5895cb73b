#include "core/stats/key_sort.h"

#include <algorithm>
#include <utility>

namespace tfrkit {
namespace {

constexpr int kDigitBits = 11;  // the counters of two digits fit the L1 cache
constexpr int kFirstBits = 2 * kDigitBits;
// Below this, clearing the counters takes longer than a comparison sort.
constexpr size_t kMinCounted = 512;
// Average distance that insertion may move keys before it gives up.
constexpr size_t kMaxMoves = 4;

// Sorts keys by the `bits` bits from `shift` on, two digits, stably.
// REQUIRES: 0 < bits <= kFirstBits.
template <class Key>
Key* DealByTwoDigits(Key* keys, Key* spare, size_t count, int shift, int bits) {
  uint32_t starts[2][size_t{1} << kDigitBits] = {};
  const int width = (bits + 1) / 2;
  const Key mask = static_cast<Key>((Key{1} << width) - 1);
  for (size_t i = 0; i < count; ++i) {
    const Key key = static_cast<Key>(keys[i] >> shift);
    ++starts[0][key & mask];
    ++starts[1][(key >> width) & mask];
  }
  for (uint32_t* const at : starts) {
    if (at[(keys[0] >> shift) & mask] != count) {  // not all alike
      uint32_t sum = 0;
      for (size_t digit = 0; digit <= mask; ++digit) sum += std::exchange(at[digit], sum);
      for (size_t i = 0; i < count; ++i) spare[at[(keys[i] >> shift) & mask]++] = keys[i];
      std::swap(keys, spare);
    }
    shift += width;
  }
  return keys;
}

// Sorts nearly sorted keys; false if they are not.
template <class Key>
bool InsertAll(Key* keys, size_t count) {
  size_t moves_left = kMaxMoves * count;
  for (size_t i = 1; i < count; ++i) {
    const Key key = keys[i];
    if (keys[i - 1] <= key) continue;
    size_t at = i;
    do {
      keys[at] = keys[at - 1];
      --at;
    } while (at > 0 && keys[at - 1] > key);
    keys[at] = key;
    if (i - at > moves_left) return false;
    moves_left -= i - at;
  }
  return true;
}

template <class Key>
Key* Sort(Key* keys, Key* spare, size_t count, int bits) {
  if (count < kMinCounted || count > UINT32_MAX) {
    std::sort(keys, keys + count);
    return keys;
  }
  const int first = std::clamp(bits, 1, kFirstBits);
  Key* dealt = DealByTwoDigits(keys, spare, count, std::max(0, bits - kFirstBits), first);
  if (bits <= kFirstBits || InsertAll(dealt, count)) return dealt;
  spare = dealt == keys ? spare : keys;
  for (int shift = 0; shift < bits; shift += kFirstBits) {
    Key* const next = DealByTwoDigits(dealt, spare, count, shift, std::min(kFirstBits, bits - shift));
    if (next != dealt) spare = std::exchange(dealt, next);
  }
  return dealt;
}

}  // namespace

uint32_t* SortKeys(uint32_t* keys, uint32_t* spare, size_t count, int bits) {
  return Sort(keys, spare, count, bits);
}

uint64_t* SortKeys(uint64_t* keys, uint64_t* spare, size_t count, int bits) {
  return Sort(keys, spare, count, bits);
}

}  // namespace tfrkit
