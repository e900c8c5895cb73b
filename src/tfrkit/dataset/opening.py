"""Functions that open a dataset from files, or mix several datasets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tfrkit._familiar import refuse_arguments
from tfrkit._types import Infer, OnError, Verify
from tfrkit.batches.shard_set import ShardSet
from tfrkit.container.records import Policy
from tfrkit.container.shard_list import ShardList
from tfrkit.dataset.dataset import Dataset
from tfrkit.dataset.part import Recipe
from tfrkit.features.schema import Schema
from tfrkit.orders.mixed import Mixed
from tfrkit.storage.options import StorageOptions
from tfrkit.storage.resolve import Address, use_options

_FOUND = "found from the bytes of each file, gzip or zlib or none: leave it out"
_READ_AHEAD = "files are mapped and batches read ahead by themselves: ds.batch(64, threads=8)"


@refuse_arguments(
    "open",
    compression=f"compression is {_FOUND}",
    compression_type=f"compression is {_FOUND}",
    buffer_size=_READ_AHEAD,
    num_parallel_reads=_READ_AHEAD,
    split='splits are picked from what was opened: tfrkit.open(folder)["train"]',
    shuffle="what was opened is shuffled, whole and by a seed: tfrkit.open(path).shuffle(seed=0)",
    batch_size="what was opened gives batches: tfrkit.open(path).batch(64)",
    columns='only some features: tfrkit.open(path, features=["label"])',
)
def open_dataset(
    address: Address | Iterable[Address],
    *,
    schema: Schema | Mapping[str, Any] | None = None,
    features: Sequence[str] | None = None,
    infer: Infer = "sample",
    verify: Verify = "all",
    on_error: OnError = "raise",
    max_errors: int | None = None,
    storage: Mapping[str, Any] | None = None,
) -> Dataset:
    """Open TFRecord files: a path, a glob, a folder, a remote address, or a list of these.

    Compression, kind of record and schema are detected from the content. Opening reads only the first bytes of each
    file.

    Args:
        address: Path, glob, folder, remote address (s3://bucket/folder/), or a list of these.
        schema: Schema of the features. Default: the schema of the manifest or TFDS's features.json next to the files,
            else inferred from the records.
        features: Names of the features to decode; default all.
        infer: Records to infer the schema from: "all", or "sample", which is some thousands of a large dataset and all
            of a small one. A feature that is in no sampled record raises `UnknownFeatureError` when it is read.
        verify: Checksums to compare: "all", only those of "lengths", or "none".
        on_error: "raise" at the first damage, or "skip" damage and list it in `Dataset.errors`.
        max_errors: With "skip", raise if one pass finds more damaged places than this.
        storage: How remote addresses are read: a dict with endpoint, profile, anonymous, cache, as of
            `tfrkit.tools.use_storage`.

    Example:
        >>> ds = tfrkit.open("digits.tfrecord")
        >>> ds[0]
        {'data': 0, 'label': 0}
    """
    if verify not in ("all", "lengths", "none"):
        raise ValueError(f"verify expected 'all', 'lengths' or 'none', got {verify!r}")
    if on_error not in ("raise", "skip"):
        raise ValueError(f"on_error expected 'raise' or 'skip', got {on_error!r}")
    if max_errors is not None and (not isinstance(max_errors, int) or max_errors < 0):
        raise ValueError(f"max_errors expected a number of 0 or more, got {max_errors!r}")
    if infer not in ("sample", "all"):
        raise ValueError(f"infer expected 'sample' or 'all', got {infer!r}")
    if isinstance(features, str):
        raise TypeError(f"features expected a list of names, got the string {features!r}")
    if schema is not None and not isinstance(schema, Schema):
        if not isinstance(schema, Mapping):
            raise TypeError(f"schema expected a Schema or a dict of features, got {type(schema).__name__}")
        schema = Schema(schema)
    if storage is not None:
        use_options(address, StorageOptions(**storage))
    shards = ShardList.open(address, incomplete="warn")
    opened = ShardSet(shards, Policy(verify, on_error, max_errors), schema, infer=infer)
    if len(shards) > 1:
        opened.warn_of_empty()
        opened.warn_of_unlisted()
    return Dataset(opened, features=features)


def mix(
    sources: Mapping[Any, float] | Iterable[tuple[Any, float]], *, seed: int = 0, size: int | None = None
) -> Dataset:
    """Mix the rows of several datasets by weight. The rows of each dataset keep their order.

    Sources are Datasets or addresses. Without `size` the mix ends when the first source is exhausted; with `size`,
    exhausted sources restart with their next epoch. Every 10,000 rows have the same number of rows of each source, so
    the shares are exact to 0.01 %.

    Example:
        >>> mixed = tfrkit.mix({"web.tfrecord": 0.7, "books.tfrecord": 0.3}, seed=1)
    """
    pairs = list(sources.items() if isinstance(sources, Mapping) else sources)
    datasets = [source if isinstance(source, Dataset) else open_dataset(source) for source, _ in pairs]
    if not datasets:
        raise ValueError("mix expected at least one source, got none")
    first = datasets[0]
    for number, dataset in enumerate(datasets):
        if dataset._recipe.stages or dataset._recipe.is_endless:
            raise ValueError(f"mix comes before decode, map and repeat, source {number} has one of them")
        if len(dataset) == 0:
            raise ValueError(f"mix expected sources with rows, source {number} has none")
    starts, total = [], 0
    for dataset in datasets:
        starts.append(total)
        total += len(dataset._set.records)
    merged = ShardSet(
        [shard for dataset in datasets for shard in dataset._set.shards],
        first._set.policy,
        infer="all" if any(dataset._set.infer == "all" for dataset in datasets) else "sample",
    )
    order = Mixed(
        [dataset._get_order() for dataset in datasets], [weight for _, weight in pairs], starts, seed=seed, size=size
    )
    for dataset in datasets:
        merged.require_like(dataset.schema, dataset.files[0])
    return Dataset(merged, recipe=Recipe(features=first._recipe.features, order=order))
