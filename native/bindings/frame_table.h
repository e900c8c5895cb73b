// Records by number out of one span, as Python holds them, and out of many.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bindings/buffers.h"
#include "bindings/file_map.h"
#include "core/frames/frame_picks.h"

namespace tfrkit {

// Pages of offsets with the arrays they are made of.
class PagesOfIndex {
 public:
  PagesOfIndex(Offsets offsets, Numbers sums, uint64_t page);

  // The first damaged page of those with records [start, stop); the number of pages if all are whole.
  uint64_t FindDamaged(uint64_t start, uint64_t stop);

  OffsetPages& pages() { return pages_; }

 private:
  Offsets offsets_;
  Numbers sums_;
  OffsetPages pages_;
};

class FrameTable {
 public:
  // `pages` checks offsets when they are used; None where all were checked.
  FrameTable(nb::object data, Offsets offsets, std::string_view verify, nb::object pages);

  // The record, or its Fault. Raises if the file was cut off. Keeps the interpreter lock: releasing it and
  // taking it again costs more than a small record. REQUIRES: number < size().
  nb::object Read(uint64_t number) const;

  size_t size() const { return offsets_.size(); }
  FrameSource source() const { return {buffer_.bytes(), {offsets_.data(), offsets_.size()}, pages_}; }
  FileMap* map() const { return buffer_.map(); }

 private:
  nb::object data_;  // keeps the map, which the buffer only points to
  Buffer buffer_;
  Offsets offsets_;
  nb::object owner_;  // keeps the pages
  OffsetPages* pages_ = nullptr;
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
