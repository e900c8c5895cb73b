"""Background writer: one thread, a bounded queue, errors raised at the next call."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Any

from tfrkit import _platform
from tfrkit.errors import TfrkitError
from tfrkit.storage.base import explain_os_error

# Output beyond this is written back at once and dropped from the cache: otherwise the file system keeps gigabytes of
# dirty pages and evicts those of other programs. Measured on a virtual machine, 4 GB written and synced: 2.2 s against
# 9 to 17 s.
_CACHED_NBYTES = 256 << 20
_BEHIND_NBYTES = 32 << 20
_STEPS_BEHIND = 4  # data this many steps back is on the disk

# Below the limit of buffers per writev call.
_MAX_PIECES = 512

# Many systems allow 1,024 open files per process; a dataset may have more shards than that.
_MAX_OPEN = 64

Piece = Any
"""A buffer of bytes: bytes, a memoryview or an array."""


class OutputFile:
    """An open file to append to. With `is_kept` it stays in the page cache, because it is read again soon."""

    def __init__(self, descriptor: int, name: str, *, is_kept: bool = False) -> None:
        self.descriptor = descriptor
        self.name = name
        self.nbytes = 0
        self.is_kept = is_kept or not hasattr(os, "posix_fadvise")
        self._num_sent = 0  # bytes whose write-back was started

    def append(self, pieces: Sequence[Piece]) -> None:
        """Write all pieces, in order."""
        views = deque(memoryview(piece).cast("B") for piece in pieces if len(piece))
        try:
            while views:
                count = min(_MAX_PIECES, len(views))
                written = os.writev(self.descriptor, [views[at] for at in range(count)])
                self.nbytes += written
                while written:
                    taken = min(written, len(views[0]))
                    written -= taken
                    if taken == len(views[0]):
                        views.popleft()
                    else:
                        views[0] = views[0][taken:]
        except BrokenPipeError:
            raise  # the reader of our output closed the pipe; the disk did not fail
        except OSError as error:
            raise explain_os_error(error, self.name, verb="write", more=", no partial file was left") from None

    def send_to_disk(self) -> None:
        """Start the write-back of new pages, and drop pages that are on the disk from the cache."""
        if self.is_kept or self.nbytes - self._num_sent < _BEHIND_NBYTES:
            return
        with contextlib.suppress(OSError):  # a pipe does not support it
            os.posix_fadvise(self.descriptor, self._num_sent, self.nbytes - self._num_sent, os.POSIX_FADV_DONTNEED)
            behind = max(0, self._num_sent - _STEPS_BEHIND * _BEHIND_NBYTES)
            os.posix_fadvise(self.descriptor, behind, _BEHIND_NBYTES, os.POSIX_FADV_DONTNEED)
        self._num_sent = self.nbytes


class NewFile(OutputFile):
    """A file that is created at the first write, and can be closed and reopened before it is complete.

    Messages use `name` instead of the path.
    """

    def __init__(self, path: str, name: str | None = None) -> None:
        super().__init__(-1, name or path)
        self._path = path
        self._is_made = False

    def open(self) -> None:
        """Create the file, or reopen it to append."""
        if self.descriptor >= 0:
            return
        how = os.O_APPEND if self._is_made else os.O_CREAT | os.O_EXCL
        try:
            self.descriptor = os.open(self._path, os.O_WRONLY | _platform.O_CLOEXEC | how, 0o666)
        except OSError as error:
            raise explain_os_error(error, self.name, verb="write", more=", no partial file was left") from None
        self._is_made = True

    def close(self) -> None:
        """Close the file; it may be reopened. Raises `OSError`: some file systems report a failed write only here."""
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


class WriteQueue:
    """Appends to files on its own thread, in the order of the calls.

    At most `max_nbytes` are queued; a call that would exceed the limit waits. After a failed write, every call raises
    its error. Buffers must not change until `drain` returns. Only the `NewFile`s used last are kept open.
    """

    def __init__(self, max_nbytes: int) -> None:
        self._max_nbytes = max_nbytes
        self._waiting: deque[tuple[OutputFile, Sequence[Piece], int, Callable[[], None] | None]] = deque()
        self._nbytes = self._num_waiting = 0  # waiting, or being written
        self._num_written = 0
        self._opened: OrderedDict[NewFile, None] = OrderedDict()  # used by the writer thread only; in order of use
        self._error: BaseException | None = None
        self._is_closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="tfrkit-write", daemon=True)
        self._thread.start()

    def put(self, file: OutputFile, pieces: Sequence[Piece], *, then: Callable[[], None] | None = None) -> None:
        """Queue pieces after those put before; `then` is called after them. Both run on the writer thread."""
        nbytes = sum(memoryview(piece).nbytes for piece in pieces)
        with self._changed:
            while self._nbytes and self._nbytes + nbytes > self._max_nbytes and self._error is None:
                self._changed.wait()
            self._raise_error()
            self._waiting.append((file, pieces, nbytes, then))
            self._nbytes += nbytes
            self._num_waiting += 1
            self._changed.notify_all()

    def drain(self) -> None:
        """Wait until everything is written."""
        with self._changed:
            while self._num_waiting and self._error is None:
                self._changed.wait()
            self._raise_error()

    def close(self) -> None:
        """End the thread; pieces still queued are dropped."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify_all()
        self._thread.join()

    def _raise_error(self) -> None:
        if self._error is not None:
            raise self._error

    def _open(self, file: NewFile) -> None:
        self._opened[file] = None
        self._opened.move_to_end(file)
        if len(self._opened) > _MAX_OPEN:
            self._opened.popitem(last=False)[0].close()
        file.open()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._is_closed:
                    self._changed.wait()
                if not self._waiting:
                    return
                file, pieces, nbytes, then = self._waiting.popleft()
            # Whatever ends this thread, waiting callers must get an error.
            outcome: BaseException | None = RuntimeError("the thread that writes has ended")
            try:
                if isinstance(file, NewFile):
                    self._open(file)
                file.append(pieces)
                self._num_written += nbytes
                if self._num_written >= _CACHED_NBYTES:
                    file.send_to_disk()
                if then is not None:
                    then()
                outcome = None
            except (TfrkitError, OSError) as error:
                outcome = error
            finally:
                del pieces, then  # free a large block now, not when the next piece arrives
                with self._changed:
                    self._error = outcome
                    self._nbytes -= nbytes
                    self._num_waiting -= 1
                    self._changed.notify_all()
            if outcome is not None:
                return
