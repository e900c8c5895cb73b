"""Rows for display: the first, the last, chosen ones, or all."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from tfrkit import _native
from tfrkit._types import Record, UInt64Array
from tfrkit.batches.access import Records, ShardAccess
from tfrkit.batches.survey import Surveyed, find_schema
from tfrkit.codec.decode import Decoder
from tfrkit.container.faults import fault_to_error
from tfrkit.container.index import FRAME_OVERHEAD
from tfrkit.container.locate import Count, count_frames
from tfrkit.container.records import FrameStream, Policy, read_list
from tfrkit.container.shards import Shard
from tfrkit.errors import StorageError, TfrkitError
from tfrkit.features.schema import Schema
from tfrkit.passes.walk import open_shards, walk_streams
from tfrkit.storage.resolve import Address

# Rows decoded per step when all are read.
_ROWS_AT_ONCE = 256
_GATHERED_NBYTES = 8 << 20
# Records read per step.
_READ_RECORDS = 4096
_READ_NBYTES = 1 << 16


@dataclass(frozen=True)
class _FoundRecord:
    """A record, with its shard, number and offset for messages."""

    record: Record
    shard: str
    number: int
    offset: int


def head_rows(address: Address | Iterable[Address], count: int) -> Iterator[Any]:
    """Yield the first `count` rows, or payload bytes if the records are not Examples.

    Rows are decoded one by one, so that all rows before a damaged record are shown. A pipe can be read only once: its
    schema is inferred from these rows, which are held in memory.
    """
    with open_shards(address) as shards:
        found: Iterable[_FoundRecord] = islice(chain.from_iterable(map(_read_shard, shards)), count)
        if _is_pipe(shards):
            found = list(found)
            schema = _survey_schema(found)
        else:
            schema = find_schema(shards, Policy())
        yield from _decode_one_by_one(found, schema)


def tail_rows(address: Address | Iterable[Address], count: int) -> Iterator[tuple[int, Any]]:
    """Yield (record number, row) of the last `count` records.

    Finds their start by the index, else by the frame headers; compressed files without an index are inflated twice. A
    pipe is read to its end, with the last records in memory.
    """
    if count < 0:
        raise ValueError(f"expected a number of rows of 0 or more, got {count}")
    with open_shards(address) as shards:
        if not _is_pipe(shards):
            yield from _tail_files(shards, count)
            return
        total = 0
        last: deque[_FoundRecord] = deque(maxlen=count)
        for found in chain.from_iterable(map(_read_shard, shards)):
            last.append(found)
            total += 1
        yield from enumerate(_decode_one_by_one(last, _survey_schema(last)), total - len(last))


def _tail_files(shards: list[Shard], count: int) -> Iterator[tuple[int, Any]]:
    """Yield the last rows of files; keeps only the offsets of the shards that hold them, to save memory."""
    parts: list[tuple[Shard, Count]] = []
    num_found = num_before = 0
    for shard in reversed(shards):
        counted = count_frames(shard, Policy())
        if num_found < count:
            parts.insert(0, (shard, counted))
            num_found += counted.num_records
        else:
            num_before += counted.num_records
    if not count:
        return
    schema = find_schema(shards, Policy())
    num_left_out = max(0, num_found - count)
    for shard, counted in parts:
        found = _read_shard(shard, counted, num_left_out)
        yield from enumerate(_decode_one_by_one(found, schema), num_before + num_left_out)
        num_before += counted.num_records
        num_left_out = 0


def cat_rows(address: Address | Iterable[Address]) -> Iterator[Any]:
    """Yield all rows in file order, or payload bytes if the records are not Examples.

    Files are first read once to infer the schema, so that every row has the same form and no feature is left out. A
    pipe is read once: a feature that turns out to have several values is a list from there on.
    """
    with open_shards(address) as shards:
        is_pipe, surveyed = _is_pipe(shards), Surveyed()
        schema = None if is_pipe else find_schema(shards, Policy(), from_all=True)
        for some, error in _gather(chain.from_iterable(map(_read_shard, shards))):
            if is_pipe:
                schema = _survey_schema(some, surveyed)
            assert schema is not None
            yield from _decode_many(some, schema)
            if error is not None:
                raise error


def pick_rows(address: Address | Iterable[Address], choose: Callable[[int], UInt64Array]) -> Iterator[tuple[int, Any]]:
    """Yield (record number, row) of chosen records: `choose` gets the number of records and returns record numbers."""
    with open_shards(address) as shards:
        for shard in shards:
            if shard.nbytes is None:
                raise StorageError(
                    "expected a file, got a pipe, whose records cannot be chosen",
                    shard=shard.name,
                    hint="write it first",
                )
        records = Records(shards, Policy())
        numbers = choose(len(records))
        schema = find_schema(shards, Policy())
        places = zip(*(part.tolist() for part in records.locate_many(numbers)), strict=True)
        found = (_read_at(records.open_shard(shard), ordinal) for shard, ordinal in places)
        yield from zip(numbers.tolist(), _decode_one_by_one(found, schema), strict=True)


def _is_pipe(shards: Iterable[Shard]) -> bool:
    return any(shard.nbytes is None for shard in shards)


def _read_at(access: ShardAccess, record: int) -> _FoundRecord:
    return _FoundRecord(access.read(record), access.name, record, access.offset_of(record))


def _read_shard(shard: Shard, counted: Count | None = None, number: int = 0) -> Iterator[_FoundRecord]:
    """Yield the records of a shard from `number` on; seeks if offsets are known, else reads past earlier records."""
    index = None if counted is None or not number else counted.index
    if index is not None and index.checkpoints is not None:
        access = ShardAccess(shard, index, Policy())
        yield from (_read_at(access, at) for at in range(number, index.num_records))
        return
    is_known = index is not None and shard.compression == "none" and number < index.num_records
    offset = int(index.offsets[number]) if index is not None and is_known else 0
    stream = FrameStream(shard, Policy(), start=offset, record=number if is_known else 0)
    while stream.record < number and stream.take(_native.check_frames, number - stream.record):
        pass
    for stretch in walk_streams([stream], read_list, _READ_RECORDS, _READ_NBYTES):
        at = stretch.offset
        for ordinal, record in enumerate(stretch.taken, stretch.record):
            yield _FoundRecord(record, shard.name, ordinal, at)
            at += len(record) + FRAME_OVERHEAD


def _survey_schema(found: Iterable[_FoundRecord], surveyed: Surveyed | None = None) -> Schema:
    """Infer one schema from these records and those surveyed before."""
    surveyed = surveyed or Surveyed()
    for one in found:
        surveyed.survey.add_record(one.record)
    return surveyed.counts.infer().schema


def _gather(found: Iterator[_FoundRecord]) -> Iterator[tuple[list[_FoundRecord], TfrkitError | None]]:
    """Yield records in groups; on damage, the records before it and the error, so that they are shown first."""
    while True:
        some: list[_FoundRecord] = []
        nbytes = 0
        try:
            while len(some) < _ROWS_AT_ONCE and nbytes < _GATHERED_NBYTES and (place := next(found, None)) is not None:
                some.append(place)
                nbytes += len(place.record)
        except TfrkitError as error:
            yield some, error
            return
        if not some:
            return
        yield some, None


def _decode_one_by_one(found: Iterable[_FoundRecord], schema: Schema) -> Iterator[Any]:
    """Decode and yield one row at a time."""
    if schema.kind == "raw":
        yield from (one.record for one in found)
        return
    whole = Decoder(schema, known=schema)
    for place in found:
        decoder, builder = whole, whole.new_builder()
        fault = builder.append_record(place.record)
        if fault is not None and fault.kind == "unknown":
            decoder = Decoder(_widen(schema, place))
            builder = decoder.new_builder()
            fault = builder.append_record(place.record)
        if fault is not None:
            raise fault_to_error(
                fault, shard=place.shard, record=place.number, offset=place.offset, columns=decoder.column_names
            )
        yield from decoder.rows(decoder.take_batch(builder), 1)


def _widen(schema: Schema, place: _FoundRecord) -> Schema:
    """Return the schema with the features of this record added; its own schema if its kind differs."""
    own = _survey_schema([place])
    if own.kind != schema.kind:
        return own
    is_sequence = own.kind == "sequence_example"
    return Schema(
        {**own.features, **schema.features},
        feature_lists={**own.feature_lists, **schema.feature_lists} if is_sequence else None,
        kind=own.kind,
    )


def _decode_many(found: list[_FoundRecord], schema: Schema) -> Iterator[Any]:
    """Decode the rows together; if one cannot be decoded, one by one up to that row."""
    if schema.kind == "raw":
        yield from (one.record for one in found)
        return
    decoder = Decoder(schema, known=schema)
    builder = decoder.new_builder()
    if any(builder.append_record(place.record) is not None for place in found):
        yield from _decode_one_by_one(found, schema)
        return
    yield from decoder.rows(decoder.take_batch(builder), len(found))
