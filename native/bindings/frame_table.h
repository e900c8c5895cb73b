// Records by number out of one span, as Python holds them, and out of many.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bindings/buffers.h"
#include "bindings/file_map.h"
#include "core/frames/frame_picks.h"

namespace tfrkit {

class FrameTable {
 public:
  FrameTable(nb::object data, Offsets offsets, std::string_view verify);

  // The record, or its Fault. Raises if the file was cut off. Keeps the interpreter lock: releasing it and
  // taking it again costs more than a small record. REQUIRES: number < size().
  nb::object Read(uint64_t number) const;

  size_t size() const { return offsets_.size(); }
  FrameSource source() const { return {buffer_.bytes(), {offsets_.data(), offsets_.size()}}; }
  FileMap* map() const { return buffer_.map(); }

 private:
  nb::object data_;  // keeps the map, which the buffer only points to
  Buffer buffer_;
  Offsets offsets_;
  Verify verify_;
};

// One native call that reads record `records[i]` of `tables[shards[i]]` for each i.
class PickCall {
 public:
  // Raises where a pick is outside its table. REQUIRES: the arguments outlive the call.
  PickCall(nb::sequence tables, const Numbers& shards, const Offsets& records);

  std::span<const FrameSource> sources() const { return sources_; }
  std::span<MappedRange* const> ranges() const { return ranges_; }
  std::span<const uint32_t> shards() const { return shards_; }
  std::span<const uint64_t> records() const { return records_; }

  // As MappedCall::Finish: `odd` are the shards of picks that may be cut off.
  void Finish(const PickRun& run, std::span<const uint32_t> odd);

 private:
  std::span<const uint32_t> shards_;
  std::span<const uint64_t> records_;
  std::vector<FrameSource> sources_;
  std::vector<FileMap*> maps_;
  std::vector<MappedRange*> ranges_;
};

}  // namespace tfrkit
