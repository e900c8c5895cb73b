"""Windows of a shard: the bytes that are in memory while its frames are read, from the first to the last.

An uncompressed file is one mapped span, seen through a moving window so that memory stays bounded; a compressed file is
inflated window by window; the windows of a remote file that is not compressed are the pieces of the responses. Frames
are read from bytes [start, stop) of `data`; `base` is the offset in the shard of data[0], and `is_final` says that
nothing follows.
"""

from __future__ import annotations

from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit.container.compression import InflateReader
from tfrkit.container.shards import Shard
from tfrkit.errors import CompressionError
from tfrkit.storage.base import Ahead, ByteReader, ByteSource, ByteStream

CHECKSUMS = ("length_checksum", "payload_checksum")


class SpanWindows:
    """Windows into addressable bytes: a mapped file or memory."""

    def __init__(self, reader: ByteReader, span: ByteSource, start: int, stop: int | None, *, releases: bool) -> None:
        self._reader = reader
        self._limit = len(span) if stop is None else stop
        self._releases = releases
        self._released = start
        self.data = span
        self.start = start
        self.stop = start
        self.base = 0  # offset in the shard of data[0]
        self.grow(1)

    @property
    def is_final(self) -> bool:
        return self.stop == self._limit

    def grow(self, wanted: int) -> None:
        """Make at least `wanted` bytes from `start` visible, or all that remain."""
        if self._releases and self.start - self._released >= LIMITS.window_nbytes:
            self._reader.release(self._released, self.start)
            self._released = self.start
        self.stop = min(self._limit, self.start + max(wanted, LIMITS.window_nbytes))

    def replace(self, data: bytes) -> None:
        """Use these bytes in place of those from `start` to `stop`, which is the end."""
        self.base += self.start
        self.data, self.start, self.stop = data, 0, len(data)
        self._limit = self.stop


class InflateWindows:
    """Windows of a compressed shard, or a pipe, inflated one after the other.

    With `in_pieces`, those of a remote shard that is not compressed: the pieces of the responses, which are not copied.
    A frame that is in two pieces is copied and is a window of its own. With `checks`, remote bytes that fail a checksum
    are requested once more as they arrive; else `FrameStream` does that for the frames that it reads.
    """

    def __init__(
        self, shard: Shard, member: int, base: int, *, checks: bool, ahead: Ahead = "more", in_pieces: bool = False
    ) -> None:
        self._shard = shard
        self._in_pieces = in_pieces
        self._checks = checks and shard.reader.is_remote
        self.source: InflateReader | ByteReader | ByteStream = shard.reader
        if shard.compression != "none":
            self.source = InflateReader(shard.reader, shard.compression, start=member)
        elif shard.nbytes is not None:
            self.source = shard.reader.stream(base, ahead=ahead)
        self.data: ByteSource = b""
        self.start = 0
        self.stop = 0
        self.base = base
        self.is_final = False
        self.tear: CompressionError | None = None
        self._member = member
        self._first = base
        self._sure = -1  # damage up to this offset is true damage
        self.grow(1)

    def grow(self, wanted: int) -> None:
        kept = memoryview(self.data)[self.start : self.stop]
        pieces: list[bytes | memoryview] = [kept] if len(kept) else []
        have = len(kept)
        # Kept bytes are copied, so a large window must grow by much.
        target = max(wanted, have + 1 + (0 if self._in_pieces and have < LIMITS.inflate_nbytes else have // 4))
        while have < target and not self.is_final:
            nbytes = min(max(LIMITS.inflate_nbytes, target - have), 4 * LIMITS.inflate_nbytes)
            if self._in_pieces:
                nbytes = target - have if pieces else 1 << 62
            try:
                piece = self.source.read(nbytes)
            except CompressionError as error:
                self.tear = error
                piece = b""
            if not piece:
                self.is_final = True
            else:
                pieces.append(piece)
                have += len(piece)
        is_one = len(pieces) == 1 and (self._in_pieces or isinstance(pieces[0], bytes))
        self.replace(pieces[0] if is_one else b"".join(pieces))
        if self._checks:
            self._check_arrived()

    def _check_arrived(self) -> None:
        """Fetch remote bytes once more if a checksum fails: a byte may be wrong on its way, or in a cache."""
        while True:
            # Both checksums, even if this pass compares only lengths: another one may read the payloads from here.
            _, at, fault = _native.check_frames(self.data, 0, self.stop, 1 << 62, "all")
            offset = self.base + at
            if fault is None or fault.kind not in CHECKSUMS or offset <= self._sure:
                return
            self._sure = offset
            again = self._fetch_again(offset, self.stop - at)
            if again is not None and again != memoryview(self.data)[at:]:
                self.data = bytes(memoryview(self.data)[:at]) + again
                self.stop = len(self.data)

    def _fetch_again(self, offset: int, nbytes: int) -> bytes | None:
        """Read inflated bytes of the shard past any cache; None if a compressed shard does not inflate so far."""
        reader, compression = self._shard.reader, self._shard.compression
        if compression == "none":
            return reader.read_ranges([(offset, offset + nbytes)], fresh=True)[0]
        source = InflateReader(reader, compression, start=self._member, fresh=True)
        pieces: list[bytes] = []
        skipped = offset - self._first
        try:
            while skipped > 0 and (piece := source.read(skipped)):
                skipped -= len(piece)
            while nbytes > 0 and (piece := source.read(nbytes)):
                pieces.append(piece)
                nbytes -= len(piece)
        except CompressionError:
            return None
        if skipped or nbytes:
            return None
        self.source, self.is_final = source, False
        return b"".join(pieces)

    def replace(self, data: bytes | memoryview) -> None:
        """Use these bytes in place of those from `start` to `stop`."""
        self.base += self.start
        self.data, self.start, self.stop = data, 0, len(data)

    def give_up(self) -> None:
        """Treat the current position as the end of the shard."""
        self.start = self.stop
        self.is_final = True
