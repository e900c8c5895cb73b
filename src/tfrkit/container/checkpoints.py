"""Find, store and use the inflate checkpoints of a gzip or zlib shard.

A checkpoint is the position of a deflate block in the compressed stream (byte and bit) and the 32 KiB of inflated data
before it, which is all the state needed to inflate from there.

Stored checkpoints, little-endian:

    byte  size  what
       0     4  "CKP1"
       4     4  number of checkpoints
       8     8  size of the shard after inflating
      16  24*n  for each: u64 inflated offset, u64 stored offset, u32 bits of the byte before that
                still belong to the block (0 to 7), u32 size of its deflated window
 16+24*n        the windows, each a zlib stream of at most 32 KiB, none for a checkpoint without history
"""

from __future__ import annotations

import bisect
import importlib
import io
import shlex
import struct
import tempfile
import zlib
from collections.abc import Sequence
from typing import IO, Any, Final

from tfrkit._limits import LIMITS
from tfrkit.errors import StaleIndexError, StorageError, TfrkitError
from tfrkit.storage.base import ByteReader

_TAG: Final = b"CKP1"
_HEAD: Final = struct.Struct("<4sIQ")
_POINT: Final = struct.Struct("<QQII")
_WINDOW_NBYTES: Final = 32 << 10


def _pack_bits(*fields: tuple[int, int]) -> tuple[int, int]:
    """Join (value, number of bits) fields into one field; the first is in the lowest bits."""
    value = num_bits = 0
    for field, field_bits in fields:
        value |= field << num_bits
        num_bits += field_bits
    return value, num_bits


# Two empty deflate blocks (RFC 1951, 3.2.3) of 10 and 91 bits: combinations of them can end at any bit of a byte.
# The first uses the fixed code tables: not final, kind 1, end of block.
_EMPTY_FIXED: Final = _pack_bits((0, 1), (1, 2), (0, 7))
# The second defines its own tables: not final, kind 2, 257 literal codes, 1 distance code, and 18 lengths of
# code-length codes, of which only "18" (a run of zeros) and "1" are used. Then the code lengths: literal 0,
# 138 + 117 unused literals, end of block, distance 0. Then the end of the block.
_EMPTY_DYNAMIC: Final = _pack_bits(
    *((0, 1), (2, 2), (0, 5), (0, 5), (18 - 4, 4)),
    *((0, 3), (0, 3), (1, 3), *[(0, 3)] * 14, (1, 3)),
    *((0, 1), (1, 1), (138 - 11, 7), (1, 1), (117 - 11, 7), (0, 1), (0, 1)),
    (1, 1),
)


class Checkpoints:
    """Parsed and validated checkpoints of a shard."""

    def __init__(self, blob: bytes, reader: ByteReader) -> None:
        self._blob = blob
        self._name = reader.name
        if len(blob) < _HEAD.size or blob[:4] != _TAG:
            raise self._damage(f"expected them to start with {_TAG!r}, got {blob[:4]!r}")
        _, num_points, self.inflated_size = _HEAD.unpack_from(blob)
        windows_start = _HEAD.size + num_points * _POINT.size
        if num_points == 0 or windows_start > len(blob):
            raise self._damage(f"{num_points} checkpoints in {len(blob)} bytes")
        self.inflated: list[int] = []
        self.stored: list[int] = []
        self.bits: list[int] = []
        self._windows: list[tuple[int, int]] = []
        stored_size = reader.size or 0
        for inflated, stored, bits, window_nbytes in _POINT.iter_unpack(blob[_HEAD.size : windows_start]):
            if self.inflated:
                fits = self.inflated[-1] < inflated <= self.inflated_size and max(self.stored[-1], 1) <= stored
            else:
                fits = inflated == stored == bits == 0
            if not fits or bits > 7 or stored > stored_size:
                raise self._damage(f"checkpoint {len(self.inflated)} is at byte {stored}, inflated {inflated}")
            self.inflated.append(inflated)
            self.stored.append(stored)
            self.bits.append(bits)
            self._windows.append((windows_start, windows_start + window_nbytes))
            windows_start += window_nbytes
        if windows_start != len(blob):
            raise self._damage(f"{len(blob)} bytes, expected {windows_start}")

    def find(self, offset: int) -> tuple[int, int]:
        """Return the number of the last checkpoint at or before an inflated offset, and the offset of the next one."""
        number = bisect.bisect_right(self.inflated, offset) - 1
        is_last = number + 1 == len(self.inflated)
        return number, self.inflated_size if is_last else self.inflated[number + 1]

    def window(self, number: int) -> bytes:
        start, stop = self._windows[number]
        if start == stop:
            return b""
        try:
            inflate = zlib.decompressobj()
            window = inflate.decompress(self._blob[start:stop], _WINDOW_NBYTES + 1)
            if inflate.eof and len(window) <= _WINDOW_NBYTES:
                return window
        except zlib.error:
            pass
        raise self._damage(f"the window of checkpoint {number} does not inflate")

    def _damage(self, what: str) -> StaleIndexError:
        return StaleIndexError(
            f"inflate checkpoints are damaged, {what}",
            shard=self._name,
            hint=f"rebuild: tfr index {shlex.quote(self._name)}",
        )


def make_lead(window: bytes, shared_byte: int, bits: int) -> bytes:
    """Return deflate data that puts a fresh decompressor into the state of a checkpoint.

    The window is fed as a stored block, so the decompressor returns it first; the caller drops it. A block that starts
    inside a byte is preceded by empty blocks, because codecs accept whole bytes only.
    """
    lead = struct.pack("<BHH", 0, len(window), len(window) ^ 0xFFFF) + window if window else b""
    if not bits:
        return lead
    missing = 8 - bits
    value, num_bits = _EMPTY_DYNAMIC if missing % 2 else (0, 0)
    while num_bits % 8 != missing:
        value |= _EMPTY_FIXED[0] << num_bits
        num_bits += _EMPTY_FIXED[1]
    value |= shared_byte >> missing << num_bits
    return lead + value.to_bytes((num_bits + bits) // 8, "little")


def find_checkpoints(reader: ByteReader, *, inflated_size: int, stored_stop: int | None = None) -> bytes:
    """Find the checkpoints of a gzip or zlib shard; return them in the format of `SeekableInflate.export`.

    REQUIRES: the first `stored_stop` stored bytes (default all) inflate to `inflated_size` bytes.
    Cost: one pass at zlib's speed, and up to 128 MiB of memory for shards of 4 GiB or more.
    """
    if reader.size is None:
        raise StorageError("expected a file, got a pipe, which cannot be read at a position", shard=reader.name)
    spacing = min(max(LIMITS.checkpoint_nbytes, -(-inflated_size // LIMITS.max_checkpoints)), 1 << 31)
    file = _StoredFile(reader, reader.size if stored_stop is None else min(stored_stop, reader.size))
    # Imported here because few programs search for checkpoints, and `import tfrkit` should stay fast.
    library: Any = importlib.import_module("indexed_gzip")
    finder = library._IndexedGzipFile(fileobj=file, spacing=spacing, window_size=_WINDOW_NBYTES, readbuf_size=64 << 10)
    with tempfile.TemporaryFile(prefix="tfrkit-") as exported:
        try:
            try:
                finder.build_full_index()
            except OSError as error:
                if file.failure is not None:
                    raise file.failure from None
                # A zlib stream ends with an adler32 instead of the gzip trailer that this library expects, a truncated
                # stream without either. The checkpoints found so far are valid; with fewer, reads are only slower.
                del error
            finder.export_index(fileobj=_Sink(exported))
        finally:
            finder.close()
        exported.seek(0)
        return _convert_export(exported, inflated_size, spacing)


def _convert_export(exported: IO[bytes], inflated_size: int, spacing: int) -> bytes:
    """Convert an index of `indexed_gzip` to our format: compress the windows, drop redundant points."""
    head = struct.Struct("<5sBBQQIII")  # magic, version, flags, sizes, spacing, window size, number of points
    magic, version, _, _, _, _, window_nbytes, num_points = head.unpack(exported.read(head.size))
    if magic != b"GZIDX" or version != 1:
        raise RuntimeError(f"expected an index of indexed_gzip, version 1, got {magic!r}, version {version}")
    table = list(struct.iter_unpack("<QQBB", exported.read(18 * num_points)))
    points: list[tuple[int, int, int, bytes]] = []
    last = 0
    for stored, inflated, bits, has_window in table:
        window = exported.read(window_nbytes) if has_window else b""
        # `indexed_gzip` also adds the end and the start of every member; there may be a million members.
        if inflated - last < spacing or inflated >= inflated_size:
            continue
        last = inflated
        points.append((inflated, stored, bits, zlib.compress(window, 6) if window else b""))
    return pack_checkpoints(points, inflated_size)


def pack_checkpoints(points: Sequence[tuple[int, int, int, bytes]], inflated_size: int) -> bytes:
    """Serialize checkpoints, each given as (inflated offset, stored offset, bits, deflated window).

    The start of the file is always a checkpoint and is not in `points`. If there are too many, some are dropped.
    """
    kept = points[:: -(-len(points) // LIMITS.max_checkpoints) or 1]
    table = [_POINT.pack(0, 0, 0, 0)]
    table += [_POINT.pack(inflated, stored, bits, len(window)) for inflated, stored, bits, window in kept]
    return b"".join([_HEAD.pack(_TAG, len(table), inflated_size), *table, *(window for *_, window in kept)])


class _Sink(io.RawIOBase):
    """A writable file without a descriptor: `indexed_gzip` would reopen a descriptor and leave it open."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        return self._file.write(data)


class _StoredFile(io.RawIOBase):
    """The stored bytes of a shard before `stop`, as a file."""

    def __init__(self, reader: ByteReader, stop: int) -> None:
        super().__init__()
        self._reader = reader
        self._stop = stop
        self._offset = 0
        self.failure: TfrkitError | None = None

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._offset, io.SEEK_END: self._stop}[whence]
        self._offset = base + offset
        return self._offset

    def tell(self) -> int:
        return self._offset

    def read(self, size: int = -1, /) -> bytes:
        left = max(0, self._stop - self._offset)
        try:
            data = self._reader.read_at(self._offset, left if size < 0 else min(size, left))
        except TfrkitError as error:
            self.failure = error
            raise OSError(str(error)) from error
        self._offset += len(data)
        return data
