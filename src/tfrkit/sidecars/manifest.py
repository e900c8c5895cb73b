"""The manifest of a dataset, `tfrkit.json`: its contents, how it was made, and a checksum for each shard.

```json
{
  "format": "tfrkit.dataset", "version": 1,
  "name": "captcha", "plan": "5f0c21...", "made_by": "tfrkit 0.1.0", "path": "captcha/images", "on_bad": "fail",
  "recipe": {"source": "file-names", "options": {...},
             "build": {"seed": 0, "splits": {"test": 500}, ...}, "inputs": {"items": 5000, "nbytes": 91200000, ...}},
  "schema": {...},
  "splits": {"train": {"records": 4500, "shards": 5, "nbytes": 226000000}},
  "shards": [{"name": "captcha-train.tfrecord-00000-of-00005", "split": "train", "records": 900, "nbytes": 45200000,
              "sha256": "..."}],
  "files": ["charset.txt", "dataset_info.json", "features.json"],
  "changes": [{"verb": "edit", "options": {"where": "label = 7", "set": {"label": "3"}}, "changed": 30, "dropped": 0,
               "added": 0, "made_by": "tfrkit 0.1.0"}]
}
```

`compression` is that of all shards. A dataset in a remote store also has `"stored_at": "s3://bucket/captcha"`, the
folder of its shards, and each shard the `"etag"` that it has there. ETags hold for that address only: copies elsewhere
have others.

`recipe` has everything that determines the bytes of the shards, and `plan` is its hash. `schema` has the format of
features/schema_json.py. `files` are the sidecars that belong to the dataset. `changes` lists the changes to the records
since they were made; it is absent if there are none.

The manifest is written last, so a folder with a manifest is complete. The manifest of a
single file x.tfrecord is `_index/x.tfrecord.tfrkit.json`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from tfrkit._version import VERSION
from tfrkit.container.shard_table import ShardTable, make_table, wants_table
from tfrkit.container.shard_table import fingerprint_entries as fingerprint_entries
from tfrkit.errors import ContainerError
from tfrkit.features.schema import Schema
from tfrkit.features.schema_json import from_json, to_json
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.local import LocalWriter
from tfrkit.storage.lookup import UnusableFileError, read_file, recall_parsed
from tfrkit.storage.text_files import format_json, read_json, write_json

_FORMAT = "tfrkit.dataset"
_VERSION = 1
MADE_BY = f"tfrkit {VERSION}"  # another version may write different bytes
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class ShardEntry:
    """The entry of one shard in a manifest; missing or invalid values are None.

    `etag` is the version of the object at the address that the manifest was written for.
    """

    split: str | None
    records: int | None
    nbytes: int | None
    sha256: str | None
    etag: str | None = None


class Manifest:
    """A manifest that was read: its raw `content`, and parsed parts."""

    def __init__(self, path: str, content: Mapping[str, Any], table: ShardTable | None = None) -> None:
        """With a table, the content is without shards."""
        self.path = path
        self.content = content
        self.table = table

    @cached_property
    def entries(self) -> Mapping[str, ShardEntry]:
        """The entry of each shard, by file name. Names that are paths are ignored."""
        if self.table is not None:
            return _TableEntries(self.table)
        listed = self.content.get("shards")
        rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
        return {row["name"]: _read_entry(row) for row in rows if _is_file_name(row.get("name"))}

    @cached_property
    def files(self) -> frozenset[str]:
        """Names of the sidecars that belong to this dataset."""
        listed = self.content.get("files")
        return frozenset(name for name in listed if _is_file_name(name)) if isinstance(listed, list) else frozenset()

    @cached_property
    def schema(self) -> Schema | None:
        """The schema, or None. Raises `SchemaError` if it cannot be read."""
        content = self.content.get("schema")
        return None if content is None else from_json(content)

    @property
    def changed_by(self) -> list[str]:
        """The verbs that changed records after the dataset was made, in order."""
        listed = self.content.get("changes")
        rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
        return [verb for row in rows if (verb := _text(row.get("verb"))) is not None]

    @property
    def stored_at(self) -> str | None:
        """The folder in a store that the manifest was written for; versions of shards hold only there."""
        return _text(self.content.get("stored_at"))

    @property
    def name(self) -> str | None:
        """The name of the dataset."""
        return _text(self.content.get("name"))

    @property
    def source_kind(self) -> str | None:
        """The source of `tfr build` that made the records, or the verb that wrote them."""
        recipe = self.content.get("recipe")
        return _text(recipe.get("source")) if isinstance(recipe, Mapping) else None


class _TableEntries(Mapping[str, ShardEntry]):
    """The entries of a table, made when they are used."""

    def __init__(self, table: ShardTable) -> None:
        self._table = table

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[str]:
        return iter(self._table.names())

    def __getitem__(self, name: str) -> ShardEntry:
        number = self._table.find(name)
        if number is None:
            raise KeyError(name)
        return entry_at(self._table, number)


def entry_at(table: ShardTable, number: int) -> ShardEntry:
    """Return the entry of a shard in a table."""
    facts = int(table.records[number]), int(table.nbytes[number])
    return ShardEntry(table.split(number), *facts, table.sha256(number))


@dataclass(frozen=True)
class NewShard:
    """A shard that was written: its file name, split, and size."""

    name: str
    split: str | None
    num_records: int
    nbytes: int
    sha256: str | None = None


@dataclass(frozen=True)
class NewDataset:
    """A written dataset, with everything needed for its sidecars.

    Attributes:
        name: Name of the dataset.
        schema: Schema of the records.
        compression: Compression of the shards.
        shards: All shards, in order.
        recipe: Source or verb, and the options that determine the bytes of the shards.
        path: Path of the input.
        is_file: It is a single file; its sidecars are in `_index`, and TFDS cannot read it.
        plan: A hash of everything that determines the bytes; if None, it is made from recipe and shards.
        more: Additional keys of the manifest.
    """

    name: str
    schema: Schema
    compression: str
    shards: Sequence[NewShard]
    recipe: Mapping[str, Any]
    path: str
    is_file: bool = False
    plan: str | None = None
    more: Mapping[str, Any] = field(default_factory=dict)

    def make_manifest(self, files: Sequence[str]) -> dict[str, Any]:
        """Return the content of the manifest; `files` are the names of the other sidecars."""
        shards = []
        for shard in self.shards:
            row = {"name": shard.name, "split": shard.split, "records": shard.num_records, "nbytes": shard.nbytes}
            shards.append(row if shard.sha256 is None else {**row, "sha256": shard.sha256})
        return {
            "name": self.name,
            "plan": self.plan or _hash_plan({"recipe": self.recipe, "shards": shards}),
            "made_by": MADE_BY,
            "path": self.path,
            "compression": self.compression,
            **self.more,
            "recipe": dict(self.recipe),
            "schema": to_json(self.schema),
            "splits": _sum_splits(shards),
            "shards": shards,
            "files": sorted(files),
        }


@dataclass(frozen=True)
class ShardChange:
    """One shard before and after a change; `old_name` is None if the shard is new.

    `sha256` is the hash of the new bytes, or None if the bytes did not change.
    """

    old_name: str | None
    name: str
    split: str | None
    num_records: int
    nbytes: int
    old_nbytes: int
    is_changed: bool
    sha256: str | None = None


def update_manifest(
    content: Mapping[str, Any], changes: Sequence[ShardChange], entry: Mapping[str, Any], *, only: bool = False
) -> dict[str, Any]:
    """Return the content of a manifest after the change that `entry` describes; `only` drops other shards."""
    by_name = {change.old_name: change for change in changes if change.old_name is not None}
    added = [change for change in changes if change.old_name is None]
    rows: list[dict[str, Any]] = []
    for row in content.get("shards") or ():
        change = by_name.get(row.get("name"))
        if change is not None:
            rows.append(_update_row(row, change))
        elif not only:
            rows.append(dict(row))
    for change in added:
        at = max((at for at, row in enumerate(rows) if row.get("split") == change.split), default=len(rows) - 1)
        rows.insert(at + 1, _update_row({"sha256": ""} if any("sha256" in row for row in rows) else {}, change))
    for row in rows:
        row.pop("etag", None)  # versions hold for one address, and are added when the shards are stored
    updated = {**content, "shards": rows, "splits": _sum_splits(rows)}
    updated.pop("stored_at", None)
    if isinstance(content.get("schema"), dict):
        updated["schema"] = _drop_meanings(content["schema"])
    updated["changes"] = [*(content.get("changes") or ()), {**entry, "made_by": MADE_BY}]
    # A build never makes these bytes, so change the hash: a build must not reuse the shards.
    updated["plan"] = _hash_plan([content.get("plan"), updated["changes"], rows])
    return updated


def write_manifest(path: str, content: Mapping[str, Any]) -> None:
    """Write a manifest atomically."""
    write_json(path, {"format": _FORMAT, "version": _VERSION, **content})


def add_versions(text: bytes, stored_at: str, etags: Mapping[str, str | None]) -> bytes:
    """Return the text of a manifest with the ETags that the shards have at an address, by name of the shard."""
    content = json.loads(text)
    for row in content["shards"]:
        if etags.get(row["name"]):
            row["etag"] = etags[row["name"]]
    return format_json({**content, "stored_at": stored_at.rstrip("/")}).encode("utf-8", "surrogateescape")


def write_shard_table(manifest: str, place: str) -> bool:
    """Write the table of a local manifest, if its shards are many; return whether it was written."""
    text = read_file(manifest)
    table = None if text is None else make_shard_table(text)
    if table is None:
        return False
    with LocalWriter(place, make_folders=True) as writer:
        writer.write(table)
        writer.commit()
    return True


def make_shard_table(text: bytes) -> bytes | None:
    """Return the table of the shards of a manifest, if they are many; see `container.shard_table`."""
    return make_table(text) if wants_table(text) else None


def read_manifest(path: str) -> Manifest | None:
    """Read a manifest; return None if it is missing. Raises `ContainerError` if it is damaged."""
    table = recall_parsed(path) if has_scheme(path) else None
    try:
        content = table.head if isinstance(table, ShardTable) else read_json(path)
    except UnusableFileError as error:
        raise ContainerError(f"manifest cannot be used, {error.what}", shard=path) from None
    return None if content is None else check_manifest(path, content, table if isinstance(table, ShardTable) else None)


def check_manifest(path: str, content: object, table: ShardTable | None) -> Manifest:
    """Return a manifest that was parsed elsewhere. Raises `ContainerError` if it is no manifest, or a newer one."""
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        raise ContainerError(f"manifest expected format {_FORMAT!r}, version {_VERSION}", shard=path)
    if content.get("version") != _VERSION:
        version = repr(content.get("version"))[:32]
        raise ContainerError(
            f"manifest is of version {version}, this tfrkit reads version {_VERSION}",
            shard=path,
            hint="it was written by another release: pip install -U tfrkit",
        )
    return Manifest(path, content, table)


def _hash_plan(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _drop_meanings(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a schema without guessed meanings, because they contain value ranges that may have changed."""
    return {
        key: [{name: one for name, one in spec.items() if name != "meaning"} for spec in value]
        if key in ("features", "feature_lists")
        else value
        for key, value in schema.items()
    }


def _update_row(row: Mapping[str, Any], change: ShardChange) -> dict[str, Any]:
    updated: dict[str, Any] = {"name": change.name, "split": change.split}
    updated |= {**row, "name": change.name}
    if change.is_changed:
        updated |= {"records": change.num_records, "nbytes": change.nbytes}
        if "sha256" in row:
            updated["sha256"] = change.sha256
    return {key: value for key, value in updated.items() if key != "sha256" or value}


def _sum_splits(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    splits: dict[str, dict[str, int]] = {}
    for row in rows:
        if isinstance(row.get("split"), str):
            counts = splits.setdefault(row["split"], {"records": 0, "shards": 0, "nbytes": 0})
            counts["records"] += row.get("records") or 0
            counts["shards"] += 1
            counts["nbytes"] += row.get("nbytes") or 0
    return splits


def _read_entry(row: Mapping[str, Any]) -> ShardEntry:
    def number(key: str) -> int | None:
        value = row.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

    sha256 = _text(row.get("sha256"))
    return ShardEntry(
        _text(row.get("split")),
        number("records"),
        number("nbytes"),
        sha256 if sha256 is not None and _SHA256.fullmatch(sha256) else None,
        _text(row.get("etag")),
    )


def _is_file_name(name: object) -> bool:
    return isinstance(name, str) and bool(name) and "/" not in name and name not in (".", "..")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
