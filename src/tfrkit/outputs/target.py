"""Output targets: a dataset folder, or one file with its sidecars in `_index`. Nothing is replaced without `force`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from tfrkit.container.codecs import Compression, compression_of_name
from tfrkit.container.index import INDEX_FOLDER, index_path
from tfrkit.container.names import refuse_foreign_suffix, strip_output_suffix
from tfrkit.errors import Hint, Step, StorageError
from tfrkit.sidecars.manifest import Manifest
from tfrkit.sidecars.places import INPUTS, REPORT, SKIPPED, TABLE, own_path
from tfrkit.storage.addresses import refuse_windows_drive
from tfrkit.storage.base import describe_os_error


@dataclass(frozen=True)
class Target:
    """An output address.

    A name that ends in .tfrecord (or .tfrecords, .tfrec, .tfr, .record, .records) or in .gz (or .zlib, .xz, .zst) is
    one file; any other is a folder. `as_file` overrides that.
    """

    out: str
    as_file: bool | None = None

    def __post_init__(self) -> None:
        refuse_windows_drive(self.out)
        if not self.out.endswith(os.sep) and not os.path.isdir(self.out):
            refuse_foreign_suffix(self.out)

    @cached_property
    def is_file(self) -> bool:
        """Whether the output is one file of that name."""
        if self.as_file is not None:
            return self.as_file
        if self.out.endswith(os.sep) or os.path.isdir(self.out):
            return False
        return strip_output_suffix(self.out) is not None

    @cached_property
    def folder(self) -> str:
        """The folder that holds the shards."""
        return os.path.dirname(self.out) or "." if self.is_file else self.out

    @property
    def name(self) -> str:
        """The name of the dataset: that of its folder, or of the file without its suffix."""
        stem = strip_output_suffix(self.out) if self.is_file else None
        return name_dataset(self.out if stem is None else stem)

    @property
    def single_file(self) -> str | None:
        """The file name if the output is a single file, else None."""
        return os.path.basename(self.out) if self.is_file else None

    @property
    def suffix_compression(self) -> Compression | None:
        """The compression that the suffix of the file implies, or None."""
        return compression_of_name(self.out) if self.is_file else None

    @property
    def staging(self) -> str:
        """The staging folder of a build."""
        base = os.path.basename(self.out)
        return os.path.join(self.folder, f"_build-{base}" if self.is_file else "_build")

    def sidecar(self, name: str) -> str:
        """Path of a sidecar, such as the manifest."""
        return own_path(self.shard(os.path.basename(self.out)), name) if self.is_file else self.shard(name)

    def shard(self, name: str) -> str:
        """Final path of a shard."""
        return os.path.join(self.folder, name)

    @property
    def inputs(self) -> str:
        """Path of the list of inputs."""
        return self.sidecar(INPUTS) if self.is_file else os.path.join(self.folder, INDEX_FOLDER, INPUTS)

    def list_files(self, manifest: Manifest) -> list[str]:
        """Return the paths of all files of the dataset, by its manifest, except the manifest itself."""
        shards = [self.shard(name) for name in manifest.entries]
        names = [*sorted(manifest.files), REPORT, SKIPPED]
        tables = [] if self.is_file else [self.shard(TABLE)]
        return [*shards, *map(index_path, shards), *map(self.sidecar, names), self.inputs, *tables]

    def require_writable(self) -> None:
        """Create the folder; raises `StorageError` if it cannot be created or written to."""
        try:
            os.makedirs(self.folder, exist_ok=True)
        except OSError as error:
            reason = "it is a file" if isinstance(error, FileExistsError) else describe_os_error(error)
            raise StorageError(f"cannot make the output folder, {reason}", shard=self.folder) from None
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise StorageError("cannot write, permission denied", shard=self.folder)


def require_output(path: str, *, sources: Iterable[str] = (), force: bool = False) -> None:
    """Raise `StorageError` if `path` must not be written: it exists, or it is one of the sources.

    An empty folder does not count as existing. A source is never replaced, not even with `force`.
    """
    refuse_windows_drive(path)
    if not os.path.lexists(path):
        return
    for source in sources:
        if os.path.exists(source) and os.path.exists(path) and os.path.samefile(source, path):
            raise StorageError("the output is one of the files to read", shard=path, hint="choose another output")
    if force or (os.path.isdir(path) and not os.listdir(path)):
        return
    raise exists_already(path)


def exists_already(path: str) -> StorageError:
    """Return the error for an output that would replace another one."""
    return StorageError("the output exists already", shard=path, hint=Hint(Step("replace it: {force}", force=True)))


def name_dataset(out: str) -> str:
    """Derive the name of a dataset from its folder: letters, digits and _, starting with a letter, as TFDS requires."""
    base = os.path.basename(os.path.abspath(out))
    name = re.sub(r"[^A-Za-z0-9_]+", "_", base).strip("_")
    if not name:
        return "data"
    return name if name[0].isalpha() else f"data_{name}"
