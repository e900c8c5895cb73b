"""What operating systems do differently, in one place: locks, reads at a position, flags of `os.open`, limits.

Only Linux is tested. The rest is written so that nothing fails at import time elsewhere.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Final

fcntl: Any = None
msvcrt: Any = None
try:
    import fcntl
except ImportError:
    import msvcrt

# Children do not inherit the file; Windows names that otherwise, and has a text mode for bytes.
O_CLOEXEC: Final = int(getattr(os, "O_CLOEXEC", getattr(os, "O_NOINHERIT", 0)) | getattr(os, "O_BINARY", 0))
O_NONBLOCK: Final = int(getattr(os, "O_NONBLOCK", 0))
O_NOFOLLOW: Final = int(getattr(os, "O_NOFOLLOW", 0))

# Locks of Windows keep others from reading the bytes, so a byte is locked that no file has.
_LOCKED_BYTE: Final = (1 << 31) - 2
_moving = threading.Lock()


def find_address_space() -> tuple[int, ...]:
    """Return the limits on the address space of this process in bytes, the one in force first; empty without one."""
    try:
        import resource
    except ImportError:
        return ()
    return tuple(one for one in resource.getrlimit(resource.RLIMIT_AS) if one != resource.RLIM_INFINITY)


def lock_file(descriptor: int, *, wait: bool) -> None:
    """Lock an open file until it is closed; without `wait` raise BlockingIOError if another process has the lock.

    Raises another OSError on file systems without locks.
    """
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return
    _lock_on_windows(descriptor, wait=wait)


def lock_process(descriptor: int, *, shared: bool) -> None:
    """Lock an open file for this process, not for its children; raise OSError if another process has the lock."""
    if fcntl is not None:
        fcntl.lockf(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        return
    _lock_on_windows(descriptor, wait=False)  # which has no shared locks of this kind


def read_at(descriptor: int, nbytes: int, offset: int) -> bytes:
    """Read up to `nbytes` bytes at an offset. The position of the file stays as it is."""
    if hasattr(os, "pread"):
        return os.pread(descriptor, nbytes, offset)
    with _moving:
        before = os.lseek(descriptor, 0, os.SEEK_CUR)
        try:
            os.lseek(descriptor, offset, os.SEEK_SET)
            return os.read(descriptor, nbytes)
        finally:
            os.lseek(descriptor, before, os.SEEK_SET)


def _lock_on_windows(descriptor: int, *, wait: bool) -> None:
    with _moving:
        before = os.lseek(descriptor, 0, os.SEEK_CUR)
        try:
            os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from None
        finally:
            os.lseek(descriptor, before, os.SEEK_SET)
