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

`recipe` has everything that determines the bytes of the shards, and `plan` is its hash. `schema` has the format of
features/schema_json.py. `files` are the sidecars that belong to the dataset. `changes` lists the changes to the records
since they were made; it is absent if there are none.

`make_manifest` in sidecars/write.py makes the keys. The manifest is written last, so a folder with a manifest is
complete. The manifest of a single file x.tfrecord is `_index/x.tfrecord.tfrkit.json`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tfrkit.errors import ContainerError, StorageError
from tfrkit.features.schema import Schema
from tfrkit.features.schema_json import from_json
from tfrkit.storage.text_files import read_json, write_json

_FORMAT = "tfrkit.dataset"
_VERSION = 1
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Entry:
    """The entry of one shard in a manifest; missing or invalid values are None."""

    split: str | None
    records: int | None
    nbytes: int | None
    sha256: str | None


class Manifest:
    """A manifest that was read: its raw `content`, and parsed parts."""

    def __init__(self, path: str, content: Mapping[str, Any]) -> None:
        self.path = path
        self.content = content

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """The entry of each shard, by file name. Names that are paths are ignored."""
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
    def name(self) -> str | None:
        """The name of the dataset."""
        return _text(self.content.get("name"))

    @property
    def source_kind(self) -> str | None:
        """The source of `tfr build` that made the records, or the verb that wrote them."""
        recipe = self.content.get("recipe")
        return _text(recipe.get("source")) if isinstance(recipe, Mapping) else None


def write_manifest(path: str, content: Mapping[str, Any]) -> None:
    """Write a manifest atomically."""
    write_json(path, {"format": _FORMAT, "version": _VERSION, **content})


def read_manifest(path: str) -> Manifest | None:
    """Read a manifest; return None if it is missing. Raises `ContainerError` if it is damaged."""
    try:
        content = read_json(path)
    except StorageError as error:
        raise ContainerError(f"manifest cannot be used, {error.what}", shard=path) from None
    if content is None:
        return None
    if not isinstance(content, dict) or content.get("format") != _FORMAT or content.get("version") != _VERSION:
        raise ContainerError(f"manifest expected format {_FORMAT!r}, version {_VERSION}", shard=path)
    return Manifest(path, content)


def _read_entry(row: Mapping[str, Any]) -> Entry:
    def number(key: str) -> int | None:
        value = row.get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

    sha256 = _text(row.get("sha256"))
    return Entry(
        _text(row.get("split")),
        number("records"),
        number("nbytes"),
        sha256 if sha256 is not None and _SHA256.fullmatch(sha256) else None,
    )


def _is_file_name(name: object) -> bool:
    return isinstance(name, str) and bool(name) and "/" not in name and name not in (".", "..")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
