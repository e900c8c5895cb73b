// Writing canonical Examples and SequenceExamples: keys sorted by bytes, lists packed, minimal
// varints, so that equal rows are equal bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/pool.h"
#include "core/wire/record_types.h"

namespace tfrkit {

// The values of one feature. kUnset writes a Feature with no list; an empty span writes an empty list.
struct FeatureValue {
  Kind kind = Kind::kUnset;
  std::span<const int64_t> ints;
  std::span<const float> floats;
  std::span<const ByteView> bytes;
};

struct NamedFeature {
  std::string_view name;
  FeatureValue value;
};

struct NamedFeatureList {
  std::string_view name;
  std::span<const FeatureValue> frames;
};

// Appends the bytes of an Example to `out`. False when memory is exhausted.
// REQUIRES: features sorted by name, no name twice.
[[nodiscard]] bool AppendExample(std::span<const NamedFeature> features, PoolVector<uint8_t>* out);

// REQUIRES: both sorted by name, no name twice in either.
// An empty context is left out. `feature_lists` is always written, even empty,
// so that the record stays recognisable as a SequenceExample.
[[nodiscard]] bool AppendSequenceExample(std::span<const NamedFeature> context,
                                         std::span<const NamedFeatureList> lists, PoolVector<uint8_t>* out);

// One feature of many rows, to be written.
struct ColumnSource {
  std::string_view name;
  Kind kind = Kind::kInt64;       // not kUnset
  const int64_t* ints = nullptr;  // values of all rows, by kind
  const float* floats = nullptr;
  const uint8_t* bytes = nullptr;  // kBytes: value v is bytes[byte_offsets[v], byte_offsets[v + 1])
  const int64_t* byte_offsets = nullptr;
  int64_t length = 1;                 // values per row, when splits is nullptr
  const int64_t* splits = nullptr;    // row r has values [splits[r], splits[r + 1])
  const uint8_t* presence = nullptr;  // one Presence per row; nullptr: all present
  const uint8_t* missing = nullptr;   // not 0 where a row lacks the feature; nullptr: none does
};

// Sizes of the arrays of a ColumnSource.
struct ColumnSizes {
  size_t num_values = 0;  // of ints, floats or bytes, by kind
  size_t num_byte_offsets = 0;
  size_t num_splits = 0;
  size_t num_presence = 0;
  size_t num_missing = 0;
};

// Whether every row of `num_rows` lies within the arrays: offsets and splits rise and end in bounds.
bool HoldsRows(const ColumnSource& column, const ColumnSizes& sizes, uint64_t num_rows);

// Appends rows [start, stop) as framed Examples. False when memory is exhausted.
// REQUIRES: columns sorted by name, no name twice; offsets and splits non-decreasing and in bounds.
[[nodiscard]] bool AppendFramedExamples(std::span<const ColumnSource> columns, uint64_t start, uint64_t stop,
                                        PoolVector<uint8_t>* out);

// Appends some rows, in this order, as framed Examples, and to `starts` where each frame starts in `out`.
// False when memory is exhausted.
// REQUIRES: as above; every row lies in the columns.
[[nodiscard]] bool AppendFramedRows(std::span<const ColumnSource> columns, std::span<const int64_t> rows,
                                    PoolVector<uint8_t>* out, PoolVector<uint64_t>* starts);

}  // namespace tfrkit
