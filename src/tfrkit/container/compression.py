"""Whole-stream compression of a shard: detected from its bytes, inflated in bounded memory."""

from __future__ import annotations

import contextlib
import struct
from typing import Final

from tfrkit import _native
from tfrkit.container.codec import Codec
from tfrkit.container.codecs import (
    COMPRESSIONS,
    FORMATS,
    Compression,
    Level,
    codec_errors,
    compression_of_magic,
    explain_damage,
    open_codec,
    starts_member,
)
from tfrkit.container.deflate import Deflater
from tfrkit.container.faults import advise_repair
from tfrkit.errors import CompressionError
from tfrkit.storage.base import ByteReader, ByteStream

__all__ = [
    "COMPRESSIONS",
    "FRAME_HEADER_NBYTES",
    "Compression",
    "Deflater",
    "InflateReader",
    "Level",
    "StoredFeed",
    "detect_compression",
    "holds_other_data",
    "inflate_head",
    "inflate_start",
    "is_frame_header",
    "is_zlib_header",
]

FRAME_HEADER_NBYTES: Final = 8 + 4  # length, masked crc of length

# Measured on 200 MB of Examples: at these sizes both buffers of ISA-L fit into the second-level cache (940 MB/s).
# With pieces of 1 MiB it drops to 770 MB/s, because every piece is then newly mapped memory.
_FEED_NBYTES: Final = 64 << 10
_PIECE_NBYTES: Final = 128 << 10
# The feed of a member starts small and doubles: input after the end of a member is copied, so a file of a million tiny
# members would otherwise copy a full feed a million times.
_FIRST_FEED_NBYTES: Final = 2 << 10
# Codecs other than deflate return nothing from a call that meets damage; that input is decoded again byte by byte.
_CAREFUL_FEED_NBYTES: Final = 4 << 10

# Mapped pages of the compressed file are released in pieces of this size.
_RELEASE_NBYTES: Final = 16 << 20


def is_frame_header(data: bytes) -> bool:
    """Whether `data` starts with a frame length and its valid checksum."""
    if len(data) < FRAME_HEADER_NBYTES:
        return False
    (stored,) = struct.unpack_from("<I", data, 8)
    return bool(_native.masked_crc32c(data[:8]) == stored)


def is_zlib_header(head: bytes) -> bool:
    """Whether two bytes can start a zlib stream. One random pair in about 500 can."""
    if len(head) < 2:
        return False
    method, flags = head[0], head[1]
    uses_dictionary = bool(flags & 0x20)
    return method & 0x0F == 8 and method >> 4 <= 7 and (method << 8 | flags) % 31 == 0 and not uses_dictionary


def detect_compression(head: bytes) -> Compression | None:
    """Detect the compression of a shard from its first bytes; None if they are not the start of a shard.

    `head` is the start of the file: 4 KiB are enough, or the whole file if it is shorter. An empty file is an
    uncompressed shard without records. A matching magic is enough; `holds_other_data` checks the contents.
    """
    if not head or is_frame_header(head):
        return "none"
    found = compression_of_magic(head)
    if found is not None:
        return found
    # A zlib header has only two bytes, so it counts only if a frame follows or the stream is empty.
    if is_zlib_header(head):
        inflated, is_whole = _inflate_head(head, "zlib", FRAME_HEADER_NBYTES)
        if is_frame_header(inflated) or (is_whole and not inflated):
            return "zlib"
    return None


def inflate_head(head: bytes, compression: Compression, nbytes: int = 4096) -> bytes:
    """Inflate up to `nbytes` bytes of `head`; stops at damage instead of raising."""
    return _inflate_head(head, compression, nbytes)[0]


def holds_other_data(head: bytes, compression: Compression) -> bool:
    """Whether the inflated bytes certainly do not start with a frame, as in a gzip of a tar archive.

    False if `head` is too short to decide; reading the shard will report the error.
    """
    inflated, is_whole = _inflate_head(head, compression, FRAME_HEADER_NBYTES)
    if len(inflated) >= FRAME_HEADER_NBYTES:
        return not is_frame_header(inflated)
    return is_whole and bool(inflated)


def _inflate_head(head: bytes, compression: Compression, nbytes: int) -> tuple[bytes, bool]:
    """Return the inflated bytes, and whether the stream ends with them."""
    if compression == "none":
        return head[:nbytes], len(head) <= nbytes
    codec = open_codec(compression, careful=True)
    pieces: list[bytes] = []
    found = 0
    offset = 0
    try:
        while found < nbytes and not codec.eof:
            # Small feeds, because a codec other than deflate returns nothing from the call that meets damage.
            feed_nbytes = 512 if FORMATS[compression].is_deflate else 16
            feed = head[offset : offset + feed_nbytes] if codec.needs_input else b""
            offset += len(feed)
            piece = codec.decompress(feed, nbytes - found)
            pieces.append(piece)
            found += len(piece)
            if not piece and not codec.eof and offset >= len(head):
                break
    except codec_errors(compression):
        pass
    return b"".join(pieces), codec.eof


class StoredFeed:
    """The compressed bytes in order; bytes after the end of a member can be put back."""

    def __init__(self, reader: ByteReader, *, start: int = 0, fresh: bool = False) -> None:
        self._reader = reader
        self._fresh = fresh
        # Slices are copied, because the codecs cannot handle a mapped file that is truncated meanwhile.
        self._span = reader.span()
        self._stream: ByteStream | None = None  # of a remote shard, from `offset` on
        self._left = b""
        self._released = start
        self.offset = start
        self.can_rewind = reader.size is not None

    def take(self, nbytes: int) -> bytes:
        if self._span is not None:
            self._reader.check_unchanged()
            piece = bytes(self._span[self.offset : self.offset + nbytes])
            if self.offset - self._released >= _RELEASE_NBYTES:
                if isinstance(self._span, _native.FileMap):  # not the reader, which may have dropped its map
                    self._span.release(self._released, self.offset)
                self._released = self.offset
        elif self._left:
            piece, self._left = self._left[:nbytes], self._left[nbytes:]
        elif self.can_rewind:
            if self._stream is None:
                self._stream = self._reader.stream(self.offset, fresh=self._fresh)
            piece = bytes(self._stream.read(nbytes))
        else:
            piece = self._reader.read(nbytes)
        self.offset += len(piece)
        return piece

    def give_back(self, data: bytes) -> None:
        self.offset -= len(data)
        if self._span is None:
            self._left = data + self._left

    def rewind(self, offset: int) -> None:
        self.offset = offset
        self._released = min(self._released, offset)
        self._stream, self._left = None, b""
        self._fresh = True  # the reason may be a byte that was wrong on its way

    def close(self) -> None:
        self._span = self._stream = None


class InflateReader:
    """Reads the inflated bytes of a shard from start to end.

    Memory is bounded for any expansion ratio. Not thread-safe; inflating releases the interpreter lock. Several members
    (zstd calls them frames) are read as one stream, and zero padding after them is ignored. Damage, a truncated stream
    or other bytes after it raise `CompressionError` with the stored `offset`, after all inflated bytes before the
    damage were returned. A pipe cannot be read twice, so up to 128 KiB before the damage are lost there.

    Example:
        >>> import zlib
        >>> from tfrkit.storage.memory import MemoryReader
        >>> InflateReader(MemoryReader(zlib.compress(b"abc")), "zlib").read(100)
        b'abc'
    """

    def __init__(self, reader: ByteReader, compression: Compression, *, start: int = 0, fresh: bool = False) -> None:
        """Start at the first byte, or at the member stored at byte `start`; `fresh` reads past any cache."""
        if compression not in COMPRESSIONS:
            raise ValueError(f"compression expected one of {', '.join(COMPRESSIONS)}, got {compression!r}")
        self._reader = reader
        self._compression: Compression = compression
        self._errors = codec_errors(compression)
        self._feed = StoredFeed(reader, start=start, fresh=fresh)
        self._codec: Codec | None = None
        self._is_careful = False
        self._num_members = 1 if start else 0
        self._member_offset = 0
        self._member_inflated = 0
        self._feed_nbytes = _FIRST_FEED_NBYTES
        self._is_done = False
        self._failure: CompressionError | None = None
        self.inflated_nbytes = 0

    @property
    def member_offset(self) -> int:
        """Stored offset of the current member."""
        return self._member_offset

    def read(self, nbytes: int) -> bytes:
        """Return the next inflated bytes, at most `nbytes` and at most 128 KiB if compressed; b"" only at the end."""
        if nbytes <= 0:
            return b""
        if self._compression == "none":
            piece = bytes(self._feed.take(nbytes))
        else:
            piece = self._read_piece(min(nbytes, _PIECE_NBYTES))
        self.inflated_nbytes += len(piece)
        return piece

    def close(self) -> None:
        """Free the buffers; the reader stays open."""
        self._codec = None
        self._is_done = True
        self._feed.close()

    def _read_piece(self, nbytes: int) -> bytes:
        while True:
            if self._failure is not None:
                raise self._failure
            if self._is_done or (self._codec is None and not self._open_member()):
                self._is_done = True
                return b""
            if self._is_careful:
                piece = self._read_carefully(nbytes)
            else:
                try:
                    piece = self._step(nbytes, self._feed_nbytes)
                except self._errors as error:
                    piece = b""
                    if self._feed.can_rewind:
                        self._replay_member()
                    else:
                        self._fail_damaged(error, self._feed.offset)
            if piece:
                return piece

    def _open_member(self) -> bool:
        """Move to the next member; return False at the end of the file."""
        if self._num_members > 0:
            head = self._skip_padding()
            if not head:
                return False
            if not starts_member(head, self._compression):
                self._failure = CompressionError(
                    f"expected the end of the file after the {self._compression} stream, got {head.hex(' ')}",
                    shard=self._reader.name,
                    offset=self._feed.offset,
                    hint=advise_repair(self._reader.name),
                )
                raise self._failure
        self._num_members += 1
        self._member_offset = self._feed.offset
        self._member_inflated = 0
        self._feed_nbytes = _FIRST_FEED_NBYTES
        self._is_careful = False
        self._codec = open_codec(self._compression)
        return True

    def _skip_padding(self) -> bytes:
        """Skip zero bytes; return the next 8 bytes without consuming them, b"" at the end."""
        while True:
            piece = bytes(self._feed.take(512))
            rest = piece.lstrip(b"\0")
            if rest:
                self._feed.give_back(rest)
                # A pipe may return fewer bytes than a magic has.
                head = bytes(self._feed.take(8))
                if len(head) < 8:
                    head += bytes(self._feed.take(8 - len(head)))
                self._feed.give_back(head)
                return head
            if not piece:
                return b""

    def _step(self, nbytes: int, feed_nbytes: int) -> bytes:
        """Call the codec once; return its output, which may be empty."""
        codec = self._codec
        assert codec is not None
        data: bytes | memoryview = b""
        is_starved = False
        if codec.needs_input:
            data = self._feed.take(feed_nbytes)
            is_starved = not data
            self._feed_nbytes = min(self._feed_nbytes * 2, _FEED_NBYTES)
        # At the end of the file the codec may still hold output, so it is called without input until it returns none.
        piece = codec.decompress(data, nbytes)
        self._member_inflated += len(piece)
        if codec.eof:
            self._feed.give_back(codec.unused_data)
            self._codec = None
        elif is_starved and not piece:
            self._failure = CompressionError(
                f"compressed stream ends early, {self.inflated_nbytes} bytes inflated before",
                shard=self._reader.name,
                offset=self._feed.offset,
                hint=advise_repair(self._reader.name),
            )
        return piece

    def _replay_member(self) -> None:
        """Inflate the member again up to the last byte returned, with a codec that returns every byte before damage."""
        given = self._member_inflated
        self._feed.rewind(self._member_offset)
        self._member_inflated = 0
        self._is_careful = True
        self._codec = open_codec(self._compression, careful=True)
        feed_nbytes = _FEED_NBYTES if FORMATS[self._compression].is_deflate else _CAREFUL_FEED_NBYTES
        try:
            while self._member_inflated < given and self._codec is not None and self._failure is None:
                self._step(min(given - self._member_inflated, _PIECE_NBYTES), feed_nbytes)
        except self._errors as error:
            self._fail_damaged(error, self._feed.offset)

    def _read_carefully(self, nbytes: int) -> bytes:
        pieces: list[bytes] = []
        try:
            if FORMATS[self._compression].is_deflate:
                return self._step(nbytes, _FEED_NBYTES)
            # Byte by byte, because a codec returns nothing from the call that meets damage.
            while len(pieces) < nbytes and self._codec is not None and self._failure is None:
                piece = self._step(1, 1)
                if piece:
                    pieces.append(piece)
        except self._errors as error:
            # Bytes fed to the codec after the damaged one are not inspected.
            unread = 0 if self._codec is None else len(self._codec.unused_data)
            self._fail_damaged(error, self._feed.offset - unread - 1)
        return b"".join(pieces)

    def _fail_damaged(self, error: Exception, offset: int) -> None:
        self._failure = CompressionError(
            f"compressed stream is damaged, {explain_damage(error)}",
            shard=self._reader.name,
            offset=max(offset, 0),
            hint=advise_repair(self._reader.name),
        )


def inflate_start(reader: ByteReader, compression: Compression, nbytes: int, *, start: int = 0) -> bytes:
    """Inflate up to `nbytes` bytes from the stored byte `start` on; stops at damage instead of raising."""
    pieces: list[bytes] = []
    stream = InflateReader(reader, compression, start=start)
    with contextlib.closing(stream), contextlib.suppress(CompressionError):
        while nbytes > 0 and (piece := stream.read(nbytes)):
            pieces.append(piece)
            nbytes -= len(piece)
    return b"".join(pieces)
