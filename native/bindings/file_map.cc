#include "bindings/file_map.h"

#include <nanobind/nanobind.h>

#include <algorithm>
#include <atomic>

#include "os/platform.h"

namespace tfrkit {

namespace {

PyTypeObject* g_file_map_type = nullptr;

constexpr uint64_t kLargeFile = uint64_t{256} << 20;
constexpr int kMaxKept = 64;
std::atomic<int> g_num_kept{0};

[[noreturn]] void RaiseOsError() {
  PyErr_SetFromErrno(PyExc_OSError);
  nb::raise_python_error();
}

ByteView MapOrRaise(int descriptor, uint64_t size) {
  const int64_t found = FileSize(descriptor);
  if (found < 0) RaiseOsError();
  if (size == 0 || static_cast<uint64_t>(found) < size)
    throw nb::value_error("the file is shorter than what is to be mapped");
  InstallMapGuard();
  const uint8_t* const data = MapFile(descriptor, size);
  if (data == nullptr) RaiseOsError();
  return {data, size};
}

int GetBuffer(PyObject* self, Py_buffer* view, int flags) {
  FileMap* const map = nb::inst_ptr<FileMap>(self);
  if (map->range()->is_torn()) {
    PyErr_SetString(PyExc_BufferError, "the mapped file was cut off");
    return -1;
  }
  const ByteView bytes = map->bytes();
  return PyBuffer_FillInfo(view, self, const_cast<uint8_t*>(bytes.data()),
                           static_cast<Py_ssize_t>(bytes.size()), /*readonly=*/1, flags);
}

PyType_Slot g_slots[] = {{Py_bf_getbuffer, reinterpret_cast<void*>(GetBuffer)}, {0, nullptr}};

}  // namespace

FileMap* AsFileMap(nb::handle object) {
  return Py_TYPE(object.ptr()) == g_file_map_type ? nb::inst_ptr<FileMap>(object) : nullptr;
}

void RequireWhole(FileMap* map) { map->RequireWhole(); }

FileMap::FileMap(int descriptor, uint64_t size, nb::callable check)
    : descriptor_(-1),
      bytes_(MapOrRaise(descriptor, size)),
      range_(const_cast<uint8_t*>(bytes_.data()), bytes_.size()),
      check_(std::move(check)) {
  // A process may have few open files, so only large ones stay open, and not many of them.
  const bool is_kept = kMapsAreGuarded && size >= kLargeFile && g_num_kept.fetch_add(1) < kMaxKept;
  if (kMapsAreGuarded && size >= kLargeFile && !is_kept) g_num_kept.fetch_sub(1);
  if (kMapsAreGuarded && !is_kept) return;
  descriptor_ = DuplicateFile(descriptor);
  is_counted_ = is_kept;
  if (is_kept) range_.set_descriptor(descriptor_);
}

FileMap::~FileMap() {
  UnmapFile(bytes_.data(), bytes_.size());
  if (descriptor_ >= 0) CloseFile(descriptor_);
  if (is_counted_) g_num_kept.fetch_sub(1);
}

void FileMap::Raise() {
  range_.Seal();
  check_(true);
  throw nb::buffer_error("the mapped file was cut off");
}

void FileMap::Release(uint64_t start, uint64_t stop) {
  nb::gil_scoped_release release;
  range_.Release(start, stop);
}

nb::bytes FileMap::Slice(nb::slice range) {
  const auto [start, stop, step, count] = range.compute(bytes_.size());
  if (step != 1) throw nb::value_error("a mapped file has slices of step 1 only");
  RequireWhole();
  nb::bytes copy;
  {
    const MapGuard guard(&range_);
    copy = nb::bytes(bytes_.data() + start, count);
  }
  if (range_.is_torn()) Raise();
  // See MappedCall::Finish.
  if (count != 0 && copy.c_str()[count - 1] == 0) Check();
  return copy;
}

bool FileMap::IsShorter() const {
  const int64_t size = FileSize(descriptor_);
  return size < 0 || static_cast<uint64_t>(size) < bytes_.size();
}

void BindFileMap(nb::module_& m) {
  auto type =
      nb::class_<FileMap>(m, "FileMap", nb::type_slots(g_slots), nb::is_final(),
                          "A mapped file, read-only. Any thread.")
          .def(nb::init<int, uint64_t, nb::callable>(), nb::arg("descriptor"), nb::arg("size"),
               nb::arg("check"),
               nb::sig("def __init__(self, descriptor: int, size: int, check: "
                       "typing.Callable[[bool], bool | None]) -> None"),
               "The first `size` bytes. `check(is_torn)` raises if the file became shorter, and always "
               "if it is torn; it returns whether the file was written to.")
          .def("release", &FileMap::Release, nb::arg("start"), nb::arg("stop"),
               "Hint that [start, stop) is not needed for now.")
          .def("__getitem__", &FileMap::Slice, nb::arg("range"), "A copy of some bytes.",
               nb::sig("def __getitem__(self, range: slice) -> bytes"))
          .def("__len__", [](const FileMap& map) { return map.bytes().size(); });
#if PY_VERSION_HEX < 0x030C0000
  // From 3.12 on the interpreter adds this by itself; type checkers want to see it.
  type.def(
      "__buffer__", [](nb::handle self, int) { return nb::steal(PyMemoryView_FromObject(self.ptr())); },
      nb::arg("flags"), nb::sig("def __buffer__(self, flags: int, /) -> memoryview"));
#endif
  g_file_map_type = reinterpret_cast<PyTypeObject*>(type.ptr());
}

}  // namespace tfrkit
