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

nb::any Any(nb::object object) { return nb::borrow<nb::any>(object); }

template <class T>
nb::any Wrap(PoolVector<T>&& values, bool is_there = true) {
  return Any(is_there ? nb::cast(ToArray(std::move(values))) : nb::none());
}

// Figures as Python holds them; None for what they do not have.
struct PyNumberFigures {
  template <class T>
  explicit PyNumberFigures(NumberFigures<T>&& from)
      : num_nan(from.num_nan),
        num_finite(from.num_finite),
        zeros(from.zeros),
        low(Any(from.has_range ? nb::cast(from.low) : nb::none())),
        high(Any(from.has_range ? nb::cast(from.high) : nb::none())),
        mean(from.mean),
        m2(from.m2),
        values(Wrap(std::move(from.table.values))),
        counts(Wrap(std::move(from.table.counts))),
        is_whole(from.table.is_whole),
        level(from.level),
        ranks(Wrap(std::move(from.ranks), !is_whole)),
        hashes(Wrap(std::move(from.hashes), !is_whole)) {}

  size_t num_nan, num_finite, zeros;
  nb::any low, high;
  double mean, m2;
  nb::any values, counts;
  bool is_whole;
  int level;
  nb::any ranks, hashes;
};

struct PyBytesFigures {
  explicit PyBytesFigures(BytesFigures&& from)
      : sizes(std::move(from.sizes)),
        keys(Wrap(std::move(from.table.values))),
        counts(Wrap(std::move(from.table.counts))),
        is_whole(from.table.is_whole),
        rows(Wrap(std::move(from.rows))),
        hashes(Wrap(std::move(from.hashes), !is_whole)),
        images(Wrap(std::move(from.images))) {}

  PyNumberFigures sizes;
  nb::any keys, counts;
  bool is_whole;
  nb::any rows, hashes, images;
};

template <class T, class Summarize>
PyNumberFigures SummarizeColumn(const Column<T>& values, const nb::tuple& sizes,
                                std::optional<uint64_t> limit, Summarize summarize) {
  const SketchSizes kept = ToSizes(sizes);
  const std::span<const T> span = ToSpan(values);
  NumberFigures<T> figures;
  bool is_done;
  {
    nb::gil_scoped_release release;
    is_done = summarize(span, kept, limit.value_or(UINT64_MAX), &figures);
  }
  if (!is_done) throw std::bad_alloc();
  return PyNumberFigures(std::move(figures));
}

PyNumberFigures SummarizeIntsPy(const Column<int64_t>& values, const nb::tuple& sizes,
                                std::optional<uint64_t> limit) {
  return SummarizeColumn<int64_t>(values, sizes, limit, SummarizeInts);
}

PyNumberFigures SummarizeFloatsPy(const Column<float>& values, const nb::tuple& sizes,
                                  std::optional<uint64_t> limit) {
  return SummarizeColumn<float>(values, sizes, limit, SummarizeFloats);
}

PyBytesFigures SummarizeBytesPy(nb::handle data, const Column<int64_t>& offsets, const nb::tuple& sizes,
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
  return PyBytesFigures(std::move(figures));
}

// Merging takes some ten microseconds; releasing the interpreter lock and waiting for it again takes longer.

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
    "Figures of a block of numbers. `sizes` is (max_values, num_hashes, max_ranks); hashes above `limit` are "
    "left out.";
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
  nb::class_<PyNumberFigures>(m, "NumberFigures", "Figures of a block of numbers.")
      .def_ro("num_nan", &PyNumberFigures::num_nan)
      .def_ro("num_finite", &PyNumberFigures::num_finite)
      .def_ro("zeros", &PyNumberFigures::zeros, "Of either sign.")
      .def_ro("low", &PyNumberFigures::low, "None without a number.")
      .def_ro("high", &PyNumberFigures::high, "None without a number.")
      .def_ro("mean", &PyNumberFigures::mean, "Of the finite numbers.")
      .def_ro("m2", &PyNumberFigures::m2, "The sum of squared deviations from the mean.")
      .def_ro("values", &PyNumberFigures::values, "Different values, in ascending order.")
      .def_ro("counts", &PyNumberFigures::counts, "Of `values`.")
      .def_ro(
          "is_whole", &PyNumberFigures::is_whole,
          "Does `values` hold all values? Else those that occur twice or more, with counts that are 1 less.")
      .def_ro("level", &PyNumberFigures::level, "Each of `ranks` represents 2**level values.")
      .def_ro("ranks", &PyNumberFigures::ranks, "None if `is_whole`.")
      .def_ro("hashes", &PyNumberFigures::hashes,
              "The smallest hashes, in ascending order; None if `is_whole`.");
  nb::class_<PyBytesFigures>(m, "BytesFigures", "Figures of a block of bytes values.")
      .def_ro("sizes", &PyBytesFigures::sizes, "Figures of the sizes.")
      .def_ro("keys", &PyBytesFigures::keys, "`hash_values` of different values, in ascending order.")
      .def_ro("counts", &PyBytesFigures::counts, "Of `keys`.")
      .def_ro("is_whole", &PyBytesFigures::is_whole, "As in NumberFigures.")
      .def_ro("rows", &PyBytesFigures::rows, "The first row of each key.")
      .def_ro("hashes", &PyBytesFigures::hashes, "As in NumberFigures.")
      .def_ro("images", &PyBytesFigures::images, "Rows that begin like an image.");
  m.def("summarize_ints", &SummarizeIntsPy, nb::arg("values").noconvert(), nb::arg("sizes"),
        nb::arg("limit") = nb::none(), kSummary,
        nb::sig("def summarize_ints(values: numpy.typing.NDArray[numpy.int64], sizes: tuple[int, int, int], "
                "limit: int | None = None) -> NumberFigures"));
  m.def("summarize_floats", &SummarizeFloatsPy, nb::arg("values").noconvert(), nb::arg("sizes"),
        nb::arg("limit") = nb::none(), kSummary,
        nb::sig("def summarize_floats(values: numpy.typing.NDArray[numpy.float32], sizes: tuple[int, int, "
                "int], limit: int | None = None) -> NumberFigures"));
  m.def("summarize_bytes", &SummarizeBytesPy, nb::arg("data"), nb::arg("offsets").noconvert(),
        nb::arg("sizes"), nb::arg("limit") = nb::none(),
        "Figures of a block of bytes values, with `sizes` and `limit` as in `summarize_ints`.",
        nb::sig("def summarize_bytes(data: object, offsets: numpy.typing.NDArray[numpy.int64], sizes: "
                "tuple[int, int, int], limit: int | None = None) -> BytesFigures"));
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
