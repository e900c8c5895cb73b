"""The cache of blocks: whole blocks, a bounded size, nothing lost by a kill."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tfrkit._limits import LIMITS
from tfrkit.errors import StorageError
from tfrkit.storage.cache import BlockCache
from tfrkit.storage.options import StorageOptions, set_options
from tfrkit.storage.remote import RemoteReader
from tfrkit.testing.fake_store import FakeStore

BLOCK = 4096


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "block_nbytes", BLOCK)
    monkeypatch.setattr(LIMITS, "first_block_nbytes", 512)
    monkeypatch.setattr(LIMITS, "stream_blocks", 2)


def used(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file() and path.name != ".size")


def write(cache: BlockCache, number: int, key: str = "x") -> bytes:
    data = bytes([number]) * BLOCK
    cache.write(key, "v", number * BLOCK, [memoryview(data)])
    return data


def read(cache: BlockCache, number: int, version: str = "v") -> bytes | None:
    return cache.read("x", version, number * BLOCK, (number + 1) * BLOCK)


def test_block_is_read_back_for_its_version_only(tmp_path: Path) -> None:
    cache = BlockCache(str(tmp_path), 100 * BLOCK, "s3://b")
    data = write(cache, 3)
    assert read(cache, 3) == data
    assert read(cache, 3, version="w") is None and read(cache, 4) is None
    assert BlockCache(str(tmp_path), 100 * BLOCK, "s3://c").read("x", "v", 3 * BLOCK, 4 * BLOCK) is None


def test_damaged_or_short_block_is_not_used(tmp_path: Path) -> None:
    cache = BlockCache(str(tmp_path), 100 * BLOCK, "s3://b")
    write(cache, 0)
    [path] = [path for path in tmp_path.rglob("0") if path.is_file()]
    whole = path.read_bytes()
    for bad in (whole[:-1], b"", bytes([whole[0] ^ 1]) + whole[1:]):
        path.write_bytes(bad)
        assert read(cache, 0) is None


def test_blocks_used_longest_ago_are_dropped(tmp_path: Path) -> None:
    cache = BlockCache(str(tmp_path), 10 * BLOCK, "s3://b")
    for number in range(50):
        write(cache, number)
        assert used(tmp_path) <= 10 * (BLOCK + 4)
        for path in tmp_path.rglob("[0-9]*"):
            if path.is_file() and path.name == "0":
                os.utime(path, (2**31, 2**31))
    assert read(cache, 0) is not None and read(cache, 49) is not None and read(cache, 20) is None


def test_part_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    cache = BlockCache(str(tmp_path), 4 * BLOCK, "s3://b")
    write(cache, 0)
    [path] = [path for path in tmp_path.rglob("0") if path.is_file()]
    left = path.with_name("1.part-999999999-1")
    left.write_bytes(b"x" * 100)
    for number in range(2, 20):
        write(cache, number)
    assert not left.exists()


def test_limit_below_what_is_read_ahead_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cache expected at least"):
        BlockCache(str(tmp_path), BLOCK, "s3://b")


def test_second_pass_makes_no_request(store: FakeStore, tmp_path: Path) -> None:
    data = os.urandom(40_000)
    store.objects["x"] = data
    set_options("s3://cached", StorageOptions(cache=f"{tmp_path}:1M"))
    reader = RemoteReader("s3://cached/x")
    for attempt in range(2):
        stream = reader.stream(100)
        assert b"".join(iter(lambda: bytes(stream.read(1 << 20)), b"")) == data[100:]  # noqa: B023
        if attempt == 0:
            store.log.clear()
    assert reader.read_ranges([(5000, 5010), (39_990, 50_000)]) == [data[5000:5010], data[39_990:]]
    assert store.log == []
    assert reader.read_ranges([(5000, 5010)], fresh=True) == [data[5000:5010]]
    assert len(store.log) == 1
