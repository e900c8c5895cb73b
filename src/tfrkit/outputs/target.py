"""Where a build goes: a dataset folder, or one file with its sidecars in `_index`."""

from __future__ import annotations

import os
from dataclasses import dataclass

from tfrkit.build.plan import name_dataset
from tfrkit.container.codecs import Compression, compression_of_name
from tfrkit.container.names import strip_output_suffix
from tfrkit.errors import StorageError
from tfrkit.sidecars.places import own_path


@dataclass(frozen=True)
class Target:
    """An output address.

    A name that ends in .tfrecord (or .tfrecords, .tfrec, .tfr, .record, .records) or in .gz (or .zlib, .xz, .zst) is
    one file; any other is a folder.
    """

    out: str

    @property
    def is_file(self) -> bool:
        """Whether all records go into one file of that name."""
        if self.out.endswith(os.sep) or os.path.isdir(self.out):
            return False
        return strip_output_suffix(self.out) is not None

    @property
    def folder(self) -> str:
        """The folder the shards lie in."""
        return os.path.dirname(self.out) or "." if self.is_file else self.out

    @property
    def name(self) -> str:
        """The name of the dataset: its folder's, or the file's without its suffix."""
        stem = strip_output_suffix(self.out) if self.is_file else None
        return name_dataset(self.out if stem is None else stem)

    @property
    def single_file(self) -> str | None:
        """The file's name, where there is to be one."""
        return os.path.basename(self.out) if self.is_file else None

    @property
    def suffix_compression(self) -> Compression | None:
        """The compression the file's name speaks of, or None."""
        return compression_of_name(self.out) if self.is_file else None

    @property
    def staging(self) -> str:
        """Where everything lies until all of it is done."""
        base = os.path.basename(self.out)
        return os.path.join(self.folder, f"_build-{base}" if self.is_file else "_build")

    def sidecar(self, name: str) -> str:
        """Where a file about the dataset lies, such as its manifest."""
        return own_path(self.shard(os.path.basename(self.out)), name) if self.is_file else self.shard(name)

    def shard(self, name: str) -> str:
        """Where a shard lies in the end."""
        return os.path.join(self.folder, name)

    def require_writable(self) -> None:
        """Make the folder; raises `StorageError` where it cannot be made or written to."""
        try:
            os.makedirs(self.folder, exist_ok=True)
        except OSError as error:
            reason = "it is a file" if isinstance(error, FileExistsError) else (error.strerror or str(error)).lower()
            raise StorageError(f"cannot make the output folder, {reason}", shard=self.folder) from None
        if not os.access(self.folder, os.W_OK | os.X_OK):
            raise StorageError("cannot write, permission denied", shard=self.folder)
