// Rows and columns of Python values into framed Examples.
//
// Only values that fit one of Example's three lists without a second thought are taken here: exact
// ints, floats that float32 holds, bytes, str, and flat lists of these. Everything else is handed to
// a Python callable, which decides or raises with words.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "bindings/buffers.h"
#include "bindings/column_values.h"
#include "core/frames/frame_writer.h"
#include "core/wire/example_writer.h"

namespace tfrkit {

namespace {

// The name of a feature as bytes. Protobuf strings are UTF-8: a name that is not would make the record
// unreadable elsewhere.
std::string EncodeName(nb::handle key) {
  if (!PyUnicode_Check(key.ptr())) throw nb::type_error("a feature name must be a str");
  nb::object encoded = nb::steal(PyUnicode_AsEncodedString(key.ptr(), "utf-8", "strict"));
  if (!encoded.is_valid()) {
    PyErr_Clear();
    throw nb::value_error("a feature name must be text that UTF-8 holds");
  }
  const auto bytes = nb::borrow<nb::bytes>(encoded);
  return {bytes.c_str(), bytes.size()};
}

enum class Floats { kExact, kRound, kNever };

Floats ParseFloats(std::string_view name) {
  if (name == "ask") return Floats::kExact;
  if (name == "float32") return Floats::kRound;
  if (name == "float64") return Floats::kNever;  // each becomes a tensor, whether float32 holds it or not
  throw nb::value_error("floats must be 'ask', 'float32' or 'float64'");
}

// Makes a float32 of a float, where `floats` allows it.
bool NarrowFloat(double value, Floats floats, float* stored) {
  if (floats == Floats::kNever) return false;
  if (std::abs(value) > std::numeric_limits<float>::max() && !std::isinf(value)) return false;
  *stored = static_cast<float>(value);
  return floats == Floats::kRound || static_cast<double>(*stored) == value || std::isnan(value);
}

// The bytes of a bytes object, or of text as UTF-8, valid as long as the object.
bool ViewBytes(PyObject* item, ByteView* view) {
  const char* data = nullptr;
  Py_ssize_t size = 0;
  if (PyBytes_Check(item)) {
    char* bytes = nullptr;
    if (PyBytes_AsStringAndSize(item, &bytes, &size) != 0) nb::raise_python_error();
    data = bytes;
  } else if (PyUnicode_Check(item)) {
    data = PyUnicode_AsUTF8AndSize(item, &size);
    if (data == nullptr) {
      PyErr_Clear();  // a lone surrogate; the callable says so with the name of the feature
      return false;
    }
  } else {
    return false;
  }
  *view = {reinterpret_cast<const uint8_t*>(data), static_cast<size_t>(size)};
  return true;
}

// Values of the features of one row, kept together so that a row allocates nothing once warm.
class ValueArena {
 public:
  struct Range {
    Kind kind = Kind::kUnset;
    size_t start = 0;
    size_t count = 0;
  };

  void Clear() {
    ints_.clear();
    floats_.clear();
    views_.clear();
    kept_.clear();
  }

  FeatureValue Resolve(const Range& range) const {
    FeatureValue value{range.kind, {}, {}, {}};
    switch (range.kind) {
      case Kind::kInt64:
        value.ints = {ints_.data() + range.start, range.count};
        break;
      case Kind::kFloat:
        value.floats = {floats_.data() + range.start, range.count};
        break;
      case Kind::kBytes:
        value.bytes = {views_.data() + range.start, range.count};
        break;
      default:
        break;
    }
    return value;
  }

  // Takes a Python value if it is plain; after false nothing refers to what was pushed.
  bool TakePlain(PyObject* value, Kind expected, Floats floats, Range* range) {
    if (PyList_CheckExact(value) || PyTuple_CheckExact(value))
      return TakeList(value, expected, floats, range);
    *range = Begin(ItemKind(value));
    return range->kind != Kind::kUnset && PushItem(value, range, floats);
  }

  // Takes a list whose values are all of this kind.
  Range TakeExact(PyObject* list, Kind kind) {
    Range range = Begin(kind);
    const Py_ssize_t count = PyList_Size(list);
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* const item = PyList_GetItem(list, i);
      if (ItemKind(item) != kind || !PushItem(item, &range, Floats::kRound))
        throw nb::type_error("expected a list of values of one kind");
    }
    return range;
  }

  // Takes what the Python callable answered: (kind, buffer or list of bytes).
  Range TakeCoerced(nb::handle answer) {
    const auto pair = nb::cast<nb::tuple>(answer);
    const auto kind = nb::cast<std::string>(pair[0]);
    if (kind == KindName(Kind::kUnset)) return Begin(Kind::kUnset);
    Range range = Begin(ToKind(kind));
    if (range.kind == Kind::kBytes) {
      for (nb::handle item : nb::cast<nb::sequence>(pair[1])) {
        if (!PushBytes(item.ptr(), &range)) throw nb::type_error("expected a list of bytes");
        kept_.push_back(nb::borrow(item));
      }
      return range;
    }
    const Buffer buffer(pair[1]);
    const ByteView bytes = buffer.bytes();
    if (range.kind == Kind::kInt64) {
      range.count = bytes.size() / sizeof(int64_t);
      ints_.resize(range.start + range.count);
      if (range.count != 0)
        std::memcpy(ints_.data() + range.start, bytes.data(), range.count * sizeof(int64_t));
    } else {
      range.count = bytes.size() / sizeof(float);
      floats_.resize(range.start + range.count);
      if (range.count != 0)
        std::memcpy(floats_.data() + range.start, bytes.data(), range.count * sizeof(float));
    }
    return range;
  }

 private:
  Range Begin(Kind kind) const {
    const size_t start = kind == Kind::kInt64   ? ints_.size()
                         : kind == Kind::kFloat ? floats_.size()
                                                : views_.size();
    return {kind, start, 0};
  }

  static Kind ItemKind(PyObject* item) {
    if (PyLong_CheckExact(item) || PyBool_Check(item)) return Kind::kInt64;
    if (PyFloat_CheckExact(item)) return Kind::kFloat;
    if (PyBytes_CheckExact(item) || PyUnicode_CheckExact(item)) return Kind::kBytes;
    return Kind::kUnset;
  }

  bool TakeList(PyObject* list, Kind expected, Floats floats, Range* range) {
    const bool is_list = PyList_CheckExact(list);
    const Py_ssize_t count = is_list ? PyList_Size(list) : PyTuple_Size(list);
    if (count == 0) {
      *range = Begin(expected);
      return expected != Kind::kUnset;  // an empty list alone does not say what it is empty of
    }
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* item = is_list ? PyList_GetItem(list, i) : PyTuple_GetItem(list, i);
      if (i == 0) *range = Begin(ItemKind(item));
      if (range->kind == Kind::kUnset || ItemKind(item) != range->kind || !PushItem(item, range, floats)) {
        return false;
      }
    }
    return true;
  }

  bool PushItem(PyObject* item, Range* range, Floats floats) {
    switch (range->kind) {
      case Kind::kInt64: {
        int overflow = 0;
        const long long value = PyLong_AsLongLongAndOverflow(item, &overflow);
        if (overflow != 0) return false;
        ints_.push_back(value);
        break;
      }
      case Kind::kFloat: {
        float stored = 0;
        if (!NarrowFloat(PyFloat_AsDouble(item), floats, &stored)) return false;
        floats_.push_back(stored);
        break;
      }
      default:
        return PushBytes(item, range);
    }
    ++range->count;
    return true;
  }

  bool PushBytes(PyObject* item, Range* range) {
    ByteView view;
    if (!ViewBytes(item, &view)) return false;
    views_.push_back(view);
    ++range->count;
    return true;
  }

  std::vector<int64_t> ints_;
  std::vector<float> floats_;
  std::vector<ByteView> views_;
  std::vector<nb::object> kept_;  // owners of views that no caller keeps alive
};

// What is known of one feature name.
struct Slot {
  std::string name;
  Kind kind = Kind::kUnset;  // of the first value seen: a column is of one kind
};

// A single value of a row.
struct Single {
  int64_t integer = 0;
  float number = 0;
  ByteView bytes;
};

class RowEncoder {
 public:
  RowEncoder(std::string_view floats, nb::callable coerce)
      : floats_(ParseFloats(floats)), coerce_(std::move(coerce)) {}

  // Appends one row as a framed Example and returns the number of pending bytes.
  size_t Write(nb::dict row) {
    return Remembering([&] { return EncodeRow(row); });
  }

  // The bytes of an Example whose features are frozen messages: (name of the field of the list, values) by
  // name.
  nb::bytes EncodeMessage(nb::dict features) {
    FindLayout(features);
    arena_.Clear();
    PyObject *key, *value;
    Py_ssize_t position = 0;
    ranges_.clear();
    while (PyDict_Next(features.ptr(), &position, &key, &value)) {
      const auto pair = nb::cast<nb::tuple>(nb::handle(value));
      const Kind kind = ListKind(pair[0]);
      if (!PyList_CheckExact(pair[1].ptr())) throw nb::type_error("expected a list of values");
      ranges_.emplace_back(ranges_.size(), arena_.TakeExact(pair[1].ptr(), kind));
    }
    ResolveRanges();
    message_.Clear();
    if (!AppendExample(features_, &message_)) throw std::bad_alloc();
    ++num_records_;
    return nb::bytes(message_.data(), message_.size());
  }

  // `context` holds (name, value) pairs, `lists` (name, frames) pairs, both sorted by encoded name.
  size_t WriteSequence(nb::sequence context, nb::sequence lists) {
    return Remembering([&] { return EncodeSequence(context, lists); });
  }

  // Each column is (name, kind, values, byte_offsets, length, splits, presence), sorted by name.
  // REQUIRES: the arrays agree with num_rows, as codec.columns makes sure.
  size_t WriteColumns(nb::sequence columns, uint64_t num_rows) {
    std::vector<std::unique_ptr<Buffer>> buffers;
    std::vector<std::string> names;
    std::vector<ColumnSource> sources;
    names.reserve(nb::len(columns));  // the sources point into it
    const auto data = [&buffers](nb::handle object) -> const void* {
      if (object.is_none()) return nullptr;
      return buffers.emplace_back(std::make_unique<Buffer>(object))->bytes().data();
    };
    for (nb::handle item : columns) {
      const auto column = nb::cast<nb::tuple>(item);
      const auto name = nb::cast<nb::bytes>(column[0]);
      names.emplace_back(name.c_str(), name.size());
      ColumnSource source;
      source.name = names.back();
      source.kind = ToKind(nb::cast<std::string>(column[1]));
      const void* values = data(column[2]);
      source.ints = static_cast<const int64_t*>(values);
      source.floats = static_cast<const float*>(values);
      source.bytes = static_cast<const uint8_t*>(values);
      source.byte_offsets = static_cast<const int64_t*>(data(column[3]));
      source.length = nb::cast<int64_t>(column[4]);
      source.splits = static_cast<const int64_t*>(data(column[5]));
      source.presence = static_cast<const uint8_t*>(data(column[6]));
      sources.push_back(source);
    }
    bool ok = false;
    {
      nb::gil_scoped_release release;
      ok = AppendFramedExamples(sources, 0, num_rows, &pending_);
    }
    if (!ok) throw std::bad_alloc();
    num_records_ += num_rows;
    return pending_.size();
  }

  size_t WriteRecord(nb::handle record) {
    const Buffer buffer(record);
    if (!AppendFrame(buffer.bytes(), &pending_)) throw std::bad_alloc();
    ++num_records_;
    return pending_.size();
  }

  // The kind a feature has had so far, or None; with `kind`, sets it where there was none.
  std::optional<std::string> KindOf(nb::handle name, std::optional<std::string> kind, bool is_list) {
    Slot& slot = SlotOf(is_list ? &known_lists_ : &known_, EncodeName(name));
    if (slot.kind == Kind::kUnset && kind) slot.kind = ToKind(*kind);
    if (slot.kind == Kind::kUnset) return std::nullopt;
    return KindName(slot.kind);
  }

  Array<uint8_t> Take() { return ToArray(std::exchange(pending_, {})); }
  // Forgets the records after the first `num_records`, of which `num_pending` bytes still wait.
  // REQUIRES: nothing was taken since.
  void Rollback(uint64_t num_records, size_t num_pending) {
    if (num_records > num_records_ || num_pending > pending_.size())
      throw nb::value_error("nothing to roll back to");
    pending_.Truncate(num_pending);
    num_records_ = num_records;
  }

  uint64_t num_records() const { return num_records_; }
  size_t num_pending() const { return pending_.size(); }

 private:
  using Slots = std::unordered_map<std::string, std::unique_ptr<Slot>>;

  static Slot& SlotOf(Slots* slots, std::string name) {
    std::unique_ptr<Slot>& slot = (*slots)[name];
    if (!slot) slot = std::make_unique<Slot>(Slot{std::move(name), Kind::kUnset});
    return *slot;
  }

  // Makes the layout that of this dict.
  void FindLayout(nb::dict row) {
    PyObject *key, *value;
    Py_ssize_t position = 0;
    size_t num_same = 0;
    if (row.size() == keys_.size()) {
      while (PyDict_Next(row.ptr(), &position, &key, &value) && key == keys_[num_same].ptr()) ++num_same;
    }
    if (num_same != row.size() || num_same != keys_.size()) RebuildLayout(row);
  }

  void RebuildLayout(nb::dict row) {
    keys_.clear();
    slots_.clear();
    features_.clear();
    std::vector<nb::object> keys;
    std::vector<uint32_t> order;
    for (auto [key, _] : row) {
      slots_.push_back(&SlotOf(&known_, EncodeName(key)));
      keys.push_back(nb::borrow(key));
      order.push_back(static_cast<uint32_t>(order.size()));
    }
    std::sort(order.begin(), order.end(),
              [this](uint32_t a, uint32_t b) { return slots_[a]->name < slots_[b]->name; });
    places_.resize(order.size());
    for (const uint32_t i : order) {
      places_[i] = static_cast<uint32_t>(features_.size());
      features_.push_back({slots_[i]->name, {}});
    }
    singles_.resize(order.size());
    keys_ = std::move(keys);  // last: a row with a bad name leaves no layout
  }

  static Kind ListKind(nb::handle field) {
    switch (PyUnicode_ReadChar(field.ptr(), 0)) {
      case 'b':
        return Kind::kBytes;
      case 'f':
        return Kind::kFloat;
      case 'i':
        return Kind::kInt64;
      default:
        throw nb::value_error("a list is a bytes_list, a float_list or an int64_list");
    }
  }

  // Takes a single value of the type that most rows have for its kind; false for any other, with nothing
  // changed.
  bool TakeSingle(PyObject* value, Kind kind, Single* single, FeatureValue* taken) const {
    switch (kind) {
      case Kind::kInt64: {
        int overflow = 0;
        if (!PyLong_CheckExact(value)) return false;
        single->integer = PyLong_AsLongLongAndOverflow(value, &overflow);
        if (overflow != 0) return false;
        taken->ints = {&single->integer, 1};
        break;
      }
      case Kind::kFloat: {
        if (!PyFloat_CheckExact(value) || !NarrowFloat(PyFloat_AsDouble(value), floats_, &single->number))
          return false;
        taken->floats = {&single->number, 1};
        break;
      }
      case Kind::kBytes: {
        if (!PyBytes_CheckExact(value) && !PyUnicode_CheckExact(value)) return false;
        if (!ViewBytes(value, &single->bytes)) return false;
        taken->bytes = {&single->bytes, 1};
        break;
      }
      case Kind::kUnset:
        return false;
    }
    taken->kind = kind;
    return true;
  }

  ValueArena::Range TakeValue(Slot& slot, PyObject* name, PyObject* value) {
    if (value == Py_None) return {};
    ValueArena::Range range;
    if (!arena_.TakePlain(value, slot.kind, floats_, &range) ||
        (slot.kind != Kind::kUnset && range.kind != slot.kind)) {
      const nb::object expected = slot.kind == Kind::kUnset ? nb::none() : nb::cast(KindName(slot.kind));
      range = arena_.TakeCoerced(coerce_(nb::handle(name), nb::handle(value), expected));
    }
    if (slot.kind == Kind::kUnset && range.kind != Kind::kUnset) {
      slot.kind = range.kind;
      learned_.push_back(&slot);
    }
    return range;
  }

  size_t EncodeRow(nb::dict row) {
    FindLayout(row);
    arena_.Clear();
    ranges_.clear();
    PyObject *key, *value;
    Py_ssize_t position = 0;
    for (size_t i = 0; PyDict_Next(row.ptr(), &position, &key, &value) && i < slots_.size(); ++i) {
      if (!TakeSingle(value, slots_[i]->kind, &singles_[i], &features_[places_[i]].value))
        ranges_.emplace_back(i, TakeValue(*slots_[i], key, value));
    }
    ResolveRanges();
    return Emit([this] { return AppendExample(features_, &pending_); });
  }

  // The arena does not move any more.
  void ResolveRanges() {
    for (const auto& [i, range] : ranges_) features_[places_[i]].value = arena_.Resolve(range);
  }

  size_t EncodeSequence(nb::sequence context, nb::sequence lists) {
    arena_.Clear();
    std::vector<std::pair<Slot*, ValueArena::Range>> context_ranges;
    for (nb::handle item : context) {
      const auto pair = nb::cast<nb::tuple>(item);
      Slot& slot = SlotOf(&known_, EncodeName(pair[0]));
      context_ranges.emplace_back(&slot, TakeValue(slot, pair[0].ptr(), pair[1].ptr()));
    }
    std::vector<std::pair<Slot*, std::vector<ValueArena::Range>>> list_ranges;
    for (nb::handle item : lists) {
      const auto pair = nb::cast<nb::tuple>(item);
      Slot& slot = SlotOf(&known_lists_, EncodeName(pair[0]));
      auto& [_, frames] = list_ranges.emplace_back(&slot, std::vector<ValueArena::Range>{});
      for (nb::handle frame : nb::cast<nb::sequence>(pair[1]))
        frames.push_back(TakeValue(slot, pair[0].ptr(), frame.ptr()));
    }
    std::vector<NamedFeature> features;
    for (const auto& [slot, range] : context_ranges) features.push_back({slot->name, arena_.Resolve(range)});
    std::vector<std::vector<FeatureValue>> frames;
    for (const auto& [_, ranges] : list_ranges) {
      auto& values = frames.emplace_back();
      for (const auto& range : ranges) values.push_back(arena_.Resolve(range));
    }
    std::vector<NamedFeatureList> named;
    for (size_t i = 0; i < frames.size(); ++i) named.push_back({list_ranges[i].first->name, frames[i]});
    return Emit([&] { return AppendSequenceExample(features, named, &pending_); });
  }

  // Runs `encode`; if it throws, forgets the kinds that the failed row seemed to teach.
  template <class Encode>
  size_t Remembering(Encode&& encode) {
    learned_.clear();
    try {
      return encode();
    } catch (...) {
      for (Slot* slot : learned_) slot->kind = Kind::kUnset;
      throw;
    }
  }

  template <class Append>
  size_t Emit(Append&& append) {
    size_t start = 0;
    const size_t before = pending_.size();
    if (!BeginFrame(&pending_, &start) || !append() || !FinishFrame(&pending_, start)) {
      pending_.Truncate(before);
      throw std::bad_alloc();
    }
    ++num_records_;
    return pending_.size();
  }

  Floats floats_;
  nb::callable coerce_;
  Slots known_, known_lists_;
  std::vector<Slot*> learned_;  // slots whose kind was fixed by this row
  // The layout of the row before: keys in dict order, their slots, and their places in the order by name.
  std::vector<nb::object> keys_;
  std::vector<Slot*> slots_;
  std::vector<uint32_t> places_;
  std::vector<NamedFeature> features_;  // in the order by name
  // Scratch, kept warm.
  std::vector<Single> singles_;
  ValueArena arena_;
  std::vector<std::pair<size_t, ValueArena::Range>> ranges_;  // of values that are not single
  PoolVector<uint8_t> message_;
  PoolVector<uint8_t> pending_;
  uint64_t num_records_ = 0;
};

// A list or tuple of bytes joined: (data, offsets). None when a value is something else.
nb::object PackBytes(nb::handle values) {
  const bool is_list = PyList_Check(values.ptr());
  if (!is_list && !PyTuple_Check(values.ptr())) throw nb::type_error("expected a list or a tuple");
  const Py_ssize_t count = is_list ? PyList_Size(values.ptr()) : PyTuple_Size(values.ptr());
  PoolVector<uint8_t> data;
  PoolVector<int64_t> offsets;
  if (!offsets.Reserve(static_cast<size_t>(count) + 1) || !offsets.PushBack(0)) throw std::bad_alloc();
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* const value = is_list ? PyList_GetItem(values.ptr(), i) : PyTuple_GetItem(values.ptr(), i);
    if (value == nullptr) nb::raise_python_error();
    if (!PyBytes_CheckExact(value)) return nb::none();
    char* bytes = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(value, &bytes, &size) != 0) nb::raise_python_error();
    const void* const start = bytes;
    if (!data.Append(static_cast<const uint8_t*>(start), static_cast<size_t>(size)) ||
        !offsets.PushBack(static_cast<int64_t>(data.size()))) {
      throw std::bad_alloc();
    }
  }
  return nb::make_tuple(ToArray(std::move(data)), ToArray(std::move(offsets)));
}

}  // namespace

void BindRows(nb::module_& m) {
  m.def("pack_bytes", &PackBytes, nb::arg("values"),
        "A list or tuple of bytes joined: (data, offsets); None when a value is something else.",
        nb::sig("def pack_bytes(values: list[typing.Any] | tuple[typing.Any, ...]) -> "
                "tuple[numpy.typing.NDArray[numpy.uint8], numpy.typing.NDArray[numpy.int64]] | None"));

  nb::class_<RowEncoder>(m, "RowEncoder", "Rows in, frames out. One thread at a time.")
      .def(nb::init<std::string_view, nb::callable>(), nb::arg("floats"), nb::arg("coerce"),
           nb::sig("def __init__(self, floats: str, coerce: typing.Callable[[str, typing.Any, str | None], "
                   "tuple[str, typing.Any]]) -> None"),
           "`coerce(name, value, expected kind or None)` returns (kind, buffer or list of bytes) or raises.")
      .def("write", &RowEncoder::Write, nb::arg("row"),
           "Append a row; return the number of bytes that wait to be taken.",
           nb::sig("def write(self, row: dict[str, typing.Any]) -> int"))
      .def("encode_message", &RowEncoder::EncodeMessage, nb::arg("features"),
           "The bytes of an Example of features by name: (name of the field of the list, values).",
           nb::sig("def encode_message(self, features: dict[str, tuple[str, list[typing.Any]]]) -> bytes"))
      .def("write_sequence", &RowEncoder::WriteSequence, nb::arg("context"), nb::arg("lists"),
           "Append a SequenceExample; return the number of bytes that wait to be taken.",
           nb::sig("def write_sequence(self, context: typing.Sequence[tuple[str, typing.Any]], lists: "
                   "typing.Sequence[tuple[str, typing.Any]]) -> int"))
      .def("write_columns", &RowEncoder::WriteColumns, nb::arg("columns"), nb::arg("num_rows"),
           "Append many rows; return the number of bytes that wait to be taken.",
           nb::sig("def write_columns(self, columns: typing.Sequence[tuple[bytes, str, typing.Any, "
                   "typing.Any, int, typing.Any, typing.Any]], num_rows: int) -> int"))
      .def("write_record", &RowEncoder::WriteRecord, nb::arg("record"), "Append a record as it is.")
      .def("kind_of", &RowEncoder::KindOf, nb::arg("name"), nb::arg("kind") = nb::none(),
           nb::arg("is_list") = false,
           "The kind a feature has had so far, or None; sets it where there was none.")
      .def("take", &RowEncoder::Take, "The frames made so far, which are then forgotten here.",
           nb::sig("def take(self) -> numpy.typing.NDArray[numpy.uint8]"))
      .def("rollback", &RowEncoder::Rollback, nb::arg("num_records"), nb::arg("num_pending"),
           "Forget the records after the first `num_records`.")
      .def_prop_ro("num_pending", &RowEncoder::num_pending, "Bytes that wait to be taken.")
      .def_prop_ro("num_records", &RowEncoder::num_records);
}

}  // namespace tfrkit
