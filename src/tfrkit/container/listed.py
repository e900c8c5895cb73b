"""The shards that the manifest of a remote folder lists: opening the folder then needs no listing."""

from __future__ import annotations

import json
from typing import Any, Final

from tfrkit.storage.lookup import open_folder, remember_size

MANIFEST: Final = "tfrkit.json"


def list_by_manifest(folder: str) -> list[str] | None:
    """Return the addresses of the shards of a remote folder as its manifest lists them; None without a manifest.

    The manifest is written last, so its shards are there. Sizes are remembered, and compared when a shard is read.
    """
    text = open_folder(folder, MANIFEST)
    if text is None:
        return None
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return None  # the listing is used; the sidecars report the damage
    rows = content.get("shards") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not rows or not all(map(_is_row, rows)):
        return None
    base = folder.rstrip("/")
    for row in rows:
        remember_size(f"{base}/{row['name']}", row["nbytes"])
    return [f"{base}/{row['name']}" for row in rows]


def _is_row(row: Any) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("nbytes"), int) or row["nbytes"] < 0:
        return False
    name = row.get("name")
    return isinstance(name, str) and bool(name) and "/" not in name and name not in (".", "..")
