// The content of a folder: names, sizes and times in one call, for folders of a hundred thousand files.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "bindings/buffers.h"
#include "core/base/pool.h"
#include "os/platform.h"

namespace tfrkit {

namespace {

template <class T, class Get>
Array<T> ToColumn(const std::vector<FolderEntry>& entries, Get get) {
  PoolVector<T> values;
  if (!values.Resize(entries.size())) throw std::bad_alloc();
  for (size_t i = 0; i < entries.size(); ++i) values.data()[i] = get(entries[i]);
  return ToArray(std::move(values));
}

nb::tuple ListFolder(const nb::bytes& path) {
  std::vector<FolderEntry> entries;
  std::string names;
  int error;
  {
    nb::gil_scoped_release release;
    error = ReadFolder(path.c_str(), &entries);
    std::sort(entries.begin(), entries.end(),
              [](const FolderEntry& left, const FolderEntry& right) { return left.name < right.name; });
    for (const FolderEntry& entry : entries) (names += entry.name) += '\0';
  }
  if (error != 0) {
    errno = error;
    PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path.ptr());
    nb::raise_python_error();
  }
  return nb::make_tuple(nb::bytes(names.data(), names.size()),
                        ToColumn<int64_t>(entries, [](const FolderEntry& entry) { return entry.nbytes; }),
                        ToColumn<int64_t>(entries, [](const FolderEntry& entry) { return entry.stamp; }));
}

}  // namespace

void BindFolders(nb::module_& m) {
  m.def("list_folder", &ListFolder, nb::arg("path"),
        "Sorted names, each with a zero byte after it (a folder: a slash and a zero byte); sizes, -1 for "
        "pipes and devices; times of change (ns).",
        nb::sig("def list_folder(path: bytes) -> tuple[bytes, numpy.typing.NDArray[numpy.int64], "
                "numpy.typing.NDArray[numpy.int64]]"));
}

}  // namespace tfrkit
