// What a disk can do that Python does not ask for: whether it is this machine's own, and one sync of all of
// it.
#include <nanobind/nanobind.h>

#include <cerrno>

#include "bindings/buffers.h"
#include "os/platform.h"

namespace tfrkit {

namespace {

void SyncDiskOrRaise(int descriptor) {
  int error;
  {
    nb::gil_scoped_release release;
    error = SyncDisk(descriptor);
  }
  if (error == 0) return;
  errno = error;
  PyErr_SetFromErrno(PyExc_OSError);
  nb::raise_python_error();
}

}  // namespace

void BindDisks(nb::module_& m) {
  m.def(
      "is_local_disk", &IsLocalDisk, nb::arg("descriptor"),
      "Whether only this machine writes to the file system of an open file, so that its locks hold for all.");
  m.def("sync_disk", &SyncDiskOrRaise, nb::arg("descriptor"),
        "Write everything of the file system of an open file to its disk; OSError ENOSYS where the system "
        "cannot.");
}

}  // namespace tfrkit
