// Merging of ascending arrays, for sketches.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "core/base/pool.h"

namespace tfrkit {

// Appends the values of both, duplicates included. False when memory is exhausted.
template <class T>
[[nodiscard]] bool MergeSorted(std::span<const T> one, std::span<const T> other, PoolVector<T>* merged) {
  if (!merged->Resize(one.size() + other.size())) return false;
  // The next value is unpredictable, and the next comparison depends on it. Merging from both ends with
  // arithmetic instead of branches gives two independent chains, which meet in the middle.
  size_t i = 0, j = 0, i_stop = one.size(), j_stop = other.size();
  size_t start = 0, stop = merged->size();
  T* const out = merged->data();
  while (i + 1 < i_stop && j + 1 < j_stop) {
    const bool is_other = other[j] < one[i];
    out[start++] = is_other ? other[j] : one[i];
    j += is_other;
    i += !is_other;
    const bool is_one = other[j_stop - 1] < one[i_stop - 1];
    out[--stop] = is_one ? one[i_stop - 1] : other[j_stop - 1];
    i_stop -= is_one;
    j_stop -= !is_one;
  }
  std::merge(one.begin() + static_cast<ptrdiff_t>(i), one.begin() + static_cast<ptrdiff_t>(i_stop),
             other.begin() + static_cast<ptrdiff_t>(j), other.begin() + static_cast<ptrdiff_t>(j_stop),
             out + start);
  return true;
}

// The first `most` values of the union; `*num_different` is the size of the whole union. REQUIRES: no
// duplicates in either.
template <class T>
[[nodiscard]] bool MergeUnique(std::span<const T> one, std::span<const T> other, size_t most,
                               PoolVector<T>* merged, size_t* num_different) {
  if (!merged->Resize(one.size() + other.size())) return false;
  T* out = merged->data();
  size_t i = 0, j = 0;
  while (i < one.size() && j < other.size()) {
    const T a = one[i], b = other[j];
    *out++ = b < a ? b : a;
    j += b <= a;
    i += a <= b;
  }
  out = std::copy(one.begin() + static_cast<ptrdiff_t>(i), one.end(), out);
  out = std::copy(other.begin() + static_cast<ptrdiff_t>(j), other.end(), out);
  *num_different = static_cast<size_t>(out - merged->data());
  merged->Truncate(std::min(most, *num_different));
  return true;
}

// Union of values with counts; counts of common values are added. REQUIRES: no duplicates in either; as many
// counts as values.
template <class T>
[[nodiscard]] bool MergeCounts(std::span<const T> one, std::span<const int64_t> one_counts,
                               std::span<const T> other, std::span<const int64_t> other_counts,
                               PoolVector<T>* values, PoolVector<int64_t>* counts) {
  const size_t most = one.size() + other.size();
  if (!values->Resize(most) || !counts->Resize(most)) return false;
  size_t i = 0, j = 0, at = 0;
  for (; i < one.size() || j < other.size(); ++at) {
    const bool has_one = i < one.size() && (j == other.size() || one[i] <= other[j]);
    const bool has_other = j < other.size() && (i == one.size() || other[j] <= one[i]);
    (*values)[at] = has_one ? one[i] : other[j];
    (*counts)[at] = (has_one ? one_counts[i] : 0) + (has_other ? other_counts[j] : 0);
    i += has_one;
    j += has_other;
  }
  values->Truncate(at);
  counts->Truncate(at);
  return true;
}

}  // namespace tfrkit
