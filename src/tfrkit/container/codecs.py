"""The table of compressions: their names, suffixes, first bytes, levels and codecs.

A new one is a row here, its codec in a file of its own, and its name in `Compression`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal

from tfrkit.container.codec import Codec, StreamCodec
from tfrkit.container.codec_deflate import DeflateCodec
from tfrkit.container.codec_xz import XzCodec
from tfrkit.container.codec_zstd import ZstdCodec

Compression = Literal["none", "gzip", "zlib", "xz", "zstd"]

CompressionWord = Compression | Literal["", "gz", "GZIP", "ZLIB", "XZ", "ZSTD"]
"""What a user may call one: also as TensorFlow does, and as files are called."""

Level = Literal["default", "fast", "small"] | int


@dataclass(frozen=True)
class CompressionFormat:
    """What there is to know about one compression.

    Attributes:
        name: Ours. Its place in the table is its number in an index file: rows are added at the end.
        suffixes: How a file name ends; the first one is written.
        noun: What a file is called that holds something else.
        magic: The first bytes of a file; empty where a fixed start does not tell.
        member_magic: The first bytes of a member, where these are more certain than those of a file.
        skippable: Bytes 1 to 3 of a member without content, whose first byte is 0x50 to 0x5f.
        tensorflow: TensorFlow's name; None where TensorFlow does not read it.
        levels: The numbers of "default", "fast" and "small", and the lowest and highest one.
        is_deflate: It has inflate checkpoints, its blocks can be deflated on several threads, and both take little
            memory. Others are unpacked to a file to read from the middle.
    """

    name: Compression
    codec: StreamCodec | None
    suffixes: tuple[str, ...] = ()
    noun: str = ""
    magic: bytes = b""
    member_magic: bytes = b""
    skippable: bytes = b""
    tensorflow: str | None = None
    levels: tuple[int, int, int] = (0, 0, 0)
    level_range: tuple[int, int] = (0, 0)
    is_deflate: bool = False


_ROWS: Final = (
    CompressionFormat("none", None, tensorflow=""),
    CompressionFormat(
        "gzip",
        DeflateCodec(is_gzip=True),
        suffixes=("gz", "gzip"),
        noun="a gzip",
        magic=b"\x1f\x8b",
        member_magic=b"\x1f\x8b\x08",  # with the method, which is always deflate
        tensorflow="GZIP",
        levels=(5, 1, 9),
        level_range=(0, 9),
        is_deflate=True,
    ),
    CompressionFormat(
        "zlib",
        DeflateCodec(is_gzip=False),
        suffixes=("zlib",),
        noun="a zlib stream",
        tensorflow="ZLIB",
        levels=(5, 1, 9),
        level_range=(0, 9),
        is_deflate=True,
    ),
    CompressionFormat(
        "xz",
        XzCodec(),
        suffixes=("xz",),
        noun="an xz file",
        magic=b"\xfd7zXZ\0",
        levels=(6, 1, 9),
        level_range=(0, 9),
    ),
    CompressionFormat(
        "zstd",
        ZstdCodec(),
        suffixes=("zst", "zstd"),
        noun="a zstd file",
        magic=b"\x28\xb5\x2f\xfd",
        skippable=b"\x2a\x4d\x18",
        levels=(3, 1, 19),
        level_range=(1, 22),
    ),
)

FORMATS: Final[Mapping[str, CompressionFormat]] = MappingProxyType({row.name: row for row in _ROWS})
COMPRESSIONS: Final[tuple[Compression, ...]] = tuple(row.name for row in _ROWS)

_SUFFIXES: Final = {suffix: row.name for row in _ROWS for suffix in row.suffixes}
SUFFIX_PATTERN: Final = rf"\.({'|'.join(_SUFFIXES)})"
WRITTEN_SUFFIXES: Final = tuple(f".{row.suffixes[0]}" for row in _ROWS if row.suffixes)


def compression_of_name(path: str) -> Compression | None:
    """The compression that the suffix of a name stands for: "gzip" for x.tfrecord.gz, None for x.tfrecord."""
    return _SUFFIXES.get(path.rpartition(".")[2].lower()) if "." in path else None


def compression_of_magic(head: bytes) -> Compression | None:
    """The compression whose fixed first bytes a file has; zlib has none."""
    return next((row.name for row in _ROWS if row.magic and head.startswith(row.magic)), None)


def read_compression(word: str | None) -> Compression | None:
    """The compression that a user asks for, in any case; None stays None: as the name of the file ends.

    Example:
        >>> read_compression("GZIP"), read_compression("gz"), read_compression(""), read_compression(None)
        ('gzip', 'gzip', 'none', None)
    """
    if word is None:
        return None
    asked = word.lower() if isinstance(word, str) else word
    found = FORMATS[asked].name if asked in FORMATS else "none" if asked == "" else _SUFFIXES.get(asked)
    if found is None:
        raise ValueError(f"compression expected one of {', '.join(COMPRESSIONS)}, got {word!r:.64}")
    return found


def find_codec(compression: Compression) -> StreamCodec:
    """The codec of a compression; raises ValueError for an unknown one, and for "none"."""
    row = FORMATS.get(compression)
    if row is None or row.codec is None:
        raise ValueError(f"compression must be one of {', '.join(COMPRESSIONS)}, got {compression!r}")
    return row.codec


def codec_errors(compression: Compression) -> tuple[type[Exception], ...]:
    """What this compression's decompressors raise for damage."""
    return () if compression == "none" else find_codec(compression).errors


def explain_damage(error: Exception) -> str:
    """What a decompressor found, without its prefix: "invalid block type"."""
    reason = str(error).rsplit(": ", 1)[-1].strip().rstrip(".")
    return reason[:1].lower() + reason[1:]


def open_codec(compression: Compression, *, careful: bool = False) -> Codec:
    """A decompressor before a stream. A careful one gives every byte before damage."""
    return find_codec(compression).open(careful=careful)


def starts_member(head: bytes, compression: Compression) -> bool:
    """Whether bytes after a finished stream start another one. A cut-off magic counts as a start."""
    row = FORMATS[compression]
    if row.skippable and head[0] & 0xF0 == 0x50 and row.skippable.startswith(head[1:4]):
        return True
    return bool(row.magic) and row.magic.startswith(head[: len(row.magic)])


def level_number(compression: Compression, level: Level) -> int:
    """The codec's own number for a level."""
    find_codec(compression)
    row = FORMATS[compression]
    named = dict(zip(("default", "fast", "small"), row.levels, strict=True))
    if isinstance(level, str) and level in named:
        return named[level]
    low, high = row.level_range
    if isinstance(level, int) and not isinstance(level, bool) and low <= level <= high:
        return level
    raise ValueError(
        f"level of {compression} must be 'default', 'fast', 'small' or a number from {low} to {high}, got {level!r}"
    )
