"""Stream compressors."""

from __future__ import annotations

from tfrkit.container.codecs import Compression, Level, find_codec, level_number


class Deflater:
    """A stream compressor: the file is the concatenation of the results of `write` and `finish`.

    Equal calls give equal output: no timestamp or file name is written. `level` is "default", "fast", "small" or the
    codec's own number; `container.codecs` lists the numbers. Not thread-safe.

    Example:
        >>> import zlib
        >>> deflater = Deflater("zlib")
        >>> zlib.decompress(deflater.write(b"abc") + deflater.finish())
        b'abc'
    """

    def __init__(self, compression: Compression, level: Level = "default") -> None:
        self._compressor = None
        if compression != "none":
            number = level_number(compression, level)
            self._compressor = find_codec(compression).compress(number, fast=level == "fast")
        self._is_finished = False

    def write(self, data: bytes | bytearray | memoryview) -> bytes:
        """Add data; return the compressed bytes that are ready, often none."""
        if self._is_finished:
            raise ValueError("write to a finished compressed stream")
        return bytes(data) if self._compressor is None else self._compressor.compress(data)

    def finish(self) -> bytes:
        """End the stream; return the rest of its bytes."""
        if self._is_finished or self._compressor is None:
            self._is_finished = True
            return b""
        self._is_finished = True
        return self._compressor.flush()
