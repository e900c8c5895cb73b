"""The likely type of a file that is not a TFRecord, for messages.

Only the content counts, not the file name. The most reliable checks are first, plain text is last.
"""

from __future__ import annotations

import itertools
import re
import struct
from typing import Final

from tfrkit import _native
from tfrkit.container.codecs import FORMATS, Compression, compression_of_magic
from tfrkit.container.compression import inflate_head, is_zlib_header
from tfrkit.storage.git_lfs import REMEDY, describe_pointer

# Fixed bytes at the start of a file.
_STARTS: Final[tuple[tuple[bytes, str], ...]] = (
    # The signature chunk of Riegeli/records, on which ArrayRecord is built.
    (b"\x83\xaf\x70\xd1\x0d\x88\x4a\x3f", "an ArrayRecord (Riegeli) file"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1\0\0", "an Arrow IPC file"),
    (b"FEA1", "a Feather file"),
    (b"Obj\x01", "an Avro file"),
    (b"ORC", "an ORC file"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
    (b"\x93NUMPY", "a NumPy array file (npy)"),
    (b"SQLite format 3\0", "a SQLite database"),
    (b"\x0a\x23\xd7\xce", "an MXNet RecordIO file"),
    (b"TFRKIDX\n", "a tfrkit index"),
    (b"GZIDX", "an index of indexed_gzip"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"%PDF-", "a PDF document"),
    (b"\x7fELF", "a program (ELF)"),
    (b"BZh", "a bzip2 file"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"\x04\x22\x4d\x18", "an LZ4 file"),
    (b"\xff\x06\0\0sNaPpY", "a framed Snappy file"),
)

# Fixed bytes at the end.
_ENDS: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\x57\xfb\x80\x8b\x24\x75\x47\xdb", "a LevelDB table (SSTable), as TensorFlow checkpoints use for their index"),
    (b"\xf7\xcf\xf4\x85\xb7\x41\xe2\x88", "a RocksDB table (SSTable)"),
)

# No file is compressed more than three times by accident; a hostile one may be.
_MAX_LAYERS: Final = 3


def describe_foreign(head: bytes, size: int | None, *, tail: bytes = b"") -> str | None:
    """Return the likely type of a file as a noun phrase ("a Parquet file"), or None.

    `head` is about the first 4 KiB, `size` the file size if known, `tail` the last bytes, for formats with a signature
    at the end. REQUIRES: the file does not start with a valid frame (not checked).

    Example:
        >>> describe_foreign(b"PAR1" + bytes(100), 104)
        'a Parquet file'
    """
    return _describe(head, size, tail, _MAX_LAYERS)


def suggest_remedy(head: bytes) -> str | None:
    """Return the hint for a file that is not a TFRecord, or None."""
    return None if describe_pointer(head) is None else REMEDY


def _describe(head: bytes, size: int | None, tail: bytes, layers: int) -> str | None:
    if not head:
        return "an empty file"
    if size is not None and size <= len(head):
        tail = head[:size]
    pointer = describe_pointer(head)
    if pointer is not None:
        return pointer
    for start, words in _STARTS:
        if head.startswith(start):
            return words
    return (
        _describe_compressed(head, layers)
        or _describe_archive(head)
        or _describe_store(head, size, tail)
        or _describe_text(head)
    )


def _describe_compressed(head: bytes, layers: int) -> str | None:
    # A zlib header has only two bytes; a known file type inside confirms it.
    found = compression_of_magic(head) or ("zlib" if is_zlib_header(head) else None)
    if found is None:
        return None
    inner = _describe_inside(head, found, layers)
    # If the type inside is unknown, this may be a damaged shard: reading it will report the damage.
    return f"{FORMATS[found].noun} of {inner}" if inner else None


def _describe_inside(head: bytes, compression: Compression, layers: int) -> str | None:
    inside = inflate_head(head, compression)
    return _describe(inside, None, b"", layers - 1) if inside and layers > 1 else None


def _describe_archive(head: bytes) -> str | None:
    if head[257:262] == b"ustar":
        return "a tar archive (WebDataset?)"
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        name_nbytes = int.from_bytes(head[26:28], "little")
        return "a NumPy archive (npz)" if head[30 : 30 + name_nbytes].endswith(b".npy") else "a zip archive"
    if head.startswith(b"RIFF"):
        return {b"WEBP": "a WebP image", b"WAVE": "a WAV sound file"}.get(head[8:12], "a RIFF file")
    # Opcodes of protocols 2 to 5, then a frame or the first object.
    if re.match(rb"\x80[\x02-\x05][\x95}\](cK]", head):
        return "a Python pickle"
    return None


def _describe_store(head: bytes, size: int | None, tail: bytes) -> str | None:
    for end, words in _ENDS:
        if tail.endswith(end):
            return words
    # Blob sequence of Yggdrasil: "BS", version (0 or 1), compression (0 or 1) and zeros.
    if re.match(rb"BS[\x00\x01]\x00[\x00\x01]\x00{3}", head):
        return "a Yggdrasil (YDF) blob sequence"
    if head[16:20] == b"\xde\xc0\xef\xbe":
        return "an LMDB database"
    if _starts_object_graph(head):
        return "the data file of a TensorFlow checkpoint"
    if size is not None and _ends_as_bagz(size, tail):
        return "a Bagz file"
    return None


def _starts_object_graph(head: bytes) -> bool:
    """Whether the file starts with a string tensor of a checkpoint: varint length, masked crc32c of it as u32."""
    length = 0
    for index, byte in enumerate(head[:5]):
        length |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            stored = head[index + 1 : index + 5]
            if length >= 1 << 32 or len(stored) < 4:
                return False
            return bool(_native.masked_crc32c(struct.pack("<I", length)) == int.from_bytes(stored, "little"))
    return False


def _ends_as_bagz(size: int, tail: bytes) -> bool:
    """Whether the file ends with a list of u64 record ends, the last of which is the start of the list."""
    if len(tail) < 16:
        return False
    count = len(tail) // 8
    limits = struct.unpack(f"<{count}Q", tail[len(tail) - 8 * count :])
    start = limits[-1]
    if not 0 < start <= size - 8 or (size - start) % 8:
        return False
    ends = limits[-min(count, (size - start) // 8) :]
    return all(low <= high for low, high in itertools.pairwise(ends))


def _describe_text(head: bytes) -> str | None:
    text = _decode_text(head)
    if text is None:
        return None
    start = text.lstrip("\ufeff \t\r\n")
    lower = start[:64].lower()
    if lower.startswith(("<!doctype html", "<html", "<head", "<body")):
        return "an HTML page"
    if lower.startswith(("<?xml", "<!doctype", "<!--")) or re.match(r"<[a-z][\w:.-]*[\s/>]", lower):
        return "an XML document"
    if re.match(r'\{\s*["}]|\[\s*(?:[\[{"\]\d-]|true|false|null)', start):
        return "a JSON document"
    if re.match(r"0 \d+\n(?:\d+ \d+\n)*\d* ?\d*\Z", text):
        return "a DALI index"
    return "a text file"


def _decode_text(head: bytes) -> str | None:
    """Decode the head as text; None if it is not UTF-8 or has control characters."""
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        # The head may end inside a character.
        if error.start < len(head) - 3 or error.reason != "unexpected end of data":
            return None
        text = head[: error.start].decode("utf-8")
    has_controls = any(char < " " and char not in "\t\n\r\f\x1b" for char in text) or "\x7f" in text
    return None if has_controls or not text else text
