"""The shards that the manifest of a folder lists.

Opening a remote folder then needs no listing, and many shards, also of a local folder, are not opened one by one.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, Final, overload

import numpy as np

from tfrkit._limits import LIMITS
from tfrkit.container.codecs import COMPRESSIONS, Compression
from tfrkit.container.shard_table import (
    ShardTable,
    StaleTableError,
    UnusableTableError,
    identify_manifest,
    make_table,
    wants_table,
)
from tfrkit.errors import SidecarWarning, StorageError, warn_caller
from tfrkit.storage.addresses import parse_remote
from tfrkit.storage.folders import list_folder
from tfrkit.storage.lookup import Stamp, open_folder, read_file, remember_listed, remember_parsed, stamp_file
from tfrkit.storage.objects import Listing

MANIFEST: Final = "tfrkit.json"
TABLE: Final = "_index/shards.bin"
# Compression of the shards of folders that were opened by their manifests.
_compressions: dict[str, Compression] = {}


class ListedNames(Sequence[str]):
    """The addresses of the shards that a table lists, made when they are used."""

    def __init__(self, folder: str, table: ShardTable, prefix: str | None = None, stamp: Stamp | None = None) -> None:
        """List the shards of a folder; a path is `prefix` and a name. `stamp` is that of a local manifest."""
        self.folder = folder
        self.table = table
        self.prefix = f"{folder}/" if prefix is None else prefix
        self.stamp = stamp

    def __len__(self) -> int:
        return len(self.table)

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self[at] for at in range(*number.indices(len(self)))]
        if not -len(self) <= number < len(self):
            raise IndexError(number)
        return f"{self.prefix}{self.table.name(number % len(self))}"

    def __iter__(self) -> Iterator[str]:
        return (f"{self.prefix}{name}" for name in self.table.names())

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Sequence) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


def list_by_manifest(folder: str, *, in_table: bool = False) -> Sequence[str] | None:
    """Return the addresses of the shards of a remote folder as its manifest lists them; None without a manifest.

    The manifest is written last, so its shards are there. Their sizes are remembered and compared when a shard is read,
    and so are their versions, if the manifest was written for this address. With `in_table` the result is
    `ListedNames` if there are many shards and a table lists them; their facts are in the table then.
    """
    base = folder.rstrip("/")
    _compressions.pop(base, None)
    text = open_folder(folder, MANIFEST)
    if text is None:
        return None
    if in_table and wants_table(text):
        table = _read_table(f"{base}/{TABLE}", text)
        if table is not None and len(table):
            remember_parsed(f"{base}/{MANIFEST}", table)
            if table.head.get("compression") in COMPRESSIONS:
                _compressions[base] = table.head["compression"]
                return ListedNames(base, table)
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None  # the listing is used; the sidecars report the damage
    rows = content.get("shards") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not rows or not all(map(_is_row, rows)):
        return None
    is_here = content.get("stored_at") == base
    remember_listed(
        folder, MANIFEST, ((row["name"], row["nbytes"], _read_etag(row) if is_here else None) for row in rows)
    )
    if content.get("compression") in COMPRESSIONS:
        _compressions[base] = content["compression"]
    # Sorted as the files of a local folder are.
    return sorted(f"{base}/{row['name']}" for row in rows)


def list_in_table(paths: Sequence[str]) -> ListedNames | None:
    """Return local shards as rows of the table of their folder.

    None if they are few, or not all in one folder, or if the manifest there does not list each with its present size,
    or if one has a manifest of its own.
    """
    if len(paths) < 2:
        return None
    folder, name = os.path.split(paths[0])
    prefix = paths[0][: len(paths[0]) - len(name)]
    place = os.path.join(folder, MANIFEST)
    try:
        stamp = stamp_file(place)
        if stamp[0] < LIMITS.table_text_nbytes or not all(map(_Inside(prefix), paths)):
            return None
        own = f".{MANIFEST}"
        if any(beside.endswith(own) for beside in os.listdir(os.path.join(folder, os.path.dirname(TABLE)))):
            return None
        text = read_file(place)
        listed = list_folder(folder or ".")
    except (OSError, StorageError):
        return None
    table = None if text is None else _load_table(os.path.join(folder, TABLE), text)
    if table is None or table.head.get("compression") not in COMPRESSIONS:
        return None
    names = [path[len(prefix) :] for path in paths]
    known = table.names()
    if names != known:
        rows = {name: number for number, name in enumerate(known)}
        numbers = [rows.get(name, -1) for name in names]
        if -1 in numbers:
            return None
        table = table.take(np.array(numbers, np.uint64))
    sizes = dict(zip(listed.names, listed.nbytes.tolist(), strict=True))
    if [sizes.get(os.fsencode(name)) for name in names] != table.nbytes.tolist():
        return None
    return ListedNames(folder, table, prefix, stamp)


class _Inside:
    """Whether a path is that of a file in a folder, by the start of all such paths."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._length = len(prefix)

    def __call__(self, path: str) -> bool:
        return path.startswith(self._prefix) and path.find(os.sep, self._length) < 0


def _load_table(place: str, text: bytes) -> ShardTable | None:
    """Return the table of a local manifest, from its file or else from the text."""
    table = _read_table(place, text)
    if table is None:
        data = make_table(text)
        table = None if data is None else ShardTable(data, identify_manifest(text))
    return table if table is not None and len(table) else None


def _read_table(place: str, text: bytes) -> ShardTable | None:
    """Return the table of a manifest, or None. One that cannot be used is a warning: the manifest has the same."""
    data = read_file(place)
    if data is None:
        return None
    try:
        return ShardTable(data, identify_manifest(text))
    except StaleTableError:
        return None
    except UnusableTableError as error:
        warn_caller(SidecarWarning(f"the table of shards is not used, {error}; {MANIFEST} is read - at {place}"))
        return None


def list_listing(names: ListedNames) -> Listing | None:
    """Return the listing of the versions in a table; None if it was not written for this address."""
    remote = parse_remote(f"{names.folder}/{MANIFEST}")
    if remote is None or names.table.head.get("stored_at") != names.folder:
        return None
    return Listing(remote.key, names.table.manifest[1].hex())


def recall_compression(path: str) -> Compression | None:
    """Return the compression of a remote shard by the manifest of its folder, if that was opened."""
    return _compressions.get(path.rpartition("/")[0])


def _read_etag(row: dict[str, Any]) -> str | None:
    etag = row.get("etag")
    return etag if isinstance(etag, str) and etag else None


def _is_row(row: Any) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("nbytes"), int) or row["nbytes"] < 0:
        return False
    name = row.get("name")
    return isinstance(name, str) and bool(name) and "/" not in name and name not in (".", "..")
