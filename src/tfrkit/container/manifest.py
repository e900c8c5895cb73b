"""The manifest of a dataset, `tfrkit.json`: what it holds, how it was made, and a checksum for each shard.

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
  "files": ["charset.txt", "dataset_info.json", "features.json"]
}
```

`recipe` has everything that decides about the bytes of the shards, and `plan` is its hash. `schema` is in the form of
features/schema_json.py.

It is written last: a folder with a manifest is whole. Beside a single file x.tfrecord it is
`_index/x.tfrecord.tfrkit.json`.
"""

from __future__ import annotations

import json
import os
from typing import Any

from tfrkit.errors import ContainerError, StorageError
from tfrkit.storage.local import LocalWriter, explain_os_error

MANIFEST_NAME = "tfrkit.json"
_FORMAT = "tfrkit.dataset"
_VERSION = 1
_MAX_NBYTES = 256 << 20


def write_manifest(path: str, content: dict[str, Any]) -> None:
    """Write a manifest; it appears whole or not at all."""
    write_json(path, {"format": _FORMAT, "version": _VERSION, **content})


def read_manifest(path: str) -> dict[str, Any] | None:
    """The content of a manifest; None where there is no file. Raises `ContainerError` for one that is damaged."""
    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_NBYTES)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise explain_os_error(error, path) from None
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise ContainerError("manifest is no JSON", shard=path) from None
    if not isinstance(content, dict) or content.get("format") != _FORMAT or content.get("version") != _VERSION:
        raise ContainerError(f"manifest expected format {_FORMAT!r}, version {_VERSION}", shard=path)
    return content


def find_manifest(shard_path: str) -> dict[str, Any] | None:
    """The manifest a shard is listed in, or None: that of its folder, or of the single file it is."""
    folder, name = os.path.split(shard_path)
    for path in (
        os.path.join(folder, "_index", f"{name}.{MANIFEST_NAME}"),
        os.path.join(folder, MANIFEST_NAME),
    ):
        try:
            content = read_manifest(path)
        except (ContainerError, StorageError):
            continue
        shards = content.get("shards") if content is not None else None
        if isinstance(shards, list) and any(isinstance(s, dict) and s.get("name") == name for s in shards):
            return content
    return None


def write_json(path: str, content: Any) -> None:
    """Write a JSON file that people read too; it appears whole or not at all."""
    write_text(path, json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def write_text(path: str, text: str) -> None:
    """Write a text file; it appears whole or not at all."""
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    writer = LocalWriter(path)
    try:
        # A file name that is not UTF-8 keeps its bytes.
        writer.write(text.encode("utf-8", "surrogateescape"))
        writer.commit()
    except BaseException:
        writer.discard()
        raise
