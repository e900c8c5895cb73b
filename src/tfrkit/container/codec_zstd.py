"""zstd streams, using the zstd module of Python 3.14 or its backport."""

from __future__ import annotations

import importlib
import sys
from typing import Any

from tfrkit.container.codec import Codec, Compressor


class ZstdCodec:
    """zstd. The library is imported on first use: few shards are zstd, and `import tfrkit` should stay fast."""

    @property
    def errors(self) -> tuple[type[Exception], ...]:
        return (_load().ZstdError,)

    def open(self, *, careful: bool) -> Codec:
        codec: Codec = _load().ZstdDecompressor()
        return codec

    def compress(self, level: int, *, fast: bool) -> Compressor:
        module = _load()
        parameter = module.CompressionParameter
        options = {parameter.compression_level: level, parameter.checksum_flag: 1}
        compressor: Compressor = module.ZstdCompressor(options=options)
        return compressor


def _load() -> Any:
    return importlib.import_module("compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd")
