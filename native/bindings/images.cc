// Pixels: resizing, and the headers of JPEGs.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>

#include <new>
#include <optional>
#include <string_view>
#include <tuple>
#include <utility>

#include "bindings/buffers.h"
#include "core/base/pool.h"
#include "core/images/bicubic.h"
#include "core/images/jpeg_check.h"
#include "core/images/jpeg_header.h"
#include "core/images/png_filter.h"
#include "core/images/resize.h"

namespace tfrkit {

namespace {

// An array of height x width x channels bytes, whose rows may lie apart.
class PixelBuffer {
 public:
  PixelBuffer(nb::handle object, int flags) {
    if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) nb::raise_python_error();
    // Not the destructor's work: it does not run for an object that was never made.
    if (const char* wrong = FindWrong(); wrong != nullptr) {
      PyBuffer_Release(&view_);
      throw nb::value_error(wrong);
    }
  }
  ~PixelBuffer() { PyBuffer_Release(&view_); }
  PixelBuffer(const PixelBuffer&) = delete;
  PixelBuffer& operator=(const PixelBuffer&) = delete;

  template <class Image>
  Image As() const {
    const auto side = [&](int axis) { return static_cast<size_t>(view_.shape[axis]); };
    const size_t row = side(1) * side(2);
    const size_t stride = side(0) > 1 ? static_cast<size_t>(view_.strides[0]) : row;
    const size_t nbytes = side(0) == 0 ? 0 : (side(0) - 1) * stride + row;
    return {{static_cast<uint8_t*>(view_.buf), nbytes}, side(0), side(1), side(2), stride};
  }

 private:
  const char* FindWrong() const {
    if (view_.ndim != 3 || view_.itemsize != 1) return "expected bytes of shape (height, width, channels)";
    const auto [channel, pixel, row] = std::tuple(view_.strides[2], view_.strides[1], view_.strides[0]);
    const bool is_dense = (view_.shape[2] <= 1 || channel == 1) &&
                          (view_.shape[1] <= 1 || pixel == view_.shape[2]) &&
                          (view_.shape[0] <= 1 || row >= view_.shape[1] * view_.shape[2]);
    return is_dense ? nullptr : "expected rows without gaps between their pixels";
  }

  Py_buffer view_{};
};

void Resize(nb::handle source, nb::handle target, size_t height, size_t width, size_t top, size_t left,
            std::string_view name, bool antialias) {
  const PixelBuffer from(source, PyBUF_STRIDED_RO);
  const PixelBuffer to(target, PyBUF_STRIDED);
  const std::optional<Filter> filter = FindFilter(name);
  if (!filter) throw nb::value_error("filter expected 'bilinear' or 'nearest'");
  const ResizeOptions options{*filter, antialias, height, width, top, left};
  bool is_done;
  {
    nb::gil_scoped_release release;
    is_done = ResizeImage(from.As<ImageView>(), to.As<ImageSpan>(), options);
  }
  if (!is_done) throw nb::value_error("sizes of the source, the target and the whole do not match");
}

void ResizeCubic(nb::handle source, nb::handle target) {
  const PixelBuffer from(source, PyBUF_STRIDED_RO);
  const PixelBuffer to(target, PyBUF_STRIDED);
  bool is_done;
  {
    nb::gil_scoped_release release;
    is_done = ResizeBicubic(from.As<ImageView>(), to.As<ImageSpan>());
  }
  if (!is_done) throw nb::value_error("sizes of the source and the target do not match");
}

bool UndoFilters(nb::handle filtered, nb::handle pixels) {
  const Buffer from(filtered);
  const PixelBuffer to(pixels, PyBUF_STRIDED);
  const auto image = to.As<ImageSpan>();
  if (image.stride != image.width * image.channels) throw nb::value_error("expected rows without gaps");
  nb::gil_scoped_release release;
  return UndoPngFilters(from.bytes(), image.height, image.stride, image.channels, image.bytes);
}

// Memory that goes back to the pool with the array: a batch of images is megabytes, and fresh pages cost more
// to fault in than to fill.
Array<uint8_t> AllocateBytes(size_t nbytes) {
  PoolVector<uint8_t> bytes;
  if (!bytes.Resize(nbytes)) throw std::bad_alloc();
  return ToArray(std::move(bytes));
}

bool CheckJpeg(nb::handle data) {
  const Buffer buffer(data);
  nb::gil_scoped_release release;
  return IsSoundJpeg(buffer.bytes());
}

bool CheckJpegDamage(nb::handle data) {
  const Buffer buffer(data);
  nb::gil_scoped_release release;
  return IsDamagedJpeg(buffer.bytes());
}

nb::object ReadHeader(nb::handle data) {
  const Buffer buffer(data);
  JpegHeader header;
  if (!ReadJpegHeader(buffer.bytes(), &header)) return nb::none();
  return nb::make_tuple(header.height, header.width, header.num_components, header.bits,
                        header.is_progressive, header.orientation);
}

nb::tuple WalkScans(nb::handle data) {
  const Buffer buffer(data);
  JpegScans scans;
  {
    nb::gil_scoped_release release;
    scans = WalkJpegScans(buffer.bytes());
  }
  return nb::make_tuple(scans.num_scans, scans.has_end);
}

}  // namespace

void BindImages(nb::module_& m) {
  m.def(
      "resize_image", &Resize, nb::arg("source"), nb::arg("target"), nb::arg("height"), nb::arg("width"),
      nb::arg("top"), nb::arg("left"), nb::arg("filter"), nb::arg("antialias"),
      "Fill target, uint8 (height, width, channels), with a window of the source resized to height x width.");
  m.def(
      "resize_bicubic", &ResizeCubic, nb::arg("source"), nb::arg("target"),
      "Fill target, uint8 (height, width, 1 or 3), with the source resized as Pillow does it, bit for bit.");
  m.def("undo_png_filters", &UndoFilters, nb::arg("filtered"), nb::arg("pixels"),
        "Fill pixels, uint8 (height, width, channels), with the rows of an inflated PNG; False where they "
        "are damaged.");
  m.def("allocate_bytes", &AllocateBytes, nb::arg("nbytes"),
        "An array of unspecified bytes, from memory that is reused.",
        nb::sig("def allocate_bytes(nbytes: int) -> numpy.typing.NDArray[numpy.uint8]"));
  m.def("is_sound_jpeg", &CheckJpeg, nb::arg("data"),
        "Whether a baseline JPEG has every block, by its codes; False if that is unknown.");
  m.def("is_damaged_jpeg", &CheckJpegDamage, nb::arg("data"),
        "Whether a code of a baseline JPEG is invalid or a block is missing; False if that is unknown.");
  m.def("read_jpeg_header", &ReadHeader, nb::arg("data"),
        "(height, width, components, bits, is progressive, Exif orientation), or None.",
        nb::sig("def read_jpeg_header(data: object) -> tuple[int, int, int, int, bool, int] | None"));
  m.def("walk_jpeg_scans", &WalkScans, nb::arg("data"),
        "(number of scans, whether the end of the image is there).",
        nb::sig("def walk_jpeg_scans(data: object) -> tuple[int, bool]"));
}

}  // namespace tfrkit
