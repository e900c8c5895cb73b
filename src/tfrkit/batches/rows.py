"""Rows and batches of one schema, out of shards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tfrkit._types import Row
from tfrkit.batches.access import Records
from tfrkit.batches.stream import read_batches
from tfrkit.codec.decode import Batch, Decoder
from tfrkit.container.records import Finding, Policy
from tfrkit.container.shards import Shard
from tfrkit.errors import CodecError, ContainerError, SchemaError
from tfrkit.features.schema import Schema

# Rows are decoded some at a time: enough to hide the cost of a call, few enough to stay small with images.
_ROWS_AT_ONCE = 64


class RowReader:
    """Decodes the records of some shards. Safe to share between threads."""

    def __init__(self, shards: Sequence[Shard], records: Records, schema: Schema, policy: Policy) -> None:
        self._shards = shards
        self._records = records
        self._policy = policy
        self._decoder = Decoder(schema)

    def rows(self) -> Iterator[Row]:
        """All rows in file order."""
        for batch, num_rows in self._read(_ROWS_AT_ONCE, drop_last=False, threads=1, partial=True):
            yield from self._decoder.rows(batch, num_rows)

    def batches(self, size: int, *, drop_last: bool, threads: int) -> Iterator[Batch]:
        """All batches in file order."""
        for batch, _ in self._read(size, drop_last=drop_last, threads=threads):
            yield batch

    def pick(self, numbers: Iterable[int]) -> list[Row]:
        """Rows by number, in the order asked for. With `on_error="skip"` those that do not decode are left out."""
        builder = self._decoder.new_builder()
        policy = self._policy.for_one_pass()
        for number in numbers:
            try:
                self._records.decode_into(builder, number, self._decoder.column_names)
            except (ContainerError, CodecError, SchemaError) as error:
                policy.take(Finding(error.shard or "?", error.record or 0, error.offset or 0, error.what), error)
        num_rows = builder.num_rows
        return self._decoder.rows(self._decoder.take_batch(builder), num_rows)

    def _read(self, size: int, *, drop_last: bool, threads: int, partial: bool = False) -> Iterator[tuple[Batch, int]]:
        return read_batches(
            self._shards,
            self._decoder,
            self._policy.for_one_pass(),
            batch_size=size,
            drop_last=drop_last,
            threads=threads,
            partial=partial,
        )
