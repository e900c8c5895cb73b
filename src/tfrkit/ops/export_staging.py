"""Files and folders that appear whole: made under a hidden temporary name beside their place, then renamed."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import tempfile
from collections.abc import Sequence
from typing import Any, BinaryIO

from tfrkit.errors import StorageError
from tfrkit.ops.outputs import MadeFolders, require_output
from tfrkit.storage.local import explain_os_error, require_space

_BUFFER_NBYTES = 1 << 20


class StagedFolder:
    """A folder of new files. Nothing is at its place before `commit`; `discard` leaves nothing behind.

    Everything inside is made here, in a folder nobody else knows of, so no link can lead a file elsewhere; no file is
    ever written twice.
    """

    def __init__(self, path: str, *, sources: Sequence[str], force: bool, nbytes: int) -> None:
        self.name = path
        # Through a link the folder it names is replaced, not the link.
        self._target = os.path.realpath(path)
        require_output(path, sources=sources, force=force)
        if os.path.exists(path):
            self._require_replaceable(sources)
        require_space(path, nbytes)
        self.files = 0
        self.nbytes = 0
        self._root = _name_temporary(self._target)
        self._folders: set[str] = {""}
        self._opened: list[BinaryIO] = []
        self._made = MadeFolders()
        try:
            self._made.make(os.path.dirname(self._root))
            os.mkdir(self._root)
        except OSError as error:
            self._made.remove()
            raise _explain(error, path) from None

    def _require_replaceable(self, sources: Sequence[str]) -> None:
        if not os.path.isdir(self._target):
            raise StorageError("expected a folder, got a file", shard=self.name, hint="choose another output")
        inside = self._target.rstrip(os.sep) + os.sep
        for source in sources:
            if os.path.realpath(source).startswith(inside):
                raise StorageError("the output holds the files to read", shard=self.name, hint="choose another folder")
        if f"{os.path.realpath(os.getcwd())}{os.sep}".startswith(inside):
            raise StorageError("the output is the folder you are in", shard=self.name, hint="choose another folder")

    def __enter__(self) -> StagedFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def write(self, name: str, data: bytes | memoryview) -> None:
        """A new file below the folder; `name` has "/" between its parts and was made safe by `SafeNames`."""
        descriptor = self._create(name)
        try:
            view = memoryview(data).cast("B")
            self.nbytes += len(view)
            while len(view):
                view = view[os.write(descriptor, view) :]
        except OSError as error:
            raise _explain(error, os.path.join(self.name, name)) from None
        finally:
            os.close(descriptor)

    def open(self, name: str) -> BinaryIO:
        """A new file to be written bit by bit; whoever closes it tells its size with `count`."""
        file = open(self._create(name), "wb", buffering=_BUFFER_NBYTES)  # noqa: SIM115 - closed by commit or discard
        self._opened.append(file)
        return file

    def open_scratch(self) -> BinaryIO:
        """A file without a name, to be read again before the folder is done; it goes when it is closed."""
        file: Any = tempfile.TemporaryFile(dir=self._root, buffering=_BUFFER_NBYTES)  # noqa: SIM115 - as above
        self._opened.append(file)
        scratch: BinaryIO = file
        return scratch

    def count(self, name: str) -> None:
        """Add the size of a file that was opened and is closed now."""
        self.nbytes += os.path.getsize(os.path.join(self._root, name))

    def make_folder(self, name: str) -> None:
        """A folder, and those above it."""
        if name not in self._folders:
            try:
                os.makedirs(os.path.join(self._root, name), exist_ok=True)
            except OSError as error:
                raise _explain(error, os.path.join(self.name, name)) from None
            self._folders.add(name)

    def commit(self) -> None:
        """Put the folder where it belongs; into one that is there already, file by file: what else lies there stays."""
        self._close()
        try:
            if os.path.isdir(self._target) and os.listdir(self._target):
                self._move_files()
            else:
                os.rename(self._root, self._target)
        except OSError as error:
            raise _explain(error, self.name) from None
        if os.path.isdir(self._root):
            shutil.rmtree(self._root, ignore_errors=True)
        self._root = ""
        self._made.keep()

    def _move_files(self) -> None:
        for folder, _, names in os.walk(self._root):
            target = os.path.normpath(os.path.join(self._target, os.path.relpath(folder, self._root)))
            os.makedirs(target, exist_ok=True)
            if not (os.path.realpath(target) + os.sep).startswith(self._target.rstrip(os.sep) + os.sep):
                raise StorageError("a link leads out of the output folder", shard=target, hint="choose another folder")
            for name in names:
                os.replace(os.path.join(folder, name), os.path.join(target, name))

    def discard(self) -> None:
        """Leave nothing behind; does nothing after `commit`."""
        with contextlib.suppress(OSError):
            self._close()
        if self._root:
            shutil.rmtree(self._root, ignore_errors=True)
            self._root = ""
        self._made.remove()

    def _close(self) -> None:
        for file in self._opened:
            file.close()
        self._opened.clear()

    def _create(self, name: str) -> int:
        self.make_folder(os.path.dirname(name))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        try:
            descriptor = os.open(os.path.join(self._root, name), flags, 0o666)
        except OSError as error:
            raise _explain(error, os.path.join(self.name, name)) from None
        self.files += 1
        return descriptor


class StagedFile:
    """One new file. Nothing is at its place before `commit`; `discard` leaves nothing behind."""

    def __init__(self, path: str, *, sources: Sequence[str], force: bool, nbytes: int) -> None:
        self.name = path
        require_output(path, sources=sources, force=force)
        if os.path.isdir(path):
            raise StorageError("expected a file, got a folder", shard=path)
        if os.path.exists(path) and not os.path.isfile(path):
            raise StorageError("expected a file, got a pipe or a device, which cannot be replaced", shard=path)
        require_space(path, nbytes)
        self._target = os.path.realpath(path)
        self._temporary = _name_temporary(self._target)
        self.nbytes = 0
        self._made = MadeFolders()
        try:
            self._made.make(os.path.dirname(self._temporary))
            self.file: BinaryIO = open(self._temporary, "xb", buffering=_BUFFER_NBYTES)  # noqa: SIM115 - kept open
        except OSError as error:
            self._made.remove()
            raise _explain(error, path) from None

    def __enter__(self) -> StagedFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def commit(self) -> None:
        """Make everything durable and visible."""
        try:
            self.file.flush()
            os.fsync(self.file.fileno())
            self.nbytes = os.fstat(self.file.fileno()).st_size
            self.file.close()
            os.replace(self._temporary, self._target)
        except OSError as error:
            raise _explain(error, self.name) from None
        self._temporary = ""
        self._made.keep()

    def discard(self) -> None:
        """Leave nothing behind; does nothing after `commit`."""
        if self._temporary:
            with contextlib.suppress(OSError):
                self.file.close()
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._temporary)
            self._temporary = ""
        self._made.remove()


def _name_temporary(target: str) -> str:
    folder, base = os.path.split(target)
    return os.path.join(folder, f".{base[:100]}.{os.getpid()}-{secrets.token_hex(4)}.tmp")


def _explain(error: OSError, name: str) -> StorageError:
    reason = explain_os_error(error, name).what.removeprefix("cannot open, ")
    return StorageError(f"cannot write, {reason}", shard=name)
