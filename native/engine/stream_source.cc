// Batches in file order.
//
// The frames of a batch are found by walking the headers, one thread at a time; the thread that walked
// them decodes them, while they are in its cache. Measured with records of 330 bytes the walk is a
// twentieth of the work, so it keeps twenty threads busy.
#include <algorithm>

#include "core/frames/frame_batch.h"
#include "core/frames/frame_reader.h"
#include "engine/batch_source.h"

namespace tfrkit {
namespace {

// A file that is cut off in the middle of a page reads as zeros up to the end of that page, without any
// signal; frames lie one after the other, so the last byte of the last one shows it.
bool MayEndInZeros(const ShardSource& source, uint64_t stop) {
  return source.range != nullptr && stop != 0 && source.frames.span[stop - 1] == 0;
}

class StreamSource : public BatchSource {
 public:
  StreamSource(uint64_t batch_size, Verify verify)
      : batch_size_(batch_size), verify_(verify == Verify::kNone ? Verify::kNone : Verify::kLengths) {}

  Cut CutNext(ShardBoard* board, std::mutex* mutex, Job* job) override {
    if (is_over_) return Cut::kEnd;
    for (; missing() > 0; NextShard()) {
      ShardSource source;
      {
        const std::lock_guard lock(*mutex);
        if (shard_ == board->size() && !board->is_open()) break;
        if (shard_ == board->size() || !board->Ask(shard_)) return Cut::kWait;
        // The next one is opened while this one is read.
        if (shard_ + 1 < board->size()) board->Ask(shard_ + 1);
        if (board->state(shard_) == ShardBoard::State::kFailed) {
          job->failed = shard_;
          is_over_ = true;
          return Cut::kJob;
        }
        source = board->source(shard_);
      }
      const ByteView span = source.frames.span;
      if (offset_ >= span.size()) continue;
      FrameRun run;
      {
        InstallMapGuard();
        const MapGuard guard(source.range);
        run = CheckFrames(span, offset_, missing(), verify_);
        if (run.fault || (run.num_frames != 0 && MayEndInZeros(source, run.next))) job->odd.push_back(shard_);
      }
      if (source.range != nullptr && source.range->is_torn()) job->torn = shard_;
      if (run.num_frames != 0) {
        job->stretches.push_back({shard_, offset_, run.next, run.num_frames, record_, source});
        num_cut_ += run.num_frames;
        record_ += run.num_frames;
        offset_ = run.next;
      }
      if (run.fault || job->torn) {
        if (run.fault) job->fault = RowFault{shard_, record_, offset_, run.fault, {}};
        is_over_ = true;
        return Cut::kJob;
      }
      if (offset_ < span.size()) break;  // the batch is full
    }
    num_cut_ = 0;
    if (job->stretches.empty()) {
      is_over_ = true;
      return Cut::kEnd;
    }
    return Cut::kJob;
  }

  bool Prepare(ShardBoard*, std::mutex*, Workbench*, Job*) override { return true; }

  void Fill(Workbench* bench, Job* job, Verify verify, bool, MadeBatch* made) override {
    ColumnBuilder& builder = bench->builder;
    made->odd = std::move(job->odd);
    made->torn = job->torn;
    const bool is_marked = verify == Verify::kAll && builder.has_views();
    for (const Stretch& part : job->stretches) {
      const ShardSource& source = part.source;
      FrameRun run;
      {
        InstallMapGuard();
        const MapGuard guard(source.range);
        run = FeedFrames(source.frames.span.first(part.stop), part.start, part.num_frames, UINT64_MAX, verify,
                         [&](ByteView payload) { return AppendMarked(payload, is_marked, &builder, made); });
        if (run.fault || MayEndInZeros(source, run.next)) made->odd.push_back(part.shard);
      }
      if (source.range != nullptr && source.range->is_torn()) made->torn = part.shard;
      made->last_shard = part.shard;
      made->last_stop = run.next;
      if (run.fault) {
        made->faults.push_back(
            {part.shard, part.record + run.num_frames, run.next, run.fault, builder.unknown_name()});
        return;
      }
    }
    if (job->fault) made->faults.push_back(*job->fault);
    made->failed = job->failed;
  }

 private:
  uint64_t missing() const { return batch_size_ - num_cut_; }

  void NextShard() {
    ++shard_;
    offset_ = record_ = 0;
  }

  const uint64_t batch_size_;
  const Verify verify_;
  uint32_t shard_ = 0;
  uint64_t offset_ = 0;
  uint64_t record_ = 0;
  uint64_t num_cut_ = 0;  // frames of the batch in progress
  bool is_over_ = false;
};

}  // namespace

std::unique_ptr<BatchSource> MakeStreamSource(uint64_t batch_size, Verify verify) {
  return std::make_unique<StreamSource>(batch_size, verify);
}

}  // namespace tfrkit
