"""Remote shards: ranges, streams, versions."""

from __future__ import annotations

import random

import pytest

from tfrkit._limits import LIMITS
from tfrkit.errors import StorageError
from tfrkit.storage.remote import RemoteReader
from tfrkit.testing.fake_store import FakeStore

DATA = random.Random(1).randbytes(300_000)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "block_nbytes", 4096)
    monkeypatch.setattr(LIMITS, "first_block_nbytes", 512)
    monkeypatch.setattr(LIMITS, "gap_nbytes", 100)
    monkeypatch.setattr(LIMITS, "wide_gap_nbytes", 200)


def open_reader(store: FakeStore, data: bytes = DATA) -> RemoteReader:
    store.objects["x"] = data
    return RemoteReader("s3://b/x")


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 4095, 4096, 4097, 300_000])
@pytest.mark.parametrize("start", [0, 1, 700])
def test_stream_is_the_object_from_a_position(store: FakeStore, size: int, start: int) -> None:
    stream = open_reader(store, DATA[:size]).stream(start)
    pieces = []
    while piece := stream.read(1000):
        assert len(piece) <= 1000
        pieces.append(bytes(piece))
    assert b"".join(pieces) == DATA[:size][start:]


def test_stream_requests_little_for_its_first_bytes_and_blocks_later(store: FakeStore) -> None:
    reader = open_reader(store)
    stream = reader.stream(0)
    stream.read(10)
    assert sum(row[3] - row[2] for row in store.log if row[0] == "get") <= 512 + 3 * 4096
    while stream.read(1 << 20):
        pass
    sizes = [row[3] - row[2] for row in store.log if row[0] == "get"]
    assert max(sizes) == 4096 and len(sizes) <= 300_000 / 4096 + 6


def test_random_ranges_are_those_of_the_object(store: FakeStore) -> None:
    reader = open_reader(store)
    seed = random.randrange(10**6)
    print("seed", seed)
    chance = random.Random(seed)
    for number in (1, 3, 50):
        ranges = []
        for _ in range(number):
            start = chance.randrange(310_000)
            ranges.append((start, start + chance.choice([0, 1, 100, 5000, 20_000])))
        assert reader.read_ranges(ranges) == [DATA[start:stop] for start, stop in ranges]


def test_near_ranges_are_one_request(store: FakeStore) -> None:
    reader = open_reader(store)
    store.log.clear()
    reader.read_ranges([(100, 200), (250, 300), (1000, 1100)])
    assert [row[2:] for row in store.log] == [(100, 300), (1000, 1100)]


def test_every_request_names_the_version(store: FakeStore) -> None:
    reader = open_reader(store)
    stream = reader.stream(0)
    stream.read(10)
    store.objects["x"] = DATA[::-1]
    with pytest.raises(StorageError, match="the object was replaced since it was opened"):
        while stream.read(1 << 20):
            pass


def test_first_request_pins_the_version_of_an_object_known_by_its_size(store: FakeStore) -> None:
    store.objects["x"] = DATA
    reader = RemoteReader("s3://b/x", size=len(DATA))
    assert store.log == [] and reader.version is None
    reader.read_at(0, 10)
    assert reader.version == store.version_of("x")


def test_object_of_another_size_than_listed_is_an_error(store: FakeStore) -> None:
    store.objects["x"] = DATA
    reader = RemoteReader("s3://b/x", size=len(DATA) + 1)
    with pytest.raises(StorageError, match="another size than listed, 300001 bytes listed, 300000 now"):
        reader.read_at(0, 10)


def test_missing_object_is_an_error(store: FakeStore) -> None:
    with pytest.raises(StorageError, match="cannot open, no such object - at s3://b/nope"):
        RemoteReader("s3://b/nope")
