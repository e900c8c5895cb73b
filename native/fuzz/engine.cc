// The engine, with the thread that takes: batches of hostile frames, in file order and by number, against
// reading one record at a time.
#include <chrono>
#include <memory>
#include <vector>

#include "core/columns/column_builder.h"
#include "core/frames/frame_reader.h"
#include "engine/batch_engine.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/input.h"

namespace tfrkit::fuzz {
namespace {

const std::vector<ColumnSpec> kSpecs = {{"a", Kind::kInt64, false, -1}, {"b", Kind::kBytes, false, -1}};

struct Result {
  std::vector<int64_t> ints, splits;
  std::vector<uint8_t> bytes;
  std::vector<uint64_t> bad_records;
  uint64_t num_rows = 0;

  void Add(const std::vector<Column>& columns, uint64_t rows) {
    const Column &a = columns[0], &b = columns[1];
    ints.insert(ints.end(), a.ints.data(), a.ints.data() + a.ints.size());
    for (uint64_t row = 0; row < rows; ++row) splits.push_back(a.splits[row + 1] - a.splits[row]);
    bytes.insert(bytes.end(), b.bytes.data(), b.bytes.data() + b.bytes.size());
    num_rows += rows;
  }
  bool operator==(const Result&) const = default;
};

// Record by record; an engine that does not skip loses the batch with the first fault.
Result ReadSlowly(ByteView span, const std::vector<uint64_t>& offsets, const std::vector<uint64_t>& records,
                  Verify verify, bool skips, uint64_t batch_size) {
  Result result;
  ColumnBuilder builder(RecordKind::kExample, kSpecs);
  for (size_t i = 0; i < records.size(); ++i) {
    Frame frame;
    const uint64_t offset = offsets[records[i]];
    const bool is_bad =
        offset > span.size() || ReadFrame(span, offset, verify, &frame) || builder.Append(frame.payload);
    if (is_bad) {
      result.bad_records.push_back(records[i]);
      if (!skips) return result;
    }
    if ((i + 1) % batch_size == 0 || i + 1 == records.size()) {
      const uint64_t rows = builder.num_rows();
      result.Add(builder.Finish(), rows);
    }
  }
  return result;
}

Result Run(BatchEngine* engine, const ShardSource& shard, bool skips) {
  Result result;
  while (true) {
    MadeBatch made;
    switch (engine->Take(std::chrono::milliseconds(1000), &made)) {
      case BatchEngine::Status::kEnd:
        return result;
      case BatchEngine::Status::kWait:
        for (const uint32_t wanted : engine->TakeWanted()) engine->SetShard(wanted, shard);
        continue;
      case BatchEngine::Status::kBatch:
        break;
      default:
        Require(false, "a batch is made by the thread that takes");
    }
    for (const RowFault& fault : made.faults) result.bad_records.push_back(fault.record);
    Require(!made.is_out_of_range && !made.failed && !made.torn, "every record is there");
    if (!made.IsLast(skips)) result.Add(made.columns, made.num_rows);
  }
}

}  // namespace

// Input: choices, then frames.
int FuzzOne(ByteView bytes) {
  if (bytes.empty()) return 0;
  const uint8_t choices = bytes[0];
  const std::vector<uint8_t> data(bytes.begin() + 1, bytes.end());
  const ByteView span(data);
  EngineOptions options;
  options.specs = kSpecs;
  options.verify = choices % 3 == 0 ? Verify::kNone : choices % 3 == 1 ? Verify::kLengths : Verify::kAll;
  options.num_shards = 1;
  const uint64_t batch_size = 1 + (choices >> 4u) % 4;
  // As a scan finds them: headers only.
  const Verify walk = options.verify == Verify::kNone ? Verify::kNone : Verify::kLengths;
  FrameRun run = CheckFrames(span, 0, UINT64_MAX, walk);
  std::vector<uint64_t> offsets(run.num_frames);
  run = IndexFrames(span, 0, run.num_frames, walk, offsets.data());
  std::vector<uint64_t> records(offsets.size());
  for (size_t i = 0; i < records.size(); ++i) records[i] = i;
  if ((choices & 4) != 0) {
    BatchEngine engine(options, MakeStreamSource(batch_size, options.verify, options.threads));
    Result got = Run(&engine, {{span, {}}, nullptr}, false);
    Result expected = ReadSlowly(span, offsets, records, options.verify, false, batch_size);
    const bool has_header_fault = static_cast<bool>(CheckFrames(span, 0, UINT64_MAX, walk).fault);
    if (has_header_fault) {
      // The header at which the walk ends is one fault more, and takes the rows before it in its batch with
      // it.
      if (expected.bad_records.empty()) {
        expected.bad_records.push_back(offsets.size());
        const std::vector<uint64_t> whole(
            records.begin(),
            records.begin() + static_cast<ptrdiff_t>(records.size() / batch_size * batch_size));
        const Result before = ReadSlowly(span, offsets, whole, options.verify, false, batch_size);
        const std::vector<uint64_t> bad = expected.bad_records;
        expected = before;
        expected.bad_records = bad;
      }
    }
    Require(got == expected, "batches in file order are the records one by one");
    return 0;
  }
  if (offsets.empty()) return 0;
  options.skips = (choices & 8) != 0;
  BatchPlan plan;
  plan.size = offsets.size();
  plan.batch_size = batch_size;
  plan.num_batches = (plan.size + batch_size - 1) / batch_size;
  RowOrder order;
  order.AddPermutation(plan.size, choices);
  const Permutation permutation(plan.size, choices);
  for (uint64_t& record : records) record = permutation.At(record);
  // A forged index: offsets that do not start a frame.
  if ((choices & 128) != 0 && offsets.size() > 2) offsets[1] = data.back();
  BatchEngine engine(options, MakePickSource({0, plan.size}, plan, std::move(order)));
  const Result got = Run(&engine, {{span, offsets}, nullptr}, options.skips);
  Require(got == ReadSlowly(span, offsets, records, options.verify, options.skips, batch_size),
          "batches by number are the records one by one");
  return 0;
}

}  // namespace tfrkit::fuzz
