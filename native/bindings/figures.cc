// Figures of columns, and merging of what sketches keep.
#include <nanobind/stl/optional.h>

#include <new>
#include <optional>
#include <stdexcept>
#include <utility>

#include "bindings/buffers.h"
#include "core/stats/column_figures.h"
#include "core/stats/sorted_merge.h"
#include "core/stats/value_hash.h"

namespace tfrkit {

namespace {

template <class T>
using Column = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A block of values, of which there are fewer than the core can count.
template <class T>
std::span<const T> ToSpan(const Column<T>& column) {
  if (column.size() > UINT32_MAX) throw nb::value_error("a block has fewer than 2**32 values");
  return {column.data(), column.size()};
}

SketchSizes ToSizes(const nb::tuple& sizes) {
  return {nb::cast<size_t>(sizes[0]), nb::cast<size_t>(sizes[1]), nb::cast<size_t>(sizes[2])};
}

template <class T>
nb::tuple ToPython(NumberFigures<T>&& figures) {
  const bool is_whole = figures.table.is_whole;
  return nb::make_tuple(figures.num_nan, figures.num_finite, figures.zeros,
                        figures.has_range ? nb::cast(figures.low) : nb::none(),
                        figures.has_range ? nb::cast(figures.high) : nb::none(), figures.mean, figures.m2,
                        ToArray(std::move(figures.table.values)), ToArray(std::move(figures.table.counts)),
                        is_whole, figures.level,
                        is_whole ? nb::none() : nb::cast(ToArray(std::move(figures.ranks))),
                        is_whole ? nb::none() : nb::cast(ToArray(std::move(figures.hashes))));
}

template <class T, class Summarize>
nb::tuple SummarizeColumn(const Column<T>& values, const nb::tuple& sizes, std::optional<uint64_t> limit,
                          Summarize summarize) {
  const SketchSizes kept = ToSizes(sizes);
  const std::span<const T> span = ToSpan(values);
  NumberFigures<T> figures;
  bool is_done;
  {
    nb::gil_scoped_release release;
    is_done = summarize(span, kept, limit.value_or(UINT64_MAX), &figures);
  }
  if (!is_done) throw std::bad_alloc();
  return ToPython(std::move(figures));
}

nb::tuple SummarizeIntsPy(const Column<int64_t>& values, const nb::tuple& sizes,
                          std::optional<uint64_t> limit) {
  return SummarizeColumn<int64_t>(values, sizes, limit, SummarizeInts);
}

nb::tuple SummarizeFloatsPy(const Column<float>& values, const nb::tuple& sizes,
                            std::optional<uint64_t> limit) {
  return SummarizeColumn<float>(values, sizes, limit, SummarizeFloats);
}

nb::tuple SummarizeBytesPy(nb::handle data, const Column<int64_t>& offsets, const nb::tuple& sizes,
                           std::optional<uint64_t> limit) {
  const Buffer buffer(data);
  const SketchSizes kept = ToSizes(sizes);
  const std::span<const int64_t> span = ToSpan(offsets);
  BytesFigures figures;
  bool is_inside, is_done = true;
  {
    nb::gil_scoped_release release;
    is_inside = AreOffsetsInside(span, buffer.bytes().size());
    if (is_inside) is_done = SummarizeBytes(buffer.bytes(), span, kept, limit.value_or(UINT64_MAX), &figures);
  }
  if (!is_inside) throw std::out_of_range("offsets lie outside the data");
  if (!is_done) throw std::bad_alloc();
  const bool is_whole = figures.table.is_whole;
  return nb::make_tuple(ToPython(std::move(figures.sizes)), ToArray(std::move(figures.table.values)),
                        ToArray(std::move(figures.table.counts)), is_whole, ToArray(std::move(figures.rows)),
                        is_whole ? nb::none() : nb::cast(ToArray(std::move(figures.hashes))),
                        ToArray(std::move(figures.images)));
}

// Merging takes some ten microseconds; to let go of the interpreter lock and wait for it again takes longer.

template <class T>
Array<T> MergeSortedPy(const Column<T>& one, const Column<T>& other) {
  PoolVector<T> merged;
  if (!MergeSorted(ToSpan(one), ToSpan(other), &merged)) throw std::bad_alloc();
  return ToArray(std::move(merged));
}

nb::tuple MergeUniquePy(const Column<uint64_t>& one, const Column<uint64_t>& other, size_t most) {
  PoolVector<uint64_t> merged;
  size_t num_different;
  if (!MergeUnique(ToSpan(one), ToSpan(other), most, &merged, &num_different)) throw std::bad_alloc();
  return nb::make_tuple(ToArray(std::move(merged)), num_different);
}

template <class T>
nb::tuple MergeCountsPy(const Column<T>& one, const Column<int64_t>& one_counts, const Column<T>& other,
                        const Column<int64_t>& other_counts) {
  if (one.size() != one_counts.size() || other.size() != other_counts.size())
    throw nb::value_error("as many counts as values are needed");
  PoolVector<T> values;
  PoolVector<int64_t> counts;
  bool is_done;
  {
    nb::gil_scoped_release release;
    is_done =
        MergeCounts(ToSpan(one), ToSpan(one_counts), ToSpan(other), ToSpan(other_counts), &values, &counts);
  }
  if (!is_done) throw std::bad_alloc();
  return nb::make_tuple(ToArray(std::move(values)), ToArray(std::move(counts)));
}

constexpr const char* kSummary =
    "Figures of a block of numbers: (num_nan, num_finite, zeros, low, high, mean, m2, values, counts, "
    "is_whole, level, ranks, hashes). `sizes` is (max_values, num_hashes, max_ranks); hashes above `limit` "
    "are left out. `ranks` and `hashes` are None where the table of values and counts is whole.";
constexpr const char* kMergedCounts =
    "Values with counts of two tables, in ascending order: (values, counts). No table has a value twice.";

template <class T>
void BindMerges(nb::module_& m, const char* sorted_signature, const char* counts_signature) {
  m.def("merge_sorted", &MergeSortedPy<T>, nb::arg("one").noconvert(), nb::arg("other").noconvert(),
        nb::sig(sorted_signature), "All values of two arrays that are in ascending order, in that order.");
  m.def("merge_counts", &MergeCountsPy<T>, nb::arg("one").noconvert(), nb::arg("one_counts").noconvert(),
        nb::arg("other").noconvert(), nb::arg("other_counts").noconvert(), nb::sig(counts_signature),
        kMergedCounts);
}

}  // namespace

void BindFigures(nb::module_& m) {
  m.def("summarize_ints", &SummarizeIntsPy, nb::arg("values").noconvert(), nb::arg("sizes"),
        nb::arg("limit") = nb::none(), kSummary,
        nb::sig("def summarize_ints(values: numpy.typing.NDArray[numpy.int64], sizes: tuple[int, int, int], "
                "limit: int | None = None) -> tuple[typing.Any, ...]"));
  m.def("summarize_floats", &SummarizeFloatsPy, nb::arg("values").noconvert(), nb::arg("sizes"),
        nb::arg("limit") = nb::none(), kSummary,
        nb::sig("def summarize_floats(values: numpy.typing.NDArray[numpy.float32], sizes: tuple[int, int, "
                "int], limit: int | None = None) -> tuple[typing.Any, ...]"));
  m.def("summarize_bytes", &SummarizeBytesPy, nb::arg("data"), nb::arg("offsets").noconvert(),
        nb::arg("sizes"), nb::arg("limit") = nb::none(),
        "Figures of bytes values: (figures of their sizes, keys, counts, is_whole, the first row of each "
        "key, hashes, rows that begin as an image does). Values are identified by their `hash_values`.",
        nb::sig("def summarize_bytes(data: object, offsets: numpy.typing.NDArray[numpy.int64], sizes: "
                "tuple[int, int, int], limit: int | None = None) -> tuple[typing.Any, ...]"));
  m.def("merge_unique", &MergeUniquePy, nb::arg("one").noconvert(), nb::arg("other").noconvert(),
        nb::arg("most"),
        "The first different values of two arrays that are in ascending order, and the number of different "
        "values.",
        nb::sig("def merge_unique(one: numpy.typing.NDArray[numpy.uint64], other: "
                "numpy.typing.NDArray[numpy.uint64], most: int) -> "
                "tuple[numpy.typing.NDArray[numpy.uint64], int]"));
  BindMerges<int64_t>(m,
                      "def merge_sorted(one: numpy.typing.NDArray[numpy.int64], other: "
                      "numpy.typing.NDArray[numpy.int64]) -> numpy.typing.NDArray[numpy.int64]",
                      "def merge_counts(one: numpy.typing.NDArray[numpy.int64], one_counts: "
                      "numpy.typing.NDArray[numpy.int64], other: numpy.typing.NDArray[numpy.int64], "
                      "other_counts: numpy.typing.NDArray[numpy.int64]) -> "
                      "tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64]]");
  BindMerges<float>(m,
                    "def merge_sorted(one: numpy.typing.NDArray[numpy.float32], other: "
                    "numpy.typing.NDArray[numpy.float32]) -> numpy.typing.NDArray[numpy.float32]",
                    "def merge_counts(one: numpy.typing.NDArray[numpy.float32], one_counts: "
                    "numpy.typing.NDArray[numpy.int64], other: numpy.typing.NDArray[numpy.float32], "
                    "other_counts: numpy.typing.NDArray[numpy.int64]) -> "
                    "tuple[numpy.typing.NDArray[numpy.float32], numpy.typing.NDArray[numpy.int64]]");
  BindMerges<uint64_t>(m,
                       "def merge_sorted(one: numpy.typing.NDArray[numpy.uint64], other: "
                       "numpy.typing.NDArray[numpy.uint64]) -> numpy.typing.NDArray[numpy.uint64]",
                       "def merge_counts(one: numpy.typing.NDArray[numpy.uint64], one_counts: "
                       "numpy.typing.NDArray[numpy.int64], other: numpy.typing.NDArray[numpy.uint64], "
                       "other_counts: numpy.typing.NDArray[numpy.int64]) -> "
                       "tuple[numpy.typing.NDArray[numpy.uint64], numpy.typing.NDArray[numpy.int64]]");
}

}  // namespace tfrkit
