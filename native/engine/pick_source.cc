// Batches of records by number: by arithmetic, or from lists that are handed in.
#include <algorithm>
#include <deque>
#include <new>
#include <utility>

#include "core/frames/frame_picks.h"
#include "engine/batch_source.h"

namespace tfrkit {
namespace {

// Larger frames are mapped in: they fill pages of their own.
constexpr uint64_t kMaxGathered = 64 << 10;

class Picks : public FedSource {
 public:
  explicit Picks(std::vector<uint64_t> starts) : starts_(std::move(starts)) {}

  void Feed(std::vector<uint64_t> records) override { fed_.push_back(std::move(records)); }
  void EndFeed() override { is_fed_ = true; }
  size_t num_waiting() const override { return fed_.size(); }

  Cut CutNext(ShardBoard*, std::mutex* mutex, Job* job) override {
    const std::lock_guard lock(*mutex);
    if (fed_.empty()) return is_fed_ ? Cut::kEnd : Cut::kWait;
    job->rows = std::move(fed_.front());
    fed_.pop_front();
    return Cut::kJob;
  }

  bool Prepare(ShardBoard* board, std::mutex* mutex, Workbench* bench, Job* job) override {
    if (bench->serial != job->number + 1) job->is_out_of_range = !Locate(bench, job);
    bool is_ready = true;
    const std::vector<uint32_t>& used = bench->used;
    if (std::all_of(used.begin(), used.end(),
                    [&](uint32_t shard) { return !bench->sources[shard].offsets.empty(); }))
      return true;
    const std::lock_guard lock(*mutex);
    for (const uint32_t shard : used) {
      if (!board->Ask(shard)) {
        is_ready = false;
      } else if (board->state(shard) == ShardBoard::State::kFailed) {
        // The first row of it in the batch decides, so the failure that comes first is the one that is kept.
        if (!job->failed) job->failed = shard;
      } else {
        bench->sources[shard] = board->source(shard).frames;
        bench->ranges[shard] = board->source(shard).range;
      }
    }
    return is_ready;
  }

  void Fill(Workbench* bench, Job* job, Verify verify, bool skips, MadeBatch* made) override {
    made->is_out_of_range = job->is_out_of_range;
    made->failed = job->failed;
    if (made->failed || made->is_out_of_range) return;
    ColumnBuilder& builder = bench->builder;
    const std::vector<uint32_t>& shards = bench->shards;
    const std::vector<uint64_t>& records = bench->records;
    const uint32_t gathered =
        static_cast<uint32_t>(starts_.size() - 1);  // the place of frames that were read
    const bool is_marked = verify == Verify::kAll && builder.has_views();
    std::vector<MappedRange*> ranges;
    ranges.reserve(bench->used.size());
    for (const uint32_t shard : bench->used) ranges.push_back(bench->ranges[shard]);
    if (!ArePicksInside(bench->sources, shards, records)) {
      made->is_out_of_range = true;
      return;
    }
    const bool is_gathered = Gather(bench);
    const std::span<const uint32_t> picked(is_gathered ? bench->picked_shards : shards);
    const std::span<const uint64_t> picked_records(is_gathered ? bench->picked_records : records);
    {
      InstallMapGuard();
      const MapGuard guard(ranges);
      size_t row = 0;
      while (row < shards.size()) {
        const std::span<const uint32_t> rest_shards = std::span(shards).subspan(row);
        PickRun run = FeedPicks(bench->sources, picked.subspan(row), picked_records.subspan(row), verify,
                                [&](ByteView payload, size_t pick) {
                                  const Fault fault = AppendMarked(payload, is_marked, &builder, made);
                                  if (MayBeCutOff(payload, verify)) made->odd.push_back(rest_shards[pick]);
                                  return fault;
                                });
        row += run.num_frames;
        if (!run.fault) break;
        const uint32_t shard = shards[row];
        if (picked[row] == gathered) {
          run.fault.offset -= bench->gathered_offsets[picked_records[row]];
          run.fault.offset += bench->sources[shard].offsets[records[row]];
        }
        made->odd.push_back(shard);
        made->faults.push_back({shard, records[row], bench->sources[shard].offsets[records[row]], run.fault,
                                builder.unknown_name()});
        if (!skips || run.fault.kind == FaultKind::kNoMemory) break;
        ++row;
      }
    }
    for (const uint32_t shard : bench->used) {
      const MappedRange* range = bench->ranges[shard];
      if (range != nullptr && range->is_torn()) made->torn = shard;
    }
  }

 protected:
  // What the numbers of a job stand for; false where one is out of range.
  virtual bool MapRows(Job*) const { return true; }

 private:
  // Reads small frames of large files, as long as that is cheaper than to map them in. Rows that are not read
  // stay where they are; false if that is all of them. Values that become views have to be in a map.
  bool Gather(Workbench* bench) const {
    const std::vector<MappedRange*>& ranges = bench->ranges;
    if (bench->builder.has_views() ||
        std::none_of(bench->used.begin(), bench->used.end(),
                     [&](uint32_t shard) { return ranges[shard] != nullptr && ranges[shard]->MayRead(); }))
      return false;
    bench->picked_shards = bench->shards;
    bench->picked_records = bench->records;
    const uint32_t gathered = static_cast<uint32_t>(starts_.size() - 1);
    PoolVector<uint8_t>& bytes = bench->gathered;
    std::vector<uint64_t>& offsets = bench->gathered_offsets;
    bytes.Clear();
    offsets.clear();
    for (const uint32_t shard : bench->used) {
      MappedRange* const range = ranges[shard];
      if (range == nullptr || !range->MayRead()) continue;
      const FrameSource& source = bench->sources[shard];
      const size_t num_before = offsets.size();
      for (size_t i = 0; i < bench->shards.size(); ++i) {
        if (bench->shards[i] != shard) continue;
        const uint64_t record = bench->records[i], start = source.offsets[record];
        const uint64_t stop =
            record + 1 < source.offsets.size() ? source.offsets[record + 1] : source.span.size();
        if (stop > source.span.size() || stop < start + kFrameOverhead || stop - start > kMaxGathered)
          continue;
        const size_t place = bytes.size(), size = stop - start;
        if (!bytes.Resize(place + size)) throw std::bad_alloc();
        // Damage, or a file that changes, is left to the map.
        if (!range->Read(start, bytes.data() + place, size) ||
            LoadLE64(bytes.data() + place) != size - kFrameOverhead) {
          bytes.Truncate(place);
          continue;
        }
        bench->picked_shards[i] = gathered;
        bench->picked_records[i] = offsets.size();
        offsets.push_back(place);
      }
      range->NoteReads(offsets.size() - num_before);
    }
    bench->sources[gathered] = {{bytes.data(), bytes.size()}, offsets};
    return true;
  }

  // Finds shard and record of every row; false where a number is out of range.
  bool Locate(Workbench* bench, Job* job) {
    const size_t num_shards = starts_.size() - 1;
    if (bench->ranges.size() != num_shards) {
      bench->sources.resize(num_shards + 1);  // the last has frames that were read
      bench->ranges.resize(num_shards);
      bench->last_used.resize(num_shards);
    }
    bench->serial = job->number + 1;
    bench->used.clear();
    if (!MapRows(job)) return false;
    bench->shards.resize(job->rows.size());
    bench->records.resize(job->rows.size());
    uint32_t shard = 0;
    for (size_t i = 0; i < job->rows.size(); ++i) {
      const uint64_t number = job->rows[i];
      if (number >= starts_.back()) return false;
      // Neighbours lie in the same shard more often than not.
      if (number < starts_[shard] || number >= starts_[shard + 1]) {
        shard = static_cast<uint32_t>(std::upper_bound(starts_.begin(), starts_.end(), number) -
                                      starts_.begin() - 1);
      }
      if (bench->last_used[shard] != bench->serial) {
        bench->last_used[shard] = bench->serial;
        bench->used.push_back(shard);
      }
      bench->shards[i] = shard;
      bench->records[i] = number - starts_[shard];
    }
    return true;
  }

  const std::vector<uint64_t> starts_;
  std::deque<std::vector<uint64_t>> fed_;
  bool is_fed_ = false;
};

class PlannedPicks : public Picks {
 public:
  PlannedPicks(std::vector<uint64_t> starts, BatchPlan plan, RowOrder order)
      : Picks(std::move(starts)), plan_(plan), order_(std::move(order)) {}

  Cut CutNext(ShardBoard*, std::mutex*, Job* job) override {
    return job->number < plan_.num_batches ? Cut::kJob : Cut::kEnd;
  }

 protected:
  // The arithmetic is the worker's, outside of every lock.
  bool MapRows(Job* job) const override {
    return plan_.Rows(job->number, &job->rows) && order_.Map(job->rows);
  }

 private:
  const BatchPlan plan_;
  const RowOrder order_;
};

}  // namespace

std::unique_ptr<BatchSource> MakePickSource(std::vector<uint64_t> starts, BatchPlan plan, RowOrder order) {
  return std::make_unique<PlannedPicks>(std::move(starts), plan, std::move(order));
}

std::unique_ptr<FedSource> MakeFedSource(std::vector<uint64_t> starts) {
  return std::make_unique<Picks>(std::move(starts));
}

}  // namespace tfrkit
