"""Outputs that appear all together: written in a hidden folder, moved into place when all are complete."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Container, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tfrkit.container.index import INDEX_FOLDER, index_path
from tfrkit.container.shards import looks_like_shard
from tfrkit.errors import ContainerError, StorageError
from tfrkit.outputs.target import Target, require_output
from tfrkit.sidecars.manifest import Manifest, read_manifest, write_shard_table
from tfrkit.sidecars.places import MANIFEST, TABLE, list_own
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.base import explain_os_error
from tfrkit.storage.local import require_space
from tfrkit.storage.sync import sync_folder
from tfrkit.storage.temporaries import TemporaryFolder, move_file, sweep_folder

if TYPE_CHECKING:
    from tfrkit.outputs.remote import RemoteStaging


def open_staging(
    target: Target, names: Sequence[str], *, sources: Iterable[str], force: bool
) -> Staging | RemoteStaging:
    """Return a place to write the shards `names` of a target, local or remote."""
    if has_scheme(target.out):
        from tfrkit.outputs.remote import RemoteStaging  # imported only for remote addresses

        return RemoteStaging(target, names, sources=sources, force=force)
    return Staging(target, names, sources=sources, force=force)


class Staging:
    """A hidden folder next to or in the output, on the same disk. A context manager: removed on exit unless committed.

    `names` are the planned shards. Raises `StorageError` if they must not be written: they exist and `force` was not
    given, or a source would be replaced.
    """

    def __init__(self, target: Target, names: Sequence[str], *, sources: Iterable[str], force: bool) -> None:
        self.target = target
        self._names = list(names)
        self._old: Manifest | None = None
        sources = [path for path in sources if path != "-"]
        if target.is_file:
            if os.path.isdir(target.out) or target.out.endswith(os.sep):
                raise StorageError("expected a file to write, got a folder", shard=target.out)
            require_output(target.out, sources=sources, force=force)
        else:
            self._require_folder(sources, force)
        # A link is kept and its target is written, even if it does not exist yet.
        self._place = os.path.realpath(target.out)
        self._is_fresh = not target.is_file and not os.path.exists(self._place)
        is_inside = not target.is_file and not self._is_fresh
        parent, base = os.path.split(self._place)
        sweep_folder(parent)  # leftovers of killed runs from before the output existed
        try:
            hidden = os.path.join(self._place, base) if is_inside else self._place
            self._temporary = TemporaryFolder(hidden, make_folders=True)
        except OSError as error:
            raise explain_os_error(error, target.out, verb="write") from None
        self.folder = self._temporary.path

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, *_: object) -> None:
        self._temporary.remove()

    def path(self, name: str) -> str:
        """Return the staging path of a file."""
        return os.path.join(self.folder, name)

    def final(self, name: str) -> str:
        """Return the final path of a shard."""
        return self.target.out if self.target.is_file else os.path.join(self.target.out, name)

    def require_space(self, nbytes: int) -> None:
        """Raise if the disk has too little space."""
        require_space(self.target.out, nbytes)

    def take(self, path: str) -> None:
        """Take a shard that is whole; it stays where it is until `commit`."""

    def commit(self, sidecars: Sequence[str]) -> None:
        """Move shards, their indexes and the named sidecars into place, the manifest last.

        If a step fails, the previous ones are undone.
        """
        has_table = (
            not self.target.is_file
            and MANIFEST in sidecars
            and write_shard_table(self.path(MANIFEST), self.path(TABLE))
        )
        if has_table:
            sidecars = [TABLE, *sidecars]
        try:
            if self._is_fresh:
                self._temporary.place(self._place)
            else:
                with _Moves(self.path(".replaced")) as moves:
                    if self.target.is_file:
                        self._commit_file(sidecars, moves)
                    else:
                        self._commit_into_folder(sidecars, moves)
        except OSError as error:
            raise explain_os_error(error, self.target.out, verb="put the output in place") from None
        self._temporary.made.keep()
        if self.target.is_file:
            sync_folder(os.path.dirname(self._place))
            sync_folder(os.path.dirname(index_path(self.target.out)))
        else:
            sync_folder(os.path.dirname(self._place) if self._is_fresh else self._place)

    def _commit_file(self, sidecars: Sequence[str], moves: _Moves) -> None:
        [name] = self._names
        index = index_path(self.target.out)
        moves.make_folder(os.path.dirname(index))
        for path in list_own(self.target.out):
            moves.take_away(path)  # they describe the file that is replaced
        for sidecar in sidecars:
            moves.put(self.path(sidecar), self.target.sidecar(sidecar))
        moves.put(index_path(self.path(name)), index)
        # Last, in one step: it completes the output.
        os.replace(self.path(name), self._place)

    def _commit_into_folder(self, sidecars: Sequence[str], moves: _Moves) -> None:
        out = self.target.out
        moves.take_away(os.path.join(out, MANIFEST))  # first: without it the folder does not look complete
        new = {*(self.final(name) for name in self._names), *(os.path.join(out, name) for name in sidecars)}
        new |= {index_path(self.final(name)) for name in self._names}
        for path in self.target.list_files(self._old) if self._old is not None else ():
            if path not in new:
                moves.take_away(path)
        moves.make_folder(os.path.join(out, INDEX_FOLDER))
        for name in self._names:
            moves.put(index_path(self.path(name)), index_path(self.final(name)))
            moves.put(self.path(name), self.final(name))
        for name in sorted(sidecars, key=lambda name: name == MANIFEST):
            moves.put(self.path(name), os.path.join(out, name))

    def _require_folder(self, sources: Sequence[str], force: bool) -> None:
        out = self.target.out
        if os.path.exists(out) and not os.path.isdir(out):
            raise StorageError("expected a folder to write to, got a file", shard=out)
        inside = os.path.join(os.path.realpath(out), "")
        for source in sources:
            if os.path.realpath(source).startswith(inside):
                raise StorageError(
                    f"the output is a folder to read from, it holds {source}",
                    shard=out,
                    hint="choose another folder",
                )
        require_output(out, force=force)
        if not os.path.isdir(out):
            return
        with contextlib.suppress(ContainerError):
            self._old = read_manifest(os.path.join(out, MANIFEST))
        known = {*(self.final(name) for name in self._names)}
        known |= set(self.target.list_files(self._old)) if self._old is not None else set()
        refuse_other_shards(out, known)


def refuse_other_shards(folder: str, known: Container[str]) -> None:
    """Raise if a folder has a shard whose path is not known: it would look like one of the new ones."""
    for entry in sorted(os.listdir(folder)):
        path = os.path.join(folder, entry)
        is_ours = path in known or entry.startswith((".", "_"))
        if not is_ours and os.path.isfile(path) and looks_like_shard(path):
            raise StorageError(
                "the folder has another shard, which would be among the new ones",
                shard=path,
                hint="choose another folder, or remove it",
            )


class _Moves:
    """Moves files into place. A context manager: if a move fails, the previous ones are undone."""

    def __init__(self, aside: str) -> None:
        self._aside = aside  # folder for the files that are replaced
        self._undo: list[Callable[[], None]] = []

    def __enter__(self) -> _Moves:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        while kind is not None and self._undo:
            with contextlib.suppress(OSError):
                self._undo.pop()()

    def make_folder(self, folder: str) -> None:
        """Create a folder, unless it exists."""
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder)
            self._undo.append(partial(os.rmdir, folder))

    def take_away(self, path: str) -> None:
        """Move the file at `path` aside, if there is one."""
        if os.path.lexists(path):
            os.makedirs(self._aside, exist_ok=True)
            kept = os.path.join(self._aside, str(len(self._undo)))
            move_file(path, kept)
            self._undo.append(partial(move_file, kept, path))

    def put(self, source: str, path: str) -> None:
        """Move a file to `path`; a file that was there is kept for undo."""
        self.take_away(path)
        move_file(source, path)
        self._undo.append(partial(os.unlink, path))
