from __future__ import annotations

import dataclasses
import multiprocessing
import os
import re
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tfrkit import _native
from tfrkit.container.index import (
    ShardIndex,
    cache_path,
    fingerprint_shard,
    index_path,
    load_index,
    lock_folder,
    read_index,
    write_dali_index,
    write_index,
)
from tfrkit.errors import StaleIndexError, StorageError
from tfrkit.storage.local import LocalReader
from tfrkit.storage.memory import MemoryReader
from tfrkit.testing.corruption import flip_each_byte, splice, truncate

HEADER_NBYTES = 96


def make_shard(nbytes: int = 100, *, name: str = "data/train-0.tfrecord") -> MemoryReader:
    return MemoryReader(bytes(number % 251 for number in range(nbytes)), name=name)


def make_index(offsets: list[int], *, size: int = 100, checkpoints: bytes | None = None) -> ShardIndex:
    return ShardIndex(
        num_records=len(offsets),
        offsets=np.array(offsets, dtype=np.uint64),
        compression="gzip" if checkpoints else "none",
        inflated_size=size,
        checkpoints=checkpoints,
        shard_nbytes=100,
    )


def store(folder: Path, index: ShardIndex, shard: MemoryReader) -> str:
    path = str(folder / "_index" / "train-0.tfrecord.tfidx")
    write_index(path, index, fingerprint_shard(shard))
    return path


def fix_header(data: bytes) -> bytes:
    return splice(data, 92, 96, struct.pack("<I", _native.crc32c(data[:92])))


# --- places -------------------------------------------------------------------------------------------


def test_index_path_is_in_an_underscore_folder() -> None:
    assert index_path("data/train.tfrecord") == os.path.join("data", "_index", "train.tfrecord.tfidx")
    assert index_path("train.tfrecord") == os.path.join("_index", "train.tfrecord.tfidx")


def test_cache_path_follows_the_absolute_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    path = cache_path("a.tfrecord")
    assert re.fullmatch(re.escape(str(tmp_path)) + r"/tfrkit/index/[0-9a-f]{32}\.tfidx", path)
    assert path == cache_path(str(tmp_path / "a.tfrecord"))
    assert path != cache_path("b.tfrecord")


@pytest.mark.parametrize("value", ["", "relative/folder"])
def test_cache_path_without_a_usable_variable_is_in_home(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", value)
    monkeypatch.setenv("HOME", "/home/somebody")
    assert cache_path("a").startswith("/home/somebody/.cache/tfrkit/index/")


# --- round trip ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("offsets", [[], [0], [0, 16], [0, 20, 40, 84]])
@pytest.mark.parametrize("checkpoints", [None, b"checkpoints"])
def test_index_reads_back_as_written(tmp_path: Path, offsets: list[int], checkpoints: bytes | None) -> None:
    shard = make_shard()
    written = dataclasses.replace(make_index(offsets, checkpoints=checkpoints), kind="example")
    read = read_index(store(tmp_path, written, shard), shard=shard)
    assert read.offsets.tolist() == offsets
    assert read.offsets.dtype == np.uint64
    assert not read.offsets.flags.writeable
    for field in ("num_records", "compression", "inflated_size", "checkpoints", "shard_nbytes", "kind"):
        assert getattr(read, field) == getattr(written, field)


def test_index_takes_eight_bytes_a_record_a_header_and_a_checksum_per_page(tmp_path: Path) -> None:
    path = store(tmp_path, make_index([0, 20, 40]), make_shard())
    assert os.path.getsize(path) == HEADER_NBYTES + 8 + 3 * 8
    assert sorted(os.listdir(tmp_path / "_index")) == [".lock", "train-0.tfrecord.tfidx"]


def test_index_bytes_are_pinned(tmp_path: Path) -> None:
    data = Path(store(tmp_path, make_index([0, 20]), make_shard())).read_bytes()
    assert data[:24] == b"TFRKIDX\n" + struct.pack("<IIQ", 2, 0, 100)
    assert data[24:40].hex() == "58894ab2d478e16dcfddc828b6fd34d3"
    assert data[40:64] == struct.pack("<QQII", 2, 100, 0, 0)
    assert data[80:92] == struct.pack("<I8x", 2048)
    assert data[96:] == struct.pack("<IIQQ", _native.crc32c(data[104:]), 0, 0, 20)


def test_index_of_many_records_is_checked_in_pieces(tmp_path: Path) -> None:
    num_records = (1 << 21) + 3
    offsets = np.arange(num_records, dtype=np.uint64) * np.uint64(16)
    shard = make_shard()
    index = dataclasses.replace(
        make_index([]), num_records=num_records, offsets=offsets, inflated_size=16 * num_records
    )
    path = store(tmp_path, index, shard)
    assert np.array_equal(read_index(path, shard=shard).offsets, offsets)
    offsets[1 << 20] += np.uint64(1)
    with pytest.raises(ValueError, match="offsets do not fit a shard, frame 1048576 starts at 16777217, frame 1048577"):
        store(tmp_path, index, shard)


def test_write_replaces_an_older_index(tmp_path: Path) -> None:
    shard = make_shard()
    store(tmp_path, make_index([0, 20]), shard)
    path = store(tmp_path, make_index([0, 20, 40]), shard)
    assert read_index(path, shard=shard).num_records == 3


@pytest.mark.parametrize(
    ("offsets", "reason"),
    [
        ([85], "the last frame starts at 85, the shard ends at 100"),
        ([0, 15], "frame 0 starts at 0, frame 1 at 15"),
        ([20, 0, 40], "frame 0 starts at 20, frame 1 at 0"),
        ([2**64 - 1, 0], "frame 0 starts at 18446744073709551615, frame 1 at 0"),
        ([0, 2**64 - 1, 40], "frame 1 starts at 18446744073709551615, frame 2 at 40"),
    ],
)
def test_write_offsets_out_of_order_raises(tmp_path: Path, offsets: list[int], reason: str) -> None:
    with pytest.raises(ValueError, match=f"offsets do not fit a shard, {reason}"):
        store(tmp_path, make_index(offsets), make_shard())


def test_write_to_a_place_that_is_a_file_raises(tmp_path: Path) -> None:
    (tmp_path / "_index").write_bytes(b"")
    with pytest.raises(StorageError, match="cannot write, file exists - at "):
        store(tmp_path, make_index([0]), make_shard())


# --- staleness ----------------------------------------------------------------------------------------


def test_read_no_index_raises_file_not_found(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_index(str(tmp_path / "none.tfidx"), shard=make_shard())


def test_read_folder_raises(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=f"cannot open, is a directory - at {re.escape(str(tmp_path))}"):
        read_index(str(tmp_path), shard=make_shard())


@pytest.mark.parametrize(("nbytes", "change"), [(140, "40 bytes longer"), (99, "1 bytes shorter")])
def test_read_shard_of_other_size_raises(tmp_path: Path, nbytes: int, change: str) -> None:
    path = store(tmp_path, make_index([0, 20]), make_shard())
    with pytest.raises(StaleIndexError) as caught:
        read_index(path, shard=make_shard(nbytes))
    assert str(caught.value) == (
        f"index does not fit its shard, {change} than when it was made - at {path}\n"
        "  rebuild: tfr index data/train-0.tfrecord"
    )
    assert caught.value.shard == path


@pytest.mark.parametrize("offset", [0, 4095, -1, -4096])
def test_read_shard_of_same_size_and_other_bytes_raises(tmp_path: Path, offset: int) -> None:
    shard = make_shard(20_000)
    index = dataclasses.replace(make_index([0]), shard_nbytes=20_000)
    path = store(tmp_path, index, shard)
    changed = bytearray(shard.read_at(0, 20_000))
    changed[offset] ^= 1
    with pytest.raises(StaleIndexError, match="index does not fit its shard, same size but other bytes than when"):
        read_index(path, shard=MemoryReader(bytes(changed)))


def test_every_flipped_byte_of_an_index_raises(tmp_path: Path) -> None:
    shard = make_shard()
    path = Path(store(tmp_path, make_index([0, 20, 40], checkpoints=b"points"), shard))
    for offset, damaged in flip_each_byte(path.read_bytes()):
        path.write_bytes(damaged)
        with pytest.raises(StaleIndexError, match=r"index|version"):
            read_index(str(path), shard=shard)
        assert offset < len(damaged)


def test_every_truncation_of_an_index_raises(tmp_path: Path) -> None:
    shard = make_shard()
    path = Path(store(tmp_path, make_index([0, 20, 40], checkpoints=b"points"), shard))
    data = path.read_bytes()
    for nbytes in range(len(data)):
        path.write_bytes(truncate(data, nbytes))
        with pytest.raises(StaleIndexError, match="index"):
            read_index(str(path), shard=shard)
    path.write_bytes(data + b"x")
    with pytest.raises(StaleIndexError, match="index is of the wrong size, 135 bytes, expected 134"):
        read_index(str(path), shard=shard)


@pytest.mark.parametrize(
    ("start", "patch", "message"),
    [
        (0, b"TFRKIDX1", "not an index, expected it to start with b'TFRKIDX.n', got b'TFRKIDX1'"),
        (8, struct.pack("<I", 3), "index is of version 3, expected 1 or 2"),
        (8, struct.pack("<I", 1), "index of version 1 has pages of 2048 records"),
        (80, struct.pack("<I", 0), "index of version 2 has pages of 0 records"),
        (80, struct.pack("<I", 1), "index is damaged, page checksum mismatch"),
        (12, struct.pack("<I", 2), "index has unknown flags, 0x2"),
        (12, struct.pack("<I", 1), "index has unknown flags, 0x1"),
        (40, struct.pack("<Q", 2**61), "index is of the wrong size, 120 bytes, expected 18451247673336922208"),
        (56, struct.pack("<I", 5), "index has unknown codes, compression 5, kind 0"),
        (60, struct.pack("<I", 9), "index has unknown codes, compression 0, kind 9"),
        (
            48,
            struct.pack("<Q", 30),
            "index offsets do not fit a shard, the last frame starts at 20, the shard ends at 30",
        ),
        (72, bytes(4), "index is damaged, page checksum mismatch, stored 0x00000000, computed 0x"),
        (76, b"\1\0\0\0", "index is damaged, checkpoints checksum mismatch, stored 0x00000001, computed 0x00000000"),
    ],
)
def test_read_forged_header_raises(tmp_path: Path, start: int, patch: bytes, message: str) -> None:
    shard = make_shard()
    path = Path(store(tmp_path, make_index([0, 20]), shard))
    path.write_bytes(fix_header(splice(path.read_bytes(), start, start + len(patch), patch)))
    with pytest.raises(StaleIndexError, match=message):
        read_index(str(path), shard=shard)


def test_read_for_a_pipe_raises(tmp_path: Path) -> None:
    class Pipe(MemoryReader):
        size = None

    path = store(tmp_path, make_index([0]), make_shard())
    with pytest.raises(StorageError, match="expected a file, got a pipe, which has no index"):
        read_index(path, shard=Pipe(b""))
    assert load_index(Pipe(b"")) is None


# --- which one is used --------------------------------------------------------------------------------


@pytest.fixture
def local_shard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalReader]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "train.tfrecord").write_bytes(bytes(100))
    reader = LocalReader(str(tmp_path / "train.tfrecord"))
    yield reader
    reader.close()


def test_load_without_an_index_is_none(local_shard: LocalReader) -> None:
    assert load_index(local_shard) is None


def test_load_prefers_the_index_next_to_the_shard(local_shard: LocalReader) -> None:
    fingerprint = fingerprint_shard(local_shard)
    write_index(cache_path(local_shard.name), make_index([0]), fingerprint)
    remembered = load_index(local_shard)
    assert remembered is not None
    assert remembered.num_records == 1
    write_index(index_path(local_shard.name), make_index([0, 20]), fingerprint)
    beside = load_index(local_shard)
    assert beside is not None
    assert beside.num_records == 2


def test_load_stale_index_next_to_the_shard_raises_and_cached_is_ignored(local_shard: LocalReader) -> None:
    write_index(cache_path(local_shard.name), make_index([0]), bytes(16))
    assert load_index(local_shard) is None
    write_index(index_path(local_shard.name), make_index([0]), bytes(16))
    with pytest.raises(StaleIndexError, match="index does not fit its shard"):
        load_index(local_shard)


# --- several processes --------------------------------------------------------------------------------


def _write_many(path: str, num_records: int) -> None:
    for _ in range(20):
        write_index(path, make_index(list(range(0, 16 * num_records, 16))), bytes(16))


def test_two_processes_writing_one_index_leave_a_whole_one(tmp_path: Path) -> None:
    path = str(tmp_path / "_index" / "a.tfidx")
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_many, args=(path, count)) for count in (3, 5)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert os.path.getsize(path) in (HEADER_NBYTES + 8 + 3 * 8, HEADER_NBYTES + 8 + 5 * 8)
    assert sorted(os.listdir(tmp_path / "_index")) == [".lock", "a.tfidx"]


def test_lock_is_free_again_after_use(tmp_path: Path) -> None:
    for _ in range(2):
        with lock_folder(str(tmp_path / "new" / "_index")):
            pass


# --- DALI ---------------------------------------------------------------------------------------------


def test_dali_index_has_a_line_for_each_frame(tmp_path: Path) -> None:
    path = str(tmp_path / "a.idx")
    write_dali_index(path, np.array([0, 20, 36], dtype=np.uint64), 100)
    assert Path(path).read_bytes() == b"0 20\n20 16\n36 64\n"


def test_dali_index_of_an_empty_shard_is_empty(tmp_path: Path) -> None:
    path = str(tmp_path / "a.idx")
    write_dali_index(path, np.empty(0, dtype=np.uint64), 0)
    assert Path(path).read_bytes() == b""


def test_dali_index_of_offsets_out_of_order_raises(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="offsets do not fit a shard"):
        write_dali_index(str(tmp_path / "a.idx"), np.array([0, 10], dtype=np.uint64), 100)
    assert os.listdir(tmp_path) == []


def test_real_dali_index_written_again_is_the_same(corpus: Path, tmp_path: Path) -> None:
    source = corpus / "NVIDIA+DALI_extra/db/coco_dummy/small_coco_index.idx"
    starts = np.loadtxt(source, dtype=np.uint64, usecols=0)
    assert len(starts) == 64
    write_dali_index(str(tmp_path / "a.idx"), starts, 3_493_730)
    assert (tmp_path / "a.idx").read_bytes() == source.read_bytes()


def test_dali_index_of_many_frames_has_all_of_them(tmp_path: Path) -> None:
    path = str(tmp_path / "x.idx")
    num_frames = 3 << 16  # lines are written in pieces
    write_dali_index(path, np.arange(num_frames, dtype=np.uint64) * np.uint64(20), 20 * num_frames)
    lines = Path(path).read_text().splitlines()
    assert lines == [f"{20 * number} 20" for number in range(num_frames)]
