// What a disk can do that Python does not ask for: whether it is this machine's own, and one sync of all of
// it.
#include <fcntl.h>
#include <nanobind/nanobind.h>
#include <unistd.h>

#include <cerrno>

#ifdef __linux__
#include <sys/vfs.h>
#else
#include <sys/mount.h>
#include <sys/param.h>
#endif

#include "bindings/buffers.h"

namespace tfrkit {

namespace {

// File systems that only the kernel of this machine writes to, so that its locks are known to all who use
// them. Those that are missing here (NFS, SMB, FUSE, Lustre, Ceph, 9p) may be in use by another machine at
// the same time.
bool IsLocalDisk(int descriptor) {
  struct statfs info;
  if (fstatfs(descriptor, &info) != 0) return false;
#ifdef __linux__
  switch (static_cast<uint32_t>(info.f_type)) {
    case 0xEF53:      // ext2, ext3, ext4
    case 0x58465342:  // xfs
    case 0x9123683E:  // btrfs
    case 0x2FC12FC1:  // zfs
    case 0xF2F52010:  // f2fs
    case 0xCA451A4E:  // bcachefs
    case 0x01021994:  // tmpfs
    case 0x858458F6:  // ramfs
    case 0x794C7630:  // overlayfs
      return true;
    default:
      return false;
  }
#elif defined(MNT_LOCAL)
  return (info.f_flags & MNT_LOCAL) != 0;
#else
  return false;
#endif
}

// errno, 0 for success.
int SyncDisk(int descriptor) {
#ifdef __linux__
  return syncfs(descriptor) == 0 ? 0 : errno;
#else
  (void)descriptor;
  return ENOSYS;
#endif
}

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
