// Column specs as Python writes them, and columns as it gets them.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "bindings/buffers.h"
#include "bindings/tensors.h"
#include "core/columns/column_builder.h"
#include "core/wire/record_types.h"

namespace tfrkit {

const char* KindName(Kind kind);
// Raises for any other name, "unset" among them.
Kind ToKind(std::string_view name);
RecordKind ToRecordKind(std::string_view name);

// (name bytes, kind, is_list, length or -1, perhaps whether bytes are viewed) for each column; the kinds go
// to `kinds`.
std::vector<ColumnSpec> ParseSpecs(nb::sequence specs, std::vector<Kind>* kinds);
// (name bytes, is_list) for each name.
std::vector<KnownName> ParseNames(nb::sequence names);

// An array of the numbers of a column; (bytes, offsets) for bytes.
nb::object WrapValues(Kind kind, Column* column);
// A tensor of the numbers of a column. REQUIRES: it has numbers.
nb::object WrapTensor(Kind kind, Column* column, const TensorExchange& exchange);

// Arrays over columns of numbers that lie one after the other in one block, which they hold together; with
// `exchange` tensors.
class PackedColumns {
 public:
  PackedColumns(PoolVector<uint8_t>&& block, size_t num_rows, size_t max_columns,
                const TensorExchange* exchange);
  // The next column. REQUIRES: it has numbers, and no more than `max_columns` are asked for.
  nb::object Next(Kind kind);

 private:
  struct Tensors {
    PoolVector<uint8_t> block;
    std::vector<TensorHolder> holders;
  };

  template <class T>
  nb::object NextOf();

  const size_t num_rows_;
  const TensorExchange* const exchange_;
  uint8_t* data_;
  std::shared_ptr<Tensors> tensors_;
  size_t num_tensors_ = 0;
  nb::object owner_;  // of arrays
};
// (values, splits, list_splits, presence, frame_presence), None where there are none. `values` are in place
// of the column's own, if given.
nb::tuple WrapColumn(Kind kind, Column* column, nb::object values = {});

}  // namespace tfrkit
