"""Replace several files of a folder together: the old files are kept until the last new file is in place.

    .tfrkit-change/            exists while files are moved, and after a process was killed meanwhile
        journal.json           every changed path, and whether it existed before
        old/0, old/1, ...      old files
        new/...                new files

New files are first written to a hidden temporary folder. One rename turns it into `.tfrkit-change`, then the files are
moved, then the folder is renamed away. If the process is killed before the first rename, the old files are in place;
after the last rename, the new files are. In between, `restore` puts the old files back; it may be killed and run again.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import shutil
from collections.abc import Iterator
from types import TracebackType

from tfrkit import _platform
from tfrkit.errors import StorageError, UnfinishedChangeError
from tfrkit.storage.base import describe_os_error, explain_os_error
from tfrkit.storage.sync import sync_folder, sync_tree
from tfrkit.storage.temporaries import TemporaryFolder, move_file
from tfrkit.storage.text_files import read_json, write_json

PENDING = ".tfrkit-change"
_JOURNAL, _OLD, _NEW = "journal.json", "old", "new"
# Errors of file systems without hard links, and of files with too many links.
_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK, errno.ENOSYS, errno.EACCES, errno.EXDEV}
_NO_LOCKS = {errno.EBADF, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.EINVAL, errno.ENOSYS}


def require_no_change(folder: str) -> None:
    """Raise `UnfinishedChangeError` if files of a folder are being replaced, or were when a process died."""
    folder = folder or "."
    if not os.path.isdir(os.path.join(folder, PENDING)):
        return
    try:
        with _lock(folder):
            is_left = os.path.isdir(os.path.join(folder, PENDING))
    except StorageError:
        raise UnfinishedChangeError(
            "the folder is being changed", shard=folder, hint="wait until that is done"
        ) from None
    if is_left:
        raise UnfinishedChangeError(
            "a change of this folder was interrupted, some files are old and some are new",
            shard=folder,
            hint=_say_how_to_restore(folder),
        )


def _say_how_to_restore(folder: str) -> str:
    return f"put the old files back: tfr edit {shlex.quote(folder)} --restore"


def restore(folder: str) -> bool:
    """Roll back an interrupted change; return False if there was none.

    Raises `StorageError` while another process changes the folder.
    """
    folder = folder or "."
    if not os.path.isdir(os.path.join(folder, PENDING)):
        return False
    with _lock(folder):
        try:
            return _restore(folder)
        except OSError as error:
            raise explain_os_error(error, folder, verb="put the old files back") from None


class Replacement:
    """New files for a folder; leaving the context without `commit` discards them.

    An interrupted change is rolled back first (`was_restored`). Raises `StorageError` if the folder is not writable or
    another process is changing it.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder or "."
        self._stack = contextlib.ExitStack()
        self._puts: dict[str, bool] = {}
        self._removed: list[str] = []
        self._stack.enter_context(_lock(self.folder))
        try:
            self.was_restored = _restore(self.folder)
            self._temporary = TemporaryFolder(os.path.join(self.folder, "change"))
            self._stack.callback(self._temporary.remove)
            os.mkdir(os.path.join(self._temporary.path, _OLD))
            os.mkdir(os.path.join(self._temporary.path, _NEW))
        except OSError as error:
            self._stack.close()
            raise explain_os_error(error, self.folder, verb="change the folder") from None

    def __enter__(self) -> Replacement:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    @property
    def new(self) -> str:
        """The folder for new files; its layout is that of the target folder."""
        return os.path.join(self._temporary.path, _NEW)

    def path(self, name: str) -> str:
        """Return the path to write a new file to; `name` is its path in the target folder."""
        path = os.path.join(self.new, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def put(self, name: str, *, at_once: bool = False) -> None:
        """Move the new file `name` into place on `commit`, in the order of the calls.

        With `at_once` the old file is replaced atomically, so a file of this name always exists. Other old files are
        removed before the first new file appears, so that the folder does not look complete in between.
        """
        self._puts[name] = at_once

    def link(self, source: str, name: str) -> None:
        """Add an existing file as the new file `name`; `source` is its path in the folder."""
        path = os.path.join(self.folder, source)
        try:
            os.link(path, self.path(name))
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise explain_os_error(error, path, verb="link") from None
            shutil.copy2(path, self.path(name))

    def remove(self, name: str) -> None:
        """Remove a file on `commit`; a missing file is not an error."""
        self._removed.append(name)

    def commit(self) -> None:
        """Move all files into place. If a step fails, the old files are restored and `StorageError` is raised."""
        names = [*self._removed, *(name for name in reversed(self._puts) if name not in self._removed)]
        steps = [{"path": name, "was_there": os.path.lexists(os.path.join(self.folder, name))} for name in names]
        pending = os.path.join(self.folder, PENDING)
        try:
            for name in self._puts:
                with contextlib.suppress(FileNotFoundError):
                    shutil.copymode(os.path.join(self.folder, name), os.path.join(self.new, name))
            write_json(os.path.join(self._temporary.path, _JOURNAL), {"steps": steps})
            sync_tree(self._temporary.path, self.folder)
        except OSError as error:
            raise explain_os_error(error, self.folder, verb="change the folder") from None
        try:
            self._temporary.place(pending)
            sync_folder(self.folder)
            self._move(names, pending)
            sync_folder(self.folder)
            _remove_pending(self.folder)
        except BaseException as error:
            if os.path.isdir(pending):
                try:
                    _restore(self.folder)
                except (OSError, StorageError) as second:
                    reason = second.what if isinstance(second, StorageError) else describe_os_error(second)
                    raise UnfinishedChangeError(
                        f"cannot put the old files back, {reason}",
                        shard=self.folder,
                        hint=_say_how_to_restore(self.folder),
                    ) from None
            if isinstance(error, OSError):
                raise explain_os_error(error, self.folder, verb="put the new files in place") from None
            raise

    def _move(self, names: list[str], pending: str) -> None:
        kept = {name: os.path.join(pending, _OLD, str(number)) for number, name in enumerate(names)}
        for name in names:
            path = os.path.join(self.folder, name)
            if os.path.lexists(path) and not self._puts.get(name):
                move_file(path, kept[name])
        folders = {self.folder}
        for name, at_once in self._puts.items():
            path = os.path.join(self.folder, name)
            folders.add(os.path.dirname(path))
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if at_once and os.path.lexists(path):
                _keep(path, kept[name])
            move_file(os.path.join(pending, _NEW, name), path)
        for folder in folders:
            sync_folder(folder)


def _keep(path: str, kept: str) -> None:
    try:
        os.link(path, kept, follow_symlinks=False)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        move_file(path, kept)


def _restore(folder: str) -> bool:
    """Roll back the change recorded in the journal; idempotent."""
    pending = os.path.join(folder, PENDING)
    if not os.path.isdir(pending):
        return False
    for number, (name, was_there) in enumerate(_read_steps(folder, pending)):
        path, kept = os.path.join(folder, name), os.path.join(pending, _OLD, str(number))
        if os.path.lexists(kept):
            move_file(kept, path)
        elif not was_there:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
        if os.path.isdir(os.path.dirname(path)):
            sync_folder(os.path.dirname(path))
    _remove_pending(folder)
    return True


def _read_steps(folder: str, pending: str) -> list[tuple[str, bool]]:
    """Read the journal. Its paths come with the dataset: files elsewhere are neither replaced nor removed."""
    journal = read_json(os.path.join(pending, _JOURNAL))
    steps = journal.get("steps") if isinstance(journal, dict) else None
    root = os.path.realpath(folder)
    found = []
    for step in steps if isinstance(steps, list) else [None]:
        match step:
            case {"path": str(name), "was_there": bool(was_there)} if name and _can_be_a_path(name):
                place = os.path.realpath(os.path.join(folder, os.path.dirname(name)))
                if os.path.basename(name) not in ("", ".", "..") and os.path.commonpath([root, place]) == root:
                    found.append((name, was_there))
                    continue
        raise StorageError(
            f"expected {_JOURNAL} of an interrupted change, got {'none' if journal is None else 'another one'}",
            shard=pending,
            hint=f"what was there before is in {os.path.join(pending, _OLD)}: look at it, then remove {pending}",
        )
    return found


def _can_be_a_path(name: str) -> bool:
    try:
        return b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        return False


def _remove_pending(folder: str) -> None:
    """End the change by one rename of its folder into a temporary, then remove that."""
    trash = TemporaryFolder(os.path.join(folder, "change"))
    try:
        os.rename(os.path.join(folder, PENDING), os.path.join(trash.path, "done"))
        sync_folder(folder)
    finally:
        trash.remove()


@contextlib.contextmanager
def _lock(folder: str) -> Iterator[None]:
    """Lock a folder against changes by other processes. The system releases the lock when this process ends."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | _platform.O_CLOEXEC)
    except OSError as error:
        raise explain_os_error(error, folder) from None
    try:
        try:
            _platform.lock_file(descriptor, wait=False)
        except BlockingIOError:
            raise StorageError(
                "another process is changing this folder", shard=folder, hint="wait until it is done"
            ) from None
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise explain_os_error(error, folder, verb="lock") from None
        yield
    finally:
        os.close(descriptor)
