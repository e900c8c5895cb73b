"""Rows of a dataset: all in file order, or some by number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import chain

import numpy as np

from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit._types import Row, UInt64Array
from tfrkit.batches.ahead import open_streams
from tfrkit.batches.fetch import Fetched, Fetcher
from tfrkit.batches.loop import Stage
from tfrkit.batches.shard_set import ShardSet
from tfrkit.codec.decode import Decoder
from tfrkit.container.records import Finding, Policy
from tfrkit.container.shards import Shard
from tfrkit.errors import CodecError, ContainerError, SchemaError
from tfrkit.storage.base import ByteSource


def read_rows(shard_set: ShardSet, fetcher: Fetcher) -> Iterator[Row]:
    """Yield all rows in file order; rows before damage are yielded before it is raised."""
    policy = shard_set.policy.for_one_pass()
    return chain(chain.from_iterable(_read_runs(shard_set.shards, fetcher.decoder, policy)), policy.end_pass())


def _read_runs(shards: Sequence[Shard], decoder: Decoder, policy: Policy) -> Iterator[list[Row]]:
    builder = decoder.new_row_builder()

    def consume(data: ByteSource, start: int, stop: int) -> tuple[int, int, _native.Fault | None]:
        return builder.append_frames(data, start, stop, LIMITS.rows_at_once, stream.verify)

    with closing(open_streams(shards, policy, columns=decoder.column_names)) as streams:
        for stream in streams:
            while stream.step(consume):
                yield builder.finish()


def pick_row(shard_set: ShardSet, fetcher: Fetcher, number: int) -> list[Row]:
    """Read one row into a list, which is empty if the row is damaged and skipped. The fastest way to one row."""
    with fetcher.lend_row_builder() as builder:
        try:
            shard_set.records.decode_into(builder, number, fetcher.decoder.column_names)
        except (ContainerError, CodecError, SchemaError) as error:
            shard_set.policy.for_one_pass().take(Finding.of(error), error)
            return []
        return builder.finish()


def make_rows(numbers: UInt64Array, fetcher: Fetcher, stages: Sequence[Stage]) -> list[Row]:
    """Make the rows of these records, in the given order, without rows that are damaged and skipped."""
    rows: list[Row] = []
    # Remote records of one call are requested together: the last of them are waited for.
    at_once = 8 * LIMITS.max_requests if fetcher.is_remote else LIMITS.rows_at_once
    for start in range(0, len(numbers), at_once):
        some = np.ascontiguousarray(numbers[start : start + at_once])
        if not stages:
            rows += fetcher.fetch_rows(some)
            continue
        fetched: Fetched = fetcher.fetch(some)
        for stage in stages:
            fetched = stage(fetched, fetcher)
        rows += fetcher.rows_of(fetched)
    return rows
