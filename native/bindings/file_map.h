// A mapped file as Python holds it, and native calls that read one.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <optional>
#include <string_view>

#include "bindings/buffers.h"
#include "core/base/bytes.h"
#include "core/frames/frame_reader.h"
#include "os/map_guard.h"

namespace tfrkit {

// A file mapped for reading. It needs no descriptor, and is unmapped with the last view of it. Any thread.
class FileMap {
 public:
  // The first `size` bytes. `check(is_torn)` raises if the file is shorter than that by now, and for a map
  // that is torn in any case. REQUIRES: `check` does not lead back to this map, or neither is ever freed.
  FileMap(int descriptor, uint64_t size, nb::callable check);
  ~FileMap();
  FileMap(const FileMap&) = delete;
  FileMap& operator=(const FileMap&) = delete;

  ByteView bytes() const { return bytes_; }
  MappedRange* range() { return &range_; }

  // Raises if bytes of the file are known to be lost. Costs nothing where maps are guarded.
  void RequireWhole() {
    if (range_.is_torn() || (!kMapsAreGuarded && IsShorter())) Raise();
  }
  // Raises if the file is shorter than its map; for when something that was read looks odd.
  void Check() { check_(false); }
  // The same; true if the file was written to since it was mapped.
  bool MayBeRewritten() { return check_(false).ptr() == Py_True; }
  // Raises because of a range that is torn.
  [[noreturn]] void Raise();

  // Hints that [start, stop) is not needed for now.
  void Release(uint64_t start, uint64_t stop);

  nb::bytes Slice(nb::slice range);

 private:
  bool IsShorter() const;

  int descriptor_;  // -1 where maps are guarded and the file is not large
  bool is_counted_ = false;
  ByteView bytes_;
  MappedRange range_;
  nb::callable check_;
};

// One native call that reads `buffer`, which may be a mapped file.
class MappedCall {
 public:
  explicit MappedCall(const Buffer& buffer) : map_(buffer.map()) {
    if (map_ == nullptr) return;
    map_->RequireWhole();
    InstallMapGuard();
    guard_.emplace(map_->range());
  }

  // To be called, with the interpreter lock, before anything that was read is handed on: raises if the
  // file was cut off meanwhile. `stop` is where the last whole frame that was read ends, 0 for none; a
  // fault, too, may come from the end of the file having moved.
  //
  // A file that is cut off in the middle of a page reads as zeros up to the end of that page, without any
  // signal. Frames are adjacent, so the last byte of the last one shows it.
  void Finish(uint64_t stop, bool has_fault) {
    if (map_ == nullptr) return;
    const bool is_odd = has_fault || (stop != 0 && map_->bytes()[stop - 1] == 0);
    const bool is_torn = map_->range()->is_torn();
    guard_.reset();  // Python code that runs from here on must not see zeros
    if (is_torn) map_->Raise();
    if (is_odd) map_->Check();
  }

 private:
  FileMap* map_;
  std::optional<MapGuard> guard_;
};

// One native call that reads the frames of a buffer in [start, stop).
class FrameCall {
 public:
  FrameCall(nb::handle data, uint64_t start, uint64_t stop, std::string_view verify)
      : buffer_(data), span_(buffer_.until(stop)), verify_(ToVerify(verify)), call_(buffer_) {
    CheckStart(span_, start);
  }

  ByteView span() const { return span_; }

  // What `read(span, verify)` returns, called without the interpreter lock.
  template <class Reader>
  auto Read(Reader&& read) const {
    nb::gil_scoped_release release;
    return read(span_, verify_);
  }

  // As MappedCall::Finish. A frame that only reaches past `stop` does not look odd.
  void Finish(const FrameRun& run) {
    const bool is_cut =
        run.fault.kind == FaultKind::kTruncatedHeader || run.fault.kind == FaultKind::kTruncatedPayload;
    const bool is_odd = run.fault && !(is_cut && span_.size() < buffer_.bytes().size());
    call_.Finish(run.num_frames == 0 ? 0 : run.next, is_odd);
  }

 private:
  Buffer buffer_;
  ByteView span_;
  Verify verify_;
  MappedCall call_;
};

}  // namespace tfrkit
