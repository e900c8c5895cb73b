"""Remove what an interrupted build left, for `tfr build --clean`."""

from __future__ import annotations

import contextlib
import os

from tfrkit.build.finish import place_of
from tfrkit.build.journal import Journal, read_marker
from tfrkit.container.index import index_path
from tfrkit.outputs.target import Target
from tfrkit.sidecars.manifest import read_manifest
from tfrkit.sidecars.places import MANIFEST
from tfrkit.storage.addresses import has_scheme


def clean_build(target: Target) -> list[str]:
    """Remove an unfinished build from an output; a finished dataset stays. Return what was removed, in words.

    Raises `StorageError` if a build is running there.
    """
    if has_scheme(target.out):
        from tfrkit.build.store_session import clean_store  # imported only for remote addresses

        return clean_store(target)
    if not os.path.isdir(target.staging):
        return []
    journal = Journal(target.staging)
    with journal.locked():
        num_removed = _count_shards(journal) + _remove_placed(target, journal)
        journal.remove()
    return [f"an unfinished build with {num_removed} shards"]


def _count_shards(journal: Journal) -> int:
    return sum(os.path.isfile(path) for path in _list_marked(journal))


def _list_marked(journal: Journal) -> list[str]:
    """Return the staging paths of shards that have a marker."""
    ending = ".done.json"
    return [
        os.path.join(folder, name.removesuffix(ending))
        for folder, _, names in os.walk(journal.folder)
        for name in names
        if name.endswith(ending)
    ]


def _remove_placed(target: Target, journal: Journal) -> int:
    """Remove shards that a killed last step had already moved into place; return their number."""
    if read_manifest(target.sidecar(MANIFEST)) is not None:
        return 0
    num_removed = 0
    for path in _list_marked(journal):
        name, marker = os.path.basename(path), read_marker(path)
        place = place_of(target, name)
        with contextlib.suppress(FileNotFoundError):
            if marker is not None and not os.path.exists(path) and os.path.getsize(place) == marker.nbytes:
                os.unlink(place)
                num_removed += 1
                os.unlink(index_path(target.shard(name)))
    return num_removed
