"""zlib in place of ISA-L and zlib-ng: the same bytes inflated, the same checksums."""

from __future__ import annotations

import random
import zlib

import pytest

from tfrkit import _deflate

pytest.importorskip("isal")

DATA = random.Random(0).randbytes(3000) * 40 + bytes(100_000)


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("igzip_lib", "isal_zlib", "zlib_ng"):
        monkeypatch.setattr(_deflate, name, None)


def inflate(codec, data: bytes, feed: int, nbytes: int) -> bytes:
    pieces, offset = [], 0
    while not codec.eof:
        chunk = data[offset : offset + feed] if codec.needs_input else b""
        offset += len(chunk)
        pieces.append(codec.decompress(chunk, nbytes))
        assert len(pieces[-1]) <= nbytes
        assert pieces[-1] or chunk or codec.eof
    assert codec.unused_data + data[offset:] == b"after"
    return b"".join(pieces)


@pytest.mark.parametrize(("feed", "nbytes"), [(1, 7), (512, 100_000), (1 << 20, 1), (1 << 20, 1 << 22), (999, 4096)])
@pytest.mark.parametrize("wrapper", ["gzip", "zlib", "none"])
@pytest.mark.parametrize("fast", [True, False])
def test_what_either_deflates_the_other_inflates(wrapper, fast, feed, nbytes, monkeypatch):
    data = DATA[:3000] if nbytes < 100 else DATA
    fast_codec = _deflate.open_inflate(wrapper)
    deflated = _deflate.open_deflate(wrapper, 1, fast=fast)
    by_fast = deflated.compress(data) + deflated.flush() + b"after"
    for name in ("igzip_lib", "isal_zlib", "zlib_ng"):
        monkeypatch.setattr(_deflate, name, None)
    deflated = _deflate.open_deflate(wrapper, 1, fast=fast)
    by_plain = deflated.compress(data) + deflated.flush() + b"after"
    assert inflate(_deflate.open_inflate(wrapper), by_fast, feed, nbytes) == data
    assert inflate(fast_codec, by_plain, feed, nbytes) == data


def test_damage_raises_one_of_the_listed_errors(plain):
    with pytest.raises(_deflate.INFLATE_ERRORS, match="invalid"):
        _deflate.open_inflate("none").decompress(b"\xff" * 100, 100)


@pytest.mark.parametrize("nbytes", [0, 1, 3, 1000, 123_456])
def test_combined_crc32_is_that_of_the_whole(nbytes, plain):
    start, rest = DATA[:777], DATA[777 : 777 + nbytes]
    assert _deflate.combine_crc32(zlib.crc32(start), zlib.crc32(rest), nbytes) == zlib.crc32(start + rest)
