// A column builder as Python holds it, and what builders of rows share with it.
#pragma once

#include <nanobind/nanobind.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/buffers.h"
#include "bindings/column_values.h"
#include "bindings/file_map.h"
#include "bindings/frame_table.h"
#include "core/columns/column_builder.h"
#include "core/frames/frame_batch.h"
#include "core/frames/frame_picks.h"

namespace tfrkit {

// A ColumnBuilder that remembers its specs, to label what it hands over.
class Columns {
 public:
  Columns(std::string_view kind, nb::sequence specs, const std::optional<nb::sequence>& known)
      : builder_(known.has_value()
                     ? ColumnBuilder(ToRecordKind(kind), ParseSpecs(specs, &kinds_), ParseNames(*known))
                     : ColumnBuilder(ToRecordKind(kind), ParseSpecs(specs, &kinds_))) {}
  virtual ~Columns() = default;
  Columns(const Columns&) = delete;
  Columns& operator=(const Columns&) = delete;

  nb::tuple AppendFrames(nb::handle data, uint64_t start, uint64_t stop, uint64_t max_rows,
                         std::string_view verify) {
    FrameCall call(data, start, stop, verify);
    const FrameRun run = call.Read([&](ByteView span, Verify mode) {
      return FeedFrames(span, start, max_rows, max_nbytes(), mode,
                        [this](ByteView payload) { return builder_.Append(payload); });
    });
    EmptyIfRaised([&] {
      CopyViews();
      call.Finish(run);
      EndRun();
    });
    return nb::make_tuple(run.num_frames, run.next, Explain(run.fault, run.resume, run.num_frames));
  }

  nb::tuple AppendPicks(nb::sequence tables, const Numbers& shards, const Offsets& records,
                        std::string_view verify) {
    PickCall picked(tables, shards, records);
    const Verify mode = ToVerify(verify);
    PickRun run;
    std::vector<uint32_t> odd;
    EmptyIfRaised([&] {
      {
        const MapGuard guard(picked.ranges());
        {
          nb::gil_scoped_release release;
          run = FeedPicks(picked.sources(), picked.shards(), picked.records(), mode,
                          [&](ByteView payload, size_t pick) {
                            const Fault fault = builder_.Append(payload);
                            if (MayBeCutOff(payload, mode)) odd.push_back(picked.shards()[pick]);
                            return fault;
                          });
        }
        CopyViews();
      }
      picked.Finish(run, odd);
      EndRun();
    });
    return nb::make_tuple(run.num_frames, Explain(run.fault, 0, run.num_frames));
  }

  // One record by number; its Fault, or None. Keeps the interpreter lock, as FrameTable::Read does.
  nb::object AppendPick(const FrameTable& table, uint64_t number, std::string_view verify) {
    if (number >= table.size()) throw nb::index_error("record number out of range");
    const Verify mode = ToVerify(verify);
    const FrameSource source = table.source();
    const uint32_t shard = 0;
    FileMap* const map = table.map();
    if (map != nullptr) map->RequireWhole();
    PickRun run;
    bool is_odd = false;
    EmptyIfRaised([&] {
      {
        const MapGuard guard(map == nullptr ? nullptr : map->range());
        run = FeedPicks({&source, 1}, {&shard, 1}, {&number, 1}, mode, [&](ByteView payload, size_t) {
          is_odd = MayBeCutOff(payload, mode);
          return builder_.Append(payload);
        });
        CopyViews();
      }
      if (map != nullptr && map->range()->is_torn()) map->Raise();
      if (map != nullptr && (is_odd || run.fault)) map->Check();
      EndRun();
    });
    return Explain(run.fault, 0, 0);
  }

  nb::object AppendRecord(nb::handle record) {
    const Buffer buffer(record);
    const Fault fault = builder_.Append(buffer.bytes());
    EmptyIfRaised([&] {
      CopyViews();
      EndRun();
    });
    return Explain(fault, 0, 0);
  }

  size_t num_rows() const { return builder_.num_rows(); }
  bool has_others() const { return builder_.has_others(); }

  // One tuple a column.
  nb::list Finish() {
    nb::list result;
    std::vector<Column> columns = builder_.Finish();
    for (size_t i = 0; i < columns.size(); ++i) result.append(WrapColumn(kinds_[i], &columns[i]));
    return result;
  }

 protected:
  // What a call appended is made of: `CopyViews` runs while the file may be read, and runs no Python code;
  // `EndRun` after it was found to be whole.
  virtual void CopyViews() {}
  virtual void EndRun() {}
  // Forgets all rows.
  virtual void Drop() { builder_.Finish(); }
  // A run of frames ends once as many bytes were read.
  virtual uint64_t max_nbytes() const { return UINT64_MAX; }
  ColumnBuilder& builder() { return builder_; }
  Kind kind(size_t column) const { return kinds_[column]; }

 private:
  nb::object Explain(const Fault& fault, uint64_t resume, uint64_t num_frames) {
    nb::object found;
    EmptyIfRaised([&] { found = ToPython(fault, resume, num_frames, builder_.unknown_name()); });
    return found;
  }

  // Rows of a call that raised must not stay: of lost pages, or before memory ran out.
  template <class Check>
  void EmptyIfRaised(Check&& check) {
    try {
      check();
    } catch (...) {
      Drop();
      throw;
    }
  }

  std::vector<Kind> kinds_;  // declared first: ParseSpecs fills it while builder_ is made
  ColumnBuilder builder_;
};

// The methods that every builder has.
template <class Builder>
nb::class_<Builder> BindAppends(nb::class_<Builder> builder) {
  return builder
      .def("append_frames", &Builder::AppendFrames, nb::arg("data"), nb::arg("start"), nb::arg("stop"),
           nb::arg("max_rows"), nb::arg("verify"), "Add a run of frames: (num_rows, next, Fault or None).",
           nb::sig("def append_frames(self, data: object, start: int, stop: int, max_rows: int, verify: str) "
                   "-> tuple[int, int, Fault | None]"))
      .def("append_picks", &Builder::AppendPicks, nb::arg("tables"), nb::arg("shards"), nb::arg("records"),
           nb::arg("verify"),
           "Add record `records[i]` of `tables[shards[i]]` for each i, in that order: (num_rows, Fault or "
           "None).",
           nb::sig("def append_picks(self, tables: typing.Sequence[FrameTable], shards: "
                   "numpy.typing.NDArray[numpy.uint32], records: numpy.typing.NDArray[numpy.uint64], verify: "
                   "str) -> tuple[int, Fault | None]"))
      .def("append_record", &Builder::AppendRecord, nb::arg("record"), "Add one record: its Fault, or None.",
           nb::sig("def append_record(self, record: object) -> Fault | None"));
}

}  // namespace tfrkit
