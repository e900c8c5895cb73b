"""The shards that the manifest of a remote folder lists: opening the folder then needs no listing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, overload

from tfrkit.container.codecs import COMPRESSIONS, Compression
from tfrkit.container.shard_table import ShardTable, StaleTableError, UnusableTableError, identify_manifest, wants_table
from tfrkit.errors import SidecarWarning, warn_caller
from tfrkit.storage.addresses import parse_remote
from tfrkit.storage.lookup import open_folder, read_file, remember_listed, remember_parsed
from tfrkit.storage.objects import Listing

MANIFEST: Final = "tfrkit.json"
TABLE: Final = "_index/shards.bin"
# Compression of the shards of folders that were opened by their manifests.
_compressions: dict[str, Compression] = {}


class ListedNames(Sequence[str]):
    """The addresses of the shards that a table lists, made when they are used."""

    def __init__(self, folder: str, table: ShardTable) -> None:
        self.folder = folder
        self.table = table

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
        return f"{self.folder}/{self.table.name(number % len(self))}"

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
        table = _read_table(base, text)
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


def _read_table(base: str, text: bytes) -> ShardTable | None:
    """Return the table of a manifest, or None. One that cannot be used is a warning: the manifest has the same."""
    place = f"{base}/{TABLE}"
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
