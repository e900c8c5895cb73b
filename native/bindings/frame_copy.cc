// Frames moved as they are: what the verbs that reshape datasets call.
#include "core/frames/frame_copy.h"

#include <nanobind/stl/string_view.h>

#include <new>
#include <string>
#include <vector>

#include "bindings/buffers.h"
#include "bindings/file_map.h"
#include "bindings/frame_table.h"
#include "core/frames/frame_writer.h"
#include "core/wire/record_editor.h"

namespace tfrkit {

namespace {

nb::tuple SumFramesPy(nb::handle data, uint64_t start, uint64_t stop, uint64_t max_frames,
                      uint64_t max_nbytes, std::string_view verify) {
  FrameCall call(data, start, stop, verify);
  FrameRun run;
  PoolVector<uint64_t> offsets;
  uint64_t digest = 0;
  const bool has_memory = call.Read([&](ByteView span, Verify mode) {
    return SumFrames(span, start, max_frames, max_nbytes, mode, &offsets, &digest, &run);
  });
  call.Finish(run);
  if (!has_memory) throw std::bad_alloc();
  return nb::make_tuple(ToArray(std::move(offsets)), digest, run.next, ToPython(run.fault, run.resume));
}

nb::tuple DealFramesPy(nb::handle data, uint64_t start, uint64_t stop, const Numbers& parts,
                       uint32_t num_parts, uint64_t max_nbytes, std::string_view verify) {
  FrameCall call(data, start, stop, verify);
  DealtFrames dealt;
  const bool has_memory = call.Read([&](ByteView span, Verify mode) {
    return DealFrames(span, start, {parts.data(), parts.size()}, num_parts, max_nbytes, mode, &dealt);
  });
  const FrameRun& run = dealt.run;
  call.Finish(run);
  if (!has_memory) throw std::bad_alloc();
  return nb::make_tuple(ToArray(std::move(dealt.frames)), ToArray(std::move(dealt.part_nbytes)), dealt.digest,
                        run.num_frames, run.next, ToPython(run.fault, run.resume));
}

nb::tuple GatherPicksPy(nb::sequence tables, const Numbers& shards, const Offsets& records,
                        std::string_view verify) {
  PickCall picked(tables, shards, records);
  const Verify mode = ToVerify(verify);
  PickRun run;
  PoolVector<uint8_t> frames;
  uint64_t digest = 0;
  bool has_memory;
  {
    nb::gil_scoped_release release;
    const MapGuard guard(picked.ranges());
    has_memory =
        GatherPicks(picked.sources(), picked.shards(), picked.records(), mode, &frames, &digest, &run);
  }
  // What was not checked in full may be zeros that stand for lost bytes.
  picked.Finish(run, mode == Verify::kAll ? std::span<const uint32_t>() : picked.shards());
  if (!has_memory) throw std::bad_alloc();
  return nb::make_tuple(ToArray(std::move(frames)), digest, run.num_frames, ToPython(run.fault, 0));
}

std::string ToName(nb::handle name) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_AsStringAndSize(name.ptr(), &data, &size) != 0) nb::raise_python_error();
  return {data, static_cast<size_t>(size)};
}

// A RecordEditor that takes frames and gives frames.
class FrameEditor {
 public:
  FrameEditor(nb::sequence drop, nb::sequence keep, nb::sequence rename, bool keeps_others)
      : editor_(keeps_others) {
    for (nb::handle name : drop) editor_.Drop(ToName(name));
    for (nb::handle name : keep) editor_.Keep(ToName(name));
    for (nb::handle pair : rename) {
      editor_.Rename(ToName(nb::object(pair[0])), ToName(nb::object(pair[1])));
    }
  }

  nb::tuple EditFrames(nb::handle data, uint64_t start, uint64_t stop, uint64_t max_nbytes,
                       std::string_view verify) {
    FrameCall call(data, start, stop, verify);
    PoolVector<uint8_t> frames;
    EditResult result = EditResult::kDone;
    FrameRun run = call.Read([&](ByteView span, Verify mode) {
      return FeedFrames(span, start, UINT64_MAX, max_nbytes, mode, [&](ByteView payload) {
        size_t frame = 0;
        result = BeginFrame(&frames, &frame) ? editor_.Edit(payload, &frames) : EditResult::kOutOfMemory;
        if (result == EditResult::kDone && !FinishFrame(&frames, frame)) result = EditResult::kOutOfMemory;
        if (result != EditResult::kDone) {
          frames.Truncate(frame);
          return result == EditResult::kOutOfMemory ? kNoMemory : Fault{FaultKind::kWire, -1, 0, 0, 0};
        }
        return Fault{};
      });
    });
    call.Finish(run);
    const bool is_odd = result == EditResult::kOdd;
    return nb::make_tuple(ToArray(std::move(frames)), run.num_frames, run.next,
                          is_odd ? nb::object(nb::none()) : ToPython(run.fault, run.resume, run.num_frames));
  }

  nb::list Seen() const {
    nb::list names;
    for (const std::string& name : editor_.seen()) names.append(nb::bytes(name.data(), name.size()));
    return names;
  }

 private:
  RecordEditor editor_;
};

}  // namespace

void BindFrameCopy(nb::module_& m) {
  m.def("sum_frames", &SumFramesPy, nb::arg("data"), nb::arg("start"), nb::arg("stop"), nb::arg("max_frames"),
        nb::arg("max_nbytes"), nb::arg("verify"),
        "Offsets of a run of frames and the sum of their digests: (offsets, digest, next, Fault or None).",
        nb::sig("def sum_frames(data: object, start: int, stop: int, max_frames: int, max_nbytes: int, "
                "verify: str) -> tuple[numpy.typing.NDArray[numpy.uint64], int, int, Fault | None]"));
  m.def("deal_frames", &DealFramesPy, nb::arg("data"), nb::arg("start"), nb::arg("stop"), nb::arg("parts"),
        nb::arg("num_parts"), nb::arg("max_nbytes"), nb::arg("verify"),
        "Frames of a run by part, `parts[i]` for the i-th: (frames, bytes of each part, digest, num_frames, "
        "next, Fault or None).",
        nb::sig("def deal_frames(data: object, start: int, stop: int, parts: "
                "numpy.typing.NDArray[numpy.uint32], num_parts: int, max_nbytes: int, verify: str) -> "
                "tuple[numpy.typing.NDArray[numpy.uint8], numpy.typing.NDArray[numpy.uint64], int, int, int, "
                "Fault | None]"));
  m.def("gather_picks", &GatherPicksPy, nb::arg("tables"), nb::arg("shards"), nb::arg("records"),
        nb::arg("verify"),
        "Frame `records[i]` of `tables[shards[i]]` for each i, in that order: (frames, digest, num_frames, "
        "Fault or None).",
        nb::sig("def gather_picks(tables: typing.Sequence[FrameTable], shards: "
                "numpy.typing.NDArray[numpy.uint32], records: numpy.typing.NDArray[numpy.uint64], verify: "
                "str) -> tuple[numpy.typing.NDArray[numpy.uint8], int, int, Fault | None]"));
  nb::class_<FrameEditor>(
      m, "FrameEditor",
      "Drops and renames features of records, frames in and frames out. One thread at a time.")
      .def(nb::init<nb::sequence, nb::sequence, nb::sequence, bool>(), nb::arg("drop"), nb::arg("keep"),
           nb::arg("rename"), nb::arg("keeps_others"),
           nb::sig("def __init__(self, drop: typing.Sequence[bytes], keep: typing.Sequence[bytes], rename: "
                   "typing.Sequence[tuple[bytes, bytes]], keeps_others: bool) -> None"))
      .def("edit_frames", &FrameEditor::EditFrames, nb::arg("data"), nb::arg("start"), nb::arg("stop"),
           nb::arg("max_nbytes"), nb::arg("verify"),
           "Frames with edited records up to one that needs a closer look: (frames, num_frames, next, Fault "
           "or None).",
           nb::sig("def edit_frames(self, data: object, start: int, stop: int, max_nbytes: int, verify: str) "
                   "-> tuple[numpy.typing.NDArray[numpy.uint8], int, int, Fault | None]"))
      .def("seen", &FrameEditor::Seen, "Every name seen so far.", nb::sig("def seen(self) -> list[bytes]"));
}

}  // namespace tfrkit
