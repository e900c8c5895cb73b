// Bytes values that stay in the mapped file until Python asks for them.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <vector>

#include "bindings/buffers.h"
#include "bindings/file_map.h"
#include "core/base/pool.h"
#include "engine/batch_source.h"

namespace tfrkit {

// A map that views point into, and what keeps it there.
struct ViewedMap {
  nb::object owner;
  FileMap* map;
};

// The values of one column. No address leaves this class: every value is copied by a call that is guarded and
// checks afterwards that the file still is what was read when the views were made. Any thread.
class ByteViews {
 public:
  using Marks = std::shared_ptr<const std::vector<RecordMark>>;

  // REQUIRES: every view is empty or in one of `maps`. Without `marks` a file that was written to meanwhile
  // is refused; with them, if the record of the value is not the same any more.
  ByteViews(PoolVector<ByteView> views, std::vector<ViewedMap> maps, Marks marks)
      : views_(std::move(views)), maps_(std::move(maps)), marks_(std::move(marks)) {}

  size_t size() const { return views_.size(); }
  Array<int64_t> Lengths() const;
  // Values [start, stop) as a list of bytes.
  nb::object Copy(size_t start, size_t stop) const;
  // All values, one after the other.
  Array<uint8_t> Join() const;

 private:
  // `copies[i]` is where the copy of view start + i lies. Raises if one is not what was checked.
  void Check(size_t start, const std::vector<const uint8_t*>& copies) const;
  bool IsAsChecked(ByteView view, const uint8_t* copy) const;

  PoolVector<ByteView> views_;
  std::vector<ViewedMap> maps_;
  Marks marks_;
};

}  // namespace tfrkit
