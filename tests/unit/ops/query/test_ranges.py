from __future__ import annotations

import gzip
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tfrkit.batches.shard_set import ShardSet
from tfrkit.batches.stream import SizedBatch, read_batches
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard
from tfrkit.errors import CorruptRecordError, FeatureKindError, StorageError, TfrkitError, TruncatedShardError
from tfrkit.ops.query.ranges import PIECE_NBYTES, read_columns
from tfrkit.testing.corruption import flip, frame_offsets
from tfrkit.testing.reference import encode_example, write_frames


def open_set(*paths: Path) -> ShardSet:
    return ShardSet([Shard.open(str(path)) for path in paths], Policy())


def read_quickly(
    shard_set: ShardSet, range_nbytes: int, threads: int = 3, *, piece_nbytes: int = PIECE_NBYTES
) -> list[dict[str, Any]]:
    decoder = shard_set.new_decoder(None)
    batches = read_columns(
        shard_set.shards,
        decoder,
        Policy(),
        batch_size=7,
        threads=threads,
        range_nbytes=range_nbytes,
        piece_nbytes=piece_nbytes,
    )
    return [row for batch, num_rows in batches for row in decoder.rows(batch, num_rows)]


def read_slowly(shard_set: ShardSet) -> list[dict[str, Any]]:
    decoder = shard_set.new_decoder(None)
    batches = read_batches(shard_set.shards, decoder, Policy(), batch_size=50, drop_last=False, threads=1)
    return [row for batch, num_rows in batches for row in decoder.rows(batch, num_rows)]


def make_records(seed: int, count: int) -> list[bytes]:
    """Records of many sizes, some of which contain whole TFRecords, whose frames do not belong to the file."""
    chance = random.Random(seed)
    records = []
    for number in range(count):
        inner = write_frames([chance.randbytes(chance.randrange(30)) for _ in range(chance.randrange(4))])
        content = inner if chance.random() < 0.5 else chance.randbytes(chance.choice([0, 3, 200]))
        records.append(encode_example({b"n": ("int64", [number]), b"data": ("bytes", [content])}))
    return records


@pytest.mark.parametrize("piece_nbytes", [1, 20, 150, 1000, PIECE_NBYTES])
@pytest.mark.parametrize("range_nbytes", [1, 17, 64, 1000, 1 << 20])
def test_ranges_give_the_rows_of_reading_front_to_back(tmp_path: Path, range_nbytes: int, piece_nbytes: int) -> None:
    for seed in range(3):
        paths = [tmp_path / f"{seed}-{number}.tfrecord" for number in range(4)]
        records = make_records(seed, 90)
        for number, path in enumerate(paths):
            content = write_frames(records[number * 30 : number * 30 + 30])
            path.write_bytes(gzip.compress(content) if number == 1 else content)
        shard_set = open_set(*paths)
        rows = read_slowly(shard_set)
        assert [row["n"] for row in rows] == list(range(90))
        assert read_quickly(shard_set, range_nbytes, piece_nbytes=piece_nbytes) == rows


def test_frame_larger_than_many_ranges_is_read_once(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    inner = write_frames([b"abc"] * 50)
    contents = [b"a", inner, b"b", inner * 3, b""]
    path.write_bytes(write_frames([encode_example({b"data": ("bytes", [content])}) for content in contents]))
    assert [row["data"] for row in read_quickly(open_set(path), 100)] == contents


def get_error(
    shard_set: ShardSet, range_nbytes: int | None, piece_nbytes: int = PIECE_NBYTES
) -> tuple[int, TfrkitError]:
    """Number of rows before the error, and the error."""
    decoder = shard_set.new_decoder(None)
    num_rows = 0
    batches = (
        read_batches(shard_set.shards, decoder, Policy(), batch_size=1, drop_last=False, threads=1)
        if range_nbytes is None
        else read_columns(
            shard_set.shards,
            decoder,
            Policy(),
            batch_size=1,
            threads=2,
            range_nbytes=range_nbytes,
            piece_nbytes=piece_nbytes,
        )
    )
    with pytest.raises(TfrkitError, match=" - at ") as caught:
        for _, count in batches:
            num_rows += count
    return num_rows, caught.value


@pytest.mark.parametrize("piece_nbytes", [50, PIECE_NBYTES])
@pytest.mark.parametrize("range_nbytes", [10, 200, 1 << 20])
@pytest.mark.parametrize("damage", ["payload", "length", "cut", "kind"])
def test_damage_is_reported_as_by_sequential_reading(
    tmp_path: Path, damage: str, range_nbytes: int, piece_nbytes: int
) -> None:
    records = make_records(5, 60)
    if damage == "kind":
        records[41] = encode_example({b"n": ("float", [1.0]), b"data": ("bytes", [b""])})
    content = write_frames(records)
    offset = frame_offsets(content)[41]
    if damage in ("payload", "length"):
        content = flip(content, offset + (14 if damage == "payload" else 2))
    elif damage == "cut":
        content = content[: offset + 9]
    path = tmp_path / "x.tfrecord"
    path.write_bytes(content)
    good = tmp_path / "good.tfrecord"
    good.write_bytes(write_frames(make_records(5, 60)))
    shard_set = ShardSet([Shard.open(str(good)), Shard.open(str(path))], Policy(), open_set(good).schema)
    shard_set._is_schema_checked = True
    wanted_rows, wanted = get_error(shard_set, None)
    num_rows, error = get_error(shard_set, range_nbytes, piece_nbytes)
    assert num_rows == wanted_rows == 60 + 41
    assert (type(error), str(error)) == (type(wanted), str(wanted))
    kinds = {"payload": CorruptRecordError, "length": CorruptRecordError, "cut": TruncatedShardError}
    assert isinstance(error, kinds.get(damage, FeatureKindError))


def start_reading(shard_set: ShardSet, range_nbytes: int) -> Iterator[SizedBatch]:
    """Batches on two threads, to be taken one by one."""
    decoder = shard_set.new_decoder(["n"])
    return read_columns(shard_set.shards, decoder, Policy(), batch_size=1, threads=2, range_nbytes=range_nbytes)


def test_consumer_that_stops_stops_the_threads(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    path.write_bytes(write_frames(make_records(1, 50)))
    shard_set = open_set(path)
    batches = start_reading(shard_set, 50)
    assert next(batches)[1] > 0
    batches.close()  # type: ignore[attr-defined]
    assert len(read_quickly(shard_set, 50)) == 50


def test_file_that_is_closed_meanwhile_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    path.write_bytes(write_frames(make_records(1, 50)))
    shard_set = open_set(path)
    batches = start_reading(shard_set, 50)
    num_rows = next(batches)[1]
    shard_set.shards[0].reader.close()
    assert num_rows + sum(count for _, count in batches) == 50


def test_file_that_became_shorter_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    content = write_frames(make_records(1, 4000))
    path.write_bytes(content)
    shard_set = open_set(path)
    batches = start_reading(shard_set, 5000)
    next(batches)
    os.truncate(path, len(content) // 2)
    with pytest.raises(StorageError, match="the file became shorter while it was read"):
        list(batches)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="open files cannot be counted here")
def test_files_are_closed_at_the_end_or_when_reading_stops(tmp_path: Path) -> None:
    path = tmp_path / "x.tfrecord"
    path.write_bytes(write_frames(make_records(1, 50)))
    shard_set = open_set(path)
    before = len(os.listdir("/proc/self/fd"))
    assert len(read_quickly(shard_set, 50)) == 50
    batches = start_reading(shard_set, 50)
    next(batches)
    batches.close()  # type: ignore[attr-defined]
    shard_set.close()
    assert len(os.listdir("/proc/self/fd")) <= before
