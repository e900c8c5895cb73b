"""A stream deflated in blocks is one stream: one member, bytes independent of threads, and checkpoints without another
pass."""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tfrkit.container.block_deflate import BLOCK_NBYTES, BlockDeflater
from tfrkit.container.compression import Compression, InflateReader, Level
from tfrkit.container.seekable import SeekableInflate
from tfrkit.storage.memory import MemoryReader

WBITS = {"gzip": 31, "zlib": 15}


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(2) as executor:
        yield executor


def make_data(nbytes: int) -> bytes:
    generator = random.Random(nbytes)
    words = [generator.randbytes(generator.randrange(1, 30)) for _ in range(200)]
    out = bytearray()
    while len(out) < nbytes:
        out += generator.choice(words)
    return bytes(out[:nbytes])


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
@pytest.mark.parametrize("level", ["default", "fast", "small", 1])
@pytest.mark.parametrize("nbytes", [0, 1, BLOCK_NBYTES - 1, BLOCK_NBYTES, BLOCK_NBYTES + 1, 3 * BLOCK_NBYTES + 7])
def test_stream_is_one_member_that_inflates(
    pool: ThreadPoolExecutor, compression: Compression, level: Level, nbytes: int
) -> None:
    data = make_data(nbytes)
    deflater = BlockDeflater(compression, level, pool=pool)  # type: ignore[arg-type]
    packed = deflater.write(data) + deflater.finish()
    inflate = zlib.decompressobj(WBITS[compression])
    assert inflate.decompress(packed) + inflate.flush() == data
    assert (inflate.eof, inflate.unused_data) == (True, b"")
    reader = InflateReader(MemoryReader(packed), compression)
    assert b"".join(iter(lambda: reader.read(1 << 20), b"")) == data


def test_bytes_depend_neither_on_pieces_nor_on_threads(pool: ThreadPoolExecutor) -> None:
    data = make_data(3 * BLOCK_NBYTES + 100)
    whole = BlockDeflater("gzip", pool=pool, ahead=8)
    expected = whole.write(data) + whole.finish()
    with ThreadPoolExecutor(1) as one:
        pieces = BlockDeflater("gzip", pool=one, ahead=1)
        out = [pieces.write(data[start : start + 70_001]) for start in range(0, len(data), 70_001)]
        assert b"".join(out) + pieces.finish() == expected


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
@pytest.mark.parametrize("level", ["default", "fast"])
def test_checkpoints_lead_to_every_place(pool: ThreadPoolExecutor, compression: Compression, level: Level) -> None:
    data = make_data(4 * BLOCK_NBYTES + 5)
    deflater = BlockDeflater(compression, level, pool=pool)  # type: ignore[arg-type]
    packed = deflater.write(data) + deflater.finish()
    seekable = SeekableInflate(MemoryReader(packed), compression, deflater.checkpoints())
    assert seekable.inflated_size == len(data)
    for offset in (0, 1, BLOCK_NBYTES - 1, BLOCK_NBYTES, 2 * BLOCK_NBYTES + 17, 4 * BLOCK_NBYTES, len(data) - 3):
        assert seekable.read_at(offset, 100) == data[offset : offset + 100]
    assert seekable.read_at(0, len(data)) == data


def test_cut_into_blocks_it_is_hardly_larger(pool: ThreadPoolExecutor) -> None:
    data = make_data(4 * BLOCK_NBYTES)
    deflater = BlockDeflater("zlib", 6, pool=pool)
    packed = deflater.write(data) + deflater.finish()
    assert len(packed) < 1.01 * len(zlib.compress(data, 6))


def test_unknown_level_is_refused(pool: ThreadPoolExecutor) -> None:
    with pytest.raises(ValueError, match="level of gzip must be"):
        BlockDeflater("gzip", 17, pool=pool)
