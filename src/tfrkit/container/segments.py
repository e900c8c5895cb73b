"""Segments of a gzip or zlib shard that threads inflate independently, from the checkpoints and offsets in its index.

A segment is a run of whole frames. All segments together are all bytes of the stream, so their checksums combine to the
checksum of the stream, which inflating from a checkpoint does not compare.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Final, NamedTuple, Self

import numpy as np

from tfrkit import _deflate, _native
from tfrkit._limits import LIMITS
from tfrkit._types import Verify
from tfrkit.container.checkpoints import Checkpoints
from tfrkit.container.codecs import FORMATS, codec_errors
from tfrkit.container.index import ShardIndex, load_index
from tfrkit.container.records import NO_LIMIT, Stretch
from tfrkit.container.seekable import SeekableInflate
from tfrkit.container.shards import Shard
from tfrkit.errors import TfrkitError

_ADLER_BASE: Final = 65521
_TRAILER_NBYTES: Final = 8


class Segment(NamedTuple):
    """Records [start, stop) of a shard."""

    start: int
    stop: int


class Segments:
    """The segments of one shard. `read` may be called on any thread, `add` and `is_sound` on one."""

    def __init__(self, shard: Shard, index: ShardIndex, bounds: list[int]) -> None:
        self.shard = shard
        self._index = index
        self._inflate = SeekableInflate(shard.reader, shard.compression, index.checkpoints)
        self._errors: tuple[type[Exception], ...] = (TfrkitError, *codec_errors(shard.compression))
        self._is_gzip = shard.compression == "gzip"
        self._checksum = 0 if self._is_gzip else 1
        self.listed = [Segment(start, stop) for start, stop in pairwise(bounds)]

    @classmethod
    def find(cls, shard: Shard) -> Self | None:
        """Find the segments of a shard; None if it has no index with checkpoints, or only one segment.

        An index that does not match is ignored, as by every pass in file order.
        """
        size = shard.nbytes
        if size is None or not FORMATS[shard.compression].is_deflate:
            return None
        try:
            index = load_index(shard.reader)
            if index is None or not index.checkpoints or index.compression != shard.compression:
                return None
            points = Checkpoints(index.checkpoints, shard.reader)
            trailer = shard.reader.read_at(max(0, size - _TRAILER_NBYTES), _TRAILER_NBYTES)
        except TfrkitError:
            return None
        finally:
            shard.reader.park()
        # The trailer of a gzip file has the size of its last member: with several members there is no common checksum.
        # If checkpoints are far apart, most of a segment would be inflated more than once.
        if shard.compression == "gzip" and int.from_bytes(trailer[4:], "little") != index.inflated_size % (1 << 32):
            return None
        gaps = np.diff([*points.inflated, points.inflated_size])
        if points.inflated_size != index.inflated_size or gaps.max() > LIMITS.segment_nbytes:
            return None
        starts = np.arange(LIMITS.segment_nbytes, index.inflated_size, LIMITS.segment_nbytes, dtype=np.uint64)
        inner = np.unique(np.searchsorted(index.offsets, starts)).tolist()
        bounds = sorted({0, *inner, index.num_records})
        return cls(shard, index, bounds) if len(bounds) > 2 else None

    def offset_of(self, record: int) -> int:
        """Return the inflated offset of a frame; of the end of the shard for the number of records."""
        return int(self._index.offsets[record]) if record < self._index.num_records else self._index.inflated_size

    def read(self, segment: Segment, verify: Verify) -> Stretch | None:
        """Inflate a segment and check its frames; None if there is any damage. `taken` is the checksum of its bytes."""
        start, stop = self.offset_of(segment.start), self.offset_of(segment.stop)
        try:
            data = self._inflate.read_once(start, stop - start)
        except self._errors:
            return None
        num_frames, after, fault = _native.check_frames(data, 0, len(data), NO_LIMIT, verify)
        if fault is not None or num_frames != segment.stop - segment.start or after != stop - start:
            return None
        checksum = (_deflate.crc32 if self._is_gzip else _deflate.adler32)(data)
        return Stretch(self.shard, data, 0, after, segment.start, start, num_frames, checksum)

    def add(self, stretch: Stretch) -> None:
        """Add the next segment to the checksum of the stream."""
        combine: Callable[[int, int, int], int] = _deflate.combine_crc32 if self._is_gzip else combine_adler32
        self._checksum = combine(self._checksum, stretch.taken, stretch.nbytes)

    def is_sound(self) -> bool:
        """Whether the checksum of all segments is the one at the end of the file."""
        nbytes = _TRAILER_NBYTES if self._is_gzip else 4
        trailer = self.shard.reader.read_at((self.shard.nbytes or 0) - nbytes, 4)
        self.shard.reader.park()
        return int.from_bytes(trailer, "little" if self._is_gzip else "big") == self._checksum


def combine_adler32(first: int, second: int, second_nbytes: int) -> int:
    """Return the Adler-32 of two byte strings from those of each.

    Example:
        >>> combine_adler32(_deflate.adler32(b"ab"), _deflate.adler32(b"cde"), 3) == _deflate.adler32(b"abcde")
        True
    """
    low = ((first & 0xFFFF) + (second & 0xFFFF) - 1) % _ADLER_BASE
    high = ((first >> 16) + (second >> 16) + second_nbytes * ((first & 0xFFFF) - 1)) % _ADLER_BASE
    return high << 16 | low
