from __future__ import annotations

import contextlib
import gzip
import importlib
import os
import random
import struct
import threading
import tracemalloc
import zlib
from pathlib import Path

import pytest

from tfrkit._limits import LIMITS
from tfrkit.container import seekable
from tfrkit.container.checkpoints import find_checkpoints, make_lead
from tfrkit.container.compression import COMPRESSIONS, Compression, Deflater, InflateReader, Level
from tfrkit.container.seekable import SeekableInflate
from tfrkit.errors import CompressionError, StaleIndexError, StorageError
from tfrkit.storage.local import LocalReader
from tfrkit.storage.memory import MemoryReader
from tfrkit.testing.corruption import flip, flip_each_byte

DEFLATED: tuple[Compression, ...] = ("gzip", "zlib")


def make_text(num_lines: int, seed: int = 7) -> bytes:
    rng = random.Random(seed)
    return b"".join(b"%d:%d;" % (line, rng.randrange(977)) for line in range(num_lines))


TEXT = make_text(250_000)


def pack(data: bytes, compression: Compression, level: Level = "default") -> bytes:
    deflater = Deflater(compression, level)
    return deflater.write(data) + deflater.finish()


def pick_ranges(size: int, count: int) -> list[tuple[int, int]]:
    rng = random.Random(3)
    lengths = (0, 1, 12, 4096, 70_000)
    picked = [(rng.randrange(size), rng.choice(lengths)) for _ in range(count)]
    return [*picked, (0, 10), (size - 1, 1), (size - 1, 10), (size, 10), (size + 100, 10), (0, size), (0, size + 1)]


def check_ranges(inflate: SeekableInflate, data: bytes, count: int = 60) -> None:
    for offset, nbytes in pick_ranges(len(data), count):
        assert inflate.read_at(offset, nbytes) == data[offset : offset + nbytes], (offset, nbytes)
    assert inflate.inflated_size == len(data)


@pytest.fixture
def dense(monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkpoints as close as the library makes them, so that a small shard has many."""
    monkeypatch.setattr(LIMITS, "checkpoint_nbytes", 33 << 10)


# --- reading ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_read_at_any_offset(compression: Compression) -> None:
    inflate = SeekableInflate(MemoryReader(pack(TEXT, compression, "fast")), compression)
    check_ranges(inflate, TEXT)
    inflate.close()


@pytest.mark.usefixtures("dense")
@pytest.mark.parametrize("level", ["fast", "default", 1, 0])
@pytest.mark.parametrize("compression", DEFLATED)
def test_read_at_through_stored_checkpoints(compression: Compression, level: Level) -> None:
    reader = MemoryReader(pack(TEXT, compression, level))
    blob = SeekableInflate(reader, compression).export()
    # zlib-ng 1 writes blocks of more than a megabyte, the others far smaller ones.
    assert struct.unpack_from("<I", blob, 4)[0] >= (2 if level == 1 else 10)
    check_ranges(SeekableInflate(reader, compression, blob), TEXT)


@pytest.mark.usefixtures("dense")
def test_checkpoints_at_every_bit_of_a_byte_are_used() -> None:
    reader = MemoryReader(zlib.compress(TEXT, 6))
    blob = SeekableInflate(reader, "zlib").export()
    (num_points,) = struct.unpack_from("<I", blob, 4)
    points = list(struct.iter_unpack("<QQII", blob[16 : 16 + 24 * num_points]))
    assert {bits for _, _, bits, _ in points} == set(range(8))
    inflate = SeekableInflate(reader, "zlib", blob)
    for offset, _, _, _ in points:
        assert inflate.read_at(offset, 100) == TEXT[offset : offset + 100]


@pytest.mark.parametrize("bits", range(8))
def test_lead_brings_zlib_to_any_bit(bits: int) -> None:
    # A final stored block after `8 - bits` other bits: three header bits, then padding.
    window = b"window" * 100
    missing = (8 - bits) % 8
    header = 1 << missing
    block = header.to_bytes(2, "little") if missing > 5 else header.to_bytes(1, "little")
    block += struct.pack("<HH", 3, 3 ^ 0xFFFF) + b"abc"
    lead = make_lead(window, block[0], bits)
    stream = lead + (block[1:] if bits else block)
    assert zlib.decompress(stream, wbits=-15) == window + b"abc"


@pytest.mark.usefixtures("dense")
@pytest.mark.parametrize("padding", [b"", bytes(1000)], ids=["touching", "padded"])
def test_members_read_as_one(padding: bytes) -> None:
    rng = random.Random(5)
    parts = [TEXT[:500_000], b"", *[TEXT[start : start + 700] for start in range(0, 200_000, 700)], TEXT[-400_000:]]
    rng.shuffle(parts)
    packed = b"".join(gzip.compress(part, mtime=0) + padding for part in parts)
    data = b"".join(parts)
    reader = MemoryReader(packed)
    first = SeekableInflate(reader, "gzip")
    check_ranges(first, data)
    check_ranges(SeekableInflate(reader, "gzip", first.export()), data)


@pytest.mark.parametrize("compression", COMPRESSIONS)
@pytest.mark.parametrize("data", [b"", b"x", b"abcdef"])
def test_read_at_tiny_shards(compression: Compression, data: bytes) -> None:
    reader = MemoryReader(pack(data, compression))
    first = SeekableInflate(reader, compression)
    assert first.read_at(0, 100) == data
    assert first.read_at(2, 3) == data[2:5]
    assert first.inflated_size == len(data)
    second = SeekableInflate(reader, compression, first.export())
    assert second.read_at(0, 100) == data
    first.close()
    second.close()


def test_read_at_negative_raises() -> None:
    inflate = SeekableInflate(MemoryReader(zlib.compress(b"abc")), "zlib")
    with pytest.raises(ValueError, match="expected offset and nbytes of at least 0, got -1 and 3"):
        inflate.read_at(-1, 3)


@pytest.mark.usefixtures("dense")
def test_stored_checkpoints_need_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = MemoryReader(gzip.compress(TEXT))
    blob = SeekableInflate(reader, "gzip").export()
    monkeypatch.setattr(importlib, "import_module", None)
    monkeypatch.setattr(seekable, "_inflate_all", None)
    inflate = SeekableInflate(reader, "gzip", blob)
    assert inflate.inflated_size == len(TEXT)
    assert inflate.read_at(1_000_000, 50) == TEXT[1_000_000:1_000_050]
    assert inflate.export() == blob


@pytest.mark.usefixtures("dense")
def test_known_size_avoids_a_second_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = MemoryReader(gzip.compress(TEXT))
    expected = SeekableInflate(reader, "gzip").export()
    monkeypatch.setattr(seekable, "_inflate_all", None)
    assert SeekableInflate(reader, "gzip", inflated_size=len(TEXT)).export() == expected
    assert find_checkpoints(reader, inflated_size=len(TEXT)) == expected


def test_checkpoints_are_few_and_small() -> None:
    blob = find_checkpoints(MemoryReader(gzip.compress(TEXT)), inflated_size=len(TEXT))
    (num_points,) = struct.unpack_from("<I", blob, 4)
    assert num_points == -(-len(TEXT) // (1 << 20))
    assert len(blob) < len(TEXT) * 0.015


def test_large_shards_get_wider_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "checkpoint_nbytes", 33 << 10)
    monkeypatch.setattr(LIMITS, "max_checkpoints", 8)
    blob = find_checkpoints(MemoryReader(gzip.compress(TEXT)), inflated_size=len(TEXT))
    (num_points,) = struct.unpack_from("<I", blob, 4)
    assert 4 <= num_points <= 9


def test_xz_is_unpacked_to_a_file_without_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    inflate = SeekableInflate(MemoryReader(pack(TEXT[:100_000], "xz")), "xz")
    assert inflate.read_at(50_000, 10) == TEXT[50_000:50_010]
    assert list(tmp_path.iterdir()) == []
    assert inflate.export() == b""
    inflate.close()


def test_unpacking_to_a_folder_that_is_not_there_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    inflate = SeekableInflate(MemoryReader(pack(b"abc", "xz"), name="x"), "xz")
    with pytest.raises(
        StorageError, match=r"cannot unpack to .*none, no such file or directory - at x\n  name another"
    ):
        inflate.read_at(0, 1)


def test_pipe_raises() -> None:
    class Pipe(MemoryReader):
        size = None

    with pytest.raises(StorageError, match="expected a file, got a pipe, which cannot be read at a position"):
        SeekableInflate(Pipe(gzip.compress(b"abc")), "gzip").read_at(0, 1)


# --- threads and forks --------------------------------------------------------------------------------


@pytest.mark.usefixtures("dense")
@pytest.mark.parametrize("compression", ["gzip", "zstd"])
def test_threads_share_one(tmp_path: Path, compression: Compression) -> None:
    path = tmp_path / "shard"
    path.write_bytes(pack(TEXT, compression, "fast"))
    reader = LocalReader(str(path))
    inflate = SeekableInflate(reader, compression)
    wrong: list[int] = []

    def read_some(seed: int) -> None:
        rng = random.Random(seed)
        for _ in range(150):
            offset = rng.randrange(len(TEXT))
            if inflate.read_at(offset, 2000) != TEXT[offset : offset + 2000]:
                wrong.append(offset)

    threads = [threading.Thread(target=read_some, args=(seed,)) for seed in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    inflate.close()
    reader.close()


def test_fork_with_a_held_lock_reads_on() -> None:
    inflate = SeekableInflate(MemoryReader(gzip.compress(TEXT)), "gzip")
    assert inflate.read_at(100, 10) == TEXT[100:110]
    with inflate._lock, inflate._cursors[0]._lock:
        child = os.fork()
        if child == 0:
            os._exit(0 if inflate.read_at(2_000_000, 10) == TEXT[2_000_000:2_000_010] else 1)
    assert os.waitpid(child, 0)[1] == 0


# --- damage -------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("dense")
@pytest.mark.parametrize("compression", COMPRESSIONS[1:])
def test_truncated_shard_reads_up_to_the_cut(compression: Compression) -> None:
    packed = pack(TEXT, compression)
    inflate = SeekableInflate(MemoryReader(packed[: len(packed) // 2], name="x"), compression)
    assert inflate.read_at(0, 1000) == TEXT[:1000]
    size = inflate.inflated_size
    assert size is not None
    assert size > len(TEXT) // 4
    assert inflate.read_at(size - 10, 10) == TEXT[size - 10 : size]
    with pytest.raises(
        CompressionError, match=f"compressed stream ends early, {size} bytes inflated before - at x, byte"
    ):
        inflate.read_at(size - 10, 11)
    if compression in DEFLATED:
        with pytest.raises(CompressionError, match="compressed stream ends early"):
            inflate.export()
    inflate.close()


@pytest.mark.usefixtures("dense")
@pytest.mark.parametrize("compression", DEFLATED)
def test_damaged_shard_reads_up_to_the_damage(compression: Compression) -> None:
    packed = bytearray(pack(TEXT, compression))
    middle = len(packed) // 2
    packed[middle : middle + 32] = bytes(32)
    reader = MemoryReader(bytes(packed), name="x")
    stream = InflateReader(reader, compression)
    expected = b""
    with contextlib.suppress(CompressionError):
        while piece := stream.read(1 << 20):
            expected += piece
    assert expected[: len(TEXT) // 3] == TEXT[: len(TEXT) // 3]
    inflate = SeekableInflate(reader, compression)
    for offset in [0, 100_000, len(expected) // 2, len(expected) - 1000]:
        assert inflate.read_at(offset, 1000) == expected[offset : offset + 1000]
    assert inflate.inflated_size == len(expected)
    with pytest.raises(CompressionError, match=r"compressed stream is damaged, .* - at x, byte \d+"):
        inflate.read_at(len(expected), 1)


@pytest.mark.usefixtures("dense")
@pytest.mark.parametrize("compression", DEFLATED)
def test_sound_part_of_known_size_reads(compression: Compression) -> None:
    packed = bytearray(pack(TEXT, compression))
    packed[len(packed) // 2 :] = random.Random(1).randbytes(1000)
    size = len(TEXT) // 3
    inflate = SeekableInflate(MemoryReader(bytes(packed)), compression, inflated_size=size)
    check_ranges(inflate, TEXT[:size])


@pytest.mark.usefixtures("dense")
@pytest.mark.parametrize("compression", DEFLATED)
def test_damage_since_the_index_was_made_raises_only_where_it_is(compression: Compression) -> None:
    packed = pack(TEXT, compression)
    blob = SeekableInflate(MemoryReader(packed), compression).export()
    damaged = bytearray(packed)
    middle = len(packed) // 2
    damaged[middle : middle + 200] = b"\xff" * 200
    inflate = SeekableInflate(MemoryReader(bytes(damaged), name="x"), compression, blob)
    raised = 0
    for offset in range(0, len(TEXT) - 1000, 20_000):
        try:
            same = inflate.read_at(offset, 1000) == TEXT[offset : offset + 1000]
        except CompressionError:
            raised += 1
        else:
            # Damage that still inflates is found by the frame checksums.
            assert same or 0.4 < offset / len(TEXT) < 0.6
    assert 1 <= raised <= 6
    assert inflate.read_at(len(TEXT) - 10, 10) == TEXT[-10:]


@pytest.mark.usefixtures("dense")
def test_shard_cut_since_the_index_was_made_raises() -> None:
    packed = gzip.compress(TEXT)
    blob = SeekableInflate(MemoryReader(packed), "gzip").export()
    with pytest.raises(StaleIndexError, match=r"inflate checkpoints are damaged, checkpoint \d+ is at byte"):
        SeekableInflate(MemoryReader(packed[: len(packed) // 2]), "gzip", blob)
    inflate = SeekableInflate(MemoryReader(packed[:-2000], name="x"), "gzip", blob)
    with pytest.raises(CompressionError, match=r"compressed stream ends early, .* - at x, byte"):
        inflate.read_at(len(TEXT) - 10, 10)


def test_every_truncation_reads_or_raises() -> None:
    data = make_text(60)
    packed = gzip.compress(data, mtime=0)
    for nbytes in range(len(packed)):
        inflate = SeekableInflate(MemoryReader(packed[:nbytes]), "gzip")
        with pytest.raises(CompressionError, match="compressed stream ends early"):
            inflate.read_at(0, len(data) + 1)
        size = inflate.inflated_size
        assert size is not None
        assert inflate.read_at(0, size) == data[:size]


@pytest.mark.parametrize("compression", DEFLATED)
def test_every_flipped_byte_reads_or_raises(compression: Compression) -> None:
    data = make_text(60)
    for _, packed in flip_each_byte(pack(data, compression)):
        inflate = SeekableInflate(MemoryReader(packed), compression)
        try:
            assert inflate.read_at(0, 1 << 20) == data
        except CompressionError:
            size = inflate.inflated_size
            assert size is not None
            assert len(inflate.read_at(0, size)) == size


@pytest.mark.usefixtures("dense")
def test_every_damage_to_stored_checkpoints_reads_or_raises() -> None:
    data = TEXT[:200_000]
    reader = MemoryReader(gzip.compress(data, mtime=0), name="x")
    blob = SeekableInflate(reader, "gzip").export()
    (num_points,) = struct.unpack_from("<I", blob, 4)
    table_stop = 16 + 24 * num_points
    for offset in [*range(table_stop), *range(table_stop, len(blob), 997)]:
        try:
            inflate = SeekableInflate(reader, "gzip", flip(blob, offset, offset * 5 % 8))
            for start in range(0, len(data), 30_000):
                inflate.read_at(start, 100)
        except (StaleIndexError, CompressionError):
            pass
    for nbytes in [1, 15, 16, 20, table_stop - 1, table_stop, len(blob) - 1]:
        with pytest.raises(StaleIndexError, match="inflate checkpoints are damaged") as caught:
            SeekableInflate(reader, "gzip", blob[:nbytes])
        assert str(caught.value).endswith(" - at x\n  rebuild: tfr index x")


def test_checkpoints_of_another_version_raise() -> None:
    with pytest.raises(StaleIndexError, match="expected them to start with b'CKP1', got b'CKP9'"):
        SeekableInflate(MemoryReader(gzip.compress(b"abc")), "gzip", b"CKP9" + bytes(100))


@pytest.mark.resources
def test_bomb_reads_in_bounded_memory() -> None:
    num_bytes = 100 << 20
    deflater = Deflater("gzip", "fast")
    zeros = bytes(1 << 20)
    packed = b"".join([deflater.write(zeros) for _ in range(100)]) + deflater.finish()
    inflate = SeekableInflate(MemoryReader(packed), "gzip")
    tracemalloc.start()
    try:
        for offset in (num_bytes - 10, 5, num_bytes // 2):
            assert inflate.read_at(offset, 10) == bytes(10)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert inflate.inflated_size == num_bytes
    assert peak < 8 << 20
