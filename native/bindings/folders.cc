// The content of a folder: names, sizes and times in one call, for folders of a hundred thousand files.
#include <dirent.h>
#include <fcntl.h>
#include <nanobind/nanobind.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings/buffers.h"
#include "core/base/pool.h"

namespace tfrkit {

namespace {

struct Entry {
  std::string name;  // with a trailing slash for a folder
  bool is_folder = false;
  int64_t nbytes = 0;  // -1 for what is neither a file nor a folder
  int64_t stamp = 0;
};

int64_t ChangeTime(const struct stat& info) {
#ifdef __APPLE__
  const struct timespec& time = info.st_mtimespec;
#else
  const struct timespec& time = info.st_mtim;
#endif
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// errno, 0 for success. A link counts as what it leads to, one to nowhere as a file without bytes.
int ReadFolder(const char* path, std::vector<Entry>* entries) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opendir(path), closedir);
  if (folder == nullptr) return errno;
  const int descriptor = dirfd(folder.get());
  while (true) {
    errno = 0;
    const dirent* const found = readdir(folder.get());
    if (found == nullptr) break;
    const std::string_view name = found->d_name;
    if (name == "." || name == "..") continue;
    Entry& entry = entries->emplace_back();
    entry.name = name;
    struct stat info;
    if (fstatat(descriptor, found->d_name, &info, 0) != 0) continue;
    entry.is_folder = S_ISDIR(info.st_mode);
    entry.nbytes = S_ISREG(info.st_mode) || entry.is_folder ? int64_t{info.st_size} : -1;
    entry.stamp = ChangeTime(info);
    if (entry.is_folder) entry.name += '/';
  }
  if (errno != 0) return errno;
  std::sort(entries->begin(), entries->end(),
            [](const Entry& left, const Entry& right) { return left.name < right.name; });
  return 0;
}

template <class T, class Get>
Array<T> ToColumn(const std::vector<Entry>& entries, Get get) {
  PoolVector<T> values;
  if (!values.Resize(entries.size())) throw std::bad_alloc();
  for (size_t i = 0; i < entries.size(); ++i) values.data()[i] = get(entries[i]);
  return ToArray(std::move(values));
}

nb::tuple ListFolder(const nb::bytes& path) {
  std::vector<Entry> entries;
  std::string names;
  int error;
  {
    nb::gil_scoped_release release;
    error = ReadFolder(path.c_str(), &entries);
    for (const Entry& entry : entries) (names += entry.name) += '\0';
  }
  if (error != 0) {
    errno = error;
    PyErr_SetFromErrnoWithFilenameObject(PyExc_OSError, path.ptr());
    nb::raise_python_error();
  }
  return nb::make_tuple(nb::bytes(names.data(), names.size()),
                        ToColumn<int64_t>(entries, [](const Entry& entry) { return entry.nbytes; }),
                        ToColumn<int64_t>(entries, [](const Entry& entry) { return entry.stamp; }));
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
