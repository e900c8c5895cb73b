// Batches in file order.
//
// The frames of a batch are found by walking the headers, one thread at a time. With several threads and
// small frames, those of later batches are found ahead by scouts, and the cut only counts them. A thread that
// is alone finds them as it decodes them: walking them before takes a tenth of the time.
#include <algorithm>
#include <optional>
#include <utility>

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

// Legs that are assigned ahead: the cut needs the first of them when that many batches more were begun.
constexpr size_t kLegsPerThread = 2;

class StreamSource : public BatchSource {
 public:
  StreamSource(uint64_t batch_size, Verify verify, size_t threads)
      : batch_size_(batch_size),
        verify_(verify == Verify::kNone ? Verify::kNone : Verify::kLengths),
        is_alone_(threads == 0) {
    if (threads > 1) scouts_.emplace(kLegsPerThread * threads, verify_);
  }

  Cut CutNext(ShardBoard* board, std::mutex* mutex, Job* job) override {
    if (is_over_) return Cut::kEnd;
    if (is_alone_) job->stretches.clear();  // of the shard before
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
      while (missing() > 0 && CutFound(source, job)) {
      }
      if (missing() == 0) break;
      if (offset_ >= span.size()) continue;
      if (is_alone_) {
        job->stretches.push_back({shard_, offset_, span.size(), missing(), record_, source});
        return Cut::kJob;
      }
      FrameRun run;
      {
        InstallMapGuard();
        const MapGuard guard(source.range);
        run = CheckFrames(span, offset_, missing(), verify_);
        if (run.fault || (run.num_frames != 0 && MayEndInZeros(source, run.next))) job->odd.push_back(shard_);
      }
      if (source.range != nullptr && source.range->is_torn()) job->torn = shard_;
      if (run.num_frames != 0) Add(source, run.num_frames, run.next, job);
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
    if (scouts_) job->leg = Assign(board, mutex, *job);
    return Cut::kJob;
  }

  bool Prepare(ShardBoard*, std::mutex*, Workbench*, Job* job) override {
    if (job->leg) scouts_->Walk(*std::exchange(job->leg, std::nullopt));
    return true;
  }

  void Fill(Workbench* bench, Job* job, Verify verify, bool, MadeBatch* made) override {
    ColumnBuilder& builder = bench->builder;
    if (!is_alone_) {
      made->odd = std::move(job->odd);
      made->torn = job->torn;
    }
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
      if (is_alone_) Pass(run, made->torn.has_value());
      if (run.fault) {
        made->faults.push_back(
            {part.shard, part.record + run.num_frames, run.next, run.fault, builder.unknown_name()});
        return;
      }
    }
    if (job->fault) made->faults.push_back(*job->fault);
    made->failed = job->failed;
  }

  bool GoesOn() const override { return is_alone_ && num_cut_ != 0 && !is_over_; }

 private:
  uint64_t missing() const { return batch_size_ - num_cut_; }

  // Frames that were cut and decoded at once.
  void Pass(const FrameRun& run, bool is_torn) {
    record_ += run.num_frames;
    offset_ = run.next;
    num_cut_ = run.num_frames == missing() ? 0 : num_cut_ + run.num_frames;
    if (run.fault || is_torn) is_over_ = true;
  }

  void NextShard() {
    ++shard_;
    offset_ = record_ = 0;
  }

  // Frames from the offset on belong to the batch.
  void Add(const ShardSource& source, uint64_t num_frames, uint64_t stop, Job* job) {
    std::vector<Stretch>& stretches = job->stretches;
    if (!stretches.empty() && stretches.back().shard == shard_) {
      stretches.back().stop = stop;
      stretches.back().num_frames += num_frames;
    } else {
      stretches.push_back({shard_, offset_, stop, num_frames, record_, source});
    }
    num_cut_ += num_frames;
    record_ += num_frames;
    offset_ = stop;
  }

  // The same, of frames that scouts found; false where there are none.
  bool CutFound(const ShardSource& source, Job* job) {
    if (!scouts_ || (num_found_ == found_.offsets.size() && !TakeFound())) return false;
    const uint64_t count = std::min<uint64_t>(missing(), found_.offsets.size() - num_found_);
    num_found_ += count;
    Add(source, count, num_found_ < found_.offsets.size() ? found_.offsets[num_found_] : found_.next, job);
    return true;
  }

  bool TakeFound() {
    num_found_ = 0;
    found_.offsets.clear();
    return scouts_->Take(shard_, offset_, &found_) && !found_.offsets.empty();
  }

  // A leg for the worker of a job, unless the first batch waits for it. Shards that come one by one also go
  // one by one, maybe before they are walked.
  std::optional<Leg> Assign(ShardBoard* board, std::mutex* mutex, const Job& job) {
    uint64_t nbytes = 0;
    for (const Stretch& part : job.stretches) nbytes += part.stop - part.start;
    if (job.number == 0 || nbytes > batch_size_ * FrameScouts::kMaxFrameNbytes) return {};
    const std::lock_guard lock(*mutex);
    if (board->is_open()) return {};
    return scouts_->Assign(*board, shard_, offset_, nbytes);
  }

  const uint64_t batch_size_;
  const Verify verify_;
  const bool is_alone_;  // one thread cuts and fills in turn
  uint32_t shard_ = 0;
  uint64_t offset_ = 0;
  uint64_t record_ = 0;
  uint64_t num_cut_ = 0;  // frames of the batch in progress
  bool is_over_ = false;
  std::optional<FrameScouts> scouts_;
  FoundFrames found_;     // the next frames, where scouts were
  size_t num_found_ = 0;  // of them that are cut
};

}  // namespace

std::unique_ptr<BatchSource> MakeStreamSource(uint64_t batch_size, Verify verify, size_t threads) {
  return std::make_unique<StreamSource>(batch_size, verify, threads);
}

}  // namespace tfrkit
