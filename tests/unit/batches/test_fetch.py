from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit
from tfrkit._limits import LIMITS
from tfrkit.batches import access
from tfrkit.batches.access import Records
from tfrkit.batches.fetch import Fetcher
from tfrkit.errors import TfrkitError
from tfrkit.testing.corruption import flip

NUM_SHARDS = 7
NUM_ROWS = 210


@pytest.fixture(params=["none", "gzip", "zlib", "zstd"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    for shard in range(NUM_SHARDS):
        with tfrkit.Writer(tmp_path / f"s{shard}.tfrecord", compression=request.param) as writer:
            for number in range(shard * 30, shard * 30 + 30):
                writer.write({"id": number, "text": f"record {number}" * (number % 5)})
    return tmp_path


def fetcher_of(ds: tfrkit.Dataset) -> Fetcher:
    return ds._get_fetcher()


def pick(ds: tfrkit.Dataset, numbers: Any) -> list[int]:
    return list(fetcher_of(ds).fetch(np.array(numbers, np.uint64)).batch["id"].tolist())


WAYS = {
    "together": {},
    "not held": {"held": 0},
    "some held": {"held": 6000},
    "one by one": {"tables": 0},
    "few open": {"open": 2},
}


@pytest.mark.parametrize("way", WAYS)
def test_every_fetch_path_returns_the_requested_records_in_order(
    folder: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = WAYS[way]
    if "held" in limits:
        monkeypatch.setattr(LIMITS, "held_nbytes", limits["held"])
    if "tables" in limits:
        monkeypatch.setattr(LIMITS, "max_batch_shards", limits["tables"])
    if "open" in limits:
        monkeypatch.setattr(LIMITS, "max_open_shards", limits["open"])
    ds = tfrkit.open(folder)
    rng = np.random.default_rng(0)
    for size in (0, 1, 5, 100):
        numbers = rng.integers(0, NUM_ROWS, size)
        assert pick(ds, numbers) == numbers.tolist()
    assert pick(ds, [3, 3, 209, 0]) == [3, 3, 209, 0]


def test_compressed_shards_are_held_as_long_as_they_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for shard in range(3):
        with tfrkit.Writer(tmp_path / f"s{shard}.tfrecord", compression="gzip") as writer:
            for number in range(100):
                writer.write({"id": shard * 100 + number, "pad": bytes(50)})
    size = len(tfrkit.open(tmp_path / "s0.tfrecord").records()[0]) + 16
    monkeypatch.setattr(LIMITS, "held_nbytes", 2 * 100 * (size + 2))
    monkeypatch.setattr(LIMITS, "max_open_shards", 100)
    ds = tfrkit.open(tmp_path)
    assert pick(ds, range(0, 300, 7)) == list(range(0, 300, 7))
    records: Records = ds.records()
    assert [records.open_shard(number).is_held for number in range(3)] == [True, True, False]


def test_room_of_a_shard_that_is_dropped_is_given_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "max_open_shards", 2)
    ds = tfrkit.open(folder)
    for _ in range(3):
        pick(ds, range(0, NUM_ROWS, 10))
    records = ds.records()
    held = sum(records.open_shard(number).inflated_size for number in (5, 6) if records.open_shard(number).is_held)
    assert records._unheld_nbytes == LIMITS.held_nbytes - held


def test_damaged_compressed_shard_raises_where_the_damage_is(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord.gz"
    with tfrkit.Writer(path, compression="gzip") as writer:
        for number in range(5000):
            writer.write({"id": number, "noise": np.random.default_rng(number).bytes(30)})
    ds = tfrkit.open(path)
    assert len(ds) == 5000
    data = path.read_bytes()
    path.write_bytes(flip(data, len(data) // 2))
    damaged = tfrkit.open(path)
    with pytest.raises(TfrkitError, match=r"a\.tfrecord\.gz"):
        pick(damaged, [1, 4999])


def test_where_names_shard_record_and_byte(folder: Path) -> None:
    ds = tfrkit.open(folder)
    shard, record, offset = fetcher_of(ds).where(65)
    assert (Path(shard).name, record) == ("s2.tfrecord", 5)
    assert offset > 0


def test_windows_of_compressed_shards_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "held_nbytes", 0)
    path = tmp_path / "a.tfrecord.gz"
    with tfrkit.Writer(path, compression="gzip") as writer:
        for number in range(300):
            writer.write({"id": number})
    reads: list[int] = []
    read = access.ShardAccess.read

    def count_read(self: Any, record: int) -> bytes:
        reads.append(record)
        return read(self, record)

    monkeypatch.setattr(access.ShardAccess, "read", count_read)
    ds = tfrkit.open(path).shuffle(seed=1, window=64, block=8)
    given = [number for batch in ds.batch(10, threads=1) for number in batch["id"].tolist()]
    assert sorted(given) == list(range(300))
    assert len(reads) == 300
    assert reads[:8] == list(range(reads[0], reads[0] + 8))  # in file order
