"""xz streams, using Python's lzma module."""

from __future__ import annotations

import lzma
from typing import Final

from tfrkit.container.codec import Codec, Compressor

# An .xz file declares its own dictionary size; level 9 needs 65 MiB, a hostile file may ask for 4 GiB.
_MEMORY_LIMIT: Final = 256 << 20


class XzCodec:
    """xz."""

    errors: tuple[type[Exception], ...] = (lzma.LZMAError,)

    def open(self, *, careful: bool) -> Codec:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=_MEMORY_LIMIT)

    def compress(self, level: int, *, fast: bool) -> Compressor:
        # Every decoder supports CRC32, and the frames inside have their own checksums.
        return lzma.LZMACompressor(lzma.FORMAT_XZ, check=lzma.CHECK_CRC32, preset=level)
