from __future__ import annotations

import contextlib
import gzip
import lzma
import random
import re
import struct
import tracemalloc
import zlib
from pathlib import Path
from typing import get_args

import pytest

from tfrkit.container.codec_deflate import CarefulInflate
from tfrkit.container.compression import (
    COMPRESSIONS,
    Compression,
    Deflater,
    InflateReader,
    Level,
    detect_compression,
    holds_other_data,
    inflate_head,
    is_frame_header,
)
from tfrkit.errors import CompressionError, StorageError
from tfrkit.storage.base import ByteReader
from tfrkit.storage.local import LocalReader
from tfrkit.storage.memory import MemoryReader
from tfrkit.testing.corruption import flip, flip_each_byte

FRAME_ABC = bytes.fromhex("0300000000000000 b099490e 616263 6e57f121")
FRAME_EMPTY = bytes.fromhex("0000000000000000 29039807 d8ea82a2")
PACKED: tuple[Compression, ...] = ("gzip", "zlib", "xz", "zstd")
MEMBERED: tuple[Compression, ...] = ("gzip", "xz", "zstd")


def make_text(num_lines: int, seed: int = 7) -> bytes:
    rng = random.Random(seed)
    return b"".join(b"%d:%d;" % (line, rng.randrange(977)) for line in range(num_lines))


def pack(data: bytes, compression: Compression, level: Level = "default") -> bytes:
    deflater = Deflater(compression, level)
    return deflater.write(data) + deflater.finish()


def read_all(reader: ByteReader, compression: Compression, nbytes: int = 1 << 20) -> bytes:
    stream = InflateReader(reader, compression)
    pieces = []
    while piece := stream.read(nbytes):
        assert len(piece) <= nbytes
        pieces.append(piece)
    assert stream.read(nbytes) == b""
    assert stream.inflated_nbytes == sum(map(len, pieces))
    return b"".join(pieces)


def unpack(data: bytes, compression: Compression, nbytes: int = 1 << 20) -> bytes:
    return read_all(MemoryReader(data, name="x"), compression, nbytes)


def unpack_until_damage(data: bytes, compression: Compression) -> tuple[bytes, CompressionError | None]:
    stream = InflateReader(MemoryReader(data, name="x"), compression)
    pieces = []
    try:
        while piece := stream.read(1000):
            pieces.append(piece)
    except CompressionError as error:
        with pytest.raises(CompressionError, match=re.escape(error.what)):
            stream.read(1000)
        return b"".join(pieces), error
    return b"".join(pieces), None


def inflate_bytewise(data: bytes, wbits: int) -> bytes:
    """Output of zlib before damage, read one byte at a time."""
    inflate = zlib.decompressobj(wbits)
    out = bytearray()
    rest = iter(data)
    try:
        while not inflate.eof:
            piece = inflate.decompress(inflate.unconsumed_tail, 1)
            if not piece and not inflate.eof:
                following = next(rest, None)
                if following is None:
                    break
                piece = inflate.decompress(bytes([following]), 1)
            out += piece
    except zlib.error:
        pass
    return bytes(out)


class Pipe:
    """A reader that can only go forward, in small pieces."""

    name = "-"
    size: int | None = None

    def __init__(self, data: bytes, step: int = 7) -> None:
        self._data = data
        self._step = step

    def span(self) -> None:
        return None

    def read_at(self, offset: int, nbytes: int) -> bytes:
        raise StorageError("a pipe")

    def read(self, nbytes: int) -> bytes:
        count = min(nbytes, self._step)
        piece, self._data = self._data[:count], self._data[count:]
        return piece

    def check_unchanged(self) -> None: ...
    def release(self, start: int, stop: int) -> None: ...
    def close(self) -> None: ...


class Remote(MemoryReader):
    """A sized reader without a span."""

    def span(self) -> None:
        return None


# --- detection ----------------------------------------------------------------------------------------


def test_compressions_match_their_type() -> None:
    assert get_args(Compression) == COMPRESSIONS


@pytest.mark.parametrize("frames", [FRAME_ABC, FRAME_EMPTY, FRAME_EMPTY + FRAME_ABC], ids=["abc", "empty", "both"])
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_detect_finds_each_compression_by_content(frames: bytes, compression: Compression) -> None:
    head = pack(frames, compression)
    assert detect_compression(head) == compression
    assert not holds_other_data(head, compression)
    assert inflate_head(head, compression) == frames


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_detect_empty_compressed_shard_is_readable(compression: Compression) -> None:
    head = pack(b"", compression)
    assert detect_compression(head) == compression
    assert not holds_other_data(head, compression)


@pytest.mark.parametrize("compression", PACKED)
def test_detect_long_stream_needs_only_its_head(compression: Compression) -> None:
    head = pack(FRAME_ABC * 1000 + random.Random(1).randbytes(50_000), compression)[:4096]
    assert detect_compression(head) == compression
    assert not holds_other_data(head, compression)


def test_detect_zlib_header_without_a_frame_is_none() -> None:
    assert detect_compression(zlib.compress(b"not a frame, but long enough")) is None


@pytest.mark.parametrize("level", range(10))
def test_detect_every_zlib_level_byte_is_zlib(level: int) -> None:
    assert detect_compression(zlib.compress(FRAME_ABC, level)) == "zlib"


@pytest.mark.parametrize("head", [b"a", FRAME_ABC[:11], flip(FRAME_ABC, 0), flip(FRAME_ABC, 8), b"hello world, hello"])
def test_detect_anything_else_is_none(head: bytes) -> None:
    assert detect_compression(head) is None


def test_frame_wins_over_a_gzip_magic() -> None:
    # A frame of 0x8b1f bytes starts with 1f 8b.
    head = bytes.fromhex("1f8b000000000000")
    from tfrkit import _native

    assert detect_compression(head + struct.pack("<I", _native.masked_crc32c(head))) == "none"


@pytest.mark.parametrize("compression", MEMBERED)
def test_gzip_of_something_else_is_not_a_tfrecord(compression: Compression) -> None:
    head = pack(b"{}" + bytes(1000), compression)
    assert detect_compression(head) == compression
    assert holds_other_data(head, compression)
    assert holds_other_data(pack(b"short", compression), compression)
    assert not holds_other_data(pack(FRAME_ABC, compression)[:12], compression)


def test_frame_header_needs_twelve_bytes() -> None:
    assert is_frame_header(FRAME_ABC[:12])
    assert not is_frame_header(FRAME_ABC[:11])
    assert not is_frame_header(b"")


def test_corpus_compressions_are_found(corpus: Path) -> None:
    folder = corpus / "google+yggdrasil-decision-forests/yggdrasil_decision_forests/test_data/dataset"
    cases = {
        corpus / "podgorskiy+DareBlopy/test_utils/test-small-gzip-r00.tfrecords": "zlib",
        folder / "toy.tfe-tfrecord-00000-of-00002": "gzip",
        folder / "toy.nocompress-tfe-tfrecord-00000-of-00002": "none",
    }
    for path, compression in cases.items():
        head = path.read_bytes()[:4096]
        assert detect_compression(head) == compression, path
        assert not holds_other_data(head, compression)  # type: ignore[arg-type]


# --- round trips --------------------------------------------------------------------------------------


@pytest.mark.parametrize("num_bytes", [0, 1, 255, 256, 65_535, 65_536, 131_072, 400_001])
@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_inflate_gives_back_what_was_deflated(compression: Compression, num_bytes: int) -> None:
    data = make_text(60_000)[:num_bytes]
    packed = pack(data, compression)
    for nbytes in (1 << 20, 65_537):
        assert unpack(packed, compression, nbytes) == data


@pytest.mark.parametrize("compression", PACKED)
def test_inflate_a_byte_at_a_time(compression: Compression) -> None:
    data = make_text(500)
    assert unpack(pack(data, compression), compression, 1) == data


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_inflate_readers_without_a_span_agree(compression: Compression) -> None:
    data = make_text(20_000)
    packed = pack(data[:-500], compression) + (pack(data[-500:], compression) if compression in MEMBERED else b"")
    expected = data if compression in MEMBERED else data[:-500]
    assert read_all(Pipe(packed), compression) == expected
    assert read_all(Remote(packed), compression) == expected


def test_inflate_local_file(tmp_path: Path) -> None:
    data = make_text(20_000)
    path = tmp_path / "shard"
    path.write_bytes(gzip.compress(data))
    reader = LocalReader(str(path))
    assert read_all(reader, "gzip") == data
    reader.close()


@pytest.mark.parametrize("level", ["default", "fast", "small", 1, 5, 9])
@pytest.mark.parametrize("compression", PACKED)
def test_every_level_is_read_by_the_standard_library(compression: Compression, level: Level) -> None:
    data = make_text(5000)
    packed = pack(data, compression, level)
    if compression == "gzip":
        assert gzip.decompress(packed) == data
    elif compression == "zlib":
        assert zlib.decompress(packed) == data
    elif compression == "xz":
        assert lzma.decompress(packed) == data
    assert unpack(packed, compression) == data


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
def test_levels_trade_size_for_speed(compression: Compression) -> None:
    data = make_text(50_000)
    reference = len(zlib.compress(data, 6))
    sizes = {level: len(pack(data, compression, level)) for level in ("default", "fast", "small")}
    # On data of this kind zlib's own levels differ by less than a thousandth.
    assert sizes["small"] <= sizes["default"] * 1.001 < sizes["fast"]
    assert sizes["default"] <= reference * 1.05  # 1 % on Examples; these digits are harder on it


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_deflate_pieces_of_any_buffer_is_one_stream(compression: Compression) -> None:
    deflater = Deflater(compression)
    packed = deflater.write(b"ab") + deflater.write(bytearray(b"cd")) + deflater.write(memoryview(b"ef"))
    packed += deflater.write(b"") + deflater.finish()
    assert unpack(packed, compression) == b"abcdef"
    assert deflater.finish() == b""
    with pytest.raises(ValueError, match="write to a finished compressed stream"):
        deflater.write(b"x")


def test_deflate_gzip_header_holds_no_time_and_no_name() -> None:
    assert pack(b"abc", "gzip")[:10] == bytes.fromhex("1f8b08000000000000ff")
    assert pack(b"abc", "gzip", "fast")[:10] == bytes.fromhex("1f8b08000000000000ff")
    assert pack(b"abc", "gzip") == pack(b"abc", "gzip")


@pytest.mark.parametrize(
    ("compression", "level"), [("gzip", 10), ("zlib", -1), ("xz", 10), ("zstd", 0), ("zstd", 23), ("gzip", "best")]
)
def test_deflate_unknown_level_raises(compression: Compression, level: Level) -> None:
    with pytest.raises(ValueError, match=rf"level of {compression} must be .*, got {level!r}"):
        Deflater(compression, level)


def test_unknown_compression_raises() -> None:
    with pytest.raises(ValueError, match="compression expected one of none, gzip, zlib, xz, zstd, got 'bz2'"):
        Deflater("bz2")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="compression expected one of none, gzip, zlib, xz, zstd, got 'bz2'"):
        InflateReader(MemoryReader(b""), "bz2")  # type: ignore[arg-type]


# --- members, padding, trailing bytes ---------------------------------------------------------------


@pytest.mark.parametrize("padding", [b"", bytes(4), bytes(512), bytes(100_000)], ids=len)
@pytest.mark.parametrize("compression", MEMBERED)
def test_members_with_zero_padding_read_as_one(compression: Compression, padding: bytes) -> None:
    packed = b"".join(pack(part, compression) + padding for part in (b"one", b"", b"two" * 1000))
    assert unpack(packed, compression) == b"one" + b"two" * 1000


def test_members_by_the_thousand_read_as_one() -> None:
    assert unpack(gzip.compress(b"ab") * 5000, "gzip") == b"ab" * 5000


def test_zlib_with_zero_padding_reads() -> None:
    assert unpack(zlib.compress(b"abc") + bytes(100), "zlib") == b"abc"


@pytest.mark.parametrize("compression", PACKED)
def test_garbage_after_the_stream_raises_after_all_data(compression: Compression) -> None:
    packed = pack(b"abc" * 100, compression)
    data, error = unpack_until_damage(packed + bytes(3) + b"garbage!", compression)
    assert data == b"abc" * 100
    assert str(error).split("\n")[0] == (
        f"expected the end of the file after the {compression} stream, got 67 61 72 62 61 67 65 21"
        f" - at x, byte {len(packed) + 3}"
    )
    assert error is not None
    assert (error.shard, error.offset) == ("x", len(packed) + 3)


def test_skippable_zstd_frame_is_skipped() -> None:
    skippable = b"\x50\x2a\x4d\x18" + struct.pack("<I", 5) + b"notes"
    assert unpack(pack(b"abc", "zstd") + skippable + pack(b"def", "zstd"), "zstd") == b"abcdef"


def test_gzip_with_name_comment_extra_and_header_crc_reads() -> None:
    flags = 2 | 4 | 8 | 16
    header = b"\x1f\x8b\x08" + bytes([flags]) + bytes(6) + struct.pack("<H", 4) + b"extr" + b"name\0" + b"comment\0"
    header += struct.pack("<H", zlib.crc32(header) & 0xFFFF)
    assert unpack(header + gzip.compress(b"abc")[10:], "gzip") == b"abc"


# --- damage -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compression", PACKED)
def test_every_truncation_gives_all_before_it_then_raises(compression: Compression) -> None:
    data = make_text(60)
    packed = pack(data, compression)
    for nbytes in range(len(packed)):
        found, error = unpack_until_damage(packed[:nbytes], compression)
        assert error is not None
        assert str(error).split("\n")[0] == (
            f"compressed stream ends early, {len(found)} bytes inflated before - at x, byte {nbytes}"
        )
        assert data.startswith(found)
        if compression in ("gzip", "zlib"):
            assert found == inflate_bytewise(packed[:nbytes], 31 if compression == "gzip" else 15)


@pytest.mark.parametrize(("compression", "wbits"), [("gzip", 31), ("zlib", 15)])
def test_every_flipped_byte_raises_or_is_harmless(compression: Compression, wbits: int) -> None:
    data = make_text(60)
    for offset, packed in flip_each_byte(pack(data, compression)):
        found, error = unpack_until_damage(packed, compression)
        if error is None:
            assert found == data, offset
        else:
            assert found == inflate_bytewise(packed, wbits), offset
            assert error.shard == "x"
            assert error.offset is not None
            assert 0 <= error.offset <= len(packed)


@pytest.mark.parametrize("compression", ["xz", "zstd"])
def test_every_flipped_byte_of_xz_and_zstd_raises_or_is_harmless(compression: Compression) -> None:
    data = make_text(60)
    for _, packed in flip_each_byte(pack(data, compression)):
        found, error = unpack_until_damage(packed, compression)
        assert error is not None or found == data


def test_damage_far_into_a_stream_loses_nothing_before_it() -> None:
    data = make_text(60_000)
    packed = bytearray(pack(data, "gzip"))
    middle = len(packed) // 2
    packed[middle : middle + 64] = bytes(64)
    found, error = unpack_until_damage(bytes(packed), "gzip")
    expected = inflate_bytewise(bytes(packed), 31)
    assert error is not None
    assert found == expected
    assert len(found) > 200_000
    assert error.offset is not None
    assert middle <= error.offset <= len(packed)


@pytest.mark.parametrize(("offset", "reason"), [(-8, "incorrect data check"), (-4, "incorrect length check")])
def test_gzip_trailer_mismatch_raises_after_all_data(offset: int, reason: str) -> None:
    data = make_text(30_000)
    packed = pack(data, "gzip")
    found, error = unpack_until_damage(flip(packed, len(packed) + offset), "gzip")
    assert found == data
    assert error is not None
    assert error.what == f"compressed stream is damaged, {reason}"
    assert error.offset is not None
    assert error.offset >= len(packed) - 8


def test_damage_in_a_later_member_keeps_the_earlier_ones() -> None:
    first = gzip.compress(b"first" * 1000, mtime=0)
    second = gzip.compress(make_text(1000), mtime=0)
    found, error = unpack_until_damage(first + flip(second, 3, 1) + b"", "gzip")
    assert found.startswith(b"first" * 1000)
    assert error is not None
    assert error.offset is not None
    assert error.offset >= len(first)


def test_damage_from_a_pipe_raises() -> None:
    packed = pack(make_text(60_000), "gzip")
    pipe = Pipe(flip(packed, len(packed) - 8), step=4096)
    with pytest.raises(CompressionError, match=r"compressed stream is damaged, .* - at -, byte \d+"):
        read_all(pipe, "gzip")


def test_wrong_compression_raises() -> None:
    with pytest.raises(CompressionError, match="compressed stream is damaged, incorrect header check - at x, byte"):
        unpack(b"this is no gzip file", "gzip")
    with pytest.raises(CompressionError, match="compressed stream ends early, 0 bytes inflated before - at x, byte 0"):
        unpack(b"", "gzip")


def test_xz_that_needs_too_much_memory_raises() -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 20}]
    packed = bytearray(lzma.compress(b"abc", format=lzma.FORMAT_XZ, check=lzma.CHECK_NONE, filters=filters))
    # Block header: size, flags, filter id, size of its properties, dictionary size code, padding, crc32.
    assert packed[12:16] == bytes([2, 0, 0x21, 1])
    packed[16] = 40  # 4 GiB - 1
    packed[20:24] = struct.pack("<I", zlib.crc32(bytes(packed[12:20])))
    with pytest.raises(CompressionError, match="compressed stream is damaged, memory usage limit exceeded"):
        unpack(bytes(packed), "xz")


@pytest.mark.resources
@pytest.mark.parametrize("compression", ["gzip", "zlib", "zstd"])
def test_bomb_reads_in_bounded_memory(compression: Compression) -> None:
    num_bytes = 200 << 20
    deflater = Deflater(compression, "fast")
    zeros = bytes(1 << 20)
    packed = b"".join([deflater.write(zeros) for _ in range(200)]) + deflater.finish()
    assert len(packed) < 4 << 20
    stream = InflateReader(MemoryReader(packed), compression)
    tracemalloc.start()
    try:
        while stream.read(1 << 30):
            pass
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert stream.inflated_nbytes == num_bytes
    assert peak < 4 << 20


def test_inflate_closed_reads_nothing() -> None:
    stream = InflateReader(MemoryReader(pack(b"abc", "gzip")), "gzip")
    stream.close()
    assert stream.read(10) == b""
    assert stream.read(0) == b""


@pytest.mark.parametrize("max_length", [1, 7, 300, 1 << 20])
def test_careful_inflate_gives_every_byte_before_damage(max_length: int) -> None:
    data = b"".join(b"%d " % (number * number) + b"a" * (number % 300) for number in range(600))
    deflated = zlib.compress(data)
    for at in [2, 3, 50, len(deflated) // 2, len(deflated) - 9, *range(len(deflated) - 4, len(deflated))]:
        # The slow twin reads one byte at a time, so that nothing is lost.
        damaged = deflated[:at] + bytes([deflated[at] ^ 0xFF]) + deflated[at + 1 :]
        twin, expected, num_fed = zlib.decompressobj(), b"", 0
        with contextlib.suppress(zlib.error):
            for number in range(len(damaged)):
                num_fed = number + 1
                left = damaged[number:num_fed]
                while piece := twin.decompress(left, 1):
                    expected += piece
                    left = twin.unconsumed_tail
        codec, given, message = CarefulInflate(zlib.MAX_WBITS), b"", ""
        try:
            piece = codec.decompress(damaged, max_length)
            while piece:
                given += piece
                piece = codec.decompress(b"", max_length)
        except zlib.error as error:
            message = str(error)
        assert message.startswith("Error -3"), at
        # zlib looks one symbol ahead: if a call stops right before the damage, its last byte is lost.
        assert expected.startswith(given), at
        assert len(expected) - len(given) <= (max_length < 300), at
        assert abs(len(damaged) - len(codec.unused_data) - num_fed) <= (max_length < 300), at
