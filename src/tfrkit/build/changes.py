"""Describe the differences between two builds as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tfrkit.sources.base import Items

# Digests are not compared: they show only that something changed, and the other values show what changed.
_DIGESTS = frozenset({"digest", "records", "fingerprint", "schema_digest"})
_SHOWN = 3
_SHOWN_LENGTH = 60


def describe_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[str]:
    """Return one sentence for each value that differs."""
    lines = list(_compare(old, new, ()))
    if not lines and old != new:
        if old.get("schema_digest") != new.get("schema_digest"):
            return ["the names of classes or features differ"]
        return ["the inputs differ, or go to other shards"]
    return lines


def describe_input_changes(old: Mapping[str, tuple[int, int]], items: Items, *, since: int | None = None) -> list[str]:
    """Describe the inputs added, removed or changed since the list `old` was written.

    mtimes are compared if `old` has them; otherwise an input counts as changed if its mtime is after `since` (ns).
    """
    if items.keys is None or not old:
        return []
    added, changed = [], []
    seen = set()
    for number in range(items.size):
        key = items.key(number)
        seen.add(key)
        if key not in old:
            added.append(key)
            continue
        nbytes, stamp = old[key]
        is_now = 0 if items.nbytes is None else int(items.nbytes[number])
        stamp_now = 0 if items.stamps is None else int(items.stamps[number])
        is_newer = stamp_now != stamp if stamp else since is not None and stamp_now > since
        if is_now != nbytes or is_newer:
            changed.append(key)
    removed = [key for key in old if key not in seen]
    return [
        f"{len(keys)} input{'' if len(keys) == 1 else 's'} {word}: {', '.join(keys[:_SHOWN])}"
        + (", ..." if len(keys) > _SHOWN else "")
        for word, keys in (("added", added), ("removed", removed), ("changed", changed))
        if keys
    ]


def _compare(old: Any, new: Any, path: tuple[str, ...]) -> list[str]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        lines = []
        for name in [*old, *(name for name in new if name not in old)]:
            if name not in _DIGESTS:
                lines += _compare(old.get(name), new.get(name), (*path, name))
        return lines
    if old == new:
        return []
    name = " ".join(part for part in path if part not in ("options", "build")).replace("_", " ")
    return [f"{name} was {_show(old)}, is {_show(new)}"]


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= _SHOWN_LENGTH else text[:_SHOWN_LENGTH] + "..."
