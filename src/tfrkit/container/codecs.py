"""The table of compressions: their names, suffixes, first bytes, levels and codecs.

To add a compression, add a row here, its codec in a file of its own, and its name to `Compression`.
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
"""Names that users may pass: ours, TensorFlow's, and file suffixes."""

Level = Literal["default", "fast", "small"] | int


@dataclass(frozen=True)
class CompressionFormat:
    """The properties of one compression.

    Attributes:
        name: Our name. Its position in the table is its number in index files, so new rows are added at the end.
        suffixes: File name suffixes; the first is used for new files.
        noun: Noun for messages about a compressed file that is not a TFRecord: "a gzip" of a tar archive.
        magic: The first bytes of a file; empty if they are not fixed.
        member_magic: The first bytes of a member, if more of them are fixed than in `magic`.
        skippable: Bytes 1 to 3 of a member without content, whose first byte is 0x50 to 0x5f.
        tensorflow: TensorFlow's name; None if TensorFlow cannot read it.
        levels: The numbers of "default", "fast" and "small".
        level_range: The lowest and the highest level number.
        is_deflate: It has inflate checkpoints, its blocks can be deflated on several threads, and both take little
            memory. Random access to other compressions unpacks the shard to a temporary file.
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
    """Return the compression named by the suffix of a path: "gzip" for x.tfrecord.gz, None for x.tfrecord."""
    return _SUFFIXES.get(path.rpartition(".")[2].lower()) if "." in path else None


def compression_of_magic(head: bytes) -> Compression | None:
    """Return the compression whose magic a file starts with, or None; zlib has no magic."""
    return next((row.name for row in _ROWS if row.magic and head.startswith(row.magic)), None)


def read_compression(word: str | None) -> Compression | None:
    """Parse a compression name, ignoring case. None stays None: the suffix of the file name decides.

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
    """Return the codec of a compression; raise ValueError for an unknown one and for "none"."""
    row = FORMATS.get(compression)
    if row is None or row.codec is None:
        raise ValueError(f"compression expected one of {', '.join(COMPRESSIONS)}, got {compression!r}")
    return row.codec


def codec_errors(compression: Compression) -> tuple[type[Exception], ...]:
    """Return the exceptions that the decompressors of a compression raise for damaged data."""
    return () if compression == "none" else find_codec(compression).errors


def explain_damage(error: Exception) -> str:
    """Return the message of a decompressor's error without its prefix: "invalid block type"."""
    reason = str(error).rsplit(": ", 1)[-1].strip().rstrip(".")
    return reason[:1].lower() + reason[1:]


def open_codec(compression: Compression, *, careful: bool = False) -> Codec:
    """Return a decompressor for a new stream. A careful one returns every byte before damage."""
    return find_codec(compression).open(careful=careful)


def starts_member(head: bytes, compression: Compression) -> bool:
    """Whether the bytes after a finished member start another one. A truncated magic counts as a start."""
    row = FORMATS[compression]
    if row.skippable and head[0] & 0xF0 == 0x50 and row.skippable.startswith(head[1:4]):
        return True
    return bool(row.magic) and row.magic.startswith(head[: len(row.magic)])


def level_number(compression: Compression, level: Level) -> int:
    """Convert a level to the codec's own number; raise ValueError if it is out of range."""
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
