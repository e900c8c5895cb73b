// Columns to records: arrays that do not hold their rows are refused, others are written and read back.
#include <string>
#include <vector>

#include "core/columns/column_builder.h"
#include "core/frames/frame_reader.h"
#include "core/wire/example_writer.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/input.h"

namespace tfrkit::fuzz {
namespace {

// The arrays of one column; each has a block of its own, so that the address sanitizer sees one value too
// many.
struct Arrays {
  std::string name;
  std::vector<int64_t> ints, byte_offsets, splits;
  std::vector<float> floats;
  std::vector<uint8_t> bytes, presence, missing;
  ColumnSource source;
  ColumnSizes sizes;
};

std::vector<int64_t> TakeOffsets(Input* input) {
  std::vector<int64_t> offsets;
  const size_t count = input->Byte() % 8;
  uint64_t last = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t step = input->Byte();
    last = step >= 0xf0 ? input->AnySize() : last + step % 4;
    offsets.push_back(static_cast<int64_t>(last));
  }
  return offsets;
}

void Take(Input* input, Arrays* arrays) {
  const uint8_t choices = input->Byte();
  ColumnSource& source = arrays->source;
  source.kind = choices % 3 == 0 ? Kind::kInt64 : choices % 3 == 1 ? Kind::kFloat : Kind::kBytes;
  const size_t num_values = input->Byte() % 16;
  ColumnSizes& sizes = arrays->sizes;
  sizes.num_values = num_values;
  if (source.kind == Kind::kInt64) {
    for (size_t i = 0; i < num_values; ++i) arrays->ints.push_back(static_cast<int64_t>(input->AnySize()));
  } else if (source.kind == Kind::kFloat) {
    for (size_t i = 0; i < num_values; ++i) arrays->floats.push_back(static_cast<float>(input->Byte()) / 3);
  } else {
    arrays->bytes = input->Block(num_values);
    sizes.num_values = arrays->bytes.size();
    arrays->byte_offsets = TakeOffsets(input);
  }
  source.length = input->Byte() % 4 - (choices & 64 ? 1 : 0);
  if ((choices & 8) != 0) arrays->splits = TakeOffsets(input);
  if ((choices & 16) != 0) {
    arrays->presence = input->Block(input->Byte() % 8);
    for (uint8_t& one : arrays->presence) one %= 3;
  }
  if ((choices & 32) != 0) arrays->missing = input->Block(input->Byte() % 8);
  source.name = arrays->name;
  source.ints = arrays->ints.data();
  source.floats = arrays->floats.data();
  source.bytes = arrays->bytes.data();
  source.byte_offsets = arrays->byte_offsets.data();
  source.splits = (choices & 8) != 0 ? arrays->splits.data() : nullptr;
  source.presence = (choices & 16) != 0 && !arrays->presence.empty() ? arrays->presence.data() : nullptr;
  source.missing = (choices & 32) != 0 && !arrays->missing.empty() ? arrays->missing.data() : nullptr;
  sizes.num_byte_offsets = arrays->byte_offsets.size();
  sizes.num_splits = arrays->splits.size();
  sizes.num_presence = arrays->presence.size();
  sizes.num_missing = arrays->missing.size();
}

}  // namespace

int FuzzOne(ByteView bytes) {
  Input input(bytes);
  const uint64_t num_rows = input.Byte() % 8;
  std::vector<Arrays> columns(1 + input.Byte() % 2);
  std::vector<ColumnSource> sources;
  std::vector<ColumnSpec> specs;
  for (size_t i = 0; i < columns.size(); ++i) {
    columns[i].name = std::string(1 + 7 * i, static_cast<char>('a' + i));
    Take(&input, &columns[i]);
    if (!HoldsRows(columns[i].source, columns[i].sizes, num_rows)) return 0;
    sources.push_back(columns[i].source);
    specs.push_back({columns[i].name, columns[i].source.kind, false, -1});
  }
  PoolVector<uint8_t> framed, chosen;
  Require(AppendFramedExamples(sources, 0, num_rows, &framed), "there is memory");
  ColumnBuilder builder(RecordKind::kExample, specs);
  uint64_t offset = 0;
  std::vector<int64_t> rows;
  std::vector<uint64_t> starts;
  for (uint64_t row = 0; row < num_rows; ++row) {
    Frame frame;
    Require(!ReadFrame({framed.data(), framed.size()}, offset, Verify::kAll, &frame),
            "a written row is framed");
    Require(!builder.Append(frame.payload), "a written row reads");
    rows.push_back(static_cast<int64_t>(row));
    starts.push_back(offset);
    offset = frame.end;
  }
  Require(offset == framed.size(), "nothing follows the last row");
  PoolVector<uint64_t> chosen_starts;
  Require(AppendFramedRows(sources, rows, &chosen, &chosen_starts), "there is memory");
  Require(std::equal(framed.data(), framed.data() + framed.size(), chosen.data(),
                     chosen.data() + chosen.size()) &&
              std::equal(starts.begin(), starts.end(), chosen_starts.data(),
                         chosen_starts.data() + chosen_starts.size()),
          "chosen rows are written as all are");
  const std::vector<Column> read = builder.Finish();
  for (size_t i = 0; i < columns.size(); ++i) {
    const ColumnSource& source = sources[i];
    for (uint64_t row = 0; row < num_rows; ++row) {
      const bool is_there = (source.presence == nullptr || source.presence[row] == 2) &&
                            (source.missing == nullptr || source.missing[row] == 0);
      const int64_t start =
          source.splits != nullptr ? source.splits[row] : static_cast<int64_t>(row) * source.length;
      const int64_t stop = source.splits != nullptr ? source.splits[row + 1] : start + source.length;
      const auto got = read[i].splits[row + 1] - read[i].splits[row];
      Require(got == (is_there ? stop - start : 0), "a row has its number of values");
      for (int64_t k = 0; k < got; ++k) {
        const auto from = static_cast<size_t>(start + k), to = static_cast<size_t>(read[i].splits[row] + k);
        if (source.kind == Kind::kInt64) Require(source.ints[from] == read[i].ints[to], "integers stay");
        if (source.kind == Kind::kFloat) Require(source.floats[from] == read[i].floats[to], "floats stay");
        if (source.kind == Kind::kBytes) {
          const ByteView value(
              source.bytes + source.byte_offsets[from],
              static_cast<size_t>(source.byte_offsets[from + 1] - source.byte_offsets[from]));
          const auto* const p = read[i].bytes.data() + read[i].byte_offsets[to];
          Require(
              std::equal(value.begin(), value.end(), p, read[i].bytes.data() + read[i].byte_offsets[to + 1]),
              "bytes stay");
        }
      }
    }
  }
  return 0;
}

}  // namespace tfrkit::fuzz
