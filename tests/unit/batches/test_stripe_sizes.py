"""Striped shuffles of datasets: when they are chosen, what they read from a store, and that they resume."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit as tfr
from tfrkit._limits import LIMITS
from tfrkit.errors import CorruptRecordError, TfrkitError
from tfrkit.testing.fake_store import FakeStore, use_fake_store

NUM_ROWS = 12_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("striped") / "d"
    rows = ({"x": number, "pad": b"p" * 160} for number in range(NUM_ROWS))
    tfr.build(rows, folder, shards=3)
    return folder


@pytest.fixture
def store(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeStore]:
    monkeypatch.setattr(LIMITS, "block_nbytes", 16 << 10)
    monkeypatch.setattr(LIMITS, "stripes_nbytes", 1 << 20)
    monkeypatch.setattr(LIMITS, "exact_nbytes", 1 << 20)
    monkeypatch.setattr(LIMITS, "gap_nbytes", 0)
    monkeypatch.setattr(LIMITS, "wide_gap_nbytes", 0)
    with use_fake_store() as made:
        made.add_folder(str(folder), "d/")
        yield made


def read_ids(batches: Any) -> list[list[int]]:
    return [batch["x"].tolist() for batch in batches]


def count_data(store: FakeStore) -> tuple[int, int]:
    """Requests and bytes of shards, without the first and last bytes that are compared with an index."""
    reads = [(stop - start) for verb, key, start, stop in store.log if verb == "get" and "tfidx" not in key]
    reads = [nbytes for nbytes in reads if nbytes > 4096]
    return len(reads), sum(reads)


def test_remote_small_records_are_striped_and_large_sets_read_once(store: FakeStore, folder: Path) -> None:
    ds = tfr.open("s3://b/d/")
    assert "shuffled in 4 groups, mixed 0.9" in repr(ds.shuffle(3))
    batches = ds.shuffle(3).batch(64, threads=2)
    store.log.clear()
    remote = read_ids(batches)
    num_requests, nbytes = count_data(store)
    total = sum(path.stat().st_size for path in folder.glob("*.tfrecord*"))
    assert sorted(np.concatenate(remote).tolist()) == list(range(NUM_ROWS))
    assert nbytes <= 1.02 * total
    # A block may lie in two shards, and windows end within one.
    assert num_requests <= 1.1 * total / (16 << 10) * 16 / 15 + 8
    local = tfr.open(folder).shuffle(3, mode="striped").batch(64)
    assert read_ids(local) == remote


def test_ranks_read_their_own_blocks_once(store: FakeStore, folder: Path) -> None:
    total = sum(path.stat().st_size for path in folder.glob("*.tfrecord*"))
    whole = read_ids(tfr.open(folder).shuffle(3, mode="striped", groups=4).batch(64))
    shares, nbytes = [], 0
    for rank in range(4):
        loop = tfr.open("s3://b/d/").shuffle(3, groups=4).batch(64, threads=1).share(rank=rank, world_size=4)
        store.log.clear()
        shares.append(read_ids(loop))
        nbytes += count_data(store)[1]
    assert [[number for share in batch for number in share] for batch in zip(*shares, strict=True)][:-1] == whole[:-1]
    assert nbytes <= 1.1 * total


def test_striped_shuffle_resumes_on_other_ranks(store: FakeStore, folder: Path) -> None:
    def open_loop(address: Any) -> Any:
        return tfr.open(address).shuffle(5, mode="striped").batch(64)

    whole = read_ids(open_loop(folder))
    running = iter(open_loop("s3://b/d/"))
    for _ in range(41):
        next(running)
    state = running.state_dict()
    running.close()
    again = iter(open_loop(folder).share(rank=1, world_size=2))
    again.load_state_dict({**state, "dataset": iter(open_loop(folder)).state_dict()["dataset"]})
    assert read_ids(again)[0] == whole[41][32:]
    other = iter(tfr.open("s3://b/d/").shuffle(5, mode="striped").batch(32))
    with pytest.raises(TfrkitError, match="(?s)another order.*batch size of all ranks"):
        other.load_state_dict(state)


def test_window_of_a_store_is_read_as_stretches(store: FakeStore, folder: Path) -> None:
    remote = tfr.open("s3://b/d/").shuffle(1, window=4000, block=50).batch(100, threads=1)
    store.log.clear()
    assert read_ids(remote) == read_ids(tfr.open(folder).shuffle(1, window=4000, block=50).batch(100))
    assert count_data(store)[0] <= 12_000 / 50 + 10


def test_wrong_byte_in_a_block_is_read_again_and_damage_is_named(store: FakeStore, folder: Path) -> None:
    def spoil(key: str, number: int, body: bytes) -> bytes:
        if "tfidx" in key or len(body) < 10_000 or body in spoilt:
            return body
        spoilt.add(body)
        return body[:5000] + bytes([body[5000] ^ 1]) + body[5001:]

    spoilt: set[bytes] = set()
    expected = read_ids(tfr.open(folder).shuffle(2, mode="striped").batch(64))
    batches = tfr.open("s3://b/d/").shuffle(2).batch(64)
    store.answer = spoil
    assert read_ids(batches) == expected
    assert spoilt
    store.answer = None
    key = next(key for key in store.objects if key.endswith("00001-of-00003"))
    data = bytearray(store.objects[key])
    data[500_000] ^= 1
    store.objects[key] = bytes(data)
    with pytest.raises(CorruptRecordError, match=r"checksum.*00001-of-00003, record \d+"):
        read_ids(tfr.open("s3://b/d/").shuffle(2).batch(64))


def test_exact_where_asked_or_records_are_large(
    store: FakeStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ds = tfr.open("s3://b/d/")
    assert read_ids(ds.shuffle(3, mode="exact").take(640).batch(64)) == read_ids(
        tfr.open(folder).shuffle(3).take(640).batch(64)
    )
    assert "; shuffled;" in repr(ds.split({"a": 0.5, "b": 0.5})[0].shuffle(3))  # not adjacent in the files
    monkeypatch.setattr(LIMITS, "large_request_nbytes", 100)
    assert "; shuffled;" in repr(tfr.open("s3://b/d/").shuffle(3))


def test_wrong_arguments_are_explained(folder: Path) -> None:
    ds = tfr.open(folder)
    with pytest.raises(ValueError, match="mode expected 'exact' or 'striped', got 'block'"):
        ds.shuffle(1, mode="block")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="groups goes with mode='striped'"):
        ds.shuffle(1, mode="exact", groups=4)
    with pytest.raises(ValueError, match="mode='exact' has no window"):
        ds.shuffle(1, mode="exact", window=100)
    with pytest.raises(ValueError, match="groups expected at least 1, got 0"):
        ds.shuffle(1, groups=0)
