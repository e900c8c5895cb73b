// Whole columns, and any of their rows as frames.
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <vector>

#include "bindings/buffers.h"
#include "bindings/column_values.h"
#include "core/wire/example_writer.h"

namespace tfrkit {
namespace {

using RowNumbers = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Columns that stay as they are while their rows are framed; calls may run in parallel.
class ColumnFrames {
 public:
  ColumnFrames(nb::sequence columns, uint64_t num_rows) : num_rows_(num_rows) {
    names_.reserve(nb::len(columns));  // the sources point into it
    std::vector<ColumnSizes> sizes;
    for (nb::handle item : columns) {
      const auto column = nb::cast<nb::tuple>(item);
      const auto name = nb::cast<nb::bytes>(column[0]);
      names_.emplace_back(name.c_str(), name.size());
      ColumnSource source;
      ColumnSizes& size = sizes.emplace_back();
      source.name = names_.back();
      source.kind = ToKind(nb::cast<std::string>(column[1]));
      size_t nbytes = 0;
      const void* const values = Hold(column[2], &nbytes);
      source.ints = static_cast<const int64_t*>(values);
      source.floats = static_cast<const float*>(values);
      source.bytes = static_cast<const uint8_t*>(values);
      size.num_values = source.kind == Kind::kInt64   ? nbytes / sizeof(int64_t)
                        : source.kind == Kind::kFloat ? nbytes / sizeof(float)
                                                      : nbytes;
      source.byte_offsets = static_cast<const int64_t*>(Hold(column[3], &nbytes));
      size.num_byte_offsets = nbytes / sizeof(int64_t);
      source.splits = static_cast<const int64_t*>(Hold(column[4], &nbytes));
      size.num_splits = nbytes / sizeof(int64_t);
      source.missing = static_cast<const uint8_t*>(Hold(column[5], &size.num_missing));
      sources_.push_back(source);
    }
    bool holds = true;
    {
      nb::gil_scoped_release release;
      for (size_t i = 0; i < sources_.size(); ++i)
        holds = holds && HoldsRows(sources_[i], sizes[i], num_rows);
    }
    if (!holds) throw nb::value_error("columns expected offsets and splits that rise and hold every row");
  }

  ColumnFrames(const ColumnFrames&) = delete;
  ColumnFrames& operator=(const ColumnFrames&) = delete;

  nb::tuple Take(RowNumbers rows) const {
    PoolVector<uint8_t> frames;
    PoolVector<uint64_t> starts;
    bool is_inside = true;
    bool ok = false;
    {
      nb::gil_scoped_release release;
      const std::span<const int64_t> numbers(rows.data(), rows.size());
      for (const int64_t row : numbers) is_inside &= static_cast<uint64_t>(row) < num_rows_;
      ok = is_inside && AppendFramedRows(sources_, numbers, &frames, &starts);
    }
    if (!is_inside) throw nb::index_error("row number out of range");
    if (!ok) throw std::bad_alloc();
    return nb::make_tuple(ToArray(std::move(frames)), ToArray(std::move(starts)));
  }

 private:
  const void* Hold(nb::handle object, size_t* nbytes) {
    *nbytes = 0;
    if (object.is_none()) return nullptr;
    const ByteView bytes = buffers_.emplace_back(std::make_unique<Buffer>(object))->bytes();
    *nbytes = bytes.size();
    return bytes.data();
  }

  uint64_t num_rows_;
  std::vector<std::string> names_;
  std::vector<std::unique_ptr<Buffer>> buffers_;
  std::vector<ColumnSource> sources_;
};

}  // namespace

void BindColumnFrames(nb::module_& m) {
  nb::class_<ColumnFrames>(m, "ColumnFrames", "Whole columns, and any of their rows as frames.")
      .def(nb::init<nb::sequence, uint64_t>(), nb::arg("columns"), nb::arg("num_rows"),
           nb::sig("def __init__(self, columns: typing.Sequence[tuple[bytes, str, typing.Any, typing.Any, "
                   "typing.Any, typing.Any]], num_rows: int) -> None"),
           "Columns are (name, kind, values, byte offsets, splits, missing), sorted by name.")
      .def("take", &ColumnFrames::Take, nb::arg("rows"),
           "Rows in this order: (frames, where each one starts). Threads may call it at the same time.",
           nb::sig("def take(self, rows: numpy.typing.NDArray[numpy.int64]) -> "
                   "tuple[numpy.typing.NDArray[numpy.uint8], numpy.typing.NDArray[numpy.uint64]]"));
}

}  // namespace tfrkit
