"""Rows of a dataset to look at: the first, the last, some, or all of them."""

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
from tfrkit.container.records import FrameStream, Policy
from tfrkit.container.shards import Shard, find_shards
from tfrkit.errors import StorageError, TfrkitError
from tfrkit.features.schema import Schema
from tfrkit.storage.base import ByteSource
from tfrkit.storage.resolve import Address

# Rows that are decoded at a time where all are wanted.
_ROWS_AT_ONCE = 256
_GATHERED_NBYTES = 8 << 20
# Records that are read at a time.
_READ_RECORDS = 4096
_READ_NBYTES = 1 << 16


@dataclass(frozen=True)
class _Place:
    """A record and where it lies, for messages."""

    record: Record
    shard: str
    number: int
    offset: int


def head_rows(address: Address | Iterable[Address], count: int) -> Iterator[Any]:
    """The first `count` rows, or payload bytes where the records are not Examples.

    Rows are decoded one by one, so that all those before a damaged record are seen. A pipe can be read only
    once: its schema is that of the rows asked for, which are held in memory.
    """
    shards = [Shard.open(path) for path in find_shards(address, incomplete="warn")]
    try:
        places: Iterable[_Place] = islice(chain.from_iterable(map(_read_places, shards)), count)
        if _is_pipe(shards):
            places = list(places)
            schema = _survey_schema(places)
        else:
            schema = find_schema(shards, Policy())
        yield from _decode_places(places, schema)
    finally:
        _close(shards)


def tail_rows(address: Address | Iterable[Address], count: int) -> Iterator[tuple[int, Any]]:
    """(number of the record, row) of the last `count` records.

    Finds where they start from the index, else by the headers; compressed files without an index are inflated twice.
    A pipe is read to its end, with the last rows held.
    """
    if count < 0:
        raise ValueError(f"expected a number of rows from 0 up, got {count}")
    shards = [Shard.open(path) for path in find_shards(address, incomplete="warn")]
    try:
        if not _is_pipe(shards):
            yield from _tail_files(shards, count)
            return
        total = 0
        last: deque[_Place] = deque(maxlen=count)
        for place in chain.from_iterable(map(_read_places, shards)):
            last.append(place)
            total += 1
        rows = _decode_places(last, _survey_schema(last))
        yield from enumerate(rows, total - len(last))
    finally:
        _close(shards)


def _tail_files(shards: list[Shard], count: int) -> Iterator[tuple[int, Any]]:
    """Only the shards that hold the rows are kept account of: the others may hold more than fits into memory."""
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
        places = _read_places(shard, counted, num_left_out)
        yield from enumerate(_decode_places(places, schema), num_before + num_left_out)
        num_before += counted.num_records
        num_left_out = 0


def cat_rows(address: Address | Iterable[Address]) -> Iterator[Any]:
    """All rows in the order of the files, or payload bytes where the records are not Examples.

    Files are looked through once before, so that every row is shown in the same form and no feature is left out. A
    pipe is shown as it comes: a feature that turns out to have several values is a list from there on.
    """
    shards = [Shard.open(path) for path in find_shards(address, incomplete="warn")]
    try:
        places = chain.from_iterable(map(_read_places, shards))
        if _is_pipe(shards):
            yield from _cat_pipe(places)
            return
        schema = find_schema(shards, Policy(), from_all=True)
        for some, error in _gather(places):
            yield from _decode_many(some, schema)
            if error is not None:
                raise error
    finally:
        _close(shards)


def pick_rows(address: Address | Iterable[Address], choose: Callable[[int], UInt64Array]) -> Iterator[tuple[int, Any]]:
    """(number of the record, row) of the records whose numbers `choose` gives for a number of records."""
    shards = [Shard.open(path) for path in find_shards(address, incomplete="warn")]
    try:
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
        shard_numbers, ordinals = records.locate_many(numbers)
        for number, shard_number, ordinal in zip(
            numbers.tolist(), shard_numbers.tolist(), ordinals.tolist(), strict=True
        ):
            access = records.open_shard(shard_number)
            place = _Place(access.read(ordinal), access.name, ordinal, access.offset_of(ordinal))
            yield from ((number, row) for row in _decode_places([place], schema))
    finally:
        _close(shards)


def _is_pipe(shards: Iterable[Shard]) -> bool:
    return any(shard.nbytes is None for shard in shards)


def _close(shards: Iterable[Shard]) -> None:
    for shard in shards:
        shard.close()


def _read_places(shard: Shard, counted: Count | None = None, number: int = 0) -> Iterator[_Place]:
    """The records of a shard from `number` on; those before are passed over, by their places where these are known."""
    index = None if counted is None or not number else counted.index
    if index is not None and index.checkpoints is not None:
        access = ShardAccess(shard, index, Policy())
        for at in range(number, index.num_records):
            yield _Place(access.read(at), shard.name, at, access.offset_of(at))
        return
    is_known = index is not None and shard.compression == "none" and number < index.num_records
    offset = int(index.offsets[number]) if index is not None and is_known else 0
    stream = FrameStream(shard, Policy(), start=offset, record=number if is_known else 0)
    taken: list[Record] = []

    def consume(data: ByteSource, start: int, stop: int) -> tuple[int, int, _native.Fault | None]:
        nonlocal taken
        if stream.record < number:
            return _native.check_frames(data, start, stop, number - stream.record, "all")
        taken, next_start, fault = _native.read_frames(data, start, stop, _READ_RECORDS, _READ_NBYTES, "all")
        return len(taken), next_start, fault

    while stream.step(consume):
        at = stream.offset - sum(len(record) + FRAME_OVERHEAD for record in taken)
        for record_number, record in enumerate(taken, stream.record - len(taken)):
            yield _Place(record, shard.name, record_number, at)
            at += len(record) + FRAME_OVERHEAD


def _survey_schema(places: Iterable[_Place]) -> Schema:
    surveyed = Surveyed()
    for place in places:
        surveyed.survey.add_record(place.record)
    return surveyed.infer().schema


def _cat_pipe(places: Iterator[_Place]) -> Iterator[Any]:
    surveyed = Surveyed()
    for some, error in _gather(places):
        for place in some:
            surveyed.survey.add_record(place.record)
        yield from _decode_many(some, surveyed.infer().schema)
        if error is not None:
            raise error


def _gather(places: Iterator[_Place]) -> Iterator[tuple[list[_Place], TfrkitError | None]]:
    """Some places at a time, and behind the last ones the damage that ended them, so that they are seen before it."""
    while True:
        some: list[_Place] = []
        nbytes = 0
        try:
            while len(some) < _ROWS_AT_ONCE and nbytes < _GATHERED_NBYTES and (place := next(places, None)) is not None:
                some.append(place)
                nbytes += len(place.record)
        except TfrkitError as error:
            yield some, error
            return
        if not some:
            return
        yield some, None


def _decode_places(places: Iterable[_Place], schema: Schema) -> Iterator[Any]:
    """Row by row."""
    if schema.kind == "raw":
        yield from (place.record for place in places)
        return
    whole = Decoder(schema, known=schema)
    for place in places:
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


def _widen(schema: Schema, place: _Place) -> Schema:
    """The schema with the features that only this record has."""
    own = _survey_schema([place])
    if own.kind != schema.kind:
        return own
    is_sequence = own.kind == "sequence_example"
    return Schema(
        {**own.features, **schema.features},
        feature_lists={**own.feature_lists, **schema.feature_lists} if is_sequence else None,
        kind=own.kind,
    )


def _decode_many(places: list[_Place], schema: Schema) -> Iterator[Any]:
    """Many rows at once; where one of them has a fault, one by one up to it."""
    if schema.kind == "raw":
        yield from (place.record for place in places)
        return
    decoder = Decoder(schema, known=schema)
    builder = decoder.new_builder()
    if any(builder.append_record(place.record) is not None for place in places):
        yield from _decode_places(places, schema)
        return
    yield from decoder.rows(decoder.take_batch(builder), len(places))
