"""All reading paths return the same records: by number or in order, with or without an index, in any batch size."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit as tfr

NUM_ROWS = 61
SIZES = [1, 2, 7, NUM_ROWS, 1024]


def make_rows(count: int = NUM_ROWS) -> list[dict[str, Any]]:
    """A scalar, a fixed and a varying list, strings, a tensor, and a column with gaps."""
    rng = np.random.default_rng(7)
    rows = []
    for i in range(count):
        row: dict[str, Any] = {
            "id": i,
            "pair": np.array([i, -i], np.int64),
            "score": float(np.float32(i) / 8),
            "tokens": rng.integers(-(2**63), 2**63 - 1, i % 5),
            "name": f"row {i}".encode() * (i % 3),
            "image": rng.integers(0, 255, (2, 3), dtype=np.uint8),
            "words": [b"w" * k for k in range(i % 4)] or np.empty(0, object),
        }
        if i % 3:
            row["gap"] = None if i % 3 == 1 else i
        rows.append(row)
    return rows


@pytest.fixture(scope="module", params=["none", "gzip", "zlib", "xz", "zstd"])
def compression(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module", params=[True, False], ids=["indexed", "bare"])
def shard(request: pytest.FixtureRequest, compression: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("access") / "shard.tfrecord"
    with tfr.Writer(path, compression=compression, index=request.param) as writer:
        for row in make_rows():
            writer.write(row)
    return str(path)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    path = tmp_path_factory.mktemp("plain") / "shard.tfrecord"
    with tfr.Writer(path) as writer:
        for row in make_rows():
            writer.write(row)
    with tfr.open(path) as ds:
        return list(ds)


def test_rows_are_the_written_ones(expected: list[Any], plain: Callable[[Any], Any]) -> None:
    wanted = [{k: list(v) if k == "words" else v for k, v in row.items()} for row in make_rows()]
    assert plain(expected) == plain(wanted)


def test_every_access_gives_the_same_rows(shard: str, expected: list[Any], plain: Callable[[Any], Any]) -> None:
    wanted = plain(expected)
    with tfr.open(shard) as ds:
        assert len(ds) == NUM_ROWS
        assert plain(list(ds)) == wanted
        assert plain([ds[i] for i in range(NUM_ROWS)]) == wanted
        assert plain([ds[i - NUM_ROWS] for i in reversed(range(NUM_ROWS))]) == wanted[::-1]
        assert plain(ds[10:20]) == wanted[10:20]
        assert plain(ds[::-7]) == wanted[::-7]
        assert plain(ds[5:5]) == []
        assert plain(ds[[3, 1, 4, 1, -1]]) == [wanted[i] for i in (3, 1, 4, 1, -1)]
        assert plain(ds[np.array([60, 0])]) == [wanted[60], wanted[0]]
        for number in (NUM_ROWS, -NUM_ROWS - 1):
            with pytest.raises(IndexError, match=f"record {number} of {NUM_ROWS}"):
                ds[number]


def test_records_by_number_equal_records_in_order(shard: str) -> None:
    with tfr.open(shard) as ds:
        records = ds.records()
        in_order = list(records)
        assert len(records) == len(in_order) == NUM_ROWS
        assert [records[i] for i in range(NUM_ROWS)] == in_order
        assert records[3:9] == in_order[3:9]
        assert records[-1] == in_order[-1]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", SIZES)
def test_every_batch_size_and_thread_count_gives_the_same_rows(
    shard: str, size: int, threads: int, batch_rows: Callable[[Any], list[Any]]
) -> None:
    with tfr.open(shard) as ds:
        batches = list(ds.batch(size, threads=threads))
        assert len(batches) == -(-NUM_ROWS // size)
        assert batch_rows(batches) == batch_rows(ds.batch(NUM_ROWS))
        whole = list(ds.batch(size, threads=threads, drop_last=True))
        assert len(whole) == NUM_ROWS // size


def test_projection_gives_the_same_values(shard: str, expected: list[Any], plain: Callable[[Any], Any]) -> None:
    with tfr.open(shard, features=["tokens", "gap"]) as ds:
        chosen = [{name: row[name] for name in ("tokens", "gap") if name in row} for row in expected]
        assert plain(list(ds)) == plain(chosen)
        assert plain(ds[7]) == plain(chosen[7])
    with tfr.open(shard) as ds:
        assert plain(list(ds.select(["tokens", "gap"]))) == plain(chosen)


def test_verify_none_and_lengths_give_the_same_rows(
    shard: str, expected: list[Any], plain: Callable[[Any], Any]
) -> None:
    for verify in ("none", "lengths"):
        with tfr.open(shard, verify=verify) as ds:
            assert plain(list(ds)) == plain(expected)
            assert plain(ds[NUM_ROWS - 1]) == plain(expected[-1])


@pytest.mark.parametrize("threads", [1, 2])
def test_many_shards_are_one_dataset(
    threads: int, tmp_path: Path, plain: Callable[[Any], Any], batch_rows: Callable[[Any], list[Any]]
) -> None:
    rows = make_rows()
    cuts = [0, 20, 20, 21, NUM_ROWS]  # one of them empty, one of a single record
    compressions = ["gzip", "none", "zlib", "none"]
    for i, compression in enumerate(compressions):
        with tfr.Writer(tmp_path / f"train.tfrecord-{i:05d}-of-00004", compression=compression) as writer:
            for row in rows[cuts[i] : cuts[i + 1]]:
                writer.write(row)
    with tfr.Writer(tmp_path / "one.tfrecord") as writer:
        for row in rows:
            writer.write(row)
    with tfr.open(tmp_path / "train*") as many, tfr.open(tmp_path / "one.tfrecord") as one:
        assert len(many) == len(one)
        assert plain(list(many)) == plain(list(one))
        assert plain([many[i] for i in (0, 19, 20, 21, 60)]) == plain([one[i] for i in (0, 19, 20, 21, 60)])
        for size in SIZES:
            assert batch_rows(many.batch(size, threads=threads)) == batch_rows(one.batch(size))


def test_copied_shard_with_its_index_reads_the_same(shard: str, tmp_path: Path) -> None:
    copy = tmp_path / "elsewhere" / "shard.tfrecord"
    shutil.copytree(Path(shard).parent, copy.parent)
    with tfr.open(copy) as ds, tfr.open(shard) as original:
        assert ds.records()[5] == original.records()[5]
        assert len(ds) == NUM_ROWS
