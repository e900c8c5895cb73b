// Where the frames of each batch are: what workers of a BatchEngine take their work from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/fault.h"
#include "core/columns/column_builder.h"
#include "engine/frame_scouts.h"
#include "engine/row_order.h"
#include "engine/shard_board.h"

namespace tfrkit {

// A record that did not become a row.
struct RowFault {
  uint32_t shard = 0;
  uint64_t record = 0;  // in its shard
  uint64_t offset = 0;  // of its frame
  Fault fault;
  std::string name;  // of a feature that is unknown
};

// A record that views point into, and its checksum as stored when it was read.
struct RecordMark {
  ByteView payload;
  uint32_t crc;
};

// Where the numbers of a column in MadeBatch::packed start.
inline constexpr size_t kPackedAlignment = 64;
inline size_t PackedSize(size_t nbytes) {
  return (nbytes + kPackedAlignment - 1) / kPackedAlignment * kPackedAlignment;
}

// A batch as a worker leaves it.
struct MadeBatch {
  std::vector<Column> columns;
  // Plain columns one after the other, each from a multiple of kPackedAlignment on; they are empty in
  // `columns` then. Empty where the batch is large, or has fewer than two of them.
  PoolVector<uint8_t> packed;
  uint64_t num_rows = 0;
  uint64_t nbytes = 0;
  std::vector<RowFault> faults;    // in order; only the last one where damage is not skipped
  std::vector<uint32_t> odd;       // shards whose file may have been cut off: to be checked
  std::optional<uint32_t> torn;    // a shard whose map lost pages: nothing of this batch is true
  std::optional<uint32_t> failed;  // a shard that could not be opened; rows before it are lost
  bool is_out_of_range = false;    // the order named a record that is not there
  std::vector<RecordMark> marks;   // of all rows, where columns hold views and payloads were checked
  // Of a stream: the frames up to here are done with.
  uint32_t last_shard = 0;
  uint64_t last_stop = 0;

  // Does the pass end here?
  bool IsLast(bool skips) const {
    return torn || failed || is_out_of_range || (!faults.empty() && !skips) ||
           (!faults.empty() && faults.back().fault.kind == FaultKind::kNoMemory);
  }
};

// A run of frames of one shard.
struct Stretch {
  uint32_t shard = 0;
  uint64_t start = 0;
  uint64_t stop = 0;
  uint64_t num_frames = 0;
  uint64_t record = 0;  // ordinal of the first
  ShardSource source;
};

// What a worker has to do for one batch.
struct Job {
  uint64_t number = 0;
  std::vector<uint64_t> rows;      // of picks: positions of the epoch, or record numbers
  std::vector<Stretch> stretches;  // of a stream
  std::optional<RowFault> fault;   // a header at which the stretches end
  std::optional<uint32_t> failed;  // a shard that could not be opened
  std::vector<uint32_t> odd;
  std::optional<uint32_t> torn;
  bool is_out_of_range = false;
  std::optional<Leg> leg;  // of a stream: to be walked before
};

// What a worker keeps from batch to batch.
struct Workbench {
  Workbench(RecordKind kind, const std::vector<ColumnSpec>& specs,
            const std::optional<std::vector<KnownName>>& known)
      : builder(known ? ColumnBuilder(kind, specs, *known) : ColumnBuilder(kind, specs)) {}

  ColumnBuilder builder;
  std::vector<uint32_t> shards;
  std::vector<uint64_t> records;
  std::vector<FrameSource> sources;  // by shard, as far as this worker met them
  std::vector<MappedRange*> ranges;  // by shard
  std::vector<uint64_t> last_used;   // by shard: the serial of the last batch that has it
  std::vector<uint32_t> used;        // shards of the batch
  uint64_t serial = 0;
  // Of picks that are read from files: where FeedPicks finds each row, and the frames that were read.
  std::vector<uint32_t> picked_shards;
  std::vector<uint64_t> picked_records;
  PoolVector<uint8_t> gathered;
  std::vector<uint64_t> gathered_offsets;
};

// Adds a record to a batch.
inline Fault AppendMarked(ByteView payload, bool is_marked, ColumnBuilder* builder, MadeBatch* made) {
  const Fault fault = builder->Append(payload);
  // The footer follows the payload: ReadFrame compared it.
  if (is_marked && !fault) made->marks.push_back({payload, LoadLE32(payload.data() + payload.size())});
  return fault;
}

enum class Cut : uint8_t {
  kJob,   // here is work
  kWait,  // for a shard, or for rows: try again with the same job
  kEnd,
};

// Divides a pass into jobs, and does one. `Cut` is called by one thread at a time, in the order of batches;
// `Prepare` and `Fill` by any worker.
class BatchSource {
 public:
  virtual ~BatchSource() = default;

  // Finds the work of the next batch. Takes `mutex`, which protects `board`, for moments only.
  virtual Cut CutNext(ShardBoard* board, std::mutex* mutex, Job* job) = 0;

  // False where shards are not open yet; they are wanted then.
  virtual bool Prepare(ShardBoard* board, std::mutex* mutex, Workbench* bench, Job* job) = 0;

  virtual void Fill(Workbench* bench, Job* job, Verify verify, bool skips, MadeBatch* made) = 0;

  // Does the batch that was filled last continue with the next job? Only where one thread cuts and fills in
  // turn.
  virtual bool GoesOn() const { return false; }
};

// All frames in file order, found by walking the headers; with `threads`, by all of them. With 0 threads they
// are found as they are decoded: a job is what is left of a shard, and ends where the batch is full.
std::unique_ptr<BatchSource> MakeStreamSource(uint64_t batch_size, Verify verify, size_t threads);

// Records by number. `starts` has the number of the first record of each shard, and of all.
std::unique_ptr<BatchSource> MakePickSource(std::vector<uint64_t> starts, BatchPlan plan, RowOrder order);

// Records by number, whose lists are handed in batch by batch.
class FedSource : public BatchSource {
 public:
  // One batch more. Under the lock of the engine.
  virtual void Feed(std::vector<uint64_t> records) = 0;
  virtual void EndFeed() = 0;
  virtual size_t num_waiting() const = 0;
};
std::unique_ptr<FedSource> MakeFedSource(std::vector<uint64_t> starts);

}  // namespace tfrkit
