#if !defined(_WIN32)

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string_view>

#include "os/platform.h"

#if defined(__linux__)
#include <sys/vfs.h>
#else
#include <sys/mount.h>
#include <sys/param.h>
#endif

namespace tfrkit {

namespace {

int64_t ChangeTime(const struct stat& info) {
#ifdef __APPLE__
  const struct timespec& time = info.st_mtimespec;
#else
  const struct timespec& time = info.st_mtim;
#endif
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

int ProcessId() { return static_cast<int>(getpid()); }

size_t PageSize() { return static_cast<size_t>(sysconf(_SC_PAGESIZE)); }

int64_t FileSize(int descriptor) {
  struct stat info;
  return fstat(descriptor, &info) == 0 ? static_cast<int64_t>(info.st_size) : -1;
}

const uint8_t* MapFile(int descriptor, size_t size) {
  void* const data = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  return data == MAP_FAILED ? nullptr : static_cast<const uint8_t*>(data);
}

void UnmapFile(const uint8_t* start, size_t size) { munmap(const_cast<uint8_t*>(start), size); }

void ForgetPages(uint8_t* start, size_t size) { madvise(start, size, MADV_DONTNEED); }

int DuplicateFile(int descriptor) { return fcntl(descriptor, F_DUPFD_CLOEXEC, 0); }

void CloseFile(int descriptor) { close(descriptor); }

int ReadFolder(const char* path, std::vector<FolderEntry>* entries) {
  DIR* const opened = opendir(path);
  if (opened == nullptr) return errno;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(opened, closedir);
  const int descriptor = dirfd(opened);
  while (true) {
    errno = 0;
    const dirent* const found = readdir(opened);
    if (found == nullptr) return errno;
    const std::string_view name = found->d_name;
    if (name == "." || name == "..") continue;
    FolderEntry& entry = entries->emplace_back();
    entry.name = name;
    struct stat info;
    if (fstatat(descriptor, found->d_name, &info, 0) != 0) continue;
    entry.is_folder = S_ISDIR(info.st_mode);
    entry.nbytes = S_ISREG(info.st_mode) || entry.is_folder ? int64_t{info.st_size} : -1;
    entry.stamp = ChangeTime(info);
    if (entry.is_folder) entry.name += '/';
  }
}

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

int SyncDisk([[maybe_unused]] int descriptor) {
#ifdef __linux__
  return syncfs(descriptor) == 0 ? 0 : errno;
#else
  return ENOSYS;
#endif
}

}  // namespace tfrkit

#endif
