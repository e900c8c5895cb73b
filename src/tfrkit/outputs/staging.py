"""Exported files and folders that appear only when complete: written under a hidden temporary name, then renamed.

`StagedFile` and `StagedFolder` share an interface, so that a writer can fill either: `open`, `commit`, `discard`, and
the counts `files` and `nbytes` after `commit`.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
from collections.abc import Sequence
from typing import Any, BinaryIO

from tfrkit import _platform
from tfrkit.errors import StorageError
from tfrkit.outputs.target import require_output
from tfrkit.storage.base import explain_os_error
from tfrkit.storage.local import LocalWriter, NamedFile, require_file_place, require_space
from tfrkit.storage.sync import sync_folder, sync_tree
from tfrkit.storage.temporaries import TemporaryFolder

_BUFFER_NBYTES = 1 << 20


class StagedFolder:
    """A folder of new files. Nothing appears before `commit`; `discard` removes everything.

    Everything is created in a folder with a random name, so no link can redirect a file; no file is written twice.
    """

    def __init__(self, path: str, *, sources: Sequence[str], force: bool, nbytes: int) -> None:
        self.name = path
        # If the path is a link, its target is replaced, not the link.
        self._target = os.path.realpath(path)
        require_output(path, sources=sources, force=force)
        if os.path.exists(path):
            self._require_replaceable(sources)
        require_space(path, nbytes)
        self.files = 0
        self.nbytes = 0
        self._folders: set[str] = {""}
        self._opened: list[BinaryIO] = []
        self._counted_last: list[str] = []  # files of `open`, whose sizes are known at `commit`
        try:
            self._temporary = TemporaryFolder(self._target, make_folders=True)
        except OSError as error:
            raise explain_os_error(error, path, verb="write") from None
        self._root = self._temporary.path

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
        """Write a new file in the folder; `name` has "/" between its parts and was made safe by `SafeNames`."""
        descriptor = self._create(name)
        try:
            view = memoryview(data).cast("B")
            self.nbytes += len(view)
            while len(view):
                view = view[os.write(descriptor, view) :]
        except OSError as error:
            raise explain_os_error(error, os.path.join(self.name, name), verb="write") from None
        finally:
            os.close(descriptor)

    def open(self, name: str) -> BinaryIO:
        """Open a new file for writing; the caller or `commit` closes it."""
        raw = NamedFile(self._create(name), "wb", shown=os.path.join(self.name, name))
        file: Any = io.BufferedWriter(raw, buffer_size=_BUFFER_NBYTES)
        self._opened.append(file)
        self._counted_last.append(name)
        opened: BinaryIO = file
        return opened

    def open_scratch(self) -> BinaryIO:
        """Open an unnamed temporary file, removed when closed."""
        try:
            unnamed: Any = tempfile.TemporaryFile(dir=self._root, buffering=0)  # noqa: SIM115 - its copy is kept
            with unnamed:
                raw = NamedFile(os.dup(unnamed.fileno()), "rb+", shown=self.name)
        except OSError as error:
            raise explain_os_error(error, self.name, verb="write") from None
        file: Any = io.BufferedRandom(raw, buffer_size=_BUFFER_NBYTES)
        self._opened.append(file)
        scratch: BinaryIO = file
        return scratch

    def make_folder(self, name: str) -> None:
        """Create a folder and its parents."""
        if name not in self._folders:
            try:
                os.makedirs(os.path.join(self._root, name), exist_ok=True)
            except OSError as error:
                raise explain_os_error(error, os.path.join(self.name, name), verb="write") from None
            self._folders.add(name)

    def commit(self) -> None:
        """Move the folder into place; if it exists, move file by file, keeping its other files."""
        self._close()
        self.nbytes += sum(os.path.getsize(os.path.join(self._root, name)) for name in self._counted_last)
        sync_tree(self._root, self.name)
        try:
            if os.path.isdir(self._target) and os.listdir(self._target):
                self._move_files()
                self._temporary.made.keep()
                self._temporary.remove()
            else:
                self._temporary.place(self._target)
        except OSError as error:
            raise explain_os_error(error, self.name, verb="write") from None
        sync_folder(os.path.dirname(self._target))

    def _move_files(self) -> None:
        for folder, _, names in os.walk(self._root):
            target = os.path.normpath(os.path.join(self._target, os.path.relpath(folder, self._root)))
            os.makedirs(target, exist_ok=True)
            if not (os.path.realpath(target) + os.sep).startswith(self._target.rstrip(os.sep) + os.sep):
                raise StorageError("a link leads out of the output folder", shard=target, hint="choose another folder")
            for name in names:
                os.replace(os.path.join(folder, name), os.path.join(target, name))
            sync_folder(target)

    def discard(self) -> None:
        """Remove everything; no effect after `commit`."""
        with contextlib.suppress(OSError, StorageError):
            self._close()
        self._temporary.remove()

    def _close(self) -> None:
        while self._opened:
            self._opened.pop().close()

    def _create(self, name: str) -> int:
        self.make_folder(os.path.dirname(name))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _platform.O_CLOEXEC | _platform.O_NOFOLLOW
        try:
            descriptor = os.open(os.path.join(self._root, name), flags, 0o666)
        except OSError as error:
            raise explain_os_error(error, os.path.join(self.name, name), verb="write") from None
        self.files += 1
        return descriptor


class StagedFile(LocalWriter):
    """One new file, written through `file`. It appears at its path on `commit`; `discard` removes it."""

    files = 1

    def __init__(self, path: str, *, sources: Sequence[str], force: bool, nbytes: int) -> None:
        require_output(path, sources=sources, force=force)
        require_file_place(path)
        require_space(path, nbytes)
        super().__init__(path, make_folders=True)
        # `LocalWriter` closes the descriptor, so that its lock is held until the file has its name.
        raw = NamedFile(self.descriptor, "wb", shown=path, closefd=False)
        file: Any = io.BufferedWriter(raw, buffer_size=_BUFFER_NBYTES)
        self.file: BinaryIO = file
        self.nbytes = 0

    def open(self, name: str) -> BinaryIO:
        """Return the file itself; `name` is ignored."""
        return self.file

    def commit(self) -> None:
        """Make everything durable and visible."""
        self.file.close()
        self.nbytes = os.fstat(self.descriptor).st_size
        super().commit()

    def discard(self) -> None:
        """Remove everything; no effect after `commit`."""
        with contextlib.suppress(OSError, StorageError):
            self.file.close()
        super().discard()
