"""Random access into a compressed shard.

gzip and zlib: inflate checkpoints. A checkpoint is a place in the compressed stream where a deflate block
starts (a byte and a bit) together with the 32 KiB of data before it, which is all that inflating from there
needs. `indexed_gzip` finds them; reading from them is done here with ISA-L, which is twice as fast, needs no
lock around the file and no foreign parser for a stored index. docs/design/inflate-checkpoints.md has the numbers.

xz and zstd have none: the shard is unpacked once to an unnamed temporary file.

Stored checkpoints (`SeekableInflate.export`), little-endian:

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
import os
import struct
import tempfile
import threading
import zlib
from collections import OrderedDict
from typing import IO, Any, Final

from isal import igzip_lib

from tfrkit.container.codecs import CarefulInflate, Codec, codec_errors, explain_damage
from tfrkit.container.compression import Compression, InflateReader, StoredFeed
from tfrkit.errors import CompressionError, StaleIndexError, StorageError, TfrkitError
from tfrkit.storage.base import ByteReader

_TAG: Final = b"CKP1"
_HEAD: Final = struct.Struct("<4sIQ")
_POINT: Final = struct.Struct("<QQII")
_WINDOW_NBYTES: Final = 32 << 10

# 1 MiB between checkpoints costs 1 % of the inflated size and half a millisecond a read. While they are
# looked for each holds its window in memory, so a large shard gets wider steps: at most 4096 * 32 KiB.
_SPACING_NBYTES: Final = 1 << 20
_MAX_POINTS: Final = 4096

_MAX_CURSORS: Final = 8
_KEPT_NBYTES: Final = 1 << 20
_MIN_PIECE_NBYTES: Final = 16 << 10
_MAX_PIECE_NBYTES: Final = 128 << 10
_FEED_NBYTES: Final = 32 << 10


def _pack_bits(*fields: tuple[int, int]) -> tuple[int, int]:
    """(value, number of bits) fields, first one lowest, as one such field."""
    value = num_bits = 0
    for field, field_bits in fields:
        value |= field << num_bits
        num_bits += field_bits
    return value, num_bits


# Two deflate blocks (RFC 1951, 3.2.3) that hold nothing, of 10 and of 91 bits: some of them in a row end at any
# bit of a byte. One is coded with the fixed tables: not final, kind 1, end of block.
_EMPTY_FIXED: Final = _pack_bits((0, 1), (1, 2), (0, 7))
# One brings its own: not final, kind 2, 257 literal codes, 1 distance code, and 18 lengths of code-length codes,
# in which only "18" (a run of zeros) and "1" are used. Then literal 0, 138 + 117 unused ones, end of block,
# distance 0. Then the end of the block.
_EMPTY_DYNAMIC: Final = _pack_bits(
    *((0, 1), (2, 2), (0, 5), (0, 5), (18 - 4, 4)),
    *((0, 3), (0, 3), (1, 3), *[(0, 3)] * 14, (1, 3)),
    *((0, 1), (1, 1), (138 - 11, 7), (1, 1), (117 - 11, 7), (0, 1), (0, 1)),
    (1, 1),
)


class SeekableInflate:
    """A compressed shard as if it were not: bytes at any inflated offset.

    Safe to share between threads, which inflate in parallel, and to carry over a fork. Memory stays below about
    20 MB plus what is asked for. Without `checkpoints` the first read looks for them, which inflates the shard
    twice; `inflated_size`, known from an earlier pass that found no damage, saves one of the two.
    Damage raises `CompressionError` for a read that reaches it, not for those before it.

    Example:
        >>> from tfrkit.storage.memory import MemoryReader
        >>> SeekableInflate(MemoryReader(zlib.compress(b"abcdef")), "zlib").read_at(2, 3)
        b'cde'
    """

    def __init__(
        self,
        reader: ByteReader,
        compression: Compression,
        checkpoints: bytes | None = None,
        *,
        inflated_size: int | None = None,
    ) -> None:
        self._reader = reader
        self._compression: Compression = compression
        self._known_size = inflated_size
        self._blob = b""
        self._points: _Points | None = None
        self._unpacked: IO[bytes] | None = None
        self._failure: CompressionError | None = None
        self._start_process()
        self.inflated_size: int | None = reader.size if compression == "none" else None
        if compression in ("gzip", "zlib") and checkpoints:
            self._use(checkpoints)

    def read_at(self, offset: int, nbytes: int) -> bytes:
        """At most `nbytes` inflated bytes from `offset`; fewer only at the end."""
        if offset < 0 or nbytes < 0:
            raise ValueError(f"expected offset and nbytes of at least 0, got {offset} and {nbytes}")
        if self._compression == "none":
            return self._reader.read_at(offset, nbytes)
        if os.getpid() != self._pid:
            self._start_process()
        self._prepare()
        size = self.inflated_size or 0
        if offset + nbytes > size and self._failure is not None:
            raise self._failure
        stop = min(offset + nbytes, size)
        if offset >= stop:
            return b""
        if self._unpacked is not None:
            return _read_file_at(self._unpacked, offset, stop - offset)
        return self._inflate_at(offset, stop)

    def export(self) -> bytes:
        """The checkpoints, for an index and for another `SeekableInflate`; b"" for xz and zstd, which have none.

        A damaged shard raises: an index of its sound part would make it look like a shorter one.
        """
        if self._compression not in ("gzip", "zlib"):
            return b""
        self._prepare()
        if self._failure is not None:
            raise self._failure
        return self._blob

    def close(self) -> None:
        """Free the buffers and the temporary file; the reader stays open."""
        with self._lock:
            self._cursors.clear()
            if self._unpacked is not None:
                self._unpacked.close()
                self._unpacked = None

    def __del__(self) -> None:
        self.close()

    def _start_process(self) -> None:
        # A lock another thread held at a fork stays locked in the child, so the child makes its own.
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._cursors: OrderedDict[int, _Cursor] = OrderedDict()

    def _prepare(self) -> None:
        if self.inflated_size is not None:
            return
        with self._lock:
            if self.inflated_size is None:
                if self._compression in ("gzip", "zlib"):
                    self._find_checkpoints()
                else:
                    self._unpack()

    def _find_checkpoints(self) -> None:
        size = self._known_size
        stored_stop = self._reader.size
        if size is None:
            # `indexed_gzip` takes a cut-off or damaged stream for a shorter one, so it only sees what is sound.
            size, self._failure = _inflate_all(self._reader, self._compression, None)
            if self._failure is not None:
                stored_stop = self._failure.offset
        self._use(find_checkpoints(self._reader, inflated_size=size, stored_stop=stored_stop))

    def _unpack(self) -> None:
        try:
            file = tempfile.TemporaryFile(prefix="tfrkit-")  # noqa: SIM115 - it lives as long as self
            size, self._failure = _inflate_all(self._reader, self._compression, file)
            file.flush()
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise StorageError(
                f"cannot unpack to {tempfile.gettempdir()}, {reason}",
                shard=self._reader.name,
                hint="name another folder: TMPDIR=/path",
            ) from None
        self._unpacked = file
        self.inflated_size = size

    def _use(self, blob: bytes) -> None:
        points = _Points(blob, self._reader)
        self._blob = blob
        self._points = points
        self.inflated_size = points.inflated_size

    def _inflate_at(self, offset: int, stop: int) -> bytes:
        assert self._points is not None
        pieces: list[bytes] = []
        while offset < stop:
            number, segment_stop = self._points.find(offset)
            wanted = min(stop, segment_stop) - offset
            piece = self._cursor(number).read(offset, wanted)
            if len(piece) < wanted:
                raise CompressionError(
                    f"compressed stream ends early, {offset + len(piece)} bytes inflated before, "
                    f"expected {self._points.inflated_size}",
                    shard=self._reader.name,
                    offset=self._reader.size,
                )
            pieces.append(piece)
            offset += wanted
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _cursor(self, number: int) -> _Cursor:
        assert self._points is not None
        with self._lock:
            cursor = self._cursors.get(number)
            if cursor is not None:
                self._cursors.move_to_end(number)
                return cursor
            cursor = _Cursor(self._reader, self._compression, self._points, number)
            self._cursors[number] = cursor
            # One that a thread still reads from stays alive through that thread.
            if len(self._cursors) > _MAX_CURSORS:
                self._cursors.popitem(last=False)
            return cursor


class _Points:
    """Stored checkpoints, checked."""

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
            is_ascending = (
                inflated > self.inflated[-1] and stored >= self.stored[-1] if self.inflated else inflated == 0
            )
            if not is_ascending or bits > 7 or not (bits > 0) <= stored <= stored_size or inflated > self.inflated_size:
                raise self._damage(f"checkpoint {len(self.inflated)} lies at byte {stored}, inflated {inflated}")
            self.inflated.append(inflated)
            self.stored.append(stored)
            self.bits.append(bits)
            self._windows.append((windows_start, windows_start + window_nbytes))
            windows_start += window_nbytes
        if windows_start != len(blob):
            raise self._damage(f"{len(blob)} bytes, expected {windows_start}")

    def find(self, offset: int) -> tuple[int, int]:
        """(number of the last checkpoint up to an inflated offset, where its stretch ends)."""
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
            f"inflate checkpoints are damaged, {what}", shard=self._name, hint=f"rebuild: tfr index {self._name}"
        )


class _Cursor:
    """Inflates from one checkpoint on, as far as asked, and keeps the last stretch for the next question."""

    def __init__(self, reader: ByteReader, compression: Compression, points: _Points, number: int) -> None:
        self._reader = reader
        self._compression: Compression = compression
        self._points = points
        self._number = number
        self._lock = threading.Lock()
        self._is_careful = False
        self._errors = codec_errors(compression)
        self._restart()

    def read(self, offset: int, nbytes: int) -> bytes:
        with self._lock:
            if not self._is_careful:
                try:
                    return self._read(offset, nbytes)
                except self._errors:
                    # ISA-L loses what lies shortly before damage; zlib gives it.
                    self._is_careful = True
                    self._restart()
            try:
                return self._read(offset, nbytes)
            except self._errors as error:
                stored = self._feed.offset
                self._restart()
                raise CompressionError(
                    f"compressed stream is damaged, {explain_damage(error)}", shard=self._reader.name, offset=stored
                ) from None

    def _read(self, offset: int, nbytes: int) -> bytes:
        if offset < self._kept_start:
            self._restart()
        stop = offset + nbytes
        while self._kept_start + len(self._kept) < stop:
            missing = stop - self._kept_start - len(self._kept)
            least = missing if self._is_careful else _MIN_PIECE_NBYTES
            piece = self._inflate(min(max(missing, least), _MAX_PIECE_NBYTES))
            if not piece:
                break
            self._kept += piece
            # Checkpoints may lie far apart in a stream that inflates a thousandfold.
            surplus = min(len(self._kept) - _KEPT_NBYTES, offset - self._kept_start)
            if surplus > _KEPT_NBYTES:
                del self._kept[:surplus]
                self._kept_start += surplus
        start = offset - self._kept_start
        return bytes(memoryview(self._kept)[start : start + nbytes])

    def _restart(self) -> None:
        number = self._number
        self._kept = bytearray()
        self._kept_start = self._points.inflated[number]
        stored = self._points.stored[number]
        bits = self._points.bits[number]
        self._members: InflateReader | None = None
        self._feed = StoredFeed(self._reader, start=stored)
        self._codec: Codec
        if self._is_careful:
            self._codec = CarefulInflate(-zlib.MAX_WBITS)
        else:
            self._codec = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_DEFLATE)
        window = self._points.window(number)
        shared_byte = self._reader.read_at(stored - 1, 1)[0] if bits else 0
        lead = make_lead(window, shared_byte, bits)
        if lead:
            self._codec.decompress(lead, max(1, len(window)))

    def _inflate(self, nbytes: int) -> bytes:
        """The next piece; b"" only at the end."""
        while self._members is None:
            codec = self._codec
            data: bytes | memoryview = b""
            is_starved = False
            if codec.needs_input:
                data = self._feed.take(1024 if self._is_careful else _FEED_NBYTES)
                is_starved = not data
            piece = codec.decompress(data, nbytes)
            if codec.eof:
                self._feed.give_back(codec.unused_data)
                trailer_nbytes = 4 + 4 if self._compression == "gzip" else 4  # crc32 and size, or adler32
                self._members = InflateReader(self._reader, self._compression, start=self._feed.offset + trailer_nbytes)
            if piece or (is_starved and not codec.eof):
                return piece
        return self._members.read(nbytes)


def make_lead(window: bytes, shared_byte: int, bits: int) -> bytes:
    """Deflate data that puts a fresh decompressor into the state of a checkpoint.

    The window goes in as a stored block, so it comes out first and must be dropped. A block that starts inside
    a byte is led up to by blocks that hold nothing: the codecs take whole bytes only.
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
    """Checkpoints of a gzip or zlib shard, as `SeekableInflate.export` gives them.

    The shard must be known to inflate to `inflated_size` bytes from its first `stored_stop` (all) stored ones.
    Cost: one pass at zlib's speed, and up to 128 MiB of memory for a shard of 4 GiB and more.
    """
    if reader.size is None:
        raise StorageError("expected a file, got a pipe, which cannot be read at a position", shard=reader.name)
    spacing = min(max(_SPACING_NBYTES, -(-inflated_size // _MAX_POINTS)), 1 << 31)
    file = _StoredFile(reader, reader.size if stored_stop is None else min(stored_stop, reader.size))
    # Loaded here: few programs look for checkpoints, and `import tfrkit` stays light.
    library: Any = importlib.import_module("indexed_gzip")
    finder = library._IndexedGzipFile(fileobj=file, spacing=spacing, window_size=_WINDOW_NBYTES, readbuf_size=64 << 10)
    with tempfile.TemporaryFile(prefix="tfrkit-") as exported:
        try:
            try:
                finder.build_full_index()
            except OSError as error:
                if file.failure is not None:
                    raise file.failure from None
                # A zlib stream ends with an adler32 where this library wants a gzip trailer, and a cut-off one
                # with nothing; what it found before stays right, and fewer checkpoints are only slower.
                del error
            finder.export_index(fileobj=_Sink(exported))
        finally:
            finder.close()
        exported.seek(0)
        return _convert_export(exported, inflated_size, spacing)


def _convert_export(exported: IO[bytes], inflated_size: int, spacing: int) -> bytes:
    """Turn an index of `indexed_gzip` into ours: windows deflated, needless points left out."""
    head = struct.Struct("<5sBBQQIII")  # magic, version, flags, sizes, spacing, window size, number of points
    magic, version, _, _, _, _, window_nbytes, num_points = head.unpack(exported.read(head.size))
    if magic != b"GZIDX" or version != 1:
        raise RuntimeError(f"expected an index of indexed_gzip, version 1, got {magic!r}, version {version}")
    table = list(struct.iter_unpack("<QQBB", exported.read(18 * num_points)))
    points: list[bytes] = []
    windows: list[bytes] = []
    last = -spacing
    for stored, inflated, bits, has_window in table:
        window = exported.read(window_nbytes) if has_window else b""
        # It also marks the start of every member, of which there may be a million, and the end.
        if inflated - last < spacing or (inflated >= inflated_size and points):
            continue
        last = inflated
        windows.append(zlib.compress(window, 6) if window else b"")
        points.append(_POINT.pack(inflated, stored, bits, len(windows[-1])))
    return b"".join([_HEAD.pack(_TAG, len(points), inflated_size), *points, *windows])


class _Sink(io.RawIOBase):
    """A file to write to that shows no descriptor: `indexed_gzip` would open it again and leave it open."""

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        return self._file.write(data)


class _StoredFile(io.RawIOBase):
    """The stored bytes of a shard as a file, up to a given byte."""

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


def _inflate_all(
    reader: ByteReader, compression: Compression, file: IO[bytes] | None
) -> tuple[int, CompressionError | None]:
    """Inflate from front to back, into a file if there is one: (inflated size, the damage that ended it)."""
    stream = InflateReader(reader, compression)
    try:
        while piece := stream.read(_MAX_PIECE_NBYTES):
            if file is not None:
                file.write(piece)
        return stream.inflated_nbytes, None
    except CompressionError as error:
        return stream.inflated_nbytes, error
    finally:
        stream.close()


def _read_file_at(file: IO[bytes], offset: int, nbytes: int) -> bytes:
    pieces: list[bytes] = []
    while nbytes > 0 and (piece := os.pread(file.fileno(), nbytes, offset)):
        pieces.append(piece)
        offset += len(piece)
        nbytes -= len(piece)
    return b"".join(pieces)
