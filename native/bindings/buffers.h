// Bytes across the border: buffers in without a copy, arrays out that own their memory.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/base/bytes.h"
#include "core/base/fault.h"
#include "core/base/pool.h"
#include "core/frames/frame_reader.h"

namespace tfrkit {

namespace nb = nanobind;

class FileMap;
FileMap* AsFileMap(nb::handle object);  // nullptr for anything else
void RequireWhole(FileMap* map);

// Any C-contiguous buffer: bytes, bytearray, memoryview, FileMap, NumPy array.
class Buffer {
 public:
  explicit Buffer(nb::handle object) : map_(AsFileMap(object)) {
    if (map_ != nullptr) RequireWhole(map_);
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) nb::raise_python_error();
  }
  ~Buffer() { PyBuffer_Release(&view_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  ByteView bytes() const { return {static_cast<const uint8_t*>(view_.buf), static_cast<size_t>(view_.len)}; }

  // Its mapped file, which calls that read it must guard; nullptr for memory.
  FileMap* map() const { return map_; }

  // The first `stop` bytes, so that positions in the result are positions in the buffer.
  ByteView until(uint64_t stop) const { return bytes().first(std::min<uint64_t>(stop, bytes().size())); }

 private:
  FileMap* map_;
  Py_buffer view_{};
};

// A copy as a bytes object; REQUIRES the interpreter lock.
inline nb::bytes CopyBytes(ByteView bytes) {
  if (bytes.size() >= kLargeBlock) KeepLargeBlocks();
  return nb::bytes(bytes.data(), bytes.size());
}

template <class T>
using Array = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

template <class T>
Array<T> ToArray(PoolVector<T>&& values) {
  auto* owned = new PoolVector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<PoolVector<T>*>(p); });
  static T nothing{};  // NumPy wants an address even for no elements
  T* data = owned->size() == 0 ? &nothing : owned->data();
  return Array<T>(data, {owned->size()}, owner);
}

inline Verify ToVerify(std::string_view name) {
  if (name == "all") return Verify::kAll;
  if (name == "lengths") return Verify::kLengths;
  if (name == "none") return Verify::kNone;
  throw nb::value_error("verify must be 'all', 'lengths' or 'none'");
}

inline void CheckStart(ByteView span, uint64_t start) {
  if (start > span.size()) throw nb::index_error("start is after the end of the buffer");
}

// A fault as Python sees it, with where the frame after it starts, and the name of a feature that is unknown.
struct PyFault {
  Fault fault;
  uint64_t resume = 0;
  std::string name;
};

// None, or a Fault object. Out of memory is none: it is raised as a MemoryError that knows how many frames
// went well before (`num_frames`) and where the one begins at which it ran out (`offset`, in the buffer).
nb::object ToPython(const Fault& fault, uint64_t resume, uint64_t num_frames = 0,
                    const std::string& name = {});

using Offsets = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void BindFileMap(nb::module_& m);
void BindByteViews(nb::module_& m);
void BindFrames(nb::module_& m);
void BindFrameTable(nb::module_& m);
void BindFrameCopy(nb::module_& m);
void BindPicker(nb::module_& m);
void BindDisks(nb::module_& m);
void BindFolders(nb::module_& m);
void BindImages(nb::module_& m);
void BindColumns(nb::module_& m);
void BindRowBuilder(nb::module_& m);
void BindEngine(nb::module_& m);
void BindFigures(nb::module_& m);
void BindMessages(nb::module_& m);
void BindRows(nb::module_& m);
void BindColumnFrames(nb::module_& m);
void BindCsv(nb::module_& m);
void BindTrainMessages(nb::module_& m);

}  // namespace tfrkit
