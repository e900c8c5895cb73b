// Records: classifying, surveying and reading into columns, on arbitrary bytes and without frames,
// because random mutation does not get past a checksum.
//
// Input: one byte of choices, then records. Each is read with predictions from those before it, as in a file.
#include <cstring>
#include <string>
#include <vector>

#include "core/columns/column_builder.h"
#include "core/frames/frame_reader.h"
#include "core/stats/survey.h"
#include "core/wire/example_writer.h"
#include "core/wire/record_shape.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/input.h"

namespace tfrkit::fuzz {
namespace {

template <class T>
void CheckSplits(const PoolVector<T>& splits, uint64_t num_rows, uint64_t num_values) {
  Require(splits.size() == num_rows + 1, "one split more than rows");
  Require(splits[0] == 0, "splits start at zero");
  for (size_t i = 1; i < splits.size(); ++i) Require(splits[i - 1] <= splits[i], "splits do not fall");
  Require(static_cast<uint64_t>(splits[splits.size() - 1]) == num_values,
          "splits end at the number of values");
}

uint64_t CountValues(const Column& column, Kind kind) {
  if (kind == Kind::kInt64) return column.ints.size();
  if (kind == Kind::kFloat) return column.floats.size();
  CheckSplits(column.byte_offsets, column.byte_offsets.size() - 1, column.bytes.size());
  return column.byte_offsets.size() - 1;
}

void CheckColumn(const Column& column, const ColumnSpec& spec, uint64_t num_rows) {
  const uint64_t num_values = CountValues(column, spec.kind);
  Require(column.presence.empty() || column.presence.size() == num_rows, "presence is all rows or none");
  for (size_t i = 0; i < column.presence.size(); ++i)
    Require(column.presence[i] <= 2, "presence is one of three");
  uint64_t num_lists = num_rows;
  if (spec.is_list) {
    num_lists = static_cast<uint64_t>(column.list_splits[column.list_splits.size() - 1]);
    CheckSplits(column.list_splits, num_rows, num_lists);
  }
  if (spec.length < 0) {
    CheckSplits(column.splits, num_lists, num_values);
  } else {
    Require(num_values == num_lists * static_cast<uint64_t>(spec.length),
            "a fixed length holds for every row");
  }
}

template <class T>
bool IsSame(const PoolVector<T>& a, const PoolVector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

bool IsSame(const Column& a, const Column& b) {
  return IsSame(a.ints, b.ints) && IsSame(a.floats, b.floats) && IsSame(a.bytes, b.bytes) &&
         IsSame(a.byte_offsets, b.byte_offsets) && IsSame(a.splits, b.splits) &&
         IsSame(a.list_splits, b.list_splits) && IsSame(a.presence, b.presence);
}

// Columns of one survey: every feature that has a single kind.
std::vector<ColumnSpec> MakeSpecs(const std::vector<FeatureStats>& features, bool is_fixed) {
  std::vector<ColumnSpec> specs;
  for (const FeatureStats& feature : features) {
    int num_kinds = 0;
    Kind kind = Kind::kUnset;
    for (const Kind candidate : {Kind::kBytes, Kind::kFloat, Kind::kInt64}) {
      if (feature.kind_counts[static_cast<size_t>(candidate)] == 0) continue;
      ++num_kinds;
      kind = candidate;
    }
    if (num_kinds != 1) continue;
    const bool has_one_length = feature.min_length == feature.max_length && feature.max_length < 1000;
    const int64_t length = is_fixed && has_one_length ? static_cast<int64_t>(feature.min_length) : -1;
    specs.push_back({feature.name, kind, feature.is_list, length});
  }
  return specs;
}

// Read, write and read again gives the same values.
void CheckRoundTrip(const std::vector<Column>& columns, const std::vector<ColumnSpec>& specs,
                    uint64_t num_rows) {
  std::vector<ColumnSource> sources;
  for (size_t i = 0; i < specs.size(); ++i) {
    const Column& column = columns[i];
    ColumnSource source;
    source.name = specs[i].name;
    source.kind = specs[i].kind;
    source.ints = column.ints.data();
    source.floats = column.floats.data();
    source.bytes = column.bytes.data();
    source.byte_offsets = column.byte_offsets.data();
    source.length = specs[i].length;
    source.splits = specs[i].length < 0 ? column.splits.data() : nullptr;
    source.presence = column.presence.empty() ? nullptr : column.presence.data();
    sources.push_back(source);
  }
  PoolVector<uint8_t> framed;
  Require(AppendFramedExamples(sources, 0, num_rows, &framed), "columns can be written");
  ColumnBuilder again(RecordKind::kExample, specs);
  uint64_t offset = 0;
  for (uint64_t row = 0; row < num_rows; ++row) {
    Frame frame;
    Require(!ReadFrame({framed.data(), framed.size()}, offset, Verify::kAll, &frame),
            "a written row is framed");
    Require(!again.Append(frame.payload), "a written row reads");
    offset = frame.end;
  }
  Require(offset == framed.size(), "nothing follows the last row");
  const std::vector<Column> columns_again = again.Finish();
  for (size_t i = 0; i < specs.size(); ++i)
    Require(IsSame(columns[i], columns_again[i]), "a written row reads the same");
}

void CheckColumns(RecordKind kind, const std::vector<ColumnSpec>& specs, const std::vector<ByteView>& records,
                  bool must_succeed) {
  ColumnBuilder builder(kind, specs);
  uint64_t num_rows = 0;
  for (const ByteView record : records) {
    const Fault fault = builder.Append(record);
    Require(!must_succeed || !fault, "what a survey describes reads into columns");
    if (!fault) ++num_rows;
    Require(builder.num_rows() == num_rows, "a fault adds no row");
  }
  const std::vector<Column> columns = builder.Finish();
  Require(columns.size() == specs.size() && builder.num_rows() == 0, "finish hands over every column");
  for (size_t i = 0; i < specs.size(); ++i) CheckColumn(columns[i], specs[i], num_rows);
  if (kind == RecordKind::kExample) CheckRoundTrip(columns, specs, num_rows);
}

}  // namespace

int FuzzOne(ByteView input) {
  if (input.empty()) return 0;
  const uint8_t choices = input[0];
  const RecordKind kind = (choices & 1) != 0 ? RecordKind::kSequenceExample : RecordKind::kExample;
  // Separate blocks, so that the address sanitizer sees a read past any of them.
  const std::vector<std::vector<uint8_t>> records = TakeRecords(input.subspan(1));
  std::vector<ByteView> all, good;
  Survey survey(kind);
  for (const std::vector<uint8_t>& record : records) {
    const ByteView view(record);
    all.push_back(view);
    const RecordShape shape = ClassifyRecord(view);
    Require(shape == ClassifyClosely(view), "the short cut leads to the same shape");
    if (!survey.Add(view)) {
      good.push_back(view);
    } else {
      Require(kind == RecordKind::kSequenceExample ||
                  (shape != RecordShape::kExample && shape != RecordShape::kLooseExample),
              "what is classified as an Example reads as one");
      Require(kind == RecordKind::kExample ||
                  (shape != RecordShape::kSequenceExample && shape != RecordShape::kLooseSequence),
              "what is classified as a SequenceExample reads as one");
    }
  }
  Require(survey.num_records() == good.size(), "a fault adds no record");

  // One of these in each execution: together they take four times as long and find no more.
  if (choices % 4 >= 2) {
    // Columns that the records lack, and of the wrong kind and length.
    std::vector<ColumnSpec> strange = {
        {"a", Kind::kInt64, false, -1}, {"b", Kind::kFloat, false, 1}, {"c", Kind::kBytes, false, 2}};
    if (kind == RecordKind::kSequenceExample) strange.push_back({"a", Kind::kFloat, true, -1});
    CheckColumns(kind, strange, all, false);
  } else if (!good.empty()) {
    const bool is_fixed = (choices & 4) != 0;
    good.push_back(good.front());  // again, after the others have changed the prediction
    CheckColumns(kind, MakeSpecs(survey.Features(), is_fixed), good, !is_fixed);
  }
  return 0;
}

}  // namespace tfrkit::fuzz
