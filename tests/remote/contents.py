"""What is in a folder, of a server or of the disk, without what differs between the two or between two runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from places import Place


def read_place(place: Place, below: str = "") -> dict[str, Any]:
    """Return the objects of a folder, by name; a manifest or a report as its content."""
    return _strip({name.removeprefix(below): place.fetch(name) for name in place.names_below(below)})


def read_folder(folder: Path) -> dict[str, Any]:
    """Return the files of a folder, in the same form."""
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return _strip({name: data for name, data in found.items() if not name.endswith(".lock")})


def _strip(found: dict[str, Any]) -> dict[str, Any]:
    """Leave out times, addresses, versions."""
    for name, data in found.items():
        if name.endswith("report.json"):
            content = json.loads(data)
            found[name] = {key: content[key] for key in content if key not in ("seconds", "out")}
        elif name.endswith("tfrkit.json"):
            content = json.loads(data)
            content.pop("stored_at", None)
            for row in content["shards"]:
                row.pop("etag", None)
            found[name] = content
    return found


def fill(words: list[str], source: Path, out: object) -> list[str]:
    """Return the words of a command with its input and output."""
    return [word.format(source=source, out=out) for word in words]
