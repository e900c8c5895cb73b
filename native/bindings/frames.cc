// Checksums, frames, resync, permutation.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "bindings/buffers.h"
#include "bindings/file_map.h"
#include "core/base/permute.h"
#include "core/frames/crc32c.h"
#include "core/frames/frame_batch.h"
#include "core/frames/frame_picks.h"
#include "core/frames/frame_reader.h"
#include "core/frames/frame_writer.h"
#include "core/frames/resync.h"

namespace tfrkit {

namespace {

const char* FaultName(FaultKind kind) {
  switch (kind) {
    case FaultKind::kNone:
      return "none";
    case FaultKind::kTruncatedHeader:
      return "truncated_header";
    case FaultKind::kLengthChecksum:
      return "length_checksum";
    case FaultKind::kTruncatedPayload:
      return "truncated_payload";
    case FaultKind::kPayloadChecksum:
      return "payload_checksum";
    case FaultKind::kIndexPage:
      return "index_page";
    case FaultKind::kWire:
      return "wire";
    case FaultKind::kFeatureKind:
      return "feature_kind";
    case FaultKind::kLength:
      return "length";
    case FaultKind::kMissing:
      return "missing";
    case FaultKind::kUnknown:
      return "unknown";
    case FaultKind::kTooManyNames:
      return "too_many_names";
    case FaultKind::kNoMemory:
      return "no_memory";
  }
  return "?";
}

uint32_t Crc(nb::handle data, uint32_t crc) {
  const Buffer buffer(data);
  const ByteView bytes = buffer.bytes();
  nb::gil_scoped_release release;
  return ExtendCrc32c(crc, bytes.data(), bytes.size());
}

uint32_t CrcWith(const std::string& name, nb::handle data) {
  const Buffer buffer(data);
  for (const Crc32cVariant& variant : Crc32cVariants()) {
    if (name == variant.name && variant.is_supported()) {
      return variant.extend(0, buffer.bytes().data(), buffer.bytes().size());
    }
  }
  throw nb::value_error("this machine has no such crc32c variant");
}

std::vector<std::string> VariantNames() {
  std::vector<std::string> names;
  for (const Crc32cVariant& variant : Crc32cVariants()) {
    if (variant.is_supported()) names.emplace_back(variant.name);
  }
  return names;
}

nb::tuple CheckFramesPy(nb::handle data, uint64_t start, uint64_t stop, uint64_t max_frames,
                        std::string_view verify) {
  FrameCall call(data, start, stop, verify);
  const FrameRun run =
      call.Read([&](ByteView span, Verify mode) { return CheckFrames(span, start, max_frames, mode); });
  call.Finish(run);
  return nb::make_tuple(run.num_frames, run.next, ToPython(run.fault, run.resume));
}

// Reads a byte of each page, so that another thread finds the range mapped in.
void TouchPages(nb::handle data, uint64_t start, uint64_t stop) {
  constexpr uint64_t kPage = 4096;  // the smallest there is
  const Buffer buffer(data);
  const ByteView span = buffer.until(stop);
  CheckStart(span, start);
  MappedCall call(buffer);
  {
    nb::gil_scoped_release release;
    uint8_t sum = 0;
    for (uint64_t offset = start; offset < span.size(); offset += kPage) sum ^= span[offset];
    volatile uint8_t kept = sum;
    (void)kept;
  }
  call.Finish(0, false);
}

// A stretch of frames is indexed a piece at a time, so that the array grows with what is found and
// not with what was asked for.
nb::tuple IndexFramesPy(nb::handle data, uint64_t start, uint64_t stop, uint64_t max_frames,
                        std::string_view verify) {
  constexpr uint64_t kPiece = 1 << 16;
  FrameCall call(data, start, stop, verify);
  PoolVector<uint64_t> offsets;
  FrameRun run{0, start, 0, {}};
  const bool has_memory = call.Read([&](ByteView span, Verify mode) {
    while (offsets.size() < max_frames && !run.fault) {
      const uint64_t wanted = std::min(kPiece, max_frames - offsets.size());
      const size_t before = offsets.size();
      if (!offsets.Resize(before + wanted)) return false;
      run = IndexFrames(span, run.next, wanted, mode, offsets.data() + before);
      offsets.Truncate(before + run.num_frames);
      if (run.num_frames < wanted) break;
    }
    return true;
  });
  run.num_frames = offsets.size();
  call.Finish(run);
  if (!has_memory) throw std::bad_alloc();
  return nb::make_tuple(ToArray(std::move(offsets)), run.next, ToPython(run.fault, run.resume));
}

nb::tuple FindNextFramePy(nb::handle data, uint64_t start, uint64_t stop, bool is_final) {
  const Buffer buffer(data);
  const ByteView span = buffer.until(stop);
  CheckStart(span, start);
  MappedCall call(buffer);
  ResyncResult result;
  {
    nb::gil_scoped_release release;
    result = FindNextFrame(span, start, is_final);
  }
  call.Finish(0, !result.found);
  return nb::make_tuple(result.found, result.offset);
}

// Checks a range and returns the places of its payloads.
FrameRun GatherFrames(const FrameCall& call, uint64_t start, uint64_t max_frames, uint64_t max_nbytes,
                      std::vector<ByteView>* payloads) {
  return call.Read([&](ByteView span, Verify mode) {
    return FeedFrames(span, start, max_frames, max_nbytes, mode, [&](ByteView payload) {
      payloads->push_back(payload);
      return Fault{};
    });
  });
}

// A search of one buffer, as Python holds it.
class SearchedBuffer {
 public:
  explicit SearchedBuffer(nb::object data)
      : data_(std::move(data)), buffer_(data_), search_(buffer_.bytes()) {}

  nb::tuple FindNext(uint64_t start, uint64_t stop, bool is_final, uint64_t max_length) {
    CheckRange(start, stop);
    MappedCall call(buffer_);
    ResyncResult result;
    {
      nb::gil_scoped_release release;
      result = search_.FindNext(start, stop, is_final || stop < buffer_.bytes().size(), max_length);
    }
    call.Finish(0, !result.found);
    return nb::make_tuple(result.found, result.offset);
  }

  nb::tuple CheckFrames(uint64_t start, uint64_t stop, uint64_t max_frames) {
    CheckRange(start, stop);
    MappedCall call(buffer_);
    FrameRun run;
    {
      nb::gil_scoped_release release;
      run = search_.CheckFrames(start, stop, max_frames);
    }
    call.Finish(0, static_cast<bool>(run.fault));
    return nb::make_tuple(run.num_frames, run.next, ToPython(run.fault, run.resume));
  }

  uint64_t num_checked() const { return search_.num_checked(); }

 private:
  void CheckRange(uint64_t start, uint64_t stop) const {
    if (start > stop || stop > buffer_.bytes().size()) throw nb::index_error("range lies outside the buffer");
  }

  nb::object data_;  // keeps a map, which the buffer only points to
  Buffer buffer_;
  FrameSearch search_;
};

// Makes the bytes objects of a stretch while it is still in the cache.
nb::tuple ReadFramesPy(nb::handle data, uint64_t start, uint64_t stop, uint64_t max_frames,
                       uint64_t max_nbytes, std::string_view verify) {
  FrameCall call(data, start, stop, verify);
  std::vector<ByteView> payloads;
  const FrameRun run = GatherFrames(call, start, max_frames, max_nbytes, &payloads);
  if (run.next - start >= kLargeBlock) KeepLargeBlocks();  // many small blocks are freed together, too
  nb::object records = nb::steal(PyList_New(static_cast<Py_ssize_t>(payloads.size())));
  if (!records.is_valid()) nb::raise_python_error();
  for (size_t i = 0; i < payloads.size(); ++i) {
    PyList_SetItem(records.ptr(), static_cast<Py_ssize_t>(i), CopyBytes(payloads[i]).release().ptr());
  }
  call.Finish(run);
  return nb::make_tuple(records, run.next, ToPython(run.fault, run.resume));
}

// The same as views into `data`, which stays alive with them: no byte is copied.
nb::tuple ViewFramesPy(nb::handle data, uint64_t start, uint64_t stop, uint64_t max_frames,
                       uint64_t max_nbytes, std::string_view verify) {
  FrameCall call(data, start, stop, verify);
  std::vector<ByteView> payloads;
  const FrameRun run = GatherFrames(call, start, max_frames, max_nbytes, &payloads);
  call.Finish(run);
  const nb::object whole = nb::steal(PyMemoryView_FromObject(data.ptr()));
  if (!whole.is_valid()) nb::raise_python_error();
  nb::list views;
  for (const ByteView payload : payloads) {
    const Py_ssize_t first = payload.empty() ? 0 : payload.data() - call.span().data();
    const nb::object range =
        nb::steal(PySlice_New(nb::int_(first).ptr(), nb::int_(first + payload.size()).ptr(), nullptr));
    views.append(nb::steal(PyObject_GetItem(whole.ptr(), range.ptr())));
  }
  return nb::make_tuple(views, run.next, ToPython(run.fault, run.resume));
}

// The one record whose frame starts at `offset`, or its Fault. Keeps the interpreter lock: letting
// it go and taking it again costs more than a small record.
nb::object ReadFrameAtPy(nb::handle data, uint64_t offset, std::string_view verify) {
  const Buffer buffer(data);
  const ByteView span = buffer.bytes();
  const Verify mode = ToVerify(verify);
  MappedCall call(buffer);
  Frame frame;
  Fault fault{FaultKind::kTruncatedHeader, -1, offset, kHeaderSize, 0};
  if (offset <= span.size()) fault = ReadFrame(span, offset, mode, &frame);
  if (fault) {
    call.Finish(0, true);
    return ToPython(fault, 0);
  }
  nb::bytes record = CopyBytes(frame.payload);
  call.Finish(frame.end, false);
  return record;
}

nb::bytes FrameRecordsPy(nb::sequence records) {
  PoolVector<uint8_t> out;
  for (nb::handle record : records) {
    const Buffer buffer(record);
    if (!AppendFrame(buffer.bytes(), &out)) throw std::bad_alloc();
  }
  return nb::bytes(out.data(), out.size());
}

Array<uint64_t> PermuteRange(const Permutation& permutation, uint64_t start, uint64_t stop) {
  if (start > stop || stop > permutation.size())
    throw nb::index_error("positions lie outside the permutation");
  PoolVector<uint64_t> items;
  if (!items.Resize(stop - start)) throw std::bad_alloc();
  {
    nb::gil_scoped_release release;
    for (uint64_t position = start; position < stop; ++position)
      items[position - start] = permutation.At(position);
  }
  return ToArray(std::move(items));
}

Array<uint64_t> PermuteMany(const Permutation& permutation, const Offsets& positions) {
  const std::span<const uint64_t> wanted{positions.data(), positions.size()};
  PoolVector<uint64_t> items;
  if (!items.Resize(wanted.size())) throw std::bad_alloc();
  bool is_inside = true;
  {
    nb::gil_scoped_release release;
    for (size_t i = 0; i < wanted.size() && is_inside; ++i) {
      is_inside = wanted[i] < permutation.size();
      if (is_inside) items[i] = permutation.At(wanted[i]);
    }
  }
  if (!is_inside) throw nb::index_error("positions lie outside the permutation");
  return ToArray(std::move(items));
}

Array<uint64_t> PositionsOfRange(const Permutation& permutation, uint64_t start, uint64_t stop) {
  if (start > stop || stop > permutation.size()) throw nb::index_error("items lie outside the permutation");
  PoolVector<uint64_t> positions;
  if (!positions.Resize(stop - start)) throw std::bad_alloc();
  {
    nb::gil_scoped_release release;
    for (uint64_t item = start; item < stop; ++item) positions[item - start] = permutation.PositionOf(item);
  }
  return ToArray(std::move(positions));
}

uint64_t Checked(const Permutation& permutation, uint64_t index) {
  if (index >= permutation.size()) throw nb::index_error("position lies outside the permutation");
  return index;
}

}  // namespace

nb::object ToPython(const Fault& fault, uint64_t resume, uint64_t num_frames, const std::string& name) {
  if (!fault) return nb::none();
  if (fault.kind != FaultKind::kNoMemory) return nb::cast(PyFault{fault, resume, name});
  const nb::object error = nb::borrow(PyExc_MemoryError)("out of memory");
  error.attr("num_frames") = num_frames;
  error.attr("offset") = fault.offset - std::min<uint64_t>(fault.offset, kHeaderSize);
  PyErr_SetObject(PyExc_MemoryError, error.ptr());
  throw nb::python_error();
}

void BindFrames(nb::module_& m) {
  nb::class_<PyFault>(m, "Fault", "What is wrong with a frame or a record, and where.")
      .def_prop_ro("kind", [](const PyFault& f) { return FaultName(f.fault.kind); })
      .def_prop_ro("offset", [](const PyFault& f) { return f.fault.offset; })
      .def_prop_ro("stored", [](const PyFault& f) { return f.fault.stored; })
      .def_prop_ro("computed", [](const PyFault& f) { return f.fault.computed; })
      .def_prop_ro("column", [](const PyFault& f) { return f.fault.column; })
      .def_prop_ro(
          "name", [](const PyFault& f) { return nb::bytes(f.name.data(), f.name.size()); },
          "The first 256 bytes of the name of an unknown feature.")
      .def_prop_ro(
          "resume", [](const PyFault& f) { return f.resume; },
          "End of the faulty frame if its length can be trusted, else 0.");

  m.def("crc32c", &Crc, nb::arg("data"), nb::arg("crc") = 0, "CRC-32C of a buffer, continuing `crc`.");
  m.def(
      "masked_crc32c", [](nb::handle data) { return MaskCrc(Crc(data, 0)); }, nb::arg("data"),
      "CRC-32C of a buffer as a frame stores it.");
  m.def("crc32c_variants", &VariantNames, "Variants this machine runs, slowest first.");
  m.def("crc32c_with", &CrcWith, nb::arg("variant"), nb::arg("data"), "CRC-32C by a named variant.");

  m.def("touch_pages", &TouchPages, nb::arg("data"), nb::arg("start"), nb::arg("stop"),
        nb::sig("def touch_pages(data: object, start: int, stop: int) -> None"),
        "Map bytes [start, stop) of a file in, for another thread.");
  m.def("check_frames", &CheckFramesPy, nb::arg("data"), nb::arg("start"), nb::arg("stop"),
        nb::arg("max_frames"), nb::arg("verify"), "Step over frames: (num_frames, next, Fault or None).",
        nb::sig("def check_frames(data: object, start: int, stop: int, max_frames: int, verify: str) -> "
                "tuple[int, int, Fault | None]"));
  m.def("index_frames", &IndexFramesPy, nb::arg("data"), nb::arg("start"), nb::arg("stop"),
        nb::arg("max_frames"), nb::arg("verify"), "Offsets of frames: (offsets, next, Fault or None).",
        nb::sig("def index_frames(data: object, start: int, stop: int, max_frames: int, verify: str) -> "
                "tuple[numpy.typing.NDArray[numpy.uint64], int, Fault | None]"));
  m.def("find_next_frame", &FindNextFramePy, nb::arg("data"), nb::arg("start"), nb::arg("stop"),
        nb::arg("is_final"), "The first frame from `start` whose two checksums hold: (found, offset).",
        nb::sig(
            "def find_next_frame(data: object, start: int, stop: int, is_final: bool) -> tuple[bool, int]"));
  m.def("read_frames", &ReadFramesPy, nb::arg("data"), nb::arg("start"), nb::arg("stop"),
        nb::arg("max_frames"), nb::arg("max_nbytes"), nb::arg("verify"),
        "Records of a run of frames: (list of bytes, next, Fault or None).",
        nb::sig("def read_frames(data: object, start: int, stop: int, max_frames: int, max_nbytes: int, "
                "verify: str) -> tuple[list[bytes], int, Fault | None]"));
  m.def("view_frames", &ViewFramesPy, nb::arg("data"), nb::arg("start"), nb::arg("stop"),
        nb::arg("max_frames"), nb::arg("max_nbytes"), nb::arg("verify"),
        "Views of a run of records: (list of memoryview, next, Fault or None).",
        nb::sig("def view_frames(data: object, start: int, stop: int, max_frames: int, max_nbytes: int, "
                "verify: str) "
                "-> tuple[list[memoryview], int, Fault | None]"));
  m.def("read_frame_at", &ReadFrameAtPy, nb::arg("data"), nb::arg("offset"), nb::arg("verify"),
        "The record of the frame at `offset`, or its Fault.",
        nb::sig("def read_frame_at(data: object, offset: int, verify: str) -> bytes | Fault"));
  m.def("frame_records", &FrameRecordsPy, nb::arg("records"), "Records as frames, one after the other.",
        nb::sig("def frame_records(records: typing.Sequence[bytes | bytearray | memoryview]) -> bytes"));

  nb::class_<SearchedBuffer>(
      m, "FrameSearch",
      "Looks for frames in one buffer, in linear time over all calls. One thread at a time.")
      .def(nb::init<nb::object>(), nb::arg("data"))
      .def("find_next", &SearchedBuffer::FindNext, nb::arg("start"), nb::arg("stop"), nb::arg("is_final"),
           nb::arg("max_length"),
           "The first frame that starts in [start, stop) and whose two checksums hold: (found, offset).",
           nb::sig(
               "def find_next(self, start: int, stop: int, is_final: bool, max_length: int) -> tuple[bool, "
               "int]"))
      .def(
          "check_frames", &SearchedBuffer::CheckFrames, nb::arg("start"), nb::arg("stop"),
          nb::arg("max_frames"), "Step over sound frames: (num_frames, next, Fault or None).",
          nb::sig("def check_frames(self, start: int, stop: int, max_frames: int) -> tuple[int, int, Fault | "
                  "None]"))
      .def_prop_ro("num_checked", &SearchedBuffer::num_checked, "Bytes that went through a checksum so far.");

  nb::class_<Permutation>(m, "Permutation", "A keyed order of [0, size), computed, never stored.")
      .def(
          "__init__",
          [](Permutation* self, uint64_t size, uint64_t key) {
            if (size == 0) throw nb::value_error("a permutation needs at least one item");
            new (self) Permutation(size, key);
          },
          nb::arg("size"), nb::arg("key"))
      .def(
          "at", [](const Permutation& p, uint64_t i) { return p.At(Checked(p, i)); }, nb::arg("position"))
      .def("at_range", &PermuteRange, nb::arg("start"), nb::arg("stop"),
           nb::sig("def at_range(self, start: int, stop: int) -> numpy.typing.NDArray[numpy.uint64]"))
      .def("at_many", &PermuteMany, nb::arg("positions"),
           nb::sig("def at_many(self, positions: numpy.typing.NDArray[numpy.uint64]) -> "
                   "numpy.typing.NDArray[numpy.uint64]"))
      .def(
          "position_of", [](const Permutation& p, uint64_t i) { return p.PositionOf(Checked(p, i)); },
          nb::arg("item"))
      .def("positions_of_range", &PositionsOfRange, nb::arg("start"), nb::arg("stop"),
           nb::sig(
               "def positions_of_range(self, start: int, stop: int) -> numpy.typing.NDArray[numpy.uint64]"))
      .def_prop_ro("size", &Permutation::size);
}

}  // namespace tfrkit
