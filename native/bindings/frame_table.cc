// Records by number out of a mapped shard.
//
// One small record costs less than the Python around it, so the look-up, the checksums and the bytes
// object are one call here.
#include "bindings/frame_table.h"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>

#include <utility>

#include "core/frames/frame_reader.h"

namespace tfrkit {

namespace {

uint64_t RequirePages(uint64_t page, uint64_t num_records, uint64_t num_sums) {
  if (page == 0) throw nb::value_error("a page needs at least one record");
  if (num_sums != num_records / page + (num_records % page != 0 ? 1 : 0))
    throw nb::value_error("as many checksums as pages are needed");
  return page;
}

}  // namespace

PagesOfIndex::PagesOfIndex(Offsets offsets, Numbers sums, uint64_t page)
    : offsets_(std::move(offsets)),
      sums_(std::move(sums)),
      pages_({offsets_.data(), offsets_.size()}, {sums_.data(), sums_.size()},
             RequirePages(page, offsets_.size(), sums_.size())) {}

uint64_t PagesOfIndex::FindDamaged(uint64_t start, uint64_t stop) {
  if (start > stop || stop > offsets_.size()) throw nb::index_error("record number out of range");
  const uint64_t page = pages_.page();
  for (uint64_t record = start; record < stop; record = (record / page + 1) * page) {
    if (!pages_.IsWhole(record)) return record / page;
  }
  return pages_.num_pages();
}

FrameTable::FrameTable(nb::object data, Offsets offsets, std::string_view verify, nb::object pages)
    : data_(std::move(data)),
      buffer_(data_),
      offsets_(std::move(offsets)),
      owner_(std::move(pages)),
      verify_(ToVerify(verify)) {
  if (owner_.is_none()) return;
  PagesOfIndex* given = nullptr;
  if (!nb::try_cast(owner_, given) || given == nullptr) throw nb::type_error("expected OffsetPages or None");
  pages_ = &given->pages();
}

nb::object FrameTable::Read(uint64_t number) const {
  FileMap* const map = buffer_.map();
  if (map != nullptr) map->RequireWhole();
  const FrameSource source = this->source();
  const uint64_t offset = source.offsets[number];
  Frame frame;
  Fault fault{FaultKind::kTruncatedHeader, -1, offset, kHeaderSize, 0};
  nb::object record;
  bool is_odd = true;
  {
    const MapGuard guard(map == nullptr ? nullptr : map->range());
    PrefetchFrame(source, number);
    const Fault damage = CheckPage(source, number);
    if (damage) {
      fault = damage;
    } else if (offset <= source.span.size()) {
      fault = ReadFrame(source.span, offset, verify_, &frame);
    }
    if (!fault) {
      record = CopyBytes(frame.payload);
      is_odd = MayBeCutOff(frame.payload, verify_);
    }
  }
  if (map != nullptr) {
    if (map->range()->is_torn()) map->Raise();
    if (is_odd) map->Check();
  }
  return fault ? ToPython(fault, 0) : record;
}

PickCall::PickCall(nb::sequence tables, const Numbers& shards, const Offsets& records)
    : shards_(shards.data(), shards.size()), records_(records.data(), records.size()) {
  if (shards.size() != records.size()) throw nb::value_error("as many shards as records are needed");
  InstallMapGuard();
  const size_t count = nb::len(tables);
  sources_.reserve(count);
  maps_.reserve(count);
  ranges_.reserve(count);
  for (nb::handle item : tables) {
    const FrameTable* table = nullptr;
    if (!nb::try_cast(item, table) || table == nullptr) throw nb::type_error("expected FrameTables");
    FileMap* const map = table->map();
    if (map != nullptr) map->RequireWhole();
    sources_.push_back(table->source());
    maps_.push_back(map);
    ranges_.push_back(map == nullptr ? nullptr : map->range());
  }
  if (!ArePicksInside(sources_, shards_, records_)) throw nb::index_error("record number out of range");
}

void PickCall::Finish(const PickRun& run, std::span<const uint32_t> odd) {
  for (FileMap* const map : maps_) {
    if (map != nullptr && map->range()->is_torn()) map->Raise();
  }
  const auto check = [&](uint32_t shard) {
    if (maps_[shard] != nullptr) maps_[shard]->Check();
  };
  for (const uint32_t shard : odd) check(shard);
  if (run.fault) check(shards_[run.num_frames]);
}

void BindFrameTable(nb::module_& m) {
  nb::class_<PagesOfIndex>(m, "OffsetPages", "Checks pages of offsets when they are first used. Any thread.")
      .def(nb::init<Offsets, Numbers, uint64_t>(), nb::arg("offsets"), nb::arg("sums"), nb::arg("page"),
           nb::sig("def __init__(self, offsets: numpy.typing.NDArray[numpy.uint64], sums: "
                   "numpy.typing.NDArray[numpy.uint32], page: int) -> None"))
      .def("find_damaged", &PagesOfIndex::FindDamaged, nb::arg("start"), nb::arg("stop"),
           "The first damaged page with records of [start, stop); the number of pages if all are whole.");
  nb::class_<FrameTable>(m, "FrameTable", "Records by number out of one span. Any thread.")
      .def(nb::init<nb::object, Offsets, std::string_view, nb::object>(), nb::arg("data"), nb::arg("offsets"),
           nb::arg("verify"), nb::arg("pages") = nb::none(),
           nb::sig(
               "def __init__(self, data: object, offsets: numpy.typing.NDArray[numpy.uint64], verify: str, "
               "pages: OffsetPages | None = None) -> None"))
      .def(
          "read",
          [](const FrameTable& table, uint64_t number) {
            if (number >= table.size()) throw nb::index_error("record number out of range");
            return table.Read(number);
          },
          nb::arg("number"), "The record, or its Fault.",
          nb::sig("def read(self, number: int) -> bytes | Fault"))
      .def("__len__", &FrameTable::size);
}

}  // namespace tfrkit
