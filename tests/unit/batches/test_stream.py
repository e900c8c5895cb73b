from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tfrkit.batches.stream import read_batches
from tfrkit.codec.decode import Decoder
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard
from tfrkit.errors import CorruptRecordError, FeatureKindError, TfrkitError, TruncatedShardError, WireError
from tfrkit.features.schema import Schema
from tfrkit.storage.memory import MemoryReader
from tfrkit.testing.corruption import flip, frame_offsets, make_frame, truncate
from tfrkit.testing.reference import encode_example, write_frames

THREADS = [1, 2, 4]


def make_shard(start: int, stop: int) -> bytes:
    return write_frames([encode_example({b"x": ("int64", [number])}) for number in range(start, stop)])


def read(
    *shards: bytes, size: int = 10, threads: int = 1, drop_last: bool = False, policy: Policy | None = None
) -> Iterator[list[int]]:
    opened = [Shard(MemoryReader(data, name=f"s{number}")) for number, data in enumerate(shards)]
    batches = read_batches(
        opened,
        Decoder(Schema({"x": "int64"})),
        policy or Policy(),
        batch_size=size,
        drop_last=drop_last,
        threads=threads,
    )
    for batch, num_rows in batches:
        assert len(batch["x"]) == num_rows
        yield batch["x"].tolist()


def read_until_error(*shards: bytes, threads: int, **options: Any) -> tuple[list[list[int]], TfrkitError]:
    batches = []
    try:
        for batch in read(*shards, threads=threads, **options):
            batches.append(batch)
    except TfrkitError as error:
        return batches, error
    raise AssertionError("expected an error")


def chunks(stop: int, size: int) -> list[list[int]]:
    return [list(range(start, min(stop, start + size))) for start in range(0, stop, size)]


@pytest.fixture(autouse=True)
def _no_thread_is_left(new_threads: Callable[[], list[str]]) -> Iterator[None]:
    yield
    assert new_threads() == []


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("size", [1, 3, 8, 56, 57, 1000])
def test_batches_run_on_from_one_shard_into_the_next(size: int, threads: int) -> None:
    shards = [
        make_shard(0, 7),
        b"",
        gzip.compress(make_shard(7, 20)),
        make_shard(20, 21),
        gzip.compress(b""),
        gzip.compress(make_shard(21, 50)),
        make_shard(50, 56),
        b"",
    ]
    assert list(read(*shards, size=size, threads=threads)) == chunks(56, size)
    whole = [batch for batch in chunks(56, size) if len(batch) == size]
    assert list(read(*shards, size=size, threads=threads, drop_last=True)) == whole


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize("shards", [(), (b"",), (b"", gzip.compress(b""))])
def test_no_records_give_no_batches(shards: tuple[bytes, ...], threads: int) -> None:
    assert list(read(*shards, threads=threads)) == []


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("place", ["length", "payload", "end"])
def test_damage_raises_after_the_same_batches_with_any_number_of_threads(pack: Any, place: str) -> None:
    data = make_shard(0, 200)
    offset = frame_offsets(data)[123]
    damaged = {"length": flip(data, offset), "payload": flip(data, offset + 12), "end": truncate(data, offset + 14)}
    kind = TruncatedShardError if place == "end" else CorruptRecordError
    for threads in THREADS:
        batches, error = read_until_error(pack(damaged[place]), threads=threads)
        assert batches == chunks(120, 10)
        assert isinstance(error, kind)
        assert (error.shard, error.record, error.offset) == ("s0", 123, offset)


@pytest.mark.parametrize("threads", THREADS)
@pytest.mark.parametrize(
    ("record", "kind"), [(encode_example({b"x": ("float", [0.5])}), FeatureKindError), (b"\xff\xff", WireError)]
)
def test_record_that_does_not_decode_raises_with_its_place(threads: int, record: bytes, kind: type[Exception]) -> None:
    first, second = make_shard(0, 35), make_shard(35, 50) + make_frame(record) + make_shard(50, 60)
    batches, error = read_until_error(first, second, threads=threads)
    assert batches == chunks(50, 10)
    assert isinstance(error, kind)
    assert (error.shard, error.record, error.offset) == ("s1", 15, len(make_shard(35, 50)))


@pytest.mark.parametrize("threads", THREADS)
def test_skipped_damage_shifts_the_batches(threads: int) -> None:
    data = make_shard(0, 50)
    policy = Policy("all", "skip")
    damaged = flip(data, frame_offsets(data)[12] + 13)
    wanted = [number for number in range(50) if number != 12]
    got = list(read(damaged + make_frame(b"\xff"), threads=threads, policy=policy))
    assert got == [wanted[start : start + 10] for start in range(0, 49, 10)]
    assert [finding.record for finding in policy.findings.values()] == [12, 50]


@pytest.mark.parametrize("threads", THREADS)
def test_iterator_closed_early_stops_its_threads(threads: int) -> None:
    batches = read(make_shard(0, 500), threads=threads)
    assert next(batches) == list(range(10))
    batches.close()  # type: ignore[attr-defined]
    assert list(batches) == []


@pytest.mark.parametrize("threads", THREADS)
def test_iterator_dropped_early_stops_its_threads(threads: int) -> None:
    for batch in read(make_shard(0, 500), threads=threads):
        assert batch == list(range(10))
        break


@pytest.mark.parametrize("threads", THREADS)
def test_iterators_side_by_side_do_not_disturb_each_other(threads: int) -> None:
    data = make_shard(0, 100)
    pairs = zip(read(data, threads=threads), read(data, threads=threads), strict=True)
    assert [first for first, second in pairs if first == second] == chunks(100, 10)


@pytest.mark.parametrize("threads", THREADS)
def test_batches_without_features_still_know_their_rows(threads: int) -> None:
    shard = Shard(MemoryReader(make_shard(0, 25)))
    batches = read_batches([shard], Decoder(Schema({})), Policy(), batch_size=10, drop_last=False, threads=threads)
    assert list(batches) == [({}, 10), ({}, 10), ({}, 5)]


@pytest.mark.parametrize("threads", THREADS)
def test_payload_is_not_checked_unless_requested(threads: int) -> None:
    frame = bytearray(make_shard(5, 6))
    frame[-1] ^= 1
    assert list(read(bytes(frame), threads=threads, policy=Policy("lengths"))) == [[5]]
    assert list(read(bytes(frame), threads=threads, policy=Policy("none"))) == [[5]]
