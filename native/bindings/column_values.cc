#include "bindings/column_values.h"

#include <nanobind/stl/string.h>

#include <string>
#include <utility>

#include "bindings/numpy_arrays.h"
#include "engine/batch_source.h"

namespace tfrkit {
namespace {

constexpr const char* kKindNames[] = {"unset", "bytes", "float", "int64"};  // by Kind

template <class T>
nb::object Optional(PoolVector<T>&& values) {
  if (values.empty()) return nb::none();
  return WrapArray(std::move(values));
}

}  // namespace

const char* KindName(Kind kind) { return kKindNames[static_cast<size_t>(kind)]; }

Kind ToKind(std::string_view name) {
  for (const Kind kind : {Kind::kBytes, Kind::kFloat, Kind::kInt64}) {
    if (name == KindName(kind)) return kind;
  }
  throw nb::value_error("a feature kind is 'bytes', 'float' or 'int64'");
}

RecordKind ToRecordKind(std::string_view name) {
  if (name == "example") return RecordKind::kExample;
  if (name == "sequence_example") return RecordKind::kSequenceExample;
  throw nb::value_error("a record kind is 'example' or 'sequence_example'");
}

std::vector<ColumnSpec> ParseSpecs(nb::sequence specs, std::vector<Kind>* kinds) {
  std::vector<ColumnSpec> parsed;
  for (nb::handle item : specs) {
    const auto spec = nb::cast<nb::tuple>(item);
    const auto name = nb::cast<nb::bytes>(spec[0]);
    parsed.push_back({std::string(name.c_str(), name.size()), ToKind(nb::cast<std::string>(spec[1])),
                      nb::cast<bool>(spec[2]), nb::cast<int64_t>(spec[3]),
                      spec.size() > 4 && nb::cast<bool>(spec[4])});
    kinds->push_back(parsed.back().kind);
  }
  return parsed;
}

std::vector<KnownName> ParseNames(nb::sequence names) {
  std::vector<KnownName> parsed;
  for (nb::handle item : names) {
    const auto pair = nb::cast<nb::tuple>(item);
    const auto name = nb::cast<nb::bytes>(pair[0]);
    parsed.push_back({std::string(name.c_str(), name.size()), nb::cast<bool>(pair[1])});
  }
  return parsed;
}

nb::object WrapValues(Kind kind, Column* column) {
  switch (kind) {
    case Kind::kInt64:
      return WrapArray(std::move(column->ints));
    case Kind::kFloat:
      return WrapArray(std::move(column->floats));
    default:
      return nb::make_tuple(WrapArray(std::move(column->bytes)), WrapArray(std::move(column->byte_offsets)));
  }
}

nb::object WrapTensor(Kind kind, Column* column, const TensorExchange& exchange) {
  return kind == Kind::kInt64 ? ToTensor(std::move(column->ints), exchange)
                              : ToTensor(std::move(column->floats), exchange);
}

PackedColumns::PackedColumns(PoolVector<uint8_t>&& block, size_t num_rows, size_t max_columns,
                             const TensorExchange* exchange)
    : num_rows_(num_rows), exchange_(exchange), data_(block.data()) {
  if (exchange_ == nullptr) {
    owner_ = HoldValues(new PoolVector<uint8_t>(std::move(block)));
    return;
  }
  tensors_ = std::make_shared<Tensors>();
  tensors_->block = std::move(block);
  tensors_->holders.resize(max_columns);
}

nb::object PackedColumns::Next(Kind kind) {
  return kind == Kind::kInt64 ? NextOf<int64_t>() : NextOf<float>();
}

template <class T>
nb::object PackedColumns::NextOf() {
  // The block is aligned for any number.
  T* const values = static_cast<T*>(static_cast<void*>(data_));
  data_ += PackedSize(num_rows_ * sizeof(T));
  if (exchange_ == nullptr) return ViewArray(values, num_rows_, owner_);
  return MakeTensor(values, num_rows_, &tensors_->holders[num_tensors_++], tensors_, *exchange_);
}

nb::tuple WrapColumn(Kind kind, Column* column, nb::object values) {
  if (!values.is_valid()) values = WrapValues(kind, column);
  return nb::make_tuple(values, Optional(std::move(column->splits)), Optional(std::move(column->list_splits)),
                        Optional(std::move(column->presence)), Optional(std::move(column->frame_presence)));
}

}  // namespace tfrkit
