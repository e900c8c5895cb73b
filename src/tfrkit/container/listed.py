"""The shards that the manifest of a remote folder lists: opening the folder then needs no listing."""

from __future__ import annotations

import json
from typing import Any, Final

from tfrkit.container.codecs import COMPRESSIONS, Compression
from tfrkit.storage.lookup import open_folder, remember_listed

MANIFEST: Final = "tfrkit.json"
# Compression of the shards of folders that were opened by their manifests.
_compressions: dict[str, Compression] = {}


def list_by_manifest(folder: str) -> list[str] | None:
    """Return the addresses of the shards of a remote folder as its manifest lists them; None without a manifest.

    The manifest is written last, so its shards are there. Their sizes are remembered and compared when a shard is read,
    and so are their versions, if the manifest was written for this address.
    """
    base = folder.rstrip("/")
    _compressions.pop(base, None)
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
    is_here = content.get("stored_at") == base
    remember_listed(
        folder, MANIFEST, ((row["name"], row["nbytes"], _read_etag(row) if is_here else None) for row in rows)
    )
    if content.get("compression") in COMPRESSIONS:
        _compressions[base] = content["compression"]
    # Sorted as the files of a local folder are.
    return sorted(f"{base}/{row['name']}" for row in rows)


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
