// Records by number out of a mapped shard.
//
// One small record costs less than the Python around it, so the look-up, the check that the file is
// still as long as it was, the checksums and the bytes object are one call here.
#include <fcntl.h>
#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

#include "bindings/buffers.h"
#include "core/frame_reader.h"

namespace tfrkit {

namespace {

class FrameTable {
 public:
  // Keeps a descriptor of its own: the caller's may be closed, and its number used for another file.
  FrameTable(nb::object data, Offsets offsets, std::string_view verify, int descriptor)
      : buffer_(data),
        offsets_(std::move(offsets)),
        verify_(ToVerify(verify)),
        descriptor_(descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, 0)) {}
  ~FrameTable() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  FrameTable(const FrameTable&) = delete;
  FrameTable& operator=(const FrameTable&) = delete;

  // The record, its Fault, or None if the file became shorter than its map.
  nb::object Read(int64_t number) const {
    const int64_t count = static_cast<int64_t>(offsets_.size());
    if (number < 0) number += count;
    if (number < 0 || number >= count) throw nb::index_error("record number out of range");
    const ByteView span = buffer_.bytes();
    struct stat info;
    // Touching a mapped page behind the end of its file would kill the process.
    if (descriptor_ >= 0 &&
        (fstat(descriptor_, &info) != 0 || static_cast<uint64_t>(info.st_size) < span.size())) {
      return nb::none();
    }
    const uint64_t offset = offsets_.data()[number];
    Frame frame;
    Fault fault{FaultKind::kTruncatedHeader, -1, offset, kHeaderSize, 0};
    if (offset <= span.size()) fault = ReadFrame(span, offset, verify_, &frame);
    if (fault) return ToPython(fault, 0);
    return nb::bytes(frame.payload.data(), frame.payload.size());
  }

  size_t size() const { return offsets_.size(); }

 private:
  Buffer buffer_;
  Offsets offsets_;
  Verify verify_;
  int descriptor_;
};

}  // namespace

void BindFrameTable(nb::module_& m) {
  nb::class_<FrameTable>(m, "FrameTable", "Records by number out of one span. Any thread.")
      .def(nb::init<nb::object, Offsets, std::string_view, int>(), nb::arg("data"), nb::arg("offsets"),
           nb::arg("verify"), nb::arg("descriptor"))
      .def("read", &FrameTable::Read, nb::arg("number"), "The record, its Fault, or None if the file shrank.",
           nb::sig("def read(self, number: int) -> bytes | Fault | None"))
      .def("__len__", &FrameTable::size);
}

}  // namespace tfrkit
