#include "engine/batch_engine.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <system_error>
#include <utility>

#include "core/base/pool.h"
#include "os/worker_threads.h"

namespace tfrkit {
namespace {

// Batches that wait for each thread, at most: enough to even out batches that take longer than others.
constexpr uint64_t kAheadPerThread = 4;
// How much of a mapped file that is read in order stays mapped in after it was read; `window_nbytes` of
// _limits.py is that of Python.
constexpr uint64_t kReleaseNbytes = uint64_t{16} << 20;

// A thread tries so often to get the lock before it sleeps, and counts so far in between: about 1 µs in all,
// not measured.
constexpr int kLockTries = 50;
constexpr int kLockPause = 50;

template <class T>
uint64_t SizeOf(const PoolVector<T>& values) {
  return values.size() * sizeof(T);
}

uint64_t SizeOf(const Column& column) {
  return SizeOf(column.ints) + SizeOf(column.floats) + SizeOf(column.bytes) + SizeOf(column.byte_offsets) +
         SizeOf(column.views) + SizeOf(column.splits) + SizeOf(column.list_splits) + SizeOf(column.presence) +
         SizeOf(column.frame_presence);
}

// Batches up to this size are packed; in larger ones, making an array of each column costs nothing.
constexpr uint64_t kMaxPackedNbytes = uint64_t{1} << 20;

ByteView NumbersOf(const Column& column) {
  const bool is_int = !column.ints.empty();
  return {static_cast<const uint8_t*>(is_int ? static_cast<const void*>(column.ints.data())
                                             : static_cast<const void*>(column.floats.data())),
          is_int ? SizeOf(column.ints) : SizeOf(column.floats)};
}

// Copies plain columns to one block. The thread that takes the batch then frees one, and none that other
// threads allocated from at the same time.
void Pack(const std::vector<bool>& plain, MadeBatch* made) {
  size_t num_plain = 0, nbytes = 0;
  for (size_t i = 0; i < plain.size(); ++i) {
    if (!plain[i]) continue;
    ++num_plain;
    nbytes += PackedSize(NumbersOf(made->columns[i]).size());
  }
  if (num_plain < 2 || nbytes == 0 || nbytes > kMaxPackedNbytes || !made->packed.Resize(nbytes)) return;
  uint8_t* target = made->packed.data();
  for (size_t i = 0; i < plain.size(); ++i) {
    if (!plain[i]) continue;
    Column& column = made->columns[i];
    const ByteView numbers = NumbersOf(column);
    std::memcpy(target, numbers.data(), numbers.size());
    target += PackedSize(numbers.size());
    column = Column();
  }
}

}  // namespace

BatchEngine::BatchEngine(EngineOptions options, std::unique_ptr<BatchSource> source)
    : options_(std::move(options)),
      source_(std::move(source)),
      fed_(nullptr),
      board_(options_.num_shards),
      slots_(std::max<size_t>(1, kAheadPerThread * options_.threads)) {}

BatchEngine::BatchEngine(EngineOptions options, std::unique_ptr<FedSource> source)
    : options_(std::move(options)),
      source_(std::move(source)),
      fed_(static_cast<FedSource*>(source_.get())),
      board_(options_.num_shards),
      slots_(std::max<size_t>(1, kAheadPerThread * options_.threads)) {}

BatchEngine::~BatchEngine() { Close(); }

uint64_t BatchEngine::Limit() const {
  const uint64_t threads = options_.threads;
  if (last_nbytes_ == 0) return threads + 1;
  return std::max(threads, std::min(kAheadPerThread * threads, options_.ahead_nbytes / last_nbytes_));
}

// The lock is held for a fraction of a microsecond, and a thread that goes to sleep over it needs many to
// wake up. So it tries some times first.
std::unique_lock<std::mutex> BatchEngine::Lock() {
  std::unique_lock lock(mutex_, std::try_to_lock);
  for (int tries = 0; !lock.owns_lock() && tries < kLockTries; ++tries) {
    for (int wait = 0; wait < kLockPause; ++wait) std::atomic_signal_fence(std::memory_order_seq_cst);
    (void)lock.try_lock();
  }
  if (!lock.owns_lock()) lock.lock();
  return lock;
}

// With the lock held. Threads that cannot be started are done without.
void BatchEngine::Start() {
  is_started_ = true;
  process_id_ = ProcessId();
  const SignalsBlocked blocked;
  try {
    workers_.reserve(options_.threads);
    for (size_t i = 1; i <= options_.threads; ++i) {
      workers_.emplace_back([this, bench = &benches_[i]] { Work(bench); });
    }
  } catch (const std::system_error&) {
  }
}

bool BatchEngine::IsForeign() const { return process_id_ != 0 && process_id_ != ProcessId(); }

bool BatchEngine::is_hungry() const {
  const std::lock_guard lock(mutex_);
  return is_hungry_;
}

void BatchEngine::Work(Workbench* bench) {
  try {
    while (WorkOnce(bench)) {
    }
  } catch (const std::bad_alloc&) {
    const std::lock_guard lock(mutex_);
    is_out_of_memory_ = true;
    for_consumers_.notify_all();
  }
}

bool BatchEngine::WaitForArrival(std::unique_lock<std::mutex>* lock, uint64_t* num_arrivals) {
  for_consumers_.notify_all();
  for_arrivals_.wait(*lock, [&] { return is_closed_ || num_arrivals_ != *num_arrivals; });
  *num_arrivals = num_arrivals_;
  return !is_closed_;
}

// Jobs are cut in order, by one worker at a time, which cuts for all that are idle before it goes to work:
// handing the cutting on from thread to thread would cost more than a short job.
bool BatchEngine::NextJob(Job* job) {
  std::unique_lock lock = Lock();
  ++num_idle_;
  for_workers_.wait(
      lock, [&] { return is_closed_ || !jobs_.empty() || (!is_cutting_ && (num_batches_ || HasRoom())); });
  --num_idle_;
  if (is_closed_) return false;
  if (!jobs_.empty()) {
    *job = std::move(jobs_.front());
    jobs_.pop_front();
    return true;
  }
  if (num_batches_) return false;
  is_cutting_ = true;
  while (true) {
    Job next;
    next.number = num_claimed_;
    uint64_t num_arrivals = num_arrivals_;
    Cut cut;
    while (true) {
      lock.unlock();
      cut = source_->CutNext(&board_, &mutex_, &next);
      lock.lock();
      if (is_closed_) return false;
      if (cut != Cut::kWait) break;
      is_hungry_ = (fed_ != nullptr || board_.is_open()) && num_arrivals_ == num_arrivals;
      if (!WaitForArrival(&lock, &num_arrivals)) return false;
    }
    if (cut == Cut::kEnd) {
      if (!num_batches_) num_batches_ = num_claimed_;
      is_cutting_ = false;
      for_workers_.notify_all();
      for_consumers_.notify_all();
      return false;
    }
    ++num_claimed_;
    if (jobs_.size() < num_idle_ && HasRoom() && !num_batches_) {
      jobs_.push_back(std::move(next));
      lock.unlock();
      for_workers_.notify_one();
      lock.lock();
      continue;
    }
    *job = std::move(next);
    is_cutting_ = false;
    const bool is_over = num_batches_.has_value(), has_room = HasRoom();
    lock.unlock();
    if (is_over) {
      for_workers_.notify_all();
    } else if (has_room) {
      for_workers_.notify_one();
    }
    return true;
  }
}

bool BatchEngine::WorkOnce(Workbench* bench) {
  Job job;
  if (!NextJob(&job)) return false;
  ReleasePages();
  uint64_t num_arrivals = UINT64_MAX;
  while (!source_->Prepare(&board_, &mutex_, bench, &job)) {
    std::unique_lock lock(mutex_);
    if (!WaitForArrival(&lock, &num_arrivals)) return false;
  }
  MadeBatch made;
  Make(bench, &job, &made);
  std::unique_lock lock = Lock();
  if (is_closed_) return false;
  last_nbytes_ = std::max<uint64_t>(1, made.nbytes);
  if (made.IsLast(options_.skips)) {
    // What was claimed after the end of a pass is never taken.
    num_batches_ = std::min(num_batches_.value_or(UINT64_MAX), job.number + 1);
    for_workers_.notify_all();
  }
  slots_[job.number % slots_.size()] = std::move(made);
  const bool is_awaited = num_waiting_consumers_ != 0 && job.number == num_taken_;
  lock.unlock();
  if (is_awaited) for_consumers_.notify_all();
  return true;
}

void BatchEngine::Make(Workbench* bench, Job* job, MadeBatch* made) {
  try {
    if (job != nullptr) {
      source_->Fill(bench, job, options_.verify, options_.skips, made);
      if (source_->GoesOn() && made->faults.empty()) return;
    }
    made->num_rows = bench->builder.num_rows();
    made->columns = bench->builder.Finish();
    Pack(options_.plain, made);
    made->nbytes = SizeOf(made->packed);
    for (const Column& column : made->columns) made->nbytes += SizeOf(column);
  } catch (const std::bad_alloc&) {
    bench->builder.Finish();
    RowFault fault;
    fault.fault.kind = FaultKind::kNoMemory;
    if (job == nullptr) {
      fault.shard = made->last_shard;
      fault.offset = made->last_stop;
    } else if (!bench->shards.empty() && job->stretches.empty()) {
      fault.shard = bench->shards[0];
      fault.record = bench->records[0];
    } else if (!job->stretches.empty()) {
      fault.shard = job->stretches[0].shard;
      fault.record = job->stretches[0].record;
      fault.offset = job->stretches[0].start;
    }
    made->faults.push_back(std::move(fault));
  }
}

// The thread that takes makes the batch itself: each where there are no workers, else the first, which then
// does not wait for a thread to start. With alone_mutex_ held.
BatchEngine::Status BatchEngine::MakeHere(MadeBatch* made) {
  Workbench* const bench = &benches_[0];
  if (!job_) {
    job_.emplace();
    job_->number = num_taken_;
    is_cut_ = false;
  }
  do {
    bool is_end = false;
    if (!is_cut_) {
      const Cut cut = source_->CutNext(&board_, &mutex_, &*job_);
      const std::lock_guard lock(mutex_);
      if (cut == Cut::kWait) {
        is_hungry_ = fed_ != nullptr || board_.is_open();
        return Status::kWait;
      }
      is_end = cut == Cut::kEnd;
      if (is_end && bench->builder.num_rows() == 0) {
        num_batches_ = num_taken_;
        return Status::kEnd;
      }
      is_cut_ = true;
    }
    if (!is_end && !source_->Prepare(&board_, &mutex_, bench, &*job_)) return Status::kWait;
    {
      const std::lock_guard lock(mutex_);
      num_claimed_ = num_taken_ + 1;
      if (options_.threads != 0 && !is_started_ && !is_closed_) Start();
    }
    Make(bench, is_end ? nullptr : &*job_, &begun_);
    is_cut_ = false;
  } while (begun_.faults.empty() && source_->GoesOn());
  *made = std::exchange(begun_, MadeBatch());
  job_.reset();
  const std::lock_guard lock(mutex_);
  ++num_taken_;
  NoteTaken(*made);
  if (made->IsLast(options_.skips)) num_batches_ = num_taken_;
  for_workers_.notify_all();
  if (num_waiting_consumers_ != 0) for_consumers_.notify_all();
  return Status::kBatch;
}

BatchEngine::Status BatchEngine::Take(std::chrono::milliseconds patience, MadeBatch* made) {
  bool wakes_worker = false, wakes_consumer = false;
  {
    std::unique_lock lock = Lock();
    if (workers_.empty()) {
      lock.unlock();
      const std::lock_guard alone(alone_mutex_);
      lock.lock();
      if (workers_.empty()) {
        if (is_closed_ || (num_batches_ && num_taken_ >= *num_batches_)) return Status::kEnd;
        if (benches_.empty()) KeepLargeBlocks();  // columns that are freed are the memory of the next ones
        while (benches_.size() <= options_.threads) {
          benches_.emplace_back(options_.kind, options_.specs, options_.known);
        }
        lock.unlock();
        const Status status = MakeHere(made);
        if (status == Status::kBatch) ReleasePages();
        return status;
      }
    }
    const auto is_over = [&] { return is_closed_ || (num_batches_ && num_taken_ >= *num_batches_); };
    const auto is_ready = [&] { return slots_[num_taken_ % slots_.size()].has_value(); };
    const auto wants = [&] { return board_.has_wanted() || is_hungry_; };
    ++num_waiting_consumers_;
    const bool is_something = for_consumers_.wait_for(
        lock, patience, [&] { return is_over() || is_ready() || wants() || is_out_of_memory_; });
    --num_waiting_consumers_;
    if (is_over()) return Status::kEnd;
    if (!is_something) return Status::kTimeout;
    if (wants()) return Status::kWait;
    std::optional<MadeBatch>& slot = slots_[num_taken_ % slots_.size()];
    if (!slot) return Status::kNoMemory;
    *made = std::move(*slot);
    slot.reset();
    ++num_taken_;
    NoteTaken(*made);
    // Waking a thread takes longer than taking a batch: one is woken when there is work for several, which it
    // cuts and wakes the others for.
    const uint64_t limit = Limit();
    wakes_worker = num_idle_ != 0 && num_claimed_ - num_taken_ + std::max<uint64_t>(1, limit / 4) <= limit;
    wakes_consumer = num_waiting_consumers_ != 0;
  }
  if (wakes_worker) for_workers_.notify_one();
  if (wakes_consumer) for_consumers_.notify_one();
  return Status::kBatch;
}

// The batch before is done with: views of this one are still to be read.
void BatchEngine::NoteTaken(const MadeBatch& made) {
  if (taken_stop_ != 0) NoteRead(taken_shard_, taken_stop_);
  taken_shard_ = made.last_shard;
  taken_stop_ = made.last_stop;
}

// Pages that were read should not count as this process's memory.
void BatchEngine::NoteRead(uint32_t shard, uint64_t stop) {
  if (shard < released_shard_) return;
  if (shard != released_shard_) {
    const ShardSource& before = board_.source(released_shard_);
    if (before.range != nullptr) read_pages_.push_back({before.range, released_, before.frames.span.size()});
    released_shard_ = shard;
    released_ = 0;
  }
  if (stop < released_ + kReleaseNbytes) return;
  MappedRange* const range = board_.source(shard).range;
  if (range != nullptr) read_pages_.push_back({range, released_, stop});
  released_ = stop;
}

// Without the lock: taking 16 MiB out of the tables of all cores costs as much as decoding half a batch.
void BatchEngine::ReleasePages() {
  std::vector<Pages> pages;
  {
    const std::lock_guard lock(mutex_);
    if (read_pages_.empty()) return;
    pages.swap(read_pages_);
  }
  for (const Pages& read : pages) read.range->Release(read.start, read.stop);
}

std::vector<uint32_t> BatchEngine::TakeWanted() {
  const std::lock_guard lock(mutex_);
  return board_.TakeWanted();
}

void BatchEngine::SetShard(uint32_t shard, const ShardSource& source) {
  const std::lock_guard lock(mutex_);
  board_.Set(shard, source);
  ++num_arrivals_;
  for_arrivals_.notify_all();
}

void BatchEngine::FailShard(uint32_t shard) {
  const std::lock_guard lock(mutex_);
  board_.Fail(shard);
  ++num_arrivals_;
  for_arrivals_.notify_all();
}

void BatchEngine::OpenShards() {
  const std::lock_guard lock(mutex_);
  board_.set_open(true);
}

void BatchEngine::AddShard(const ShardSource* source) {
  const std::lock_guard lock(mutex_);
  const auto shard = static_cast<uint32_t>(board_.size());
  board_.Add();
  if (source == nullptr) {
    board_.Fail(shard);
  } else {
    board_.Set(shard, *source);
  }
  is_hungry_ = false;
  ++num_arrivals_;
  for_arrivals_.notify_all();
}

void BatchEngine::EndShards() {
  const std::lock_guard lock(mutex_);
  board_.set_open(false);
  is_hungry_ = false;
  ++num_arrivals_;
  for_arrivals_.notify_all();
}

void BatchEngine::Feed(std::vector<uint64_t> records) {
  const std::lock_guard lock(mutex_);
  if (fed_ == nullptr) return;
  fed_->Feed(std::move(records));
  is_hungry_ = false;
  ++num_arrivals_;
  for_arrivals_.notify_all();
}

void BatchEngine::EndFeed() {
  const std::lock_guard lock(mutex_);
  if (fed_ == nullptr) return;
  fed_->EndFeed();
  is_hungry_ = false;
  ++num_arrivals_;
  for_arrivals_.notify_all();
}

void BatchEngine::Close() {
  std::vector<std::thread> workers;
  {
    const std::lock_guard lock(mutex_);
    is_closed_ = true;
    workers.swap(workers_);
    for_consumers_.notify_all();
    for_workers_.notify_all();
    for_arrivals_.notify_all();
  }
  for (std::thread& worker : workers) worker.join();
  ReleasePicked();
}

// Records that are picked lie anywhere, so their pages stay mapped in during the pass: giving them back for
// each batch makes a shuffled pass ten times slower, because a fault maps half a megabyte in. Where a pass
// ends they are not needed any more.
void BatchEngine::ReleasePicked() {
  const std::lock_guard lock(mutex_);
  for (uint32_t shard = 0; shard < board_.size(); ++shard) {
    if (board_.state(shard) != ShardBoard::State::kReady) continue;
    const ShardSource& source = board_.source(shard);
    if (source.range == nullptr || source.frames.offsets.empty()) continue;
    if (source.frames.span.size() < kReleaseNbytes) continue;
    source.range->Release(0, source.frames.span.size());
    source.range->ForgetReads();
  }
}

}  // namespace tfrkit
