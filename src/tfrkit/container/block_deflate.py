"""One gzip or zlib stream, compressed on several threads.

The data is cut into blocks of 1 MiB. Each block is deflated separately, with the preceding 32 KiB as its dictionary,
and ends with an empty stored block on a byte boundary, so the concatenated blocks form one deflate stream with one
header and one checksum. Several members would not do: TensorFlow's zlib reader stops after the first.

Every block start is a checkpoint, so an index with checkpoints needs no second pass.
"""

from __future__ import annotations

import struct
import zlib
from collections import deque
from typing import TYPE_CHECKING, Final

from tfrkit import _deflate
from tfrkit.container.checkpoints import pack_checkpoints
from tfrkit.container.codec_deflate import GZIP_HEADER
from tfrkit.container.codecs import Compression, Level, level_number

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

Data = bytes | bytearray | memoryview

# Blocks of 256 KiB make the file 0.3 % larger; blocks of 4 MiB leave threads idle at the end of small files.
BLOCK_NBYTES: Final = 1 << 20
_WINDOW_NBYTES: Final = 32 << 10
# A window of 32 KiB, no dictionary, "default" level; as a big-endian number the two bytes are a multiple of 31.
_ZLIB_HEADER: Final = b"\x78\x9c"


class BlockDeflater:
    """A stream compressor: the file is the concatenation of the results of `write` and `finish`.

    Equal input gives equal output, however it is split into calls and for any number of threads. Call it from one
    thread at a time; blocks are compressed in `pool`, at most `ahead` in parallel.

    Example:
        >>> from concurrent.futures import ThreadPoolExecutor
        >>> with ThreadPoolExecutor(2) as pool:
        ...     deflater = BlockDeflater("zlib", pool=pool, ahead=4)
        ...     zlib.decompress(deflater.write(b"abc") + deflater.finish())
        b'abc'
    """

    def __init__(self, compression: Compression, level: Level = "default", *, pool: Executor, ahead: int = 4) -> None:
        self._is_gzip = compression == "gzip"
        self._level = level_number(compression, level)
        self._is_fast = level == "fast"
        self._pool = pool
        self._ahead = max(1, ahead)
        self._pending = bytearray()
        self._window = b""
        self._running: deque[tuple[int, Future[tuple[bytes, bytes]]]] = deque()
        self._points: list[tuple[int, int, int, bytes]] = []
        self._checksum = 0 if self._is_gzip else 1
        self._num_cut = 0  # bytes in blocks so far
        self._num_stored = 0
        self._header = GZIP_HEADER if self._is_gzip else _ZLIB_HEADER

    def write(self, data: Data) -> bytes:
        """Add data; return the compressed bytes that are ready, often none."""
        view = memoryview(data).cast("B")
        self._checksum = (_deflate.crc32 if self._is_gzip else _deflate.adler32)(view, self._checksum)
        out = [self._take_header()]
        for start in range(0, len(view), BLOCK_NBYTES):
            self._pending += view[start : start + BLOCK_NBYTES]
            # Wait for one byte more than a block: the last block is marked as final and should not be empty.
            if len(self._pending) > BLOCK_NBYTES:
                block = bytes(memoryview(self._pending)[:BLOCK_NBYTES])
                del self._pending[:BLOCK_NBYTES]
                out += self._submit(block, is_last=False)
        return b"".join(out)

    def finish(self) -> bytes:
        """End the stream; return the rest of its bytes."""
        out = [self._take_header(), *self._submit(bytes(self._pending), is_last=True)]
        self._pending.clear()
        while self._running:
            out.append(self._take())
        nbytes = self._num_cut & 0xFFFFFFFF
        out.append(struct.pack("<II", self._checksum, nbytes) if self._is_gzip else struct.pack(">I", self._checksum))
        return b"".join(out)

    def checkpoints(self) -> bytes:
        """Return the checkpoints of the finished stream, packed for an index."""
        return pack_checkpoints(self._points, self._num_cut)

    def _submit(self, block: bytes, *, is_last: bool) -> list[bytes]:
        future = self._pool.submit(_deflate_block, block, self._window, self._level, self._is_fast, is_last)
        self._running.append((self._num_cut, future))
        self._num_cut += len(block)
        self._window = (self._window + block)[-_WINDOW_NBYTES:]
        return [self._take() for _ in range(len(self._running) - self._ahead)]

    def _take(self) -> bytes:
        start, future = self._running.popleft()
        deflated, window = future.result()
        if start:
            self._points.append((start, self._num_stored, 0, window))
        self._num_stored += len(deflated)
        return deflated

    def _take_header(self) -> bytes:
        header, self._header = self._header, b""
        self._num_stored += len(header)
        return header


def _deflate_block(block: bytes, window: bytes, level: int, is_fast: bool, is_last: bool) -> tuple[bytes, bytes]:
    """Return the deflated block, ending on a byte boundary, and the compressed window before it for an index."""
    deflate = _deflate.open_deflate("none", level, fast=is_fast, window=window)
    data = deflate.compress(block) + deflate.flush(zlib.Z_FINISH if is_last else zlib.Z_SYNC_FLUSH)
    return data, zlib.compress(window, 1) if window else b""
