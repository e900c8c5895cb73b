// Figures of columns: range, counts, ranks and hashes against a sorted copy.
#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include "core/stats/column_figures.h"
#include "core/stats/value_hash.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/input.h"

namespace tfrkit::fuzz {
namespace {

bool IsNan(float value) { return std::isnan(value); }
bool IsNan(int64_t) { return false; }
bool IsFinite(float value) { return std::isfinite(value); }
bool IsFinite(int64_t) { return true; }

template <class T>
void CheckTable(const std::map<T, int64_t>& expected, const ValueCounts<T>& table, size_t max_values) {
  Require(table.is_whole == (expected.size() <= max_values), "a table is whole as long as its values fit");
  size_t at = 0;
  for (const auto& [value, count] : expected) {
    if (!table.is_whole && count == 1) continue;
    Require(at < table.values.size() && table.values[at] == value, "a table has its values in order");
    Require(table.counts[at] == (table.is_whole ? count : count - 1), "values are counted");
    ++at;
  }
  Require(at == table.values.size() && at == table.counts.size(), "a table has no other values");
}

void CheckHashes(const PoolVector<uint64_t>& hashes, size_t num_different, const SketchSizes& sizes,
                 uint64_t limit) {
  Require(hashes.size() <= std::min(num_different, sizes.num_hashes), "there are no more hashes than values");
  for (size_t i = 0; i < hashes.size(); ++i)
    Require(hashes[i] <= limit && (i == 0 || hashes[i - 1] < hashes[i]), "hashes rise up to the limit");
  if (limit == UINT64_MAX)
    Require(hashes.size() == std::min(num_different, sizes.num_hashes), "the smallest hashes are kept");
}

template <class T>
void CheckNumbers(const std::vector<T>& values, const NumberFigures<T>& figures, const SketchSizes& sizes,
                  uint64_t limit) {
  std::vector<T> sorted;
  size_t num_finite = 0, num_zeros = 0;
  for (const T value : values) {
    if (IsNan(value)) continue;
    sorted.push_back(value);
    num_finite += IsFinite(value);
    num_zeros += value == 0;
  }
  std::sort(sorted.begin(), sorted.end());
  Require(figures.num_nan == values.size() - sorted.size() && figures.num_finite == num_finite &&
              figures.zeros == num_zeros && figures.has_range == !sorted.empty(),
          "values are counted by what they are");
  if (sorted.empty()) return;
  Require(figures.low == sorted.front() && figures.high == sorted.back(), "the range is that of the values");
  std::map<T, int64_t> expected;
  for (const T value : sorted) ++expected[value];
  CheckTable(expected, figures.table, sizes.max_values);
  if (figures.table.is_whole) return;
  CheckHashes(figures.hashes, expected.size(), sizes, limit);
  const size_t step = size_t{1} << figures.level;
  Require(figures.ranks.size() <= sizes.max_ranks, "ranks fit");
  size_t at = 0;
  for (size_t place = step / 2; place < sorted.size(); place += step, ++at)
    Require(at < figures.ranks.size() && figures.ranks[at] == sorted[place], "ranks are evenly spaced");
  Require(at == figures.ranks.size(), "ranks stand for all values");
}

}  // namespace

// Input: choices, limit, how wide the numbers are; then numbers, or bytes with their sizes.
int FuzzOne(ByteView bytes) {
  Input input(bytes);
  const uint8_t choices = input.Byte();
  const SketchSizes sizes{size_t{4} + (choices & 4) * 3u, 4, 8};
  const uint64_t limit = (choices & 8) != 0 ? UINT64_MAX >> (input.Byte() % 8) : UINT64_MAX;
  const size_t width = 1 + (choices >> 4u) % 8;
  if (choices % 3 == 0) {
    std::vector<int64_t> values;
    while (!input.empty()) values.push_back(static_cast<int64_t>(input.Number(width) << (8 * (8 - width))));
    NumberFigures<int64_t> figures;
    Require(SummarizeInts(values, sizes, limit, &figures), "there is memory");
    CheckNumbers(values, figures, sizes, limit);
  } else if (choices % 3 == 1) {
    std::vector<float> values;
    while (!input.empty())
      values.push_back(
          std::bit_cast<float>(static_cast<uint32_t>(input.Number(1 + width % 4) << (8 * (3 - width % 4)))));
    NumberFigures<float> figures;
    Require(SummarizeFloats(values, sizes, limit, &figures), "there is memory");
    CheckNumbers(values, figures, sizes, limit);
  } else {
    std::vector<int64_t> offsets = {0}, lengths;
    const size_t count = input.Byte() % 32;
    for (size_t i = 0; i < count; ++i) offsets.push_back(offsets.back() + input.Byte() % 16);
    std::vector<uint8_t> data = input.Rest();
    data.resize(static_cast<size_t>(offsets.back()));
    data.shrink_to_fit();
    std::map<uint64_t, int64_t> expected;
    for (size_t i = 0; i < count; ++i) {
      const auto start = static_cast<size_t>(offsets[i]), stop = static_cast<size_t>(offsets[i + 1]);
      ++expected[HashValue(ByteView(data).subspan(start, stop - start))];
      lengths.push_back(static_cast<int64_t>(stop - start));
    }
    BytesFigures figures;
    Require(SummarizeBytes(data, offsets, sizes, limit, &figures), "there is memory");
    CheckNumbers(lengths, figures.sizes, sizes, UINT64_MAX);
    CheckTable(expected, figures.table, sizes.max_values);
    if (!figures.table.is_whole) CheckHashes(figures.hashes, expected.size(), sizes, limit);
    Require(figures.rows.size() == figures.table.values.size(), "each value has a row");
  }
  return 0;
}

}  // namespace tfrkit::fuzz
