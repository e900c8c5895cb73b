"""Outputs that appear all together: written in a hidden folder, moved into place when everything is whole."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
from collections.abc import Iterable, Sequence

from tfrkit.build.finish import list_outputs
from tfrkit.build.target import Target
from tfrkit.container.index import index_path
from tfrkit.container.shards import looks_like_shard
from tfrkit.errors import ContainerError, StorageError
from tfrkit.ops.outputs import MadeFolders, require_output
from tfrkit.sidecars.manifest import Manifest, read_manifest
from tfrkit.sidecars.places import MANIFEST, remove_own
from tfrkit.storage.local import sync_folder


class FileTarget(Target):
    """One file, whatever its name ends in."""

    @property
    def is_file(self) -> bool:
        """Always."""
        return True


class FolderTarget(Target):
    """A folder, whatever its name ends in."""

    @property
    def is_file(self) -> bool:
        """Never."""
        return False


class Staging:
    """A hidden folder beside or in the output, on the same disk. A context: what was not committed is gone at its end.

    `names` are the shards to come. Raises `StorageError` where they must not be written: something is there and
    `force` was not given, or a source would be replaced.
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
        self._made = MadeFolders()
        self._is_fresh = not target.is_file and not os.path.lexists(target.out)
        base = os.path.basename(os.path.abspath(target.out))
        parent = os.path.dirname(os.path.abspath(target.out)) if target.is_file or self._is_fresh else target.out
        self.folder = os.path.join(parent, f".{base}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
        try:
            self._made.make(parent)
            os.mkdir(self.folder)
        except OSError as error:
            self._made.remove()
            reason = (error.strerror or str(error)).lower()
            raise StorageError(f"cannot write, {reason}", shard=target.out) from None

    def __enter__(self) -> Staging:
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self._made.remove()

    def path(self, name: str) -> str:
        """Where a file is written until everything is whole."""
        return os.path.join(self.folder, name)

    def final(self, name: str) -> str:
        """Where a shard will lie."""
        return self.target.out if self.target.is_file else os.path.join(self.target.out, name)

    def commit(self, sidecars: Sequence[str]) -> None:
        """Move shards, their indexes and the named sidecars into place, the manifest last."""
        try:
            if self.target.is_file:
                self._commit_file(sidecars)
            elif self._is_fresh:
                os.rename(self.folder, os.path.abspath(self.target.out))
            else:
                self._commit_into_folder(sidecars)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise StorageError(f"cannot put the output in place, {reason}", shard=self.target.out) from None
        self._made.keep()
        sync_folder(self.target.folder)

    def _commit_file(self, sidecars: Sequence[str]) -> None:
        [name] = self._names
        path = self.target.out
        remove_own(path)
        os.makedirs(os.path.dirname(index_path(path)), exist_ok=True)
        os.replace(self.path(name), path)
        os.replace(index_path(self.path(name)), index_path(path))
        for name in sorted(sidecars, key=lambda name: name == MANIFEST):
            os.replace(self.path(name), self.target.sidecar(name))

    def _commit_into_folder(self, sidecars: Sequence[str]) -> None:
        out = self.target.out
        manifest = os.path.join(out, MANIFEST)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(manifest)  # first: what is there from here on must not look whole
        new = {*(self.final(name) for name in self._names), *(os.path.join(out, name) for name in sidecars)}
        new |= {index_path(self.final(name)) for name in self._names}
        for path in list_outputs(self.target, self._old) if self._old is not None else ():
            if path not in new:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(path)
        os.makedirs(os.path.join(out, "_index"), exist_ok=True)
        for name in self._names:
            os.replace(index_path(self.path(name)), index_path(self.final(name)))
            os.replace(self.path(name), self.final(name))
        for name in sorted(sidecars, key=lambda name: name == MANIFEST):
            os.replace(self.path(name), os.path.join(out, name))

    def _require_folder(self, sources: Sequence[str], force: bool) -> None:
        out = self.target.out
        if os.path.lexists(out) and not os.path.isdir(out):
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
        known |= set(list_outputs(self.target, self._old)) if self._old is not None else set()
        for entry in sorted(os.listdir(out)):
            path = os.path.join(out, entry)
            is_ours = path in known or entry.startswith((".", "_"))
            if not is_ours and os.path.isfile(path) and looks_like_shard(path):
                raise StorageError(
                    "the folder holds another shard, which would stand among the new ones",
                    shard=path,
                    hint="choose another folder, or remove it",
                )
