#include "core/stats/column_figures.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "core/stats/key_sort.h"
#include "core/stats/value_hash.h"

namespace tfrkit {
namespace {

constexpr uint32_t kSignBit = 0x80000000u;
// Of uniform hashes, about the required number is below `num_hashes / num_different` of the range; with this
// margin it nearly always suffices.
constexpr double kSpareShare = 1.15;
constexpr size_t kMinImageSize = 12;  // "RIFF", a size, "WEBP"

// The sum of term(value), in independent lanes; the order of addition is part of the result.
template <class T, class Term>
double SumTerms(std::span<const T> values, Term term) {
  constexpr size_t kLanes = 8;
  double lanes[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= values.size(); i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += term(static_cast<double>(values[i + lane]));
  }
  for (size_t lane = 0; i < values.size(); ++i, ++lane) lanes[lane] += term(static_cast<double>(values[i]));
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

template <class T>
double Sum(std::span<const T> values) {
  return SumTerms(values, [](double number) { return number; });
}

// REQUIRES: all values are finite, and `sum` is theirs.
template <class T>
void SetMoments(std::span<const T> values, double sum, NumberFigures<T>* figures) {
  figures->num_finite = values.size();
  if (values.empty()) return;
  const double mean = sum / static_cast<double>(values.size());
  figures->mean = mean;
  figures->m2 = SumTerms(values, [mean](double number) { return (number - mean) * (number - mean); });
}

// The start of each run of equal keys, then the number of keys: one entry more than distinct keys. Repeats
// are unpredictable, so the loop has no branch.
template <class Key>
bool FindRuns(std::span<const Key> keys, PoolVector<uint32_t>* starts) {
  if (!starts->Resize(keys.size() + 1)) return false;
  uint32_t* const at = starts->data();
  size_t num_runs = 1;
  at[0] = 0;
  for (size_t i = 1; i < keys.size(); ++i) {
    at[num_runs] = static_cast<uint32_t>(i);
    num_runs += keys[i] != keys[i - 1];
  }
  at[num_runs] = static_cast<uint32_t>(keys.size());
  starts->Truncate(num_runs + 1);
  return true;
}

// Counts the runs of sorted keys; `to_value` gives the value a key stands for.
template <class Key, class T, class ToValue>
bool CountRuns(std::span<const Key> keys, const PoolVector<uint32_t>& starts, size_t max_values,
               ToValue to_value, ValueCounts<T>* table) {
  const size_t num_runs = starts.size() - 1;
  table->is_whole = num_runs <= max_values;
  const uint32_t taken = table->is_whole ? 0 : 1;
  size_t num_kept = 0;  // counted first to save memory: tables of many columns wait to be merged
  for (size_t run = 0; run < num_runs; ++run) num_kept += starts[run + 1] - starts[run] > taken;
  if (!table->values.Resize(num_kept + 1) || !table->counts.Resize(num_kept + 1)) return false;
  size_t at = 0;
  for (size_t run = 0; run < num_runs; ++run) {
    const uint32_t count = starts[run + 1] - starts[run] - taken;
    table->values[at] = to_value(keys[starts[run]]);
    table->counts[at] = count;
    at += count > 0;
  }
  table->values.Truncate(num_kept);
  table->counts.Truncate(num_kept);
  return true;
}

// The smallest hashes of the different values among sorted keys.
template <class Key, class ToHash>
bool TakeHashes(std::span<const Key> keys, const PoolVector<uint32_t>& starts, size_t num_hashes,
                uint64_t limit, ToHash to_hash, PoolVector<uint64_t>* hashes) {
  const size_t num_runs = starts.size() - 1;
  PoolVector<uint64_t> low, spare;
  if (!low.Resize(num_runs + 1) || !spare.Resize(num_runs)) return false;
  uint64_t most = limit;
  const double share = kSpareShare * static_cast<double>(num_hashes) / static_cast<double>(num_runs);
  if (limit == UINT64_MAX && share < 0.5) most = static_cast<uint64_t>(share * 0x1p64);
  size_t count;
  for (;;) {
    count = 0;
    for (size_t run = 0; run < num_runs; ++run) {
      const uint64_t hash = to_hash(keys[starts[run]]);
      low[count] = hash;
      count += hash <= most;
    }
    if (most == limit || count >= num_hashes) break;
    most = limit;
  }
  const uint64_t* const sorted = SortKeys(low.data(), spare.data(), count, 64);
  return hashes->Append(sorted, std::min(count, num_hashes));
}

// Figures from sorted keys. REQUIRES: at least one.
template <class Key, class T, class ToValue, class ToHash>
bool SetSorted(std::span<const Key> keys, const SketchSizes& sizes, uint64_t limit, ToValue to_value,
               ToHash to_hash, NumberFigures<T>* figures) {
  PoolVector<uint32_t> starts;
  if (!FindRuns(keys, &starts) || !CountRuns(keys, starts, sizes.max_values, to_value, &figures->table))
    return false;
  if (figures->table.is_whole) return true;
  figures->level = std::bit_width((keys.size() + sizes.max_ranks - 1) / sizes.max_ranks - 1);
  const size_t step = size_t{1} << figures->level;
  if (!figures->ranks.Reserve(keys.size() / step + 1)) return false;
  for (size_t i = step / 2; i < keys.size(); i += step) {
    if (!figures->ranks.PushBack(to_value(keys[i]))) return false;
  }
  return TakeHashes(keys, starts, sizes.num_hashes, limit, to_hash, &figures->hashes);
}

// Integers of a range small enough for one counter per value.
bool CountInPlace(std::span<const int64_t> values, NumberFigures<int64_t>* figures) {
  const uint64_t low = static_cast<uint64_t>(figures->low);
  const size_t range = static_cast<size_t>(static_cast<uint64_t>(figures->high) - low) + 1;
  // Two sets of counters: repeated values do not wait for the store before.
  PoolVector<uint32_t> counts;
  if (!counts.Resize(2 * range)) return false;
  std::fill_n(counts.data(), 2 * range, 0u);
  size_t i = 0;
  for (; i + 2 <= values.size(); i += 2) {
    ++counts[static_cast<uint64_t>(values[i]) - low];
    ++counts[range + (static_cast<uint64_t>(values[i + 1]) - low)];
  }
  if (i < values.size()) ++counts[static_cast<uint64_t>(values[i]) - low];
  double sum = 0;
  for (size_t place = 0; place < range; ++place) {
    const uint64_t count = uint64_t{counts[place]} + counts[range + place];
    if (count == 0) continue;
    const int64_t value = static_cast<int64_t>(low + place);
    if (!figures->table.values.PushBack(value) ||
        !figures->table.counts.PushBack(static_cast<int64_t>(count)))
      return false;
    sum += static_cast<double>(value) * static_cast<double>(count);
    if (value == 0) figures->zeros = count;
  }
  figures->num_finite = values.size();
  figures->mean = range == 1 ? static_cast<double>(figures->low) : sum / static_cast<double>(values.size());
  for (size_t n = 0; n < figures->table.values.size(); ++n) {
    const double off = static_cast<double>(figures->table.values[n]) - figures->mean;
    figures->m2 += off * off * static_cast<double>(figures->table.counts[n]);
  }
  return true;
}

template <class Key>
bool SortInts(std::span<const int64_t> values, const SketchSizes& sizes, uint64_t limit, int bits,
              NumberFigures<int64_t>* figures) {
  const uint64_t low = static_cast<uint64_t>(figures->low);
  const size_t count = values.size();
  PoolVector<Key> keys, spare;
  if (!keys.Resize(count) || !spare.Resize(count)) return false;
  size_t zeros = 0;
  for (size_t i = 0; i < count; ++i) {
    keys[i] = static_cast<Key>(static_cast<uint64_t>(values[i]) - low);
    zeros += values[i] == 0;
  }
  figures->zeros = zeros;
  const Key* const sorted = SortKeys(keys.data(), spare.data(), count, bits);
  return SetSorted(
      std::span<const Key>(sorted, count), sizes, limit,
      [low](Key key) { return static_cast<int64_t>(low + key); },
      [low](Key key) { return ScatterKey(low + key); }, figures);
}

// Keys of floats order as the floats do.
uint32_t ToKey(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value + 0.0f);  // -0.0 and 0.0 are one value
  return bits ^ ((bits & kSignBit) != 0 ? UINT32_MAX : kSignBit);
}

uint32_t ToBits(uint32_t key) { return key ^ ((key & kSignBit) != 0 ? kSignBit : UINT32_MAX); }

bool BeginsAsImage(const uint8_t* p) {
  switch (LoadLE32(p)) {
    case 0x474e5089:  // "\x89PNG"
    case 0x38464947:  // "GIF8"
    case 0x002a4949:  // "II*\0", TIFF
    case 0x2a004d4d:  // "MM\0*"
      return true;
    case 0x46464952:                         // "RIFF"
      return LoadLE32(p + 8) == 0x50424557;  // "WEBP"
    default:
      return (p[0] == 0xff && p[1] == 0xd8 && p[2] == 0xff) ||  // JPEG
             (p[0] == 'B' && p[1] == 'M') ||                    // BMP
             (p[0] == 0 && LoadLE32(p + 4) == 0x70797466);      // "ftyp", AVIF and HEIC
  }
}

// The first row of each wanted key; keys are ascending.
bool FindRows(std::span<const uint64_t> wanted, std::span<const uint64_t> keys, PoolVector<int64_t>* rows) {
  if (!rows->Resize(wanted.size())) return false;
  std::fill_n(rows->data(), rows->size(), -1);
  size_t missing = wanted.size();
  for (size_t row = 0; row < keys.size() && missing > 0; ++row) {
    const auto found = std::lower_bound(wanted.begin(), wanted.end(), keys[row]);
    if (found == wanted.end() || *found != keys[row]) continue;
    int64_t& first = (*rows)[static_cast<size_t>(found - wanted.begin())];
    if (first < 0) {
      first = static_cast<int64_t>(row);
      --missing;
    }
  }
  return true;
}

}  // namespace

bool SummarizeInts(std::span<const int64_t> values, const SketchSizes& sizes, uint64_t limit,
                   NumberFigures<int64_t>* figures) {
  if (values.empty()) return true;
  int64_t low = values[0], high = values[0];
  for (const int64_t value : values) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  figures->has_range = true;
  figures->low = low;
  figures->high = high;
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  if (range < sizes.max_values) return CountInPlace(values, figures);
  SetMoments(values, Sum(values), figures);
  const int bits = std::bit_width(range);
  return bits <= 32 ? SortInts<uint32_t>(values, sizes, limit, bits, figures)
                    : SortInts<uint64_t>(values, sizes, limit, bits, figures);
}

bool SummarizeFloats(std::span<const float> values, const SketchSizes& sizes, uint64_t limit,
                     NumberFigures<float>* figures) {
  if (values.empty()) return true;
  PoolVector<uint32_t> keys, spare;
  if (!keys.Resize(values.size()) || !spare.Resize(values.size())) return false;
  size_t count = 0, zeros = 0;
  const double sum = Sum(values);
  // A sum of 32-bit floats in 64 bits is finite unless one of them is not.
  if (std::isfinite(sum)) {
    SetMoments(values, sum, figures);
    for (; count < values.size(); ++count) {
      keys[count] = ToKey(values[count]);
      zeros += values[count] == 0;
    }
  } else {
    PoolVector<float> finite;
    for (const float value : values) {
      if (std::isnan(value)) continue;
      keys[count++] = ToKey(value);
      zeros += value == 0;
      if (std::isfinite(value) && !finite.PushBack(value)) return false;
    }
    const std::span<const float> numbers(finite.data(), finite.size());
    SetMoments(numbers, Sum(numbers), figures);
  }
  figures->num_nan = values.size() - count;
  figures->zeros = zeros;
  if (count == 0) return true;
  const auto to_value = [](uint32_t key) { return std::bit_cast<float>(ToBits(key)); };
  const uint32_t* const sorted = SortKeys(keys.data(), spare.data(), count, 32);
  figures->has_range = true;
  figures->low = to_value(sorted[0]);
  figures->high = to_value(sorted[count - 1]);
  return SetSorted(
      std::span<const uint32_t>(sorted, count), sizes, limit, to_value,
      [](uint32_t key) { return ScatterKey(ToBits(key)); }, figures);
}

bool SummarizeBytes(ByteView data, std::span<const int64_t> offsets, const SketchSizes& sizes, uint64_t limit,
                    BytesFigures* figures) {
  if (offsets.size() < 2) return true;
  const size_t count = offsets.size() - 1;
  PoolVector<int64_t> nbytes;
  PoolVector<uint64_t> keys, in_order, spare;
  if (!nbytes.Resize(count) || !keys.Resize(count) || !in_order.Resize(count) || !spare.Resize(count))
    return false;
  for (size_t i = 0; i < count; ++i) {
    const size_t start = static_cast<size_t>(offsets[i]);
    const size_t size = static_cast<size_t>(offsets[i + 1]) - start;
    nbytes[i] = static_cast<int64_t>(size);
    in_order[i] = keys[i] = HashValue(data.subspan(start, size));
    if (size >= kMinImageSize && BeginsAsImage(data.data() + start) &&
        !figures->images.PushBack(static_cast<int64_t>(i))) {
      return false;
    }
  }
  if (!SummarizeInts({nbytes.data(), count}, sizes, UINT64_MAX, &figures->sizes)) return false;
  const std::span<const uint64_t> sorted(SortKeys(in_order.data(), spare.data(), count, 64), count);
  PoolVector<uint32_t> starts;
  if (!FindRuns(sorted, &starts) ||
      !CountRuns(sorted, starts, sizes.max_values, [](uint64_t key) { return key; }, &figures->table)) {
    return false;
  }
  if (!figures->table.is_whole) {
    // Keys are hashes already, and in order.
    for (size_t run = 0; run + 1 < starts.size() && figures->hashes.size() < sizes.num_hashes; ++run) {
      const uint64_t key = sorted[starts[run]];
      if (key > limit) break;
      if (!figures->hashes.PushBack(key)) return false;
    }
  }
  return FindRows({figures->table.values.data(), figures->table.values.size()}, {keys.data(), count},
                  &figures->rows);
}

}  // namespace tfrkit
