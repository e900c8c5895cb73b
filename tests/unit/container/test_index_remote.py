from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import tfrkit as tfr
from tfrkit._limits import LIMITS
from tfrkit.container.index import read_index
from tfrkit.errors import StaleIndexError, StorageError
from tfrkit.storage.resolve import open_reader
from tfrkit.testing.fake_store import FakeStore, use_fake_store


@pytest.mark.parametrize("is_lasting", [False, True])
def test_index_of_a_shard_with_a_byte_wrong_on_its_way_is_used(tmp_path: Path, is_lasting: bool) -> None:
    with tfr.Writer(tmp_path / "x.tfrecord", index=True) as writer:
        for number in range(1000):
            writer.write({"id": number, "data": b"x" * 100})
    num_wrong = 0

    def flip(key: str, number: int, data: bytes) -> bytes:
        nonlocal num_wrong
        if key != "x.tfrecord" or (num_wrong and not is_lasting):
            return data
        num_wrong += 1
        return bytes([data[0] ^ 1]) + data[1:]

    with use_fake_store() as store:
        store.add_folder(str(tmp_path))
        store.answer = flip
        shard = open_reader("s3://bucket/x.tfrecord")
        if is_lasting:
            with pytest.raises(StaleIndexError, match="same size but other bytes"):
                read_index("s3://bucket/_index/x.tfrecord.tfidx", shard=shard)
        else:
            assert read_index("s3://bucket/_index/x.tfrecord.tfidx", shard=shard).num_records == 1000
            assert num_wrong == 1


@pytest.fixture
def paged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeStore]:
    """A store with one shard of 10,000 records, whose index has 5 pages; its start is without them."""
    monkeypatch.setattr(LIMITS, "index_start_nbytes", 200)
    for limit in ("gap_nbytes", "wide_gap_nbytes"):
        monkeypatch.setattr(LIMITS, limit, 0)
    with tfr.Writer(tmp_path / "x.tfrecord", index=True) as writer:
        for number in range(10_000):
            writer.write({"id": number, "data": b"x" * (number % 50)})
    with use_fake_store() as store:
        store.add_folder(str(tmp_path))
        yield store


INDEX = "_index/x.tfrecord.tfidx"


def test_record_costs_one_page_of_an_index_in_a_store(paged: FakeStore) -> None:
    ds = tfr.open("s3://bucket/x.tfrecord")
    _ = ds.schema, len(ds)
    paged.log.clear()
    assert ds[3000]["id"] == 3000
    asked = [stop - start for verb, key, start, stop in paged.log if key == INDEX and verb == "get"]
    assert asked in ([200, 16384], [16384])
    paged.log.clear()
    assert ds[3001]["id"] == 3001
    assert [row for row in paged.log if row[1] == INDEX] == []
    # The last record of a page ends where the next page begins.
    assert [row["id"] for row in ds[[2047, 9999, 0, 2048, 8191]]] == [2047, 9999, 0, 2048, 8191]
    here = [batch["id"].tolist() for batch in tfr.open("s3://bucket/x.tfrecord").shuffle(seed=2).batch(300)]
    assert sorted(sum(here, [])) == list(range(10_000))


def test_pages_of_many_records_are_requested_together_and_once(paged: FakeStore) -> None:
    ds = tfr.open("s3://bucket/x.tfrecord")
    _ = ds.schema, len(ds)
    paged.log.clear()
    wanted = list(range(5, 10_000, 997))
    assert [row["id"] for row in ds[wanted]] == wanted
    pages = [row[2:] for row in paged.log if row[1] == INDEX and row[3] - row[2] > 200]
    assert len(pages) == len(set(pages)) <= 5


@pytest.mark.parametrize("is_lasting", [False, True])
def test_page_with_a_byte_wrong_on_its_way_is_requested_again(paged: FakeStore, is_lasting: bool) -> None:
    num_wrong = 0

    def flip(key: str, number: int, data: bytes) -> bytes:
        nonlocal num_wrong
        if key != INDEX or len(data) <= 200 or (num_wrong and not is_lasting):
            return data
        num_wrong += 1
        return data[:-1] + bytes([data[-1] ^ 1])

    shard = open_reader("s3://bucket/x.tfrecord")
    whole = read_index(f"s3://bucket/{INDEX}", shard=shard)
    paged.answer = flip
    index = read_index(f"s3://bucket/{INDEX}", shard=shard, is_lazy=True)
    assert index.is_fetched and num_wrong == 0
    if is_lasting:
        with pytest.raises(StaleIndexError, match="checksum mismatch in page 1, of the records from 2,048 on"):
            index.require(3000, 3001)
        return
    index.require(3000, 3001)
    assert num_wrong == 1
    index.require(0, 10_000)
    assert index.offsets.tolist() == whole.offsets.tolist()
    index.require(10_000, 10_000)


def test_pages_in_the_start_are_not_requested_again(paged: FakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "index_start_nbytes", 40_000)
    shard = open_reader("s3://bucket/x.tfrecord")
    whole = read_index(f"s3://bucket/{INDEX}", shard=shard)
    index = read_index(f"s3://bucket/{INDEX}", shard=shard, is_lazy=True)
    paged.log.clear()
    index.require(0, 4096)
    assert paged.log == []
    index.require(0, 10_000)
    assert sum(row[3] - row[2] for row in paged.log) == 8 * (10_000 - 4096)
    assert index.offsets.tolist() == whole.offsets.tolist()


def test_replaced_index_is_an_error_and_never_a_mixture(paged: FakeStore) -> None:
    shard = open_reader("s3://bucket/x.tfrecord")
    index = read_index(f"s3://bucket/{INDEX}", shard=shard, is_lazy=True)
    index.require(0, 1)
    paged.objects[INDEX] = paged.objects[INDEX][:-8] + bytes(8)
    with pytest.raises(StorageError, match="the object was replaced"):
        index.require(9_000, 9_001)
