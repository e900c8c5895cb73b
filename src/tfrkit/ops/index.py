"""Write the index of each shard."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from tfrkit.container.index import ShardIndex, write_dali_index
from tfrkit.container.locate import save_index, scan_frames
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard, find_shards
from tfrkit.errors import ContainerError
from tfrkit.storage.addresses import require_local
from tfrkit.storage.resolve import Address


def make_index(address: Address | Iterable[Address], *, dali: bool = False) -> list[tuple[str, int, str]]:
    """Scan each shard and write its index; return (path, records, index path) of each.

    With `dali`, a DALI text index `<shard>.idx` is written instead; DALI reads uncompressed shards only.
    """
    made = []
    for path in find_shards(address, incomplete="warn"):
        index, target = save_index(path) if not dali else _save_dali_index(path)
        made.append((path, index.num_records, target))
    return made


def _save_dali_index(path: str) -> tuple[ShardIndex, str]:
    with contextlib.closing(Shard.open(path)) as shard:
        if shard.compression != "none":
            raise ContainerError(f"DALI expected an uncompressed shard, got {shard.compression}", shard=path)
        index = scan_frames(shard, Policy())
        target = f"{path}.idx"
        require_local(target)
        write_dali_index(target, index.offsets, index.inflated_size)
        return index, target
