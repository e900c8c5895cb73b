// Finished batches, in order, made by native threads.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/columns/column_builder.h"
#include "core/frames/frame_reader.h"
#include "engine/batch_source.h"

namespace tfrkit {

struct EngineOptions {
  RecordKind kind = RecordKind::kExample;
  std::vector<ColumnSpec> specs;
  std::optional<std::vector<KnownName>> known;  // as for ColumnBuilder
  std::vector<bool> plain;                      // by spec: one number per row; none of them if empty
  Verify verify = Verify::kAll;
  bool skips = false;         // damaged records are left out and listed; else the first one ends the pass
  size_t threads = 0;         // 0: batches are made by the thread that takes them
  uint64_t ahead_nbytes = 0;  // batches that wait, judged by the last one; one for each thread always may
  size_t num_shards = 0;
};

// One pass over a dataset.
//
// Workers take jobs from the source in the order of batches, make them in any order, and leave them in a
// ring of slots; `Take` gives them out in order. Shards are opened by the caller of `Take`: it answers kWait
// when something is needed that only the caller can do. Any number of threads may call any function.
class BatchEngine {
 public:
  enum class Status : uint8_t {
    kBatch,
    kWait,     // for the caller: see `TakeWanted` and `is_hungry`
    kTimeout,  // nothing yet
    kEnd,      // also after Close
    kNoMemory,
  };

  BatchEngine(EngineOptions options, std::unique_ptr<BatchSource> source);
  // Lists of records come by `Feed`.
  BatchEngine(EngineOptions options, std::unique_ptr<FedSource> source);
  ~BatchEngine();
  BatchEngine(const BatchEngine&) = delete;
  BatchEngine& operator=(const BatchEngine&) = delete;

  // The next batch. The first one is made by the caller, while the threads start; later ones are waited for
  // no longer than `patience`.
  Status Take(std::chrono::milliseconds patience, MadeBatch* made);

  // Shards that are waited for, each listed once.
  std::vector<uint32_t> TakeWanted();
  void SetShard(uint32_t shard, const ShardSource& source);
  void FailShard(uint32_t shard);

  // Shards come one by one, after `num_shards` of the options, until `EndShards`.
  void OpenShards();
  // One shard more: what it holds, or nullptr for one that cannot be read.
  void AddShard(const ShardSource* source);
  void EndShards();

  // One batch more, of an engine that is fed.
  void Feed(std::vector<uint64_t> records);
  void EndFeed();

  // Stops the threads and waits for them. No batch comes after it.
  void Close();

  // True in a process that was forked after the threads were started: it has none of them, and whatever lock
  // they held stays taken. Nothing else may be called then, not even the destructor.
  bool IsForeign() const;

  // Is it waiting for `Feed` or `AddShard`?
  bool is_hungry() const;

 private:
  std::unique_lock<std::mutex> Lock();
  void Start();
  void Work(Workbench* bench);
  // Makes one batch; false where there is nothing more to do.
  bool WorkOnce(Workbench* bench);
  bool NextJob(Job* job);
  // With the lock held: waits for a shard or a list that came after `*num_arrivals` of them; false if closed.
  bool WaitForArrival(std::unique_lock<std::mutex>* lock, uint64_t* num_arrivals);
  Status MakeHere(MadeBatch* made);
  // Fills a batch by the job, or with nullptr only finishes it; one that continues with the next job is not.
  void Make(Workbench* bench, Job* job, MadeBatch* made);
  // Is there room for one batch more? As many as `Limit` may be claimed and not taken.
  bool HasRoom() const { return num_claimed_ - num_taken_ < Limit(); }
  uint64_t Limit() const;
  // With the lock held.
  void NoteTaken(const MadeBatch& made);
  // With the lock held: the bytes of a stream before `stop` are never read again.
  void NoteRead(uint32_t shard, uint64_t stop);
  // Gives pages that were read back to the system.
  void ReleasePages();
  void ReleasePicked();

  const EngineOptions options_;
  const std::unique_ptr<BatchSource> source_;
  FedSource* const fed_;

  std::mutex alone_mutex_;  // taken before mutex_, where there are no workers

  mutable std::mutex mutex_;  // for all below
  std::condition_variable for_consumers_, for_workers_, for_arrivals_;
  ShardBoard board_;
  std::vector<std::optional<MadeBatch>> slots_;  // batch k is in slot k modulo their number
  std::deque<Job> jobs_;                         // cut for workers that were idle then
  uint64_t num_idle_ = 0;
  bool is_cutting_ = false;  // one worker at a time does
  uint64_t num_claimed_ = 0;
  uint64_t num_taken_ = 0;
  std::optional<uint64_t> num_batches_;  // known once the source came to its end, or a batch ended the pass
  uint64_t last_nbytes_ = 0;
  uint32_t num_waiting_consumers_ = 0;
  uint64_t num_arrivals_ = 0;  // of shards and lists: who waits for one looks again when it changes
  bool is_hungry_ = false;     // the source waits to be fed
  bool is_out_of_memory_ = false;
  bool is_started_ = false;
  bool is_closed_ = false;
  std::deque<Workbench> benches_;  // of the thread that takes, and of each worker; made once
  std::vector<std::thread> workers_;
  std::atomic<int> process_id_{0};

  // Of the thread that takes, as long as there are no workers; alone_mutex_ protects it.
  std::optional<Job> job_;
  MadeBatch begun_;  // by jobs before, of a batch that goes on
  bool is_cut_ = false;

  // Of a stream: where the batch that was taken last ends.
  uint32_t taken_shard_ = 0;
  uint64_t taken_stop_ = 0;
  // Of a stream: pages before here are released, or wait for a worker to do that.
  uint32_t released_shard_ = 0;
  uint64_t released_ = 0;
  struct Pages {
    MappedRange* range;
    uint64_t start, stop;
  };
  std::vector<Pages> read_pages_;
};

}  // namespace tfrkit
