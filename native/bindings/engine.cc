// The batch engine as Python holds it: it keeps what the engine points to, and wraps what it made.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/buffers.h"
#include "bindings/byte_views.h"
#include "bindings/column_values.h"
#include "bindings/file_map.h"
#include "bindings/frame_table.h"
#include "engine/batch_engine.h"

namespace tfrkit {
namespace {

// How long Ctrl-C may have to wait.
constexpr std::chrono::milliseconds kPatience{50};

// A shard that the engine reads, and what keeps it there.
struct HeldShard {
  nb::object owner;
  std::unique_ptr<Buffer> buffer;  // of a span; a table has its own
  FileMap* map = nullptr;
};

class Engine {
 public:
  Engine(std::string_view kind, nb::sequence specs, const std::optional<nb::sequence>& known,
         const std::vector<bool>& plain, std::string_view verify, bool skips, size_t threads,
         uint64_t ahead_nbytes, size_t num_shards)
      : shards_(num_shards) {
    options_.kind = ToRecordKind(kind);
    options_.specs = ParseSpecs(specs, &kinds_);
    if (known.has_value()) options_.known = ParseNames(*known);
    options_.plain = plain;
    if (plain.size() != kinds_.size()) throw nb::value_error("as many plain flags as specs are needed");
    for (ColumnSpec& spec : options_.specs) spec.may_view = true;
    options_.verify = ToVerify(verify);
    options_.skips = skips;
    options_.threads = threads;
    options_.ahead_nbytes = ahead_nbytes;
    options_.num_shards = num_shards;
  }

  ~Engine() { Close(); }

  void ReadInOrder(uint64_t batch_size) {
    Begin(std::make_unique<BatchEngine>(options_,
                                        MakeStreamSource(batch_size, options_.verify, options_.threads)));
  }

  void ReadPieces(uint64_t batch_size) {
    ReadInOrder(batch_size);
    engine().OpenShards();
    drops_ = true;
  }

  // A piece is a shard to the engine. It is held until the batches with its frames were taken.
  void AddPiece(nb::object data, uint64_t start, uint64_t stop) {
    HeldShard held;
    held.buffer = std::make_unique<Buffer>(data);
    held.owner = std::move(data);
    const ByteView bytes = held.buffer->until(stop);
    if (start > bytes.size()) throw nb::value_error("a piece starts after its data");
    const ShardSource source{{bytes.subspan(start), {}}, nullptr};
    shards_.push_back(std::move(held));
    engine().AddShard(&source);
  }

  void FailPiece() {
    shards_.emplace_back();
    engine().AddShard(nullptr);
  }

  void EndPieces() { engine().EndShards(); }
  uint32_t first_piece() const { return first_shard_; }

  void ReadPlan(const Offsets& starts, nb::sequence order, uint64_t size, uint64_t start, uint64_t batch_size,
                uint64_t rank, uint64_t world_size, bool pads, uint64_t num_batches, uint64_t first,
                uint64_t stride) {
    if (batch_size == 0 || world_size == 0) throw nb::value_error("a batch has at least one row");
    RowOrder chain;
    for (nb::handle item : order) {
      const auto step = nb::cast<nb::tuple>(item);
      const auto name = nb::cast<std::string_view>(step[0]);
      if (name == "slice") {
        chain.AddSlice(nb::cast<int64_t>(step[1]), nb::cast<int64_t>(step[2]));
      } else if (name == "permutation") {
        const uint64_t permuted = nb::cast<uint64_t>(step[1]);
        if (permuted == 0) throw nb::value_error("a permutation has at least one item");
        chain.AddPermutation(permuted, nb::cast<uint64_t>(step[2]));
      } else if (name == "list") {
        lists_.push_back(nb::cast<Offsets>(step[1]));
        chain.AddList({lists_.back().data(), lists_.back().size()});
      } else {
        throw nb::value_error("a step of an order is 'slice', 'permutation' or 'list'");
      }
    }
    const BatchPlan plan{size, start, batch_size, rank, world_size, pads, num_batches, first, stride};
    Begin(std::make_unique<BatchEngine>(options_, MakePickSource(ToStarts(starts), plan, std::move(chain))));
  }

  void ReadLists(const Offsets& starts) {
    Begin(std::make_unique<BatchEngine>(options_, MakeFedSource(ToStarts(starts))));
  }

  void Feed(const Offsets& records, const Offsets& counts) {
    size_t start = 0;
    for (size_t i = 0; i < counts.size(); ++i) {
      const size_t count = counts.data()[i];
      if (count > records.size() - start) throw nb::value_error("counts are more than there are records");
      engine().Feed({records.data() + start, records.data() + start + count});
      start += count;
    }
  }
  void EndFeed() { engine().EndFeed(); }

  void CopyValues(const std::vector<size_t>& columns) {
    for (const size_t column : columns) options_.specs.at(column).may_view = false;
  }

  void GiveTensors(nb::handle exchange) { exchange_ = FindExchange(exchange); }

  // (columns, num_rows, faults), or None where the caller has to do something, or nothing more comes.
  nb::object Take() {
    MadeBatch made;
    BatchEngine& engine = this->engine();
    if (engine.IsForeign()) return nb::none();
    BatchEngine::Status status;
    while (true) {
      {
        nb::gil_scoped_release release;
        status = engine.Take(kPatience, &made);
      }
      if (status != BatchEngine::Status::kTimeout) break;
      if (PyErr_CheckSignals() != 0) nb::raise_python_error();
    }
    if (status == BatchEngine::Status::kNoMemory) throw std::bad_alloc();
    if (status != BatchEngine::Status::kBatch) return nb::none();
    nb::object batch = Wrap(&made);
    if (drops_) {
      for (; first_shard_ < made.last_shard; ++first_shard_) shards_.pop_front();
    }
    return batch;
  }

  std::vector<uint32_t> TakeWanted() {
    return engine_ == nullptr || IsForeign() ? std::vector<uint32_t>{} : engine_->TakeWanted();
  }

  void SetTable(uint32_t shard, nb::object table) {
    const FrameTable* found = nullptr;
    if (!nb::try_cast(table, found) || found == nullptr) throw nb::type_error("expected a FrameTable");
    HeldShard& held = Hold(shard);
    held.map = found->map();
    held.owner = std::move(table);
    Set(shard, found->source());
  }

  void SetSpan(uint32_t shard, nb::object span) {
    HeldShard& held = Hold(shard);
    held.buffer = std::make_unique<Buffer>(span);
    held.map = held.buffer->map();
    held.owner = std::move(span);
    Set(shard, {held.buffer->bytes(), {}});
  }

  void FailShard(uint32_t shard) {
    Hold(shard);
    engine().FailShard(shard);
  }

  bool is_hungry() const { return engine_ != nullptr && !engine_->IsForeign() && engine_->is_hungry(); }
  bool IsForeign() const { return is_lost_ || (engine_ != nullptr && engine_->IsForeign()); }

  void Close() {
    if (engine_ == nullptr) return;
    if (engine_->IsForeign()) {
      (void)engine_.release();  // its threads are not here, and its locks may be taken
      is_lost_ = true;
    } else {
      nb::gil_scoped_release release;
      engine_->Close();
    }
  }

 private:
  BatchEngine& engine() {
    if (engine_ == nullptr) throw nb::value_error("the engine has nothing to read");
    return *engine_;
  }

  void Begin(std::unique_ptr<BatchEngine> engine) {
    if (engine_ != nullptr) throw nb::value_error("an engine reads once");
    engine_ = std::move(engine);
  }

  std::vector<uint64_t> ToStarts(const Offsets& starts) {
    if (starts.size() != shards_.size() + 1)
      throw nb::value_error("starts expected one number per shard, and the end");
    return {starts.data(), starts.data() + starts.size()};
  }

  HeldShard& Hold(uint32_t shard) {
    if (shard - first_shard_ >= shards_.size()) throw nb::index_error("shard number out of range");
    return shards_[shard - first_shard_];
  }

  void Set(uint32_t shard, const FrameSource& frames) {
    FileMap* const map = Hold(shard).map;
    engine().SetShard(shard, {frames, map == nullptr ? nullptr : map->range()});
  }

  nb::object Wrap(MadeBatch* made) {
    if (made->torn) Hold(*made->torn).map->Raise();
    for (const uint32_t shard : made->odd) {
      if (Hold(shard).map != nullptr) Hold(shard).map->Check();
    }
    if (made->is_out_of_range) throw nb::index_error("record number out of range");
    nb::object faults = nb::none();
    if (!made->faults.empty()) {
      nb::list listed;
      for (const RowFault& found : made->faults) {
        // Out of memory is no fault of the data: it has none to name.
        nb::object fault = nb::none();
        if (found.fault.kind != FaultKind::kNoMemory) fault = ToPython(found.fault, 0, 0, found.name);
        listed.append(nb::make_tuple(found.shard, found.record, found.offset, fault));
      }
      faults = std::move(listed);
    }
    if (made->failed) return nb::make_tuple(*made->failed, nb::none(), faults);
    ByteViews::Marks marks;
    if (!made->marks.empty()) {
      marks = std::make_shared<const std::vector<RecordMark>>(std::move(made->marks));
    }
    std::optional<PackedColumns> packed;
    if (!made->packed.empty())
      packed.emplace(std::move(made->packed), made->num_rows, made->columns.size(), exchange_);
    nb::list columns;
    for (size_t i = 0; i < made->columns.size(); ++i) {
      Column* const column = &made->columns[i];
      if (options_.plain[i] && packed) {
        columns.append(packed->Next(kinds_[i]));
      } else if (options_.plain[i]) {
        columns.append(exchange_ == nullptr ? WrapValues(kinds_[i], column)
                                            : WrapTensor(kinds_[i], column, *exchange_));
      } else if (kinds_[i] == Kind::kBytes && column->byte_offsets.empty()) {
        columns.append(WrapColumn(kinds_[i], column, WrapViews(&column->views, marks)));
      } else {
        columns.append(WrapColumn(kinds_[i], column));
      }
    }
    return nb::make_tuple(columns, made->num_rows, faults);
  }

  // Views hold the maps they point into. Values of shards that are no map are copied, with all the others.
  nb::object WrapViews(PoolVector<ByteView>* views, const ByteViews::Marks& marks) {
    std::vector<ViewedMap> maps;
    bool is_mapped = true;
    for (size_t i = 0; i < views->size() && is_mapped; ++i) {
      const ByteView view = (*views)[i];
      if (view.empty() || (!maps.empty() && Holds(*maps.back().map, view))) continue;
      const auto known = std::find_if(maps.begin(), maps.end(),
                                      [&](const ViewedMap& held) { return Holds(*held.map, view); });
      if (known != maps.end()) continue;
      const auto found = std::find_if(shards_.begin(), shards_.end(), [&](const HeldShard& held) {
        return held.map != nullptr && Holds(*held.map, view);
      });
      is_mapped = found != shards_.end();
      if (is_mapped) maps.push_back({found->owner, found->map});
    }
    if (is_mapped)
      return nb::cast(new ByteViews(std::move(*views), std::move(maps), marks),
                      nb::rv_policy::take_ownership);
    std::vector<ViewedMap> all;
    for (const HeldShard& held : shards_) {
      if (held.map != nullptr) all.push_back({held.owner, held.map});
    }
    PoolVector<int64_t> offsets;
    if (!offsets.Resize(views->size() + 1)) throw std::bad_alloc();
    offsets[0] = 0;
    for (size_t i = 0; i < views->size(); ++i) {
      offsets[i + 1] = offsets[i] + static_cast<int64_t>((*views)[i].size());
    }
    const ByteViews copied(std::move(*views), std::move(all), marks);
    return nb::make_tuple(copied.Join(), ToArray(std::move(offsets)));
  }

  static bool Holds(const FileMap& map, ByteView view) {
    const uint8_t* const start = map.bytes().data();
    return view.data() >= start && view.data() < start + map.bytes().size();
  }

  EngineOptions options_;
  std::vector<Kind> kinds_;
  const TensorExchange* exchange_ = nullptr;
  std::deque<HeldShard> shards_;  // from `first_shard_` on
  uint32_t first_shard_ = 0;
  bool drops_ = false;  // shards are pieces, dropped when they were read
  std::vector<Offsets> lists_;
  bool is_lost_ = false;
  std::unique_ptr<BatchEngine> engine_;  // last: it goes before what it points to
};

}  // namespace

void BindEngine(nb::module_& m) {
  nb::class_<Engine>(m, "BatchEngine",
                     "One pass over shards: batches of columns, in order, made by native threads.")
      .def(nb::init<std::string_view, nb::sequence, std::optional<nb::sequence>, std::vector<bool>,
                    std::string_view, bool, size_t, uint64_t, size_t>(),
           nb::arg("kind"), nb::arg("specs"), nb::arg("known").none(), nb::arg("plain"), nb::arg("verify"),
           nb::arg("skips"), nb::arg("threads"), nb::arg("ahead_nbytes"), nb::arg("num_shards"),
           nb::sig("def __init__(self, kind: str, specs: typing.Sequence[tuple[bytes, str, bool, int]], "
                   "known: typing.Sequence[tuple[bytes, bool]] | None, plain: typing.Sequence[bool], verify: "
                   "str, skips: bool, threads: int, ahead_nbytes: int, num_shards: int) -> None"),
           "`specs` and `known` as for ColumnBuilder. A column that is `plain` comes as its values alone.")
      .def("copy_values", &Engine::CopyValues, nb::arg("columns"),
           "Copy large bytes values of these columns at once, instead of viewing them. Before `read_...`.",
           nb::sig("def copy_values(self, columns: typing.Sequence[int]) -> None"))
      .def("read_in_order", &Engine::ReadInOrder, nb::arg("batch_size"),
           "Read all frames in file order; `set_span` gives the shards.")
      .def("read_pieces", &Engine::ReadPieces, nb::arg("batch_size"),
           "Read all frames in order from pieces; `add_piece` gives them while the engine is hungry.")
      .def("add_piece", &Engine::AddPiece, nb::arg("data"), nb::arg("start"), nb::arg("stop"),
           nb::sig("def add_piece(self, data: object, start: int, stop: int) -> None"),
           "The next piece: whole frames in bytes [start, stop). It is a shard in faults, numbered from 0.")
      .def("fail_piece", &Engine::FailPiece, "The next piece cannot be read.")
      .def("end_pieces", &Engine::EndPieces, "No more pieces come.")
      .def_prop_ro("first_piece", &Engine::first_piece, "Pieces before it are read and dropped.")
      .def("read_plan", &Engine::ReadPlan, nb::arg("starts"), nb::arg("order"), nb::kw_only(),
           nb::arg("size"), nb::arg("start"), nb::arg("batch_size"), nb::arg("rank"), nb::arg("world_size"),
           nb::arg("pads"), nb::arg("num_batches"), nb::arg("first"), nb::arg("stride"),
           nb::sig("def read_plan(self, starts: numpy.typing.NDArray[numpy.uint64], order: "
                   "typing.Sequence[tuple[typing.Any, ...]], *, size: int, start: int, batch_size: int, "
                   "rank: int, world_size: int, pads: bool, num_batches: int, first: int, stride: int) -> "
                   "None"),
           "Read records by number; `set_table` gives the shards. `starts` has the number of the first "
           "record of each shard, and of all. `order` holds the steps from positions to numbers: (\"slice\", "
           "start, step), (\"permutation\", size, key), (\"list\", numbers).")
      .def("read_lists", &Engine::ReadLists, nb::arg("starts"),
           nb::sig("def read_lists(self, starts: numpy.typing.NDArray[numpy.uint64]) -> None"),
           "Read records by number, whose lists come by `feed`.")
      .def("feed", &Engine::Feed, nb::arg("records"), nb::arg("counts"),
           nb::sig("def feed(self, records: numpy.typing.NDArray[numpy.uint64], counts: "
                   "numpy.typing.NDArray[numpy.uint64]) -> None"),
           "The records of more batches, one after the other, and the number of rows of each.")
      .def("end_feed", &Engine::EndFeed, "No more batches come.")
      .def("give_tensors", &Engine::GiveTensors, nb::arg("exchange"),
           nb::sig("def give_tensors(self, exchange: object) -> None"),
           "Give plain columns as tensors of the framework whose `__dlpack_c_exchange_api__` this is; arrays "
           "if "
           "its version is not known.")
      .def(
          "take", &Engine::Take,
          nb::sig("def take(self) -> tuple[typing.Any, typing.Any, list[tuple[int, int, int, Fault | None]] "
                  "| None] | None"),
          "The next batch: (columns, number of rows, faults as (shard, record, offset, Fault or None for out "
          "of memory)); (shard, None, faults) at a shard that failed. None where shards are wanted, the "
          "engine is hungry or foreign, or the pass is over.")
      .def("take_wanted", &Engine::TakeWanted, "Shards to open now.",
           nb::sig("def take_wanted(self) -> list[int]"))
      .def("set_table", &Engine::SetTable, nb::arg("shard"), nb::arg("table"),
           nb::sig("def set_table(self, shard: int, table: FrameTable) -> None"))
      .def("set_span", &Engine::SetSpan, nb::arg("shard"), nb::arg("span"),
           nb::sig("def set_span(self, shard: int, span: object) -> None"))
      .def("fail_shard", &Engine::FailShard, nb::arg("shard"), "The shard cannot be opened.")
      .def("close", &Engine::Close, "Stop the threads and wait for them.")
      .def_prop_ro("is_hungry", &Engine::is_hungry, "Is it waiting for `feed` or `add_piece`?")
      .def_prop_ro("is_foreign", &Engine::IsForeign,
                   "Was this process forked after the threads were started? Then it has none of them.");
  m.attr("MAPS_ARE_GUARDED") = kMapsAreGuarded;
}

}  // namespace tfrkit
