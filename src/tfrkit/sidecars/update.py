"""Update the sidecars of a dataset after shards were changed, added, renamed or removed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tfrkit.container.index import INDEX_FOLDER, index_path
from tfrkit.container.names import SET_NUMBER
from tfrkit.sidecars.manifest import ShardChange
from tfrkit.sidecars.places import FEATURES, INFO, INPUTS, LABEL_FILES, MANIFEST, REPORT, SKIPPED, TFDS_LABELS, list_own
from tfrkit.sidecars.read import Sidecars
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.lookup import glob_names, list_names


def list_sidecars(sidecars: Sidecars) -> list[str]:
    """Return the existing sidecars, without indexes, of shards in one folder, as paths relative to it."""
    [folder] = sidecars.folders
    names = [FEATURES, INFO, *LABEL_FILES, REPORT, SKIPPED, os.path.join(INDEX_FOLDER, INPUTS)]
    names += glob_names(folder, f"*{TFDS_LABELS}")
    names = [name for name in names if not sidecars.is_of_others(0, name)]
    for manifest in sidecars.manifests:
        if manifest is not None and os.path.basename(manifest.path) == MANIFEST:
            names += [*sorted(manifest.files), MANIFEST]
    for path in sidecars.paths:
        own = [one for one in list_own(path) if one != index_path(path)]
        names += [os.path.relpath(one, folder or ".") for one in own]
    if has_scheme(folder):
        # Two listings instead of a request for each name.
        inside = map(partial(os.path.join, INDEX_FOLDER), list_names(os.path.join(folder, INDEX_FOLDER)))
        stored = {*list_names(folder), *inside}
        return [name for name in dict.fromkeys(names) if name in stored]
    return [name for name in dict.fromkeys(names) if os.path.isfile(os.path.join(folder, name))]


def update_info(
    info: Mapping[str, Any], changes: Sequence[ShardChange], *, only: bool = False
) -> dict[str, Any] | None:
    """Return the content of TFDS's dataset_info.json after a change; None if it does not match the shards.

    With `only`, the result has no shards other than those in `changes`, so incomplete splits are dropped.
    """
    splits: list[Any] = []
    for split in info.get("splits") or ():
        mine = [change for change in changes if change.split == split.get("name")]
        lengths = list(split.get("shardLengths") or ())
        before = [change for change in mine if change.old_name is not None]
        if only and len(before) < len(lengths):
            continue
        if not mine:
            splits.append(split)
            continue
        for change in before:
            number = _number_of(change.old_name or "", len(lengths))
            if number is None:
                return None
            if change.is_changed:
                lengths[number] = _like(lengths[number], change.num_records)
        new = [change for change in mine if change.old_name is None]
        lengths += [_like(lengths[0] if lengths else "", change.num_records) for change in new]
        updated = {**split, "shardLengths": lengths}
        if str(split.get("numBytes", "")).isdigit():
            grown = sum(change.nbytes - change.old_nbytes for change in mine if change.is_changed)
            updated["numBytes"] = _like(split["numBytes"], max(0, int(split["numBytes"]) + grown))
        splits.append(updated)
    return {**info, "splits": splits} if splits else None


def _number_of(name: str, num_shards: int) -> int | None:
    """Return the number of a shard in its split from its name; None if the name does not match `num_shards`."""
    found = SET_NUMBER.search(name)
    if found is None:
        return 0 if num_shards == 1 else None
    number = int(found[1])
    return number if int(found[2]) == num_shards and number < num_shards else None


def _like(old: object, value: int) -> int | str:
    """Convert a number to the type of the old value: protobuf's JSON format writes 64-bit integers as strings."""
    return str(value) if isinstance(old, str) else value
