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

  // The record, or its Fault. Raises if the file was cut off. Keeps the interpreter lock: letting it go and
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

// Tables of many shards for one native call.
class PickedTables {
 public:
  // REQUIRES: `tables` holds the tables until the call is over.
  explicit PickedTables(nb::sequence tables);

  std::span<const FrameSource> sources() const { return sources_; }
  std::span<MappedRange* const> ranges() const { return ranges_; }

  // As MappedCall::Finish: `odd` are the shards of picks that may be cut off, or have a fault.
  void Finish(std::span<const uint32_t> odd);

 private:
  std::vector<FrameSource> sources_;
  std::vector<FileMap*> maps_;
  std::vector<MappedRange*> ranges_;
};

}  // namespace tfrkit
