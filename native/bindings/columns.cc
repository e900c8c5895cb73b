// Columns, surveys, record shapes, serialized tensors.
#include "bindings/columns.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/frames/frame_batch.h"
#include "core/stats/survey.h"
#include "core/stats/value_hash.h"
#include "core/wire/record_shape.h"
#include "core/wire/tensor_proto.h"

namespace tfrkit {

namespace {

const char* ShapeName(RecordShape shape) {
  switch (shape) {
    case RecordShape::kEmpty:
      return "empty";
    case RecordShape::kExample:
      return "example";
    case RecordShape::kSequenceExample:
      return "sequence_example";
    case RecordShape::kLooseExample:
      return "loose_example";
    case RecordShape::kLooseSequence:
      return "loose_sequence";
    case RecordShape::kOther:
      return "other";
  }
  return "other";
}

nb::dict StatsToDict(const FeatureStats& stats) {
  nb::dict d;
  d["name"] = nb::bytes(stats.name.data(), stats.name.size());
  d["is_list"] = stats.is_list;
  d["present"] = stats.present;
  d["num_unset"] = stats.num_unset;
  nb::list kinds;
  for (const uint64_t count : stats.kind_counts) kinds.append(count);
  d["kind_counts"] = kinds;
  d["min_length"] = stats.min_length;
  d["max_length"] = stats.max_length;
  d["min_frames"] = stats.min_frames;
  d["max_frames"] = stats.max_frames;
  d["min_int"] = stats.min_int;
  d["max_int"] = stats.max_int;
  d["min_float"] = stats.min_float;
  d["max_float"] = stats.max_float;
  d["num_values"] = stats.num_values;
  d["num_nan"] = stats.num_nan;
  d["min_bytes"] = stats.min_bytes;
  d["max_bytes"] = stats.max_bytes;
  d["num_text"] = stats.num_text;
  d["num_tensors"] = stats.num_tensors;
  d["tensor_dtype"] = stats.tensor_dtype;
  d["tensor_rank"] = stats.tensor_rank;
  nb::list shape;
  for (const int64_t size : stats.tensor_shape) shape.append(size);
  d["tensor_shape"] = shape;
  nb::list heads;
  for (const std::string& head : stats.heads) heads.append(nb::bytes(head.data(), head.size()));
  d["heads"] = heads;
  return d;
}

// A survey of the records that are Examples, with a count of what every record looks like.
struct Surveyor {
  explicit Surveyor(RecordKind kind) : survey(kind) {}

  Fault Add(ByteView record) {
    const RecordShape shape = ClassifyRecord(record);
    ++counts[static_cast<int>(shape)];
    return shape == RecordShape::kOther ? Fault{} : survey.Add(record);
  }

  Survey survey;
  uint64_t counts[6] = {};
};

nb::tuple SurveyFrames(Surveyor& surveyor, nb::handle data, uint64_t start, uint64_t stop,
                       uint64_t max_frames, std::string_view verify) {
  FrameCall call(data, start, stop, verify);
  const FrameRun run = call.Read([&](ByteView span, Verify mode) {
    return FeedFrames(span, start, max_frames, UINT64_MAX, mode,
                      [&](ByteView payload) { return surveyor.Add(payload); });
  });
  call.Finish(run);
  return nb::make_tuple(run.num_frames, run.next, ToPython(run.fault, run.resume, run.num_frames));
}

nb::dict ShapeCounts(const Surveyor& surveyor) {
  nb::dict by_name;
  for (int i = 0; i < 6; ++i) by_name[ShapeName(static_cast<RecordShape>(i))] = surveyor.counts[i];
  return by_name;
}

// Fewer bytes do not hold a map entry for each of as many names.
constexpr size_t kMinCrowdedNbytes = size_t{kMaxNames} * 4;

// The ordinals, within a run, of records that are neither Example nor SequenceExample, and how many hold more
// names than a survey takes.
nb::tuple FindOthers(nb::handle data, uint64_t start, uint64_t stop, uint64_t max_frames,
                     std::string_view verify) {
  FrameCall call(data, start, stop, verify);
  std::vector<std::pair<uint64_t, uint64_t>> others;
  uint64_t ordinal = 0, num_crowded = 0;
  const FrameRun run = call.Read([&](ByteView span, Verify mode) {
    return FeedFrames(span, start, max_frames, UINT64_MAX, mode, [&](ByteView payload) {
      if (ClassifyRecord(payload) == RecordShape::kOther) {
        others.emplace_back(ordinal, static_cast<uint64_t>(payload.data() - span.data()) - kHeaderSize);
      }
      num_crowded += payload.size() >= kMinCrowdedNbytes && CountNames(payload) > kMaxNames;
      ++ordinal;
      return Fault{};
    });
  });
  call.Finish(run);
  nb::list found;
  for (const auto& [record, offset] : others) found.append(nb::make_tuple(record, offset));
  return nb::make_tuple(run.num_frames, found, num_crowded, run.next, ToPython(run.fault, run.resume));
}

using ValueOffsets = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// One hash a value.
Array<uint64_t> HashValues(nb::handle data, const ValueOffsets& offsets) {
  const Buffer buffer(data);
  const ByteView bytes = buffer.bytes();
  const int64_t* at = offsets.data();
  const size_t count = offsets.size() == 0 ? 0 : offsets.size() - 1;
  PoolVector<uint64_t> hashes;
  {
    nb::gil_scoped_release release;
    if (!AreOffsetsInside({at, offsets.size()}, bytes.size()))
      throw std::out_of_range("offsets lie outside the data");
    if (!hashes.Resize(count)) throw std::bad_alloc();
    for (size_t i = 0; i < count; ++i) {
      const size_t start = static_cast<size_t>(at[i]);
      hashes[i] = HashValue(bytes.subspan(start, static_cast<size_t>(at[i + 1]) - start));
    }
  }
  return ToArray(std::move(hashes));
}

nb::object ReadStrictTensorPy(nb::handle data) {
  const Buffer buffer(data);
  TensorHead head;
  if (!ReadStrictTensor(buffer.bytes(), &head)) return nb::none();
  nb::list shape;
  for (const int64_t size : head.shape) shape.append(size);
  const int64_t start = head.content.empty() ? 0 : head.content.data() - buffer.bytes().data();
  return nb::make_tuple(head.dtype, nb::tuple(shape), start, head.content.size());
}

}  // namespace

void BindColumns(nb::module_& m) {
  BindAppends(nb::class_<Columns>(m, "ColumnBuilder", "Records in, columns out. One thread at a time."))
      .def(nb::init<std::string_view, nb::sequence, std::optional<nb::sequence>>(), nb::arg("kind"),
           nb::arg("specs"), nb::arg("known") = nb::none(),
           nb::sig(
               "def __init__(self, kind: str, specs: typing.Sequence[tuple[bytes, str, bool, int]], known: "
               "typing.Sequence[tuple[bytes, bool]] | None = None) -> None"),
           "`specs` holds (name bytes, kind, is_list, length or -1) for each column. With `known`, (name "
           "bytes, "
           "is_list) of what else records may have, any other name is a fault.")
      .def("finish", &Columns::Finish,
           "Hand over (values, splits, list_splits, presence, frame_presence) for each column.",
           nb::sig(
               "def finish(self) -> list[tuple[typing.Any, typing.Any, typing.Any, typing.Any, typing.Any]]"))
      .def_prop_ro("num_rows", &Columns::num_rows)
      .def_prop_ro("has_others", &Columns::has_others,
                   "Whether any record so far had a feature that no column was asked for.");

  m.def("hash_values", &HashValues, nb::arg("data"), nb::arg("offsets"),
        "A 64-bit hash of each value, the same for the same bytes everywhere.",
        nb::sig("def hash_values(data: object, offsets: numpy.typing.NDArray[numpy.int64]) -> "
                "numpy.typing.NDArray[numpy.uint64]"));

  nb::class_<Surveyor>(m, "Survey", "Gathers what a schema is inferred from. One thread at a time.")
      .def(
          "__init__", [](Surveyor* self, std::string_view kind) { new (self) Surveyor(ToRecordKind(kind)); },
          nb::arg("kind"))
      .def("add_frames", &SurveyFrames, nb::arg("data"), nb::arg("start"), nb::arg("stop"),
           nb::arg("max_frames"), nb::arg("verify"),
           "Add a run of frames: (num_frames, next, Fault or None).",
           nb::sig("def add_frames(self, data: object, start: int, stop: int, max_frames: int, verify: str) "
                   "-> tuple[int, int, Fault | None]"))
      .def(
          "add_record",
          [](Surveyor& surveyor, nb::handle record) {
            const Buffer buffer(record);
            return ToPython(surveyor.Add(buffer.bytes()), 0);
          },
          nb::arg("record"), "Add one record: its Fault, or None.",
          nb::sig("def add_record(self, record: object) -> Fault | None"))
      .def(
          "features",
          [](const Surveyor& surveyor) {
            nb::list features;
            for (const FeatureStats& stats : surveyor.survey.Features()) features.append(StatsToDict(stats));
            return features;
          },
          "One dict of figures per feature.", nb::sig("def features(self) -> list[dict[str, typing.Any]]"))
      .def_prop_ro("shapes", &ShapeCounts, nb::sig("def shapes(self) -> dict[str, int]"),
                   "Number of records of each shape.")
      .def_prop_ro("num_records", [](const Surveyor& surveyor) { return surveyor.survey.num_records(); });

  m.def(
      "classify_record",
      [](nb::handle record) {
        const Buffer buffer(record);
        return ShapeName(ClassifyRecord(buffer.bytes()));
      },
      nb::arg("record"), "What a record looks like, judged strictly.");
  m.def("find_others", &FindOthers, nb::arg("data"), nb::arg("start"), nb::arg("stop"), nb::arg("max_frames"),
        nb::arg("verify"),
        "Records of a run that are not Examples: (num_frames, [(ordinal, offset)], number of records with "
        "more than "
        "MAX_NAMES names, next, Fault or None).",
        nb::sig("def find_others(data: object, start: int, stop: int, max_frames: int, verify: str) -> "
                "tuple[int, list[tuple[int, int]], int, int, Fault | None]"));
  m.attr("MAX_NAMES") = kMaxNames;
  m.def(
      "read_strict_tensor", &ReadStrictTensorPy, nb::arg("data"),
      "(dtype, shape, start, nbytes of the content) if this is a serialized tensor beyond doubt, else None.",
      nb::sig("def read_strict_tensor(data: object) -> tuple[int, tuple[int, ...], int, int] | None"));
}

}  // namespace tfrkit
