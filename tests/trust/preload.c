/* Makes one chosen system call fail. Loaded with LD_PRELOAD by forked.py.
 *
 * A control block in a shared file says which call fails, at which count and how. Only calls on files below `root`
 * count, so that the interpreter's own files never do. All processes of one run share the counters.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum Call { kWrite, kSync, kRename, kLink, kOpen, kMap, kRead, kUnlink, kMkdir, kTruncate, kNumCalls };

/* The layout is repeated in forked.py. */
struct Control {
  atomic_int armed;
  int call;     /* which call fails */
  long at;      /* the n-th one fails, counted from 1; 0: none */
  int error;    /* errno; 0: a short read or write */
  int lasting;  /* not only the n-th call but all later ones fail, too */
  atomic_long counts[kNumCalls];
  char root[PATH_MAX];
};

static struct Control *control;

__attribute__((constructor)) static void MapControl(void) {
  const char *path = getenv("TFRKIT_FAULTS");
  if (path == NULL) return;
  int (*real_open)(const char *, int, ...) = dlsym(RTLD_NEXT, "open");
  int fd = real_open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void *(*real_map)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
  void *found = real_map(NULL, sizeof(struct Control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (found != MAP_FAILED) control = found;
}

static int IsBelowRoot(const char *path) {
  size_t length = strlen(control->root);
  return strncmp(path, control->root, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static int IsOurFile(int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = '\0';
  return IsBelowRoot(path);
}

static int IsOurPath(int folder, const char *path) {
  if (path[0] == '/') return IsBelowRoot(path);
  if (folder != AT_FDCWD) return IsOurFile(folder);
  char here[PATH_MAX];
  return getcwd(here, sizeof here) != NULL && IsBelowRoot(here);
}

/* True if this call is to fail; the caller has checked that the file is ours. */
static int MustFail(enum Call call) {
  long count = atomic_fetch_add(&control->counts[call], 1) + 1;
  if ((int)call != control->call || control->at == 0) return 0;
  if (control->lasting ? count < control->at : count != control->at) return 0;
  errno = control->error;
  return 1;
}

#define IS_ARMED (control != NULL && atomic_load(&control->armed))
#define FD_FAILS(call, fd) (IS_ARMED && IsOurFile(fd) && MustFail(call))
#define PATH_FAILS(call, folder, path) (IS_ARMED && IsOurPath(folder, path) && MustFail(call))
#define REAL(type, name) \
  static type real;      \
  if (real == NULL) real = (type)dlsym(RTLD_NEXT, name)

/* Half of what was asked for, at least one byte. */
static size_t Shorten(size_t nbytes) { return nbytes > 1 ? nbytes / 2 : nbytes; }

typedef ssize_t (*Write)(int, const void *, size_t);
ssize_t write(int fd, const void *data, size_t nbytes) {
  REAL(Write, "write");
  if (FD_FAILS(kWrite, fd)) {
    if (control->error != 0) return -1;
    nbytes = Shorten(nbytes);
  }
  return real(fd, data, nbytes);
}

typedef ssize_t (*PWrite)(int, const void *, size_t, off_t);
#define DEFINE_PWRITE(name)                                              \
  ssize_t name(int fd, const void *data, size_t nbytes, off_t offset) { \
    REAL(PWrite, #name);                                                 \
    if (FD_FAILS(kWrite, fd)) {                                          \
      if (control->error != 0) return -1;                                \
      nbytes = Shorten(nbytes);                                          \
    }                                                                    \
    return real(fd, data, nbytes, offset);                               \
  }
DEFINE_PWRITE(pwrite)
DEFINE_PWRITE(pwrite64)

typedef ssize_t (*WriteV)(int, const struct iovec *, int);
ssize_t writev(int fd, const struct iovec *parts, int count) {
  REAL(WriteV, "writev");
  if (FD_FAILS(kWrite, fd)) {
    if (control->error != 0) return -1;
    count = (int)Shorten((size_t)count);
  }
  return real(fd, parts, count);
}

typedef ssize_t (*CopyRange)(int, off64_t *, int, off64_t *, size_t, unsigned);
ssize_t copy_file_range(int in, off64_t *in_offset, int out, off64_t *out_offset, size_t nbytes, unsigned flags) {
  REAL(CopyRange, "copy_file_range");
  if (FD_FAILS(kWrite, out)) {
    if (control->error != 0) return -1;
    nbytes = Shorten(nbytes);
  }
  return real(in, in_offset, out, out_offset, nbytes, flags);
}

typedef ssize_t (*SendFile)(int, int, off_t *, size_t);
#define DEFINE_SENDFILE(name)                                   \
  ssize_t name(int out, int in, off_t *offset, size_t nbytes) { \
    REAL(SendFile, #name);                                      \
    if (FD_FAILS(kWrite, out)) {                                \
      if (control->error != 0) return -1;                       \
      nbytes = Shorten(nbytes);                                 \
    }                                                           \
    return real(out, in, offset, nbytes);                       \
  }
DEFINE_SENDFILE(sendfile)
DEFINE_SENDFILE(sendfile64)

typedef ssize_t (*Read)(int, void *, size_t);
ssize_t read(int fd, void *data, size_t nbytes) {
  REAL(Read, "read");
  if (FD_FAILS(kRead, fd)) {
    if (control->error != 0) return -1;
    nbytes = Shorten(nbytes);
  }
  return real(fd, data, nbytes);
}

typedef ssize_t (*PRead)(int, void *, size_t, off_t);
#define DEFINE_PREAD(name)                                        \
  ssize_t name(int fd, void *data, size_t nbytes, off_t offset) { \
    REAL(PRead, #name);                                           \
    if (FD_FAILS(kRead, fd)) {                                    \
      if (control->error != 0) return -1;                         \
      nbytes = Shorten(nbytes);                                   \
    }                                                             \
    return real(fd, data, nbytes, offset);                        \
  }
DEFINE_PREAD(pread)
DEFINE_PREAD(pread64)

typedef int (*Sync)(int);
#define DEFINE_SYNC(name)                \
  int name(int fd) {                     \
    REAL(Sync, #name);                   \
    if (FD_FAILS(kSync, fd)) return -1;  \
    return real(fd);                     \
  }
DEFINE_SYNC(fsync)
DEFINE_SYNC(fdatasync)

typedef int (*Rename)(const char *, const char *);
int rename(const char *from, const char *to) {
  REAL(Rename, "rename");
  if (PATH_FAILS(kRename, AT_FDCWD, to)) return -1;
  return real(from, to);
}

typedef int (*RenameAt)(int, const char *, int, const char *);
int renameat(int from_folder, const char *from, int to_folder, const char *to) {
  REAL(RenameAt, "renameat");
  if (PATH_FAILS(kRename, to_folder, to)) return -1;
  return real(from_folder, from, to_folder, to);
}

typedef int (*RenameAt2)(int, const char *, int, const char *, unsigned);
int renameat2(int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
  REAL(RenameAt2, "renameat2");
  if (PATH_FAILS(kRename, to_folder, to)) return -1;
  return real(from_folder, from, to_folder, to, flags);
}

typedef int (*Link)(const char *, const char *);
int link(const char *from, const char *to) {
  REAL(Link, "link");
  if (PATH_FAILS(kLink, AT_FDCWD, to)) return -1;
  return real(from, to);
}

typedef int (*LinkAt)(int, const char *, int, const char *, int);
int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
  REAL(LinkAt, "linkat");
  if (PATH_FAILS(kLink, to_folder, to)) return -1;
  return real(from_folder, from, to_folder, to, flags);
}

typedef int (*Open)(const char *, int, ...);
#define DEFINE_OPEN(name)                                   \
  int name(const char *path, int flags, ...) {              \
    REAL(Open, #name);                                      \
    va_list more;                                           \
    va_start(more, flags);                                  \
    mode_t mode = va_arg(more, mode_t);                     \
    va_end(more);                                           \
    if (PATH_FAILS(kOpen, AT_FDCWD, path)) return -1;       \
    return real(path, flags, mode);                         \
  }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)

typedef int (*OpenAt)(int, const char *, int, ...);
#define DEFINE_OPENAT(name)                                 \
  int name(int folder, const char *path, int flags, ...) {  \
    REAL(OpenAt, #name);                                    \
    va_list more;                                           \
    va_start(more, flags);                                  \
    mode_t mode = va_arg(more, mode_t);                     \
    va_end(more);                                           \
    if (PATH_FAILS(kOpen, folder, path)) return -1;         \
    return real(folder, path, flags, mode);                 \
  }
DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)

typedef void *(*Map)(void *, size_t, int, int, int, off_t);
#define DEFINE_MAP(name)                                                                        \
  void *name(void *address, size_t nbytes, int protection, int flags, int fd, off_t offset) {  \
    REAL(Map, #name);                                                                           \
    if (fd >= 0 && FD_FAILS(kMap, fd)) return MAP_FAILED;                                       \
    return real(address, nbytes, protection, flags, fd, offset);                                \
  }
DEFINE_MAP(mmap)
DEFINE_MAP(mmap64)

typedef int (*Unlink)(const char *);
int unlink(const char *path) {
  REAL(Unlink, "unlink");
  if (PATH_FAILS(kUnlink, AT_FDCWD, path)) return -1;
  return real(path);
}

typedef int (*UnlinkAt)(int, const char *, int);
int unlinkat(int folder, const char *path, int flags) {
  REAL(UnlinkAt, "unlinkat");
  if (PATH_FAILS(kUnlink, folder, path)) return -1;
  return real(folder, path, flags);
}

int rmdir(const char *path) {
  REAL(Unlink, "rmdir");
  if (PATH_FAILS(kUnlink, AT_FDCWD, path)) return -1;
  return real(path);
}

typedef int (*Mkdir)(const char *, mode_t);
int mkdir(const char *path, mode_t mode) {
  REAL(Mkdir, "mkdir");
  if (PATH_FAILS(kMkdir, AT_FDCWD, path)) return -1;
  return real(path, mode);
}

typedef int (*Truncate)(int, off_t);
#define DEFINE_TRUNCATE(name)                \
  int name(int fd, off_t nbytes) {           \
    REAL(Truncate, #name);                   \
    if (FD_FAILS(kTruncate, fd)) return -1;  \
    return real(fd, nbytes);                 \
  }
DEFINE_TRUNCATE(ftruncate)
DEFINE_TRUNCATE(ftruncate64)

typedef int (*Allocate)(int, off_t, off_t);
#define DEFINE_ALLOCATE(name)                     \
  int name(int fd, off_t offset, off_t nbytes) {  \
    REAL(Allocate, #name);                        \
    if (FD_FAILS(kTruncate, fd)) return errno;    \
    return real(fd, offset, nbytes);              \
  }
DEFINE_ALLOCATE(posix_fallocate)
DEFINE_ALLOCATE(posix_fallocate64)
