"""Remote shards: ranges, streams, versions."""

from __future__ import annotations

import contextlib
import os
import random

import pytest

from tfrkit._limits import LIMITS
from tfrkit.errors import StorageError
from tfrkit.storage.base import ByteStream, lead_in_turn
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


@pytest.mark.parametrize(("quick_seconds", "num_blocks"), [(60.0, 4), (0.0, 16)])
def test_stream_has_few_blocks_ahead_from_a_store_that_is_quick(
    store: FakeStore, monkeypatch: pytest.MonkeyPatch, quick_seconds: float, num_blocks: int
) -> None:
    monkeypatch.setattr(LIMITS, "quick_seconds", quick_seconds)
    stream = open_reader(store).stream(0)
    pieces = []
    for _ in range(40):  # of 75 blocks
        pieces.append(bytes(stream.read(1 << 20)))
        assert len(stream._pending) <= 16
    assert len(stream._pending) == num_blocks
    while piece := stream.read(1 << 20):
        pieces.append(bytes(piece))
    assert b"".join(pieces) == DATA


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


def read_on(stream: ByteStream) -> bytes:
    pieces = []
    while piece := stream.read(1 << 62):
        pieces.append(bytes(piece))
    return b"".join(pieces)


def test_next_objects_are_requested_while_one_is_read(store: FakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "stream_blocks", 8)
    contents = {f"part-{number}": DATA[number * 10_000 : number * 11_000 + 8_000] for number in range(12)}
    store.objects.update(contents)
    readers = [RemoteReader(f"s3://b/{name}") for name in contents]

    def find(number: int) -> RemoteReader | None:
        return readers[number] if number < len(readers) else None

    store.log.clear()
    lead_in_turn(0, find)
    readers[0].begin()
    stream = readers[0].stream(0)
    assert {row[1] for row in store.log if row[0] == "get"} <= {"part-0", "part-1", "part-2", "part-3"}
    for number, data in enumerate(contents.values()):
        if number:
            # Looks at its first bytes need no request either.
            assert readers[number].read_at(0, 100) == data[:100]
            stream = readers[number].stream(0)
        assert read_on(stream) == data
        assert number == 11 or readers[number + 1]._begun is not None
    read = [row for row in store.log if row[0] == "get"]
    assert len(read) == sum(-(-len(data) // 4096) for data in contents.values())


def test_stream_that_is_left_drops_what_was_requested_ahead(store: FakeStore) -> None:
    store.objects.update({"one": DATA[:9000], "two": DATA})
    one, two = RemoteReader("s3://b/one"), RemoteReader("s3://b/two")
    lead_in_turn(0, lambda number: [one, two][number] if number < 2 else None)
    one.begin()
    stream = one.stream(0)
    stream.read(10)
    assert two._begun is not None
    del stream
    assert two._begun is None
    assert read_on(two.stream(0)) == DATA


def test_look_at_the_start_is_one_request_which_the_pass_uses(store: FakeStore) -> None:
    reader = open_reader(store)
    store.log.clear()
    reader.begin(whole=False)
    assert reader.read_at(0, 100) == DATA[:100]
    assert bytes(reader.stream(0, ahead="none").read(512)) == DATA[:512]
    assert [row[2:] for row in store.log] == [(0, 512)]
    assert read_on(reader.stream(0)) == DATA
    assert sum(row[3] - row[2] for row in store.log) == len(DATA)


def test_replaced_object_that_was_requested_ahead_is_an_error(store: FakeStore) -> None:
    reader = open_reader(store)
    store.objects["x"] = DATA[::-1]
    reader.begin()
    with pytest.raises(StorageError, match="the object was replaced since it was opened"):
        read_on(reader.stream(0))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_forked_process_requests_its_own_bytes(store: FakeStore) -> None:
    reader = open_reader(store)
    stream = reader.stream(0)
    stream.read(10)
    reader.begin()
    receiver, sender = os.pipe()
    if os.fork() == 0:
        with contextlib.suppress(BaseException):
            is_right = read_on(reader.stream(0)) == DATA
            try:
                read_on(stream)
            except StorageError as error:
                is_right &= "forked" in str(error)
            os.write(sender, b"1" if is_right else b"0")
        os._exit(0)
    os.wait()
    os.close(sender)
    with open(receiver, "rb") as file:
        assert file.read() == b"1"


def test_look_at_the_start_is_kept_when_the_stream_that_had_it_is_taken(store: FakeStore) -> None:
    reader = open_reader(store)
    reader.begin(whole=False)
    assert reader.read_at(0, 100) == DATA[:100]
    stream = reader.stream(0)
    store.log.clear()
    assert reader.read_at(0, 100) == DATA[:100]
    assert store.log == []
    stream.close()
