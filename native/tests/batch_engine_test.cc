#include "engine/batch_engine.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <numeric>
#include <thread>

#include "core/wire/example_writer.h"
#include "os/platform.h"
#include "tests/check.h"
#include "tests/frame_text.h"

namespace tfrkit::test {
namespace {

using std::chrono::milliseconds;

// Shards of Examples with the features "n", the number of the record in the dataset, and "f", half of it.
class Shards {
 public:
  explicit Shards(std::vector<uint64_t> sizes) {
    uint64_t number = 0;
    starts_.push_back(0);
    for (const uint64_t size : sizes) {
      std::vector<uint8_t> frames;
      std::vector<uint64_t> offsets;
      for (uint64_t i = 0; i < size; ++i) {
        const int64_t value = static_cast<int64_t>(number++);
        const float half = static_cast<float>(value) / 2;
        const NamedFeature features[] = {{"f", {Kind::kFloat, {}, {&half, 1}, {}}},
                                         {"n", {Kind::kInt64, {&value, 1}, {}, {}}}};
        PoolVector<uint8_t> record;
        CHECK(AppendExample(features, &record));
        offsets.push_back(frames.size());
        AppendSlowFrame({record.data(), record.size()}, &frames);
      }
      frames_.push_back(std::move(frames));
      offsets_.push_back(std::move(offsets));
      starts_.push_back(number);
    }
  }

  size_t size() const { return frames_.size(); }
  uint64_t num_records() const { return starts_.back(); }
  const std::vector<uint64_t>& starts() const { return starts_; }
  ShardSource source(uint32_t shard) const { return {{frames_[shard], offsets_[shard]}, nullptr}; }
  uint64_t offset(uint32_t shard, uint64_t record) const { return offsets_[shard][record]; }

  // Changes the last byte of a payload, which its checksum shows.
  void DamagePayload(uint32_t shard, uint64_t record) {
    const bool is_last = record + 1 == offsets_[shard].size();
    const uint64_t stop = is_last ? frames_[shard].size() : offsets_[shard][record + 1];
    frames_[shard][stop - 5] ^= 1;
  }
  void DamageHeader(uint32_t shard, uint64_t record) { frames_[shard][offsets_[shard][record] + 9] ^= 1; }

 private:
  std::vector<std::vector<uint8_t>> frames_;
  std::vector<std::vector<uint64_t>> offsets_;
  std::vector<uint64_t> starts_;
};

#if defined(__linux__)
// The frames of a shard in a file that is mapped and open.
struct MappedShard {
  explicit MappedShard(const ShardSource& memory) {
    const ByteView frames = memory.frames.span;
    file = std::tmpfile();
    REQUIRE(file != nullptr);
    REQUIRE(std::fwrite(frames.data(), 1, frames.size(), file) == frames.size() && std::fflush(file) == 0);
    size = frames.size();
    map = MapFile(fileno(file), size);
    REQUIRE(map != nullptr);
    range = std::make_unique<MappedRange>(const_cast<uint8_t*>(map), size);
    range->set_descriptor(fileno(file));
    source = {{{map, size}, memory.frames.offsets}, range.get()};
  }
  ~MappedShard() {
    UnmapFile(map, size);
    std::fclose(file);
  }
  MappedShard(const MappedShard&) = delete;
  MappedShard& operator=(const MappedShard&) = delete;

  std::FILE* file = nullptr;
  size_t size = 0;
  const uint8_t* map = nullptr;
  std::unique_ptr<MappedRange> range;
  ShardSource source;
};
#endif

EngineOptions Options(const Shards& shards, size_t threads, bool skips = false) {
  EngineOptions options;
  options.specs = {{"n", Kind::kInt64, false, 1}};
  options.threads = threads;
  options.skips = skips;
  options.ahead_nbytes = 1 << 20;
  options.num_shards = shards.size();
  return options;
}

BatchPlan PlanOf(uint64_t size, uint64_t batch_size) {
  BatchPlan plan;
  plan.size = size;
  plan.batch_size = batch_size;
  plan.num_batches = (size + batch_size - 1) / batch_size;
  return plan;
}

// What a pass gave: the values of each batch, and the faults that came with them.
struct Passed {
  std::vector<std::vector<int64_t>> batches;
  std::vector<RowFault> faults;
  std::optional<uint32_t> failed;
  bool is_out_of_range = false;
};

void OpenWanted(const Shards& shards, BatchEngine* engine, std::optional<uint32_t> broken = {}) {
  for (const uint32_t shard : engine->TakeWanted()) {
    if (shard == broken) {
      engine->FailShard(shard);
    } else {
      engine->SetShard(shard, shards.source(shard));
    }
  }
}

Passed RunToEnd(const Shards& shards, BatchEngine* engine, std::optional<uint32_t> broken = {},
                bool skips = false) {
  Passed passed;
  while (true) {
    MadeBatch made;
    switch (engine->Take(milliseconds(20), &made)) {
      case BatchEngine::Status::kEnd:
      case BatchEngine::Status::kNoMemory:
        return passed;
      case BatchEngine::Status::kWait:
        OpenWanted(shards, engine, broken);
        continue;
      case BatchEngine::Status::kTimeout:
        continue;
      case BatchEngine::Status::kBatch:
        break;
    }
    for (RowFault& fault : made.faults) passed.faults.push_back(std::move(fault));
    passed.failed = made.failed;
    passed.is_out_of_range = made.is_out_of_range;
    if (made.IsLast(skips)) continue;
    const PoolVector<int64_t>& values = made.columns[0].ints;
    passed.batches.emplace_back(values.data(), values.data() + values.size());
  }
}

std::vector<std::vector<int64_t>> Cut(const std::vector<int64_t>& values, size_t size) {
  std::vector<std::vector<int64_t>> batches;
  for (size_t start = 0; start < values.size(); start += size) {
    const size_t stop = std::min(values.size(), start + size);
    batches.emplace_back(values.begin() + static_cast<int64_t>(start),
                         values.begin() + static_cast<int64_t>(stop));
  }
  return batches;
}

std::vector<int64_t> Numbers(uint64_t size) {
  std::vector<int64_t> values(size);
  std::iota(values.begin(), values.end(), 0);
  return values;
}

std::unique_ptr<BatchEngine> Stream(const Shards& shards, size_t threads, uint64_t batch_size) {
  return std::make_unique<BatchEngine>(Options(shards, threads),
                                       MakeStreamSource(batch_size, Verify::kAll, threads));
}

std::unique_ptr<BatchEngine> Shuffle(const Shards& shards, size_t threads, uint64_t batch_size, uint64_t key,
                                     bool skips = false) {
  RowOrder order;
  order.AddPermutation(shards.num_records(), key);
  return std::make_unique<BatchEngine>(
      Options(shards, threads, skips),
      MakePickSource(shards.starts(), PlanOf(shards.num_records(), batch_size), std::move(order)));
}

constexpr size_t kThreadCounts[] = {0, 1, 2, 4, 8};

}  // namespace

TEST(BatchEngine, StreamGivesEveryRecordInFileOrderForAnyNumberOfThreads) {
  const Shards shards({7, 0, 1, 300, 64});
  for (const size_t threads : kThreadCounts) {
    for (const uint64_t size : {1, 7, 64, 1000}) {
      CHECK_EQ(RunToEnd(shards, Stream(shards, threads, size).get()).batches,
               Cut(Numbers(shards.num_records()), size));
    }
  }
}

TEST(BatchEngine, ColumnsOfOneNumberLieInOneBlock) {
  const Shards shards({100});
  for (const size_t num_plain : {0, 1, 2}) {
    EngineOptions options = Options(shards, 0);
    options.specs.push_back({"f", Kind::kFloat, false, 1});
    options.plain = {num_plain > 0, num_plain > 1};
    BatchEngine engine(options, MakeStreamSource(60, Verify::kAll, 0));
    for (const size_t num_rows : {60, 40}) {
      MadeBatch made;
      while (engine.Take(milliseconds(20), &made) == BatchEngine::Status::kWait) OpenWanted(shards, &engine);
      CHECK_EQ(made.num_rows, num_rows);
      const bool is_packed = num_plain == 2;
      CHECK_EQ(made.packed.size(), is_packed ? PackedSize(8 * num_rows) + PackedSize(4 * num_rows) : 0);
      CHECK_EQ(made.columns[0].ints.size(), is_packed ? 0 : num_rows);
      CHECK_EQ(made.columns[1].floats.size(), is_packed ? 0 : num_rows);
      const uint8_t* const ints =
          is_packed ? made.packed.data()
                    : static_cast<const uint8_t*>(static_cast<const void*>(made.columns[0].ints.data()));
      const uint8_t* const floats =
          is_packed ? made.packed.data() + PackedSize(8 * num_rows)
                    : static_cast<const uint8_t*>(static_cast<const void*>(made.columns[1].floats.data()));
      for (size_t row = 0; row < num_rows; ++row) {
        const int64_t number = static_cast<int64_t>(row + (num_rows == 40 ? 60 : 0));
        int64_t value;
        float half;
        std::memcpy(&value, ints + 8 * row, 8);
        std::memcpy(&half, floats + 4 * row, 4);
        CHECK_EQ(value, number);
        CHECK_EQ(half, static_cast<float>(number) / 2);
      }
    }
  }
}

// Long enough for scouts, which find the frames of later batches.
TEST(BatchEngine, LongStreamGivesEveryRecordInFileOrderForAnyNumberOfThreads) {
  const Shards shards({9000, 3, 0, 12000, 700});
  for (const size_t threads : kThreadCounts) {
    for (const uint64_t size : {100, 333}) {
      CHECK_EQ(RunToEnd(shards, Stream(shards, threads, size).get()).batches,
               Cut(Numbers(shards.num_records()), size));
    }
  }
}

#if defined(__linux__)
TEST(BatchEngine, ShardThatMayBeCutOffIsListedAlsoIfItsBatchGoesOn) {
  uint64_t size = 1;
  while (Shards({size, 3}).source(0).frames.span.back() != 0)
    ++size;  // it looks like the end of a short file
  const Shards shards({size, 3});
  const MappedShard first(shards.source(0)), second(shards.source(1));
  for (const size_t threads : {0, 2}) {
    const std::unique_ptr<BatchEngine> engine = Stream(shards, threads, size + 3);
    MadeBatch made;
    while (engine->Take(milliseconds(20), &made) == BatchEngine::Status::kWait) {
      for (const uint32_t shard : engine->TakeWanted()) {
        engine->SetShard(shard, shard == 0 ? first.source : second.source);
      }
    }
    CHECK_EQ(made.num_rows, size + 3);
    CHECK(std::find(made.odd.begin(), made.odd.end(), 0u) != made.odd.end());
  }
}
#endif

TEST(BatchEngine, DamageInALongStreamEndsItThere) {
  for (const bool in_header : {false, true}) {
    Shards shards({9000, 9000});
    in_header ? shards.DamageHeader(1, 7037) : shards.DamagePayload(1, 7037);
    for (const size_t threads : kThreadCounts) {
      const Passed passed = RunToEnd(shards, Stream(shards, threads, 100).get());
      CHECK_EQ(passed.batches, Cut(Numbers(16000), 100));
      REQUIRE(passed.faults.size() == 1);
      CHECK_EQ(passed.faults[0].record, 7037);
      CHECK_EQ(passed.faults[0].offset, shards.offset(1, 7037));
    }
  }
}

TEST(BatchEngine, ShuffledPassIsThePermutationForAnyNumberOfThreads) {
  const Shards shards({7, 0, 1, 300, 64});
  const Permutation permutation(shards.num_records(), 99);
  std::vector<int64_t> wanted;
  for (uint64_t i = 0; i < shards.num_records(); ++i)
    wanted.push_back(static_cast<int64_t>(permutation.At(i)));
  for (const size_t threads : kThreadCounts) {
    CHECK_EQ(RunToEnd(shards, Shuffle(shards, threads, 10, 99).get()).batches, Cut(wanted, 10));
  }
}

#if defined(__linux__)
// Of a file: its first picks are read, later ones come from the map.
TEST(BatchEngine, PicksThatAreReadFromFilesAreThoseOfTheMap) {
  for (const bool is_damaged : {false, true}) {
    Shards shards({3000, 20000});
    if (is_damaged) shards.DamagePayload(1, 777);
    const Permutation permutation(shards.num_records(), 5);
    std::vector<int64_t> wanted;
    for (uint64_t i = 0; i < shards.num_records(); ++i) {
      const auto value = static_cast<int64_t>(permutation.At(i));
      if (!is_damaged || value != 3777) wanted.push_back(value);
    }
    for (const size_t threads : kThreadCounts) {
      const MappedShard first(shards.source(0)), second(shards.source(1));
      CHECK(second.range->MayRead());
      const std::unique_ptr<BatchEngine> engine = Shuffle(shards, threads, 64, 5, is_damaged);
      std::vector<int64_t> values;
      std::vector<RowFault> faults;
      while (true) {
        MadeBatch made;
        const BatchEngine::Status status = engine->Take(milliseconds(20), &made);
        if (status == BatchEngine::Status::kEnd) break;
        if (status == BatchEngine::Status::kWait) {
          for (const uint32_t shard : engine->TakeWanted())
            engine->SetShard(shard, shard == 0 ? first.source : second.source);
        }
        if (status != BatchEngine::Status::kBatch) continue;
        const PoolVector<int64_t>& column = made.columns[0].ints;
        values.insert(values.end(), column.data(), column.data() + column.size());
        for (RowFault& fault : made.faults) faults.push_back(std::move(fault));
      }
      CHECK_EQ(values, wanted);
      CHECK(!second.range->MayRead());  // it was read often enough
      CHECK_EQ(faults.size(), is_damaged ? 1 : 0);
      for (const RowFault& found : faults) {
        CHECK_EQ(found.offset, shards.offset(1, 777));
        CHECK_EQ(found.fault.offset, shards.offset(1, 777));
      }
    }
  }
}

#endif

TEST(BatchEngine, FedListsComeInTheOrderTheyWereFed) {
  const Shards shards({50, 50});
  for (const size_t threads : kThreadCounts) {
    BatchEngine engine(Options(shards, threads), MakeFedSource(shards.starts()));
    for (uint64_t i = 0; i < 40; ++i) engine.Feed({99 - i, i, 50});
    engine.EndFeed();
    const Passed passed = RunToEnd(shards, &engine);
    REQUIRE(passed.batches.size() == 40);
    for (int64_t i = 0; i < 40; ++i) {
      CHECK_EQ(passed.batches[static_cast<size_t>(i)], (std::vector<int64_t>{99 - i, i, 50}));
    }
  }
}

TEST(BatchEngine, HungryEngineWaitsToBeFed) {
  const Shards shards({50});
  for (const size_t threads : kThreadCounts) {
    BatchEngine engine(Options(shards, threads), MakeFedSource(shards.starts()));
    size_t num_taken = 0;
    uint64_t next = 0;
    while (true) {
      MadeBatch made;
      const auto status = engine.Take(milliseconds(20), &made);
      if (status == BatchEngine::Status::kEnd) break;
      if (status == BatchEngine::Status::kBatch) {
        CHECK_EQ(made.columns[0].ints[0], num_taken++);
      } else if (status == BatchEngine::Status::kWait) {
        OpenWanted(shards, &engine);
        if (!engine.is_hungry()) continue;
        if (next < 20) {
          engine.Feed({next++});
        } else {
          engine.EndFeed();
        }
      }
    }
    CHECK_EQ(num_taken, 20);
  }
}

TEST(BatchEngine, SlicesAndListsAreFollowed) {
  const Shards shards({10, 10});
  const std::vector<uint64_t> list{4, 2, 0};
  RowOrder order;
  order.AddList(list);
  order.AddSlice(19, -3);
  BatchEngine engine(Options(shards, 2), MakePickSource(shards.starts(), PlanOf(3, 2), std::move(order)));
  CHECK_EQ(RunToEnd(shards, &engine).batches, (std::vector<std::vector<int64_t>>{{7, 13}, {19}}));
}

TEST(BatchEngine, NumberThatIsNotThereIsReported) {
  const Shards shards({10});
  const std::vector<uint64_t> list{4, 10};
  for (const size_t threads : kThreadCounts) {
    RowOrder order;
    order.AddList(list);
    BatchEngine engine(Options(shards, threads),
                       MakePickSource(shards.starts(), PlanOf(2, 1), std::move(order)));
    const Passed passed = RunToEnd(shards, &engine);
    CHECK_EQ(passed.batches, (std::vector<std::vector<int64_t>>{{4}}));
    CHECK(passed.is_out_of_range);
  }
}

TEST(BatchEngine, RanksShareEveryBatchAndTheLastIsEvenedOut) {
  const Shards shards({10});
  BatchPlan plan = PlanOf(10, 4);
  plan.world_size = 2;
  plan.rank = 1;
  BatchEngine padded(Options(shards, 2), MakePickSource(shards.starts(), plan, {}));
  CHECK_EQ(RunToEnd(shards, &padded).batches, (std::vector<std::vector<int64_t>>{{2, 3}, {6, 7}, {9}}));
  plan.size = 9;
  BatchEngine around(Options(shards, 2), MakePickSource(shards.starts(), plan, {}));
  CHECK_EQ(RunToEnd(shards, &around).batches, (std::vector<std::vector<int64_t>>{{2, 3}, {6, 7}, {0}}));
}

TEST(BatchEngine, BatchesBeforeDamageComeBeforeIt) {
  for (const bool in_header : {false, true}) {
    Shards shards({100, 100});
    in_header ? shards.DamageHeader(1, 37) : shards.DamagePayload(1, 37);
    for (const size_t threads : kThreadCounts) {
      const Passed passed = RunToEnd(shards, Stream(shards, threads, 10).get());
      CHECK_EQ(passed.batches, Cut(Numbers(130), 10));
      REQUIRE(passed.faults.size() == 1);
      CHECK_EQ(passed.faults[0].shard, 1);
      CHECK_EQ(passed.faults[0].record, 37);
      CHECK_EQ(passed.faults[0].offset, shards.offset(1, 37));
      CHECK_EQ(passed.faults[0].fault.kind,
               in_header ? FaultKind::kLengthChecksum : FaultKind::kPayloadChecksum);
    }
  }
}

// The walk of the headers comes to the second one first.
TEST(BatchEngine, OfTwoFaultsInABatchTheFirstEndsThePass) {
  Shards shards({100});
  shards.DamagePayload(0, 33);
  shards.DamageHeader(0, 36);
  for (const size_t threads : kThreadCounts) {
    const Passed passed = RunToEnd(shards, Stream(shards, threads, 10).get());
    REQUIRE(passed.faults.size() == 1);
    CHECK_EQ(passed.faults[0].record, 33);
  }
}

TEST(BatchEngine, SkippedDamageIsListedInOrderAndLeftOut) {
  Shards shards({100, 100});
  shards.DamagePayload(0, 3);
  shards.DamagePayload(0, 4);
  shards.DamageHeader(1, 99);
  for (const size_t threads : kThreadCounts) {
    BatchEngine engine(Options(shards, threads, true), MakePickSource(shards.starts(), PlanOf(200, 10), {}));
    const Passed passed = RunToEnd(shards, &engine, {}, true);
    REQUIRE(passed.batches.size() == 20);
    CHECK_EQ(passed.batches[0], (std::vector<int64_t>{0, 1, 2, 5, 6, 7, 8, 9}));
    CHECK_EQ(passed.batches[19].size(), 9);
    REQUIRE(passed.faults.size() == 3);
    CHECK_EQ(passed.faults[0].record, 3);
    CHECK_EQ(passed.faults[1].record, 4);
    CHECK_EQ(passed.faults[2].shard, 1);
  }
}

TEST(BatchEngine, ShardThatDoesNotOpenEndsThePassAtItsTurn) {
  const Shards shards({20, 20, 20});
  for (const size_t threads : kThreadCounts) {
    const Passed streamed = RunToEnd(shards, Stream(shards, threads, 8).get(), 1);
    CHECK_EQ(streamed.batches, Cut(Numbers(16), 8));
    CHECK_EQ(streamed.failed, std::optional<uint32_t>(1));
    BatchEngine picked(Options(shards, threads), MakePickSource(shards.starts(), PlanOf(60, 10), {}));
    const Passed passed = RunToEnd(shards, &picked, 2);
    CHECK_EQ(passed.batches, Cut(Numbers(40), 10));
    CHECK_EQ(passed.failed, std::optional<uint32_t>(2));
  }
}

TEST(BatchEngine, ClosedInTheMiddleGivesNothingMore) {
  const Shards shards({500});
  for (const size_t threads : kThreadCounts) {
    const auto engine = Stream(shards, threads, 5);
    MadeBatch made;
    while (engine->Take(milliseconds(20), &made) != BatchEngine::Status::kBatch)
      OpenWanted(shards, engine.get());
    engine->Close();
    CHECK_EQ(engine->Take(milliseconds(20), &made), BatchEngine::Status::kEnd);
  }
}

TEST(BatchEngine, EngineThatIsDroppedBeforeItsShardsCameStops) {
  const Shards shards({10});
  for (const size_t threads : kThreadCounts) {
    const auto engine = Shuffle(shards, threads, 2, 5);
    MadeBatch made;
    CHECK_EQ(engine->Take(milliseconds(2000), &made), BatchEngine::Status::kWait);
  }
}

TEST(BatchEngine, NoMoreBatchesThanAllowedAreMadeAhead) {
  const Shards shards({400});
  EngineOptions options = Options(shards, 2);
  options.ahead_nbytes = 0;  // one for each thread
  BatchEngine engine(options, MakePickSource(shards.starts(), PlanOf(400, 1), {}));
  MadeBatch made;
  int64_t wanted = 0;
  while (true) {
    const auto status = engine.Take(milliseconds(20), &made);
    if (status == BatchEngine::Status::kEnd) break;
    if (status == BatchEngine::Status::kWait) OpenWanted(shards, &engine);
    if (status == BatchEngine::Status::kBatch) CHECK_EQ(made.columns[0].ints[0], wanted++);
  }
  CHECK_EQ(wanted, 400);
}

// Several consumers share a pass, others close it: every batch comes to one of them, none twice, and each
// consumer sees them in order.
TEST(BatchEngine, ManyConsumersAndRandomClosesLoseNothingBeforeTheClose) {
  Shards shards({3000, 10, 2000});
  shards.DamagePayload(2, 1500);
  Random random(20261117);
  // Longer where somebody looks for races.
  const char* const seconds = std::getenv("TFRKIT_STRESS_SECONDS");
  const auto stop =
      std::chrono::steady_clock::now() + std::chrono::seconds(seconds == nullptr ? 0 : std::atoi(seconds));
  for (int round = 0; round < 40 || std::chrono::steady_clock::now() < stop; ++round) {
    const size_t threads = 1 + random.Below(8);
    const bool is_shuffled = random.Below(2) == 0;
    const uint64_t size = 1 + random.Below(40);
    const auto engine =
        is_shuffled ? Shuffle(shards, threads, size, random.Next(), true) : Stream(shards, threads, size);
    const uint64_t close_after = random.Below(3) == 0 ? random.Below(100) : UINT64_MAX;
    std::atomic<uint64_t> num_batches{0}, num_faults{0};
    std::mutex mutex;
    std::vector<int64_t> seen;
    std::vector<std::thread> consumers;
    for (int i = 0; i < 8; ++i) {
      consumers.emplace_back([&] {
        while (true) {
          MadeBatch made;
          const auto status = engine->Take(milliseconds(5), &made);
          if (status == BatchEngine::Status::kEnd) return;
          if (status == BatchEngine::Status::kWait) OpenWanted(shards, engine.get());
          if (status != BatchEngine::Status::kBatch) continue;
          num_faults += made.faults.size();
          if (!made.IsLast(is_shuffled)) {
            const std::lock_guard lock(mutex);
            const PoolVector<int64_t>& values = made.columns[0].ints;
            seen.insert(seen.end(), values.data(), values.data() + values.size());
          }
          if (++num_batches == close_after) engine->Close();
        }
      });
    }
    for (std::thread& consumer : consumers) consumer.join();
    std::sort(seen.begin(), seen.end());
    CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
    if (close_after != UINT64_MAX) continue;
    CHECK_EQ(num_faults.load(), 1);
    const uint64_t first_lost = 3010 + 1500;
    CHECK_EQ(seen.size(), is_shuffled ? shards.num_records() - 1 : first_lost / size * size);
  }
}

}  // namespace tfrkit::test
