// The shards of a pass, as the engine knows them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/frames/frame_picks.h"
#include "os/map_guard.h"

namespace tfrkit {

// A shard as the engine reads it. What it points to must outlive the engine, or be dropped only after the
// last batch of the shard was taken.
struct ShardSource {
  FrameSource frames;            // offsets are empty where frames are found by their headers
  MappedRange* range = nullptr;  // nullptr: memory that is no map
};

// Shards that are opened on demand by the consumer of batches. All under the lock of the engine.
class ShardBoard {
 public:
  enum class State : uint8_t { kUnknown, kWanted, kReady, kFailed };

  explicit ShardBoard(size_t num_shards) : states_(num_shards), sources_(num_shards) {}

  size_t size() const { return states_.size(); }

  // May more shards come, after those that are there?
  bool is_open() const { return is_open_; }
  void set_open(bool is_open) { is_open_ = is_open; }
  void Add() {
    states_.emplace_back();
    sources_.emplace_back();
  }

  State state(uint32_t shard) const { return states_[shard]; }
  const ShardSource& source(uint32_t shard) const { return sources_[shard]; }

  // True if it is there, or known not to open; otherwise it is wanted from now on.
  bool Ask(uint32_t shard) {
    if (states_[shard] == State::kUnknown) {
      states_[shard] = State::kWanted;
      wanted_.push_back(shard);
    }
    return states_[shard] != State::kWanted;
  }
  void Set(uint32_t shard, const ShardSource& source) {
    sources_[shard] = source;
    states_[shard] = State::kReady;
  }
  void Fail(uint32_t shard) { states_[shard] = State::kFailed; }

  bool has_wanted() const { return !wanted_.empty(); }
  std::vector<uint32_t> TakeWanted() { return std::exchange(wanted_, {}); }

 private:
  std::vector<State> states_;
  std::vector<ShardSource> sources_;
  std::vector<uint32_t> wanted_;
  bool is_open_ = false;
};

}  // namespace tfrkit
