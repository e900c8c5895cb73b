"""Rows of one schema: all in file order, or some by number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tfrkit._types import Row, UInt64Array
from tfrkit.batches.fetch import Fetched, Fetcher
from tfrkit.batches.loop import Stage
from tfrkit.batches.shard_set import ShardSet
from tfrkit.batches.stream import read_batches
from tfrkit.container.records import Finding
from tfrkit.errors import CodecError, ContainerError, SchemaError

# Rows are decoded some at a time: enough to hide the cost of a call, few enough to stay small with images.
ROWS_AT_ONCE = 64


def read_rows(shard_set: ShardSet, fetcher: Fetcher) -> Iterator[Row]:
    """All rows in file order; those before damage come before it is raised."""
    batches = read_batches(
        shard_set.shards,
        fetcher.decoder,
        shard_set.policy.for_one_pass(),
        batch_size=ROWS_AT_ONCE,
        drop_last=False,
        threads=1,
        partial=True,
    )
    for batch, num_rows in batches:
        yield from fetcher.decoder.rows(batch, num_rows)
    shard_set.policy.warn_of_skipped()


def pick_row(shard_set: ShardSet, fetcher: Fetcher, number: int) -> list[Row]:
    """One row in a list, or none where it is damaged and that is skipped: the way with the least around it."""
    decoder = fetcher.decoder
    builder = decoder.new_builder()
    try:
        shard_set.records.decode_into(builder, number, decoder.column_names)
    except (ContainerError, CodecError, SchemaError) as error:
        shard_set.policy.for_one_pass().take(Finding.of(error), error)
        return []
    return decoder.rows(decoder.take_batch(builder), 1)


def make_rows(numbers: UInt64Array, fetcher: Fetcher, stages: Sequence[Stage]) -> list[Row]:
    """Rows by record number, in the order asked for. Those that are skipped as damaged are left out."""
    rows: list[Row] = []
    for start in range(0, len(numbers), ROWS_AT_ONCE):
        fetched: Fetched = fetcher.fetch(np.ascontiguousarray(numbers[start : start + ROWS_AT_ONCE]))
        for stage in stages:
            fetched = stage(fetched, fetcher)
        rows += fetcher.rows_of(fetched)
    return rows
