"""Records of the splits of a dataset, and of slices in TFDS's syntax."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise

from tfrkit.batches.shard_set import ShardSet
from tfrkit.errors import Hint, QueryError, Step
from tfrkit.features.schema import find_nearest_name, show_name
from tfrkit.orders.order import Joined, Order, Slice, Whole
from tfrkit.orders.slice_syntax import resolve_slices


def find_split_orders(shard_set: ShardSet) -> dict[str, Order]:
    """Find the records of each split, by name; empty if there are no splits."""
    return {name: _join_shards(shard_set, shards) for name, shards in shard_set.sidecars.splits.items()}


def slice_splits(shard_set: ShardSet, text: str) -> Order:
    """Find the records of a slice such as ``train[:75%]+test``."""
    shards = shard_set.sidecars.splits
    if text not in shards:
        refuse_feature(shard_set, text)
    if not shards:
        raise QueryError(
            f"the files have no splits, got {text!r}",
            shard=shard_set.files[0],
            hint=Hint(Step('split the dataset instead: ds.split({"train": 0.8, "test": 0.2})', in_python=True)),
        )
    counts = shard_set.records.count_by_shard()
    shard_sizes = {name: [counts[shard] for shard in chosen] for name, chosen in shards.items()}
    sizes = {name: sum(counted) for name, counted in shard_sizes.items()}
    orders = find_split_orders(shard_set)
    slices = resolve_slices(text, sizes, shard_sizes=shard_sizes)
    parts: list[Order] = [Slice(orders[part.split], part.start, part.stop) for part in slices]
    return parts[0] if len(parts) == 1 else Joined(parts)


def refuse_feature(shard_set: ShardSet, text: str) -> None:
    """Raise if the requested split is the name of a feature, or a misspelt one."""
    if not shard_set.shards.has_pipe and text in shard_set.schema:
        raise QueryError(
            f"no split {text!r}, it is a feature",
            shard=shard_set.files[0],
            hint=f"rows with this feature only: ds.select([{text!r}])    its values: "
            f"[row[{text!r}] for row in ds.select([{text!r}])]",
        )
    meant = None if shard_set.shards.has_pipe else _find_meant(shard_set, text)
    if meant is not None:
        raise QueryError(
            f"no split {text!r}, did you mean the feature {show_name(meant)}",
            shard=shard_set.files[0],
            hint=Hint(Step(f"rows with this feature only: ds.select([{meant!r}])", in_python=True)),
        )


def _find_meant(shard_set: ShardSet, text: str) -> str | None:
    """Find the feature most similar to a misspelt name; None if a split is more similar."""
    splits = shard_set.sidecars.splits
    if text in splits or not text.replace("/", "_").isidentifier():
        return None
    nearest = find_nearest_name(text, [*splits, *shard_set.schema.names])
    return None if nearest in splits else nearest


def _join_shards(shard_set: ShardSet, shards: Sequence[int]) -> Order:
    starts = [0, *accumulate(shard_set.records.count_by_shard())]
    whole = Whole(starts[-1])
    # Adjacent shards become one slice: each batch searches all slices, and there may be 100,000 shards.
    firsts = [at for at in range(len(shards)) if at == 0 or shards[at] != shards[at - 1] + 1]
    runs = pairwise([*firsts, len(shards)])
    parts: list[Order] = [Slice(whole, starts[shards[first]], starts[shards[stop - 1] + 1]) for first, stop in runs]
    return parts[0] if len(parts) == 1 else Joined(parts)
