"""Ranges of bytes give the rows and errors of reading from the first byte to the last."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tfrkit.batches import byte_ranges
from tfrkit.batches.byte_ranges import read_ranges
from tfrkit.batches.stream import read_batches
from tfrkit.codec.decode import Decoder
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard
from tfrkit.errors import StorageError, TfrkitError
from tfrkit.features.schema import Schema
from tfrkit.storage.resolve import open_reader
from tfrkit.testing.corruption import flip
from tfrkit.testing.reference import encode_example, write_frames

SCHEMA = Schema({"x": "int64", "b": "bytes"})
Read = tuple[list[tuple[int, bytes]], str | None]
"""Rows, and the error after them."""


@pytest.fixture(autouse=True)
def _no_thread_is_left(new_threads: Callable[[], list[str]]) -> Iterator[None]:
    yield
    assert new_threads() == []


def encode(number: int, data: bytes) -> bytes:
    return encode_example({b"x": ("int64", [number]), b"b": ("bytes", [data])})


def make_shards(folder: Path, *shards: bytes) -> list[Shard]:
    paths = [folder / f"s{number}" for number in range(len(shards))]
    for path, data in zip(paths, shards, strict=True):
        path.write_bytes(data)
    return [Shard(open_reader(str(path))) for path in paths]


def list_rows(batches: Iterator[tuple[dict[str, Any], int]]) -> Read:
    rows: list[tuple[int, bytes]] = []
    try:
        for batch, num_rows in batches:
            x, b = batch["x"].tolist(), list(batch["b"])
            assert len(x) == len(b) == num_rows > 0
            rows += zip(x, map(bytes, b), strict=True)
    except TfrkitError as error:
        return rows, str(error)
    return rows, None


def read_in_turn(shards: list[Shard]) -> Read:
    return list_rows(read_batches(shards, Decoder(SCHEMA), Policy(), batch_size=1, drop_last=False, threads=1))


def read_by_ranges(shards: list[Shard], nbytes: int, threads: int = 3) -> Read:
    return list_rows(read_ranges(shards, Decoder(SCHEMA), threads=threads, range_nbytes=nbytes))


@pytest.mark.parametrize("nbytes", [1, 7, 64, 500, 4096, 1 << 20])
def test_rows_are_those_in_file_order(tmp_path: Path, nbytes: int) -> None:
    chooser = random.Random(3)
    data = [chooser.randbytes(chooser.choice([0, 3, 40, 900])) for _ in range(120)]
    records = [encode(number, one) for number, one in enumerate(data)]
    shards = make_shards(
        tmp_path, write_frames(records[:70]), b"", write_frames(records[70:71]), write_frames(records[71:])
    )
    assert read_by_ranges(shards, nbytes) == (list(enumerate(data)), None)


@pytest.mark.parametrize("nbytes", [50, 300, 1000])
def test_records_that_hold_frames_are_not_taken_for_them(tmp_path: Path, nbytes: int) -> None:
    inner = write_frames([encode(1000 + number, b"inner") for number in range(20)])
    rows = [(number, inner if number % 3 else b"") for number in range(30)]
    shards = make_shards(tmp_path, write_frames([encode(*row) for row in rows]))
    assert read_by_ranges(shards, nbytes) == (rows, None)


def test_errors_come_after_the_rows_before_them(tmp_path: Path) -> None:
    data = write_frames([encode(number, bytes(number % 50)) for number in range(40)])
    chooser = random.Random(5)
    places = [*range(40), *chooser.sample(range(len(data)), 80)]
    for place in places:
        shards = make_shards(tmp_path, data, flip(data, place), data)
        expected = read_in_turn(shards)
        assert expected[1] is not None
        for nbytes in (40, 333):
            assert read_by_ranges(shards, nbytes) == expected, place


def test_a_file_that_ends_early_is_truncated_at_the_same_record(tmp_path: Path) -> None:
    data = write_frames([encode(number, bytes(30)) for number in range(10)])
    for stop in range(60, len(data)):
        shards = make_shards(tmp_path, data[:stop])
        for nbytes in (16, 100):
            assert read_by_ranges(shards, nbytes) == read_in_turn(shards), stop


def test_rows_of_another_kind_raise_only_where_they_are(tmp_path: Path) -> None:
    wrong = encode_example({b"x": ("float", [1.0]), b"b": ("bytes", [b""])})
    records = [encode(0, write_frames([wrong])), encode(1, b""), wrong, encode(3, b"")]
    shards = make_shards(tmp_path, write_frames(records))
    expected = read_in_turn(shards)
    assert len(expected[0]) == 2 and "record 2" in str(expected[1])
    for nbytes in range(10, 400, 13):
        assert read_by_ranges(shards, nbytes) == expected


@pytest.mark.parametrize("num_left", [1000, 8192, 40_000])
def test_a_file_that_is_cut_off_meanwhile_raises(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_left: int
) -> None:
    data = write_frames([encode(number, bytes(300)) for number in range(200)])
    shards = make_shards(tmp_path, data)
    find = byte_ranges._native.find_next_frame

    def cut_and_find(*arguments: Any) -> Any:
        os.truncate(tmp_path / "s0", num_left)
        return find(*arguments)

    monkeypatch.setattr(byte_ranges._native, "find_next_frame", cut_and_find)
    with pytest.raises(StorageError, match=f"{len(data)} bytes at first, {num_left} now"):
        list(read_ranges(shards, Decoder(SCHEMA), threads=2, range_nbytes=1 << 12))
