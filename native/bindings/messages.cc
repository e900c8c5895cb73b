// One record as the message it is: names, kinds and values, with absent, unset and empty kept apart.
//
// For single records of unknown features. Use columns for many records of one schema.
#include <nanobind/stl/string_view.h>

#include <new>

#include "bindings/buffers.h"
#include "bindings/column_values.h"
#include "core/wire/example_reader.h"
#include "core/wire/wire.h"

namespace tfrkit {

namespace {

class MessageReader {
 public:
  explicit MessageReader(RecordKind kind) : reader_(kind, &features_, &lists_) {
    features_.adds_names = lists_.adds_names = true;
  }

  nb::object Read(ByteView record) {
    if (const Fault fault = reader_.Read(record)) return ToPython(fault, 0);
    bool has_features = false, has_lists = false;
    Field field;
    const uint8_t* const end = record.data() + record.size();
    for (const uint8_t* p = record.data(); p != nullptr && p < end;) {
      p = ReadField(p, end, &field);
      has_features |= p != nullptr && field.Is(1, WireType::kDelimited);
      has_lists |= p != nullptr && field.Is(2, WireType::kDelimited);
    }
    nb::list features, lists;
    for (const KeyNode& node : features_.keys.nodes()) {
      if (const MergedEntry* entry = reader_.Feature(node.slot)) {
        features.append(nb::make_tuple(ToBytes(node.name), Kinded(entry->feature), Values(entry->feature)));
      }
    }
    for (const KeyNode& node : lists_.keys.nodes()) {
      if (const MergedEntry* entry = reader_.List(node.slot)) {
        nb::list frames;
        for (size_t i = 0; i < entry->num_frames; ++i) {
          const MergedFeature& frame = reader_.Frame(entry->first_frame + i);
          frames.append(nb::make_tuple(Kinded(frame), Values(frame)));
        }
        lists.append(nb::make_tuple(ToBytes(node.name), frames));
      }
    }
    return nb::make_tuple(has_features ? nb::object(features) : nb::none(),
                          has_lists ? nb::object(lists) : nb::none());
  }

 private:
  static nb::bytes ToBytes(std::string_view text) { return nb::bytes(text.data(), text.size()); }

  static nb::object Kinded(const MergedFeature& feature) {
    return feature.kind == Kind::kUnset ? nb::none() : nb::object(nb::str(KindName(feature.kind)));
  }

  nb::list Values(const MergedFeature& feature) {
    nb::list values;
    const size_t count = static_cast<size_t>(feature.num_values);
    if (feature.kind == Kind::kInt64) {
      if (!ints_.Resize(count)) throw std::bad_alloc();
      reader_.CopyInts(feature, ints_.data());
      for (size_t i = 0; i < count; ++i) values.append(ints_[i]);
    } else if (feature.kind == Kind::kFloat) {
      if (!floats_.Resize(count)) throw std::bad_alloc();
      reader_.CopyFloats(feature, floats_.data());
      for (size_t i = 0; i < count; ++i) values.append(static_cast<double>(floats_[i]));
    } else if (feature.kind == Kind::kBytes) {
      if (!views_.Resize(count)) throw std::bad_alloc();
      reader_.CopyBytes(feature, views_.data());
      for (size_t i = 0; i < count; ++i) values.append(nb::bytes(views_[i].data(), views_[i].size()));
    }
    return values;
  }

  SlotFinder features_;
  SlotFinder lists_;
  ExampleReader reader_;
  PoolVector<int64_t> ints_;
  PoolVector<float> floats_;
  PoolVector<ByteView> views_;
};

nb::object ReadMessage(std::string_view kind, nb::handle record) {
  const Buffer buffer(record);
  return MessageReader(ToRecordKind(kind)).Read(buffer.bytes());
}

}  // namespace

void BindMessages(nb::module_& m) {
  m.def("read_message", &ReadMessage, nb::arg("kind"), nb::arg("record"),
        "(features, feature lists) of a record as [(name, kind or None, values)] and [(name, [(kind or None, "
        "values)])], None for a part that is not there; or its Fault.",
        nb::sig("def read_message(kind: str, record: object) -> "
                "tuple[list[tuple[bytes, str | None, list[typing.Any]]] | None, "
                "list[tuple[bytes, list[tuple[str | None, list[typing.Any]]]]] | None] | Fault"));
}

}  // namespace tfrkit
