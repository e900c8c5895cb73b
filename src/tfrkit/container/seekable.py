"""Random access into a compressed shard.

gzip and zlib: `indexed_gzip` finds inflate checkpoints (`container.checkpoints`). Reads from a checkpoint use ISA-L
where it is installed, which is faster, needs no lock around the file, and needs no second parser for a stored index.
For the measurements see docs/design/inflate-checkpoints.md.

Other compressions have no checkpoints: the shard is unpacked once to an unnamed temporary file.
"""

from __future__ import annotations

import os
import tempfile
import threading
import zlib
from collections import OrderedDict
from typing import IO, Final

from tfrkit import _deflate, _platform
from tfrkit.container.checkpoints import Checkpoints, find_checkpoints, make_lead
from tfrkit.container.codec import Codec
from tfrkit.container.codec_deflate import CarefulInflate
from tfrkit.container.codecs import FORMATS, codec_errors, explain_damage
from tfrkit.container.compression import Compression, InflateReader, StoredFeed
from tfrkit.container.faults import advise_repair
from tfrkit.errors import CompressionError, StorageError
from tfrkit.storage.base import ByteReader, describe_os_error

_MAX_CURSORS: Final = 8
_KEPT_NBYTES: Final = 1 << 20
_MIN_PIECE_NBYTES: Final = 16 << 10
_MAX_PIECE_NBYTES: Final = 128 << 10
_FEED_NBYTES: Final = 32 << 10
_CAREFUL_FEED_NBYTES: Final = 1 << 10


class SeekableInflate:
    """Random access to a compressed shard by inflated offset.

    Thread-safe, and threads inflate in parallel; also safe across a fork. Memory stays below about 20 MB plus the
    requested bytes. Without `checkpoints` the first read finds them by inflating the shard twice; `inflated_size`, from
    an earlier pass without damage, saves one of the two passes. Damage raises `CompressionError` for reads that reach
    it; reads of the bytes before it succeed.

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
        self._points: Checkpoints | None = None
        self._unpacked: IO[bytes] | None = None
        self._failure: CompressionError | None = None
        self._start_process()
        self.inflated_size: int | None = reader.size if compression == "none" else None
        if FORMATS[compression].is_deflate and checkpoints:
            self._use(checkpoints)

    def read_at(self, offset: int, nbytes: int) -> bytes:
        """Return `nbytes` inflated bytes from `offset`; fewer only at the end."""
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

    def read_once(self, offset: int, nbytes: int) -> bytes:
        """Return the same bytes as `read_at`, without keeping anything for later reads; fewer before damage.

        REQUIRES: checkpoints were given. Raises errors of the codec for damage.
        """
        assert self._points is not None
        number, _ = self._points.find(offset)
        return _Cursor(self._reader, self._compression, self._points, number).read_once(offset, nbytes)

    def export(self) -> bytes:
        """Return the checkpoints, for an index or another `SeekableInflate`; b"" for a compression without checkpoints.

        Raises for a damaged shard: with an index of its readable part it would look like an intact, shorter shard.
        """
        if not FORMATS[self._compression].is_deflate:
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
        # A lock held by another thread during a fork stays locked in the child, so the child makes its own.
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._cursors: OrderedDict[int, _Cursor] = OrderedDict()

    def _prepare(self) -> None:
        if self.inflated_size is not None:
            return
        with self._lock:
            if self.inflated_size is None:
                if FORMATS[self._compression].is_deflate:
                    self._find_checkpoints()
                else:
                    self._unpack()

    def _find_checkpoints(self) -> None:
        size = self._known_size
        stored_stop = self._reader.size
        if size is None:
            # `indexed_gzip` does not report truncation or damage, so it is only given the bytes before the damage.
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
            raise StorageError(
                f"cannot unpack to {tempfile.gettempdir()}, {describe_os_error(error)}",
                shard=self._reader.name,
                hint="name another folder: TMPDIR=/path",
            ) from None
        self._unpacked = file
        self.inflated_size = size

    def _use(self, blob: bytes) -> None:
        points = Checkpoints(blob, self._reader)
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
                    hint=advise_repair(self._reader.name),
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
            # A cursor in use is kept alive by its thread.
            if len(self._cursors) > _MAX_CURSORS:
                self._cursors.popitem(last=False)
            return cursor


class _Cursor:
    """Inflates from one checkpoint and keeps the last bytes for the next read."""

    def __init__(self, reader: ByteReader, compression: Compression, points: Checkpoints, number: int) -> None:
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
                    # ISA-L loses bytes shortly before damage; zlib returns them.
                    self._is_careful = True
                    self._restart()
            try:
                return self._read(offset, nbytes)
            except self._errors as error:
                stored = self._feed.offset
                self._restart()
                raise CompressionError(
                    f"compressed stream is damaged, {explain_damage(error)}",
                    shard=self._reader.name,
                    offset=stored,
                    hint=advise_repair(self._reader.name),
                ) from None

    def read_once(self, offset: int, nbytes: int) -> bytes:
        """Return bytes without keeping any. Only for a new cursor."""
        pieces: list[bytes] = []
        skipped, missing = offset - self._kept_start, nbytes
        while missing > 0 and (piece := self._inflate(min(skipped + missing, _MAX_PIECE_NBYTES))):
            if skipped < len(piece):
                pieces.append(piece[skipped:] if skipped else piece)
                missing -= len(pieces[-1])
            skipped = max(0, skipped - len(piece))
        return b"".join(pieces)

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
            # Checkpoints may be far apart in a stream that expands a thousandfold.
            surplus = min(len(self._kept) - _KEPT_NBYTES, offset - self._kept_start)
            if surplus > _KEPT_NBYTES:
                del self._kept[:surplus]
                self._kept_start += surplus
        start = offset - self._kept_start
        return bytes(memoryview(self._kept)[start : start + nbytes])

    def _restart(self) -> None:
        self._kept = bytearray()
        self._kept_start = self._points.inflated[self._number]
        self._feed = StoredFeed(self._reader, start=self._points.stored[self._number])
        self._codec: Codec | None = None
        # The first checkpoint is the start of the file, which includes the gzip or zlib header.
        is_start = self._points.stored[self._number] == 0
        self._members = InflateReader(self._reader, self._compression) if is_start else None

    def _open_codec(self) -> Codec:
        """Return a decompressor in the state of the checkpoint."""
        codec: Codec
        if self._is_careful:
            codec = CarefulInflate(-zlib.MAX_WBITS)
        else:
            codec = _deflate.open_inflate("none")
        window = self._points.window(self._number)
        bits = self._points.bits[self._number]
        shared_byte = self._reader.read_at(self._feed.offset - 1, 1) if bits else b""
        lead = make_lead(window, int.from_bytes(shared_byte, "little"), bits)
        if lead:
            codec.decompress(lead, max(1, len(window)))
        return codec

    def _inflate(self, nbytes: int) -> bytes:
        """Return the next inflated piece, at most `nbytes`; b"" only at the end."""
        while self._members is None:
            if self._codec is None:
                self._codec = self._open_codec()
            codec = self._codec
            data: bytes | memoryview = b""
            is_starved = False
            if codec.needs_input:
                data = self._feed.take(_CAREFUL_FEED_NBYTES if self._is_careful else _FEED_NBYTES)
                is_starved = not data
            piece = codec.decompress(data, nbytes)
            if codec.eof:
                self._feed.give_back(codec.unused_data)
                trailer_nbytes = 4 + 4 if self._compression == "gzip" else 4  # crc32 and size, or adler32
                self._members = InflateReader(self._reader, self._compression, start=self._feed.offset + trailer_nbytes)
            if piece or (is_starved and not codec.eof):
                return piece
        return self._members.read(nbytes)


def _inflate_all(
    reader: ByteReader, compression: Compression, file: IO[bytes] | None
) -> tuple[int, CompressionError | None]:
    """Inflate the whole shard, into `file` if given; return the inflated size and the damage that ended it."""
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
    while nbytes > 0 and (piece := _platform.read_at(file.fileno(), nbytes, offset)):
        pieces.append(piece)
        offset += len(piece)
        nbytes -= len(piece)
    return b"".join(pieces)
