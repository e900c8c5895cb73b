"""The first rows of a dataset."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from tfrkit._types import Record
from tfrkit.batches.survey import Surveyed, find_schema
from tfrkit.codec.decode import Decoder
from tfrkit.container.faults import fault_to_error
from tfrkit.container.records import Policy, read_records
from tfrkit.container.shards import Shard, find_shards
from tfrkit.features.schema import Schema
from tfrkit.storage.resolve import Address

_FRAME_OVERHEAD = 16  # length, its checksum, the payload's checksum


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
    shards = [Shard.open(path) for path in find_shards(address)]
    try:
        places: Iterable[_Place] = islice(chain.from_iterable(map(_read_places, shards)), count)
        if any(shard.nbytes is None for shard in shards):
            places = list(places)
            schema = _survey_schema(places)
        else:
            schema = find_schema(shards, Policy())
        if schema.kind == "raw":
            yield from (place.record for place in places)
        else:
            yield from _decode_places(places, schema)
    finally:
        for shard in shards:
            shard.close()


def _read_places(shard: Shard) -> Iterator[_Place]:
    number = offset = 0
    for records in read_records(shard, Policy()):
        for record in records:
            yield _Place(record, shard.name, number, offset)
            number += 1
            offset += len(record) + _FRAME_OVERHEAD


def _survey_schema(places: Iterable[_Place]) -> Schema:
    surveyed = Surveyed()
    for place in places:
        surveyed.survey.add_record(place.record)
    return surveyed.infer().schema


def _decode_places(places: Iterable[_Place], schema: Schema) -> Iterator[Any]:
    decoder = Decoder(schema)
    for place in places:
        builder = decoder.new_builder()
        fault = builder.append_record(place.record)
        if fault is not None:
            raise fault_to_error(
                fault, shard=place.shard, record=place.number, offset=place.offset, columns=decoder.column_names
            )
        yield from decoder.rows(decoder.take_batch(builder), 1)
