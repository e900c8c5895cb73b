"""Frame offsets of a shard: the `.tfidx` sidecar, and DALI's `.idx` text files, which are only written.

A `.tfidx` file is at `<folder>/_index/<shard name>.tfidx`. All numbers are little-endian:

    byte  size  what
       0     8  magic, "TFRKIDX\\n"
       8     4  version, 2
      12     4  flags, bit 0: inflate checkpoints follow the offsets
      16     8  size of the shard as stored
      24    16  fingerprint: blake2b-128 of (size as u64, first 4 KiB, last 4 KiB of the shard)
      40     8  number of records
      48     8  size of all frames after inflating; the shard's size if it is not compressed
      56     4  compression: 0 none, 1 gzip, 2 zlib, 3 xz, 4 zstd
      60     4  kind of records: 0 not known, 1 example, 2 sequence_example, 3 raw, 4 mixed
      64     8  size of the checkpoints, 0 if there are none
      72     4  crc32c of the checksums of the pages
      76     4  crc32c of the checkpoints
      80     4  records per page
      84     8  zero
      92     4  crc32c of bytes 0 to 92
      96   4*p  crc32c of each page of offsets, followed by zeros up to a multiple of 8 bytes
       q   8*n  start of each frame after inflating, ascending
   q+8*n        checkpoints, see `container.checkpoints`

A page is checked when one of its records is first picked, so that one record of a large shard costs one page. In
version 1, which is still read, there are no pages: the offsets start at byte 96, and byte 72 has the checksum of all.

The mtime of the shard is not included, so a copied dataset keeps its index. A change that keeps size, head and tail is
not detected here; the frame checksums detect it on reading.
"""

from __future__ import annotations

import bisect
import contextlib
import hashlib
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, Final, Literal

import numpy as np

from tfrkit import _native, _platform
from tfrkit._limits import LIMITS
from tfrkit.container.compression import COMPRESSIONS, Compression
from tfrkit.container.index_pages import FetchedPages, IndexPages, sum_pages
from tfrkit.errors import StaleIndexError, StorageError
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.base import ByteReader, explain_os_error
from tfrkit.storage.local import LocalWriter
from tfrkit.storage.lookup import read_file

RecordKind = Literal["unknown", "example", "sequence_example", "raw", "mixed"]
Offsets = np.ndarray[Any, np.dtype[np.uint64]]

_MAGIC: Final = b"TFRKIDX\n"
_VERSION: Final = 2
_PAGE_RECORDS: Final = 2048  # 16 KiB
_HAS_CHECKPOINTS: Final = 1
_HEADER: Final = struct.Struct("<8sIIQ16sQQIIQIII8x")
_HEADER_NBYTES: Final = _HEADER.size + 4  # the checksum of the rest
FRAME_OVERHEAD: Final = 8 + 4 + 4  # length, its checksum, the payload's checksum
INDEX_FOLDER: Final = "_index"  # next to the shards: indexes, and the sidecars of a single-file dataset
_FINGERPRINT_SPAN: Final = 4 << 10
_KINDS: Final[tuple[RecordKind, ...]] = ("unknown", "example", "sequence_example", "raw", "mixed")
# Offsets are checked in pieces, so that 10^8 of them need no second copy in memory.
_CHECKED_AT_ONCE: Final = 1 << 20


@dataclass(frozen=True, eq=False, slots=True)
class ShardIndex:
    """Frame offsets of one shard, in the uncompressed stream. In an index read from a file, `offsets` is read-only."""

    num_records: int
    offsets: Offsets
    compression: Compression
    inflated_size: int
    checkpoints: bytes | None
    shard_nbytes: int
    kind: RecordKind = "unknown"
    skipped: tuple[int, ...] = ()
    """Damaged places that the scan left out: for each the number of frames listed before it. Never in a file."""
    pages: IndexPages | None = None
    """Checks offsets before they are used, in an index that was read lazily; None if all were checked."""

    def require(self, start: int, stop: int) -> None:
        """Raise `StaleIndexError` if an offset of the records [start, stop) is damaged. Costs one pass, once."""
        if self.pages is not None:
            self.pages.require(start, stop)

    def expect(self, records: Sequence[int]) -> None:
        """Request the pages with the starts and ends of these records together, if they are in a store."""
        if isinstance(self.pages, FetchedPages):
            self.pages.expect(records)

    @property
    def is_fetched(self) -> bool:
        """Whether its pages are requested when they are used."""
        return isinstance(self.pages, FetchedPages)

    def record_of(self, ordinal: int) -> int:
        """Return the number in the shard of a listed frame. Every place that was left out counts as one record."""
        return ordinal + bisect.bisect_right(self.skipped, ordinal)


def index_path(shard_path: str) -> str:
    """Return the path of the index of a local shard, in an underscore folder that `train*` does not match."""
    folder, name = os.path.split(shard_path)
    return os.path.join(folder, INDEX_FOLDER, f"{name}.tfidx")


def cache_path(shard_path: str) -> str:
    """Return the path of a shard's index in the user's cache."""
    place = shard_path if has_scheme(shard_path) else os.path.abspath(shard_path)
    name = hashlib.blake2b(os.fsencode(place), digest_size=16).hexdigest()
    return f"{_find_cache(os.environ.get('XDG_CACHE_HOME', ''), os.environ.get('HOME', ''))}{name}.tfidx"


@lru_cache
def _find_cache(base: str, home: str) -> str:
    """Return the folder of cached indexes, with a trailing slash. Cached, because it is called once per shard."""
    if not os.path.isabs(base):  # the XDG specification ignores relative paths
        base = os.path.join(home or os.path.expanduser("~"), ".cache")
    return os.path.join(base, "tfrkit", "index", "")


def fingerprint_shard(shard: ByteReader, *, fresh: bool = False) -> bytes:
    """Return 16 bytes that change with the size, the first or the last 4 KiB of a shard."""
    size = shard.size
    if size is None:
        raise StorageError("expected a file, got a pipe, which has no index", shard=shard.name)
    digest = hashlib.blake2b(struct.pack("<Q", size), digest_size=16)
    last = max(0, size - _FINGERPRINT_SPAN)
    for piece in shard.read_ranges([(0, _FINGERPRINT_SPAN), (last, last + _FINGERPRINT_SPAN)], fresh=fresh):
        digest.update(piece)
    return digest.digest()


@contextlib.contextmanager
def lock_folder(folder: str) -> Iterator[None]:
    """Lock a folder against other writers of indexes; it is created if missing.

    The lock is on `<folder>/.lock`, is released by the system if the process dies, and is not reentrant.
    """
    try:
        os.makedirs(folder, exist_ok=True)
        descriptor = os.open(os.path.join(folder, ".lock"), os.O_RDWR | os.O_CREAT | _platform.O_CLOEXEC, 0o666)
    except OSError as error:
        raise explain_os_error(error, folder, verb="write") from None
    try:
        # Some network file systems have no locks; the rename still makes files appear atomically there.
        with contextlib.suppress(OSError):
            _platform.lock_file(descriptor, wait=True)
        yield
    finally:
        os.close(descriptor)


def write_index(path: str, index: ShardIndex, fingerprint: bytes) -> None:
    """Write an index atomically, one process at a time. The folder is created if missing.

    It is not synced, which takes longer than writing it: its checksums tell one that a power cut damaged.
    """
    offsets = np.ascontiguousarray(index.offsets, dtype="<u8")
    if offsets.shape != (index.num_records,):
        raise ValueError(f"expected {index.num_records} offsets, got shape {offsets.shape}")
    if len(fingerprint) != 16:
        raise ValueError(f"expected a fingerprint of 16 bytes, got {len(fingerprint)}")
    reason = _find_disorder(offsets, index.inflated_size)
    if reason is not None:
        raise ValueError(f"offsets do not fit a shard, {reason}")
    checkpoints = index.checkpoints or b""
    sums = sum_pages(offsets, _PAGE_RECORDS)
    header = _HEADER.pack(
        _MAGIC,
        _VERSION,
        _HAS_CHECKPOINTS if checkpoints else 0,
        index.shard_nbytes,
        fingerprint,
        index.num_records,
        index.inflated_size,
        COMPRESSIONS.index(index.compression),
        _KINDS.index(index.kind),
        len(checkpoints),
        _native.crc32c(sums),
        _native.crc32c(checkpoints),
        _PAGE_RECORDS,
    )
    stored = offsets.data if offsets.size else b""
    pieces = [header + struct.pack("<I", _native.crc32c(header)), _pad(sums), stored, checkpoints]
    if has_scheme(path):
        from tfrkit.storage.upload import write_object  # imported only for remote addresses

        write_object(path, b"".join(pieces))
        return
    with lock_folder(os.path.dirname(path) or "."), LocalWriter(path, durable=False) as writer:
        for piece in pieces:
            writer.write(piece)
        writer.commit()


def read_index(path: str, *, shard: ByteReader, is_lazy: bool = False) -> ShardIndex:
    """Read the index at `path` and check that it is valid and was made from this shard.

    Raises `FileNotFoundError` if the file is missing, `StaleIndexError` if it was made from another shard or another
    version of it, or is truncated, damaged or not an index. Cost: one pass over the offsets, at memory speed; with
    `is_lazy` none, but `ShardIndex.require` must be called before offsets are used.
    """
    if has_scheme(path):
        index = _fetch_start(path, shard) if is_lazy else None
        return _fetch_index(path, shard) if index is None else index
    try:
        with open(path, "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            data: bytes | _native.FileMap = b""
            if size:
                data = _native.FileMap(file.fileno(), size, partial(_report_torn, path, shard.name))
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a folder or a device cannot be mapped
        raise explain_os_error(error if isinstance(error, OSError) else OSError(str(error)), path) from None
    return _parse_index(data, path, shard, is_lazy=is_lazy)


def _fetch_start(path: str, shard: ByteReader) -> ShardIndex | None:
    """Read the start of an index in a store: all of a small one; the pages of another when they are used.

    None if it has to be read as a whole, because it has no pages or is damaged.
    """
    from tfrkit.storage.remote import open_start  # imported only for remote addresses

    try:
        found = open_start(path, LIMITS.index_start_nbytes)
    except StorageError:
        return None
    if found is None:
        raise FileNotFoundError(path)
    data, reader = found
    try:
        return _parse_index(data, path, shard, is_lazy=True, rest=reader if reader.size != len(data) else None)
    except StaleIndexError:
        return None


def _fetch_index(path: str, shard: ByteReader) -> ShardIndex:
    """Read an index from a store, twice if it is damaged, because a byte may be wrong on its way."""
    for is_last in (False, True):
        stored = read_file(path)
        if stored is None:
            break
        try:
            return _parse_index(stored, path, shard)
        except StaleIndexError:
            if is_last:
                raise
    raise FileNotFoundError(path)


def _report_torn(path: str, shard_name: str, is_torn: bool) -> None:
    if is_torn:
        raise StaleIndexError(
            "index was truncated while it was read", shard=path, hint=f"rebuild: tfr index {shard_name}"
        )


def _parse_index(
    data: bytes | _native.FileMap,
    path: str,
    shard: ByteReader,
    *,
    is_lazy: bool = False,
    rest: ByteReader | None = None,
) -> ShardIndex:
    """Parse an index. With `rest`, the data is its start, and `rest` reads the pages that are missing."""

    def stale(what: str) -> StaleIndexError:
        return StaleIndexError(what, shard=path, hint=f"rebuild: tfr index {shard.name}")

    if data[:8] != _MAGIC:
        raise stale(f"not an index, expected it to start with {_MAGIC!r}, got {data[:8]!r}")
    if len(data) < _HEADER_NBYTES:
        raise stale(f"index is truncated, {len(data)} bytes, expected at least {_HEADER_NBYTES}")
    header = data[: _HEADER.size]
    fields = _HEADER.unpack(header)
    version, flags, shard_nbytes, fingerprint, num_records, inflated_size = fields[1:7]
    compression_code, kind_code, checkpoints_nbytes, sums_crc, checkpoints_crc, page = fields[7:]
    # Checked before the checksum, which may be elsewhere in another version.
    if version not in (1, _VERSION):
        raise stale(f"index is of version {version}, expected 1 or {_VERSION}")
    (stored,) = struct.unpack("<I", data[_HEADER.size : _HEADER_NBYTES])
    _check_crc(header, stored, "header", stale)

    if (version == 1) != (page == 0):
        raise stale(f"index of version {version} has pages of {page} records")
    num_pages = -(-num_records // page) if page else 0
    start = _HEADER_NBYTES + (num_pages + num_pages % 2) * 4
    checkpoints_start = start + 8 * num_records
    expected_nbytes = checkpoints_start + checkpoints_nbytes
    size = len(data) if rest is None else rest.size
    if size != expected_nbytes:
        raise stale(f"index is of the wrong size, {size} bytes, expected {expected_nbytes}")
    if rest is not None and (not page or checkpoints_nbytes or start > len(data)):
        raise stale("index is read as a whole")
    if compression_code >= len(COMPRESSIONS) or kind_code >= len(_KINDS):
        raise stale(f"index has unknown codes, compression {compression_code}, kind {kind_code}")
    if bool(flags & _HAS_CHECKPOINTS) != (checkpoints_nbytes > 0) or flags > _HAS_CHECKPOINTS:
        raise stale(f"index has unknown flags, {flags:#x}")

    _check_fits(shard, shard_nbytes, fingerprint, stale)

    view = memoryview(data)
    _check_crc(view[checkpoints_start:], checkpoints_crc, "checkpoints", stale)
    offsets = np.zeros(num_records, "<u8") if rest is not None else np.frombuffer(view, "<u8", num_records, start)
    pages: IndexPages | None = None
    if version == 1:
        _check_crc(view[start:checkpoints_start], sums_crc, "offsets", stale)
    else:
        sums = np.frombuffer(view, dtype="<u4", count=num_pages, offset=_HEADER_NBYTES)
        _check_crc(sums.data if num_pages else b"", sums_crc, "page", stale)
        if any(view[_HEADER_NBYTES + 4 * num_pages : start]):
            raise stale("index is damaged, expected zeros after the checksums of its pages")
        pages = IndexPages(offsets, sums, page, stale)
        if rest is not None:
            num_here = (len(data) - start) // (8 * page)
            offsets[: num_here * page] = np.frombuffer(view, "<u8", num_here * page, start)
            pages = FetchedPages(offsets, sums, page, stale, rest, start, num_here)
    if not is_lazy or pages is None:
        if pages is not None:
            pages.require(0, num_records)
            pages = None
        reason = _find_disorder(offsets, inflated_size)
        if reason is not None:
            raise stale(f"index offsets do not fit a shard, {reason}")
    return ShardIndex(
        pages=pages,
        num_records=num_records,
        offsets=offsets,
        compression=COMPRESSIONS[compression_code],
        inflated_size=inflated_size,
        checkpoints=bytes(view[checkpoints_start:]) if checkpoints_nbytes else None,
        shard_nbytes=shard_nbytes,
        kind=_KINDS[kind_code],
    )


def load_index(shard: ByteReader, *, is_lazy: bool = False) -> ShardIndex | None:
    """Load the index next to a local shard, else the one in the user's cache; None if there is neither.

    An index next to the shard that does not match raises `StaleIndexError`, because a user made it on purpose. A cached
    index that does not match is ignored.
    """
    if shard.size is None:
        return None
    try:
        return read_index(index_path(shard.name), shard=shard, is_lazy=is_lazy)
    except FileNotFoundError:
        return load_remembered_index(shard, is_lazy=is_lazy)


def load_remembered_index(shard: ByteReader, *, is_lazy: bool = False) -> ShardIndex | None:
    """Load the index of a shard from the user's cache; None if it is missing or does not match."""
    try:
        return read_index(cache_path(shard.name), shard=shard, is_lazy=is_lazy)
    except (FileNotFoundError, StaleIndexError, StorageError):
        return None


def _pad(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


def _check_crc(data: bytes | memoryview, stored: int, part: str, stale: Callable[[str], StaleIndexError]) -> None:
    computed = _native.crc32c(data)
    if computed != stored:
        raise stale(f"index is damaged, {part} checksum mismatch, stored {stored:#010x}, computed {computed:#010x}")


def _check_fits(
    shard: ByteReader, shard_nbytes: int, fingerprint: bytes, stale: Callable[[str], StaleIndexError]
) -> None:
    size = shard.size
    if size is None:
        raise StorageError("expected a file, got a pipe, which has no index", shard=shard.name)
    if size != shard_nbytes:
        change = (
            f"{size - shard_nbytes} bytes longer" if size > shard_nbytes else f"{shard_nbytes - size} bytes shorter"
        )
        raise stale(f"index does not fit its shard, {change} than when it was made")
    # Bytes from a store may have been wrong on their way.
    if fingerprint_shard(shard) != fingerprint and fingerprint_shard(shard, fresh=True) != fingerprint:
        raise stale("index does not fit its shard, same size but other bytes than when it was made")


def _find_disorder(offsets: Offsets, end: int) -> str | None:
    """Return why the numbers cannot be frame offsets in a shard of `end` bytes; None if they can."""
    if not offsets.size:
        return None
    last = int(offsets[-1])
    if last + FRAME_OVERHEAD > end:
        return f"the last frame starts at {last}, the shard ends at {end}"
    for start in range(0, offsets.size - 1, _CHECKED_AT_ONCE):
        piece = offsets[start : start + _CHECKED_AT_ONCE + 1]
        ahead, behind = piece[1:], piece[:-1]
        # Compared as well as subtracted: the difference of two descending unsigned numbers looks large.
        bad = np.flatnonzero((ahead < behind) | (ahead - behind < np.uint64(FRAME_OVERHEAD)))
        if bad.size:
            record = start + int(bad[0])
            return f"frame {record} starts at {int(offsets[record])}, frame {record + 1} at {int(offsets[record + 1])}"
    return None


def write_dali_index(path: str, offsets: Offsets, end: int) -> None:
    """Write DALI's index of an uncompressed shard: a line "start size" for each whole frame.

    `end` is the byte after the last frame. There is no function to read it: checking it would cost as much as a scan.
    """
    starts = np.ascontiguousarray(offsets, dtype=np.uint64)
    reason = _find_disorder(starts, end)
    if reason is not None:
        raise ValueError(f"offsets do not fit a shard, {reason}")
    stops = np.append(starts[1:], np.uint64(end))
    with LocalWriter(path) as writer:
        for first in range(0, starts.size, 1 << 16):
            piece = starts[first : first + (1 << 16)]
            sizes = stops[first : first + (1 << 16)] - piece
            lines = [f"{start} {size}\n" for start, size in zip(piece.tolist(), sizes.tolist(), strict=True)]
            writer.write("".join(lines).encode())
        writer.commit()
