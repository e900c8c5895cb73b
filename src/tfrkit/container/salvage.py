"""Read the rest of a compressed shard after a member that does not inflate.

gzip, xz and zstd files may be several concatenated members that inflate independently. After a damaged member, the next
one is found by its magic, and accepted only if it inflates to a valid frame: the three bytes of gzip's magic also occur
by chance every few megabytes of compressed data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tfrkit import _native
from tfrkit.container.codecs import FORMATS
from tfrkit.container.compression import inflate_start
from tfrkit.container.records import FrameStream, Policy
from tfrkit.container.shards import Shard

_PIECE_NBYTES = 1 << 20
# A member is accepted if there is a frame in this many of its first inflated bytes.
_PROOF_NBYTES = 4 << 20
# Limit of the bytes inflated to check members: a hostile file can be full of member magics.
_MAX_PROOF_NBYTES = 1 << 30


@dataclass(frozen=True)
class Gap:
    """Lost stored bytes [start, stop) of a compressed shard; `offset` is the number of inflated bytes before them."""

    offset: int
    start: int
    stop: int


class Salvage:
    """Iterates over the readable parts of a shard, one `FrameStream` each.

    An undamaged shard is one part. Read each part to its end before the next one. Bytes that do not inflate are not
    counted in offsets; `gaps` lists their stored ranges. Use it from one thread at a time.
    """

    def __init__(
        self,
        shard: Shard,
        policy: Policy,
        *,
        columns: Sequence[str] = (),
        start: int = 0,
        record: int = 0,
    ) -> None:
        self._shard = shard
        self._policy = policy
        self._columns = columns
        self._first = FrameStream(shard, policy, columns=columns, start=start, record=record)
        self._search = _MemberSearch(shard)
        self.gaps: list[Gap] = []

    def __iter__(self) -> Iterator[FrameStream]:
        stream = self._first
        while True:
            yield stream
            member = stream.torn_member
            if member is None:
                return
            following = self._search.find(member + 1)
            stop = (self._shard.nbytes or 0) if following is None else following
            # A decoder may read into the next member before it fails.
            self.gaps.append(Gap(stream.offset, min(stream.torn_offset or 0, stop), stop))
            if following is None:
                return
            stream = FrameStream(
                self._shard,
                self._policy,
                columns=self._columns,
                start=stream.offset,
                record=stream.record + 1,
                member=following,
            )


class _MemberSearch:
    """Searches a shard for members that contain frames. A pipe cannot be searched."""

    def __init__(self, shard: Shard) -> None:
        self._shard = shard
        row = FORMATS[shard.compression]
        self._magic = row.member_magic or row.magic
        self._left = _MAX_PROOF_NBYTES

    def find(self, start: int) -> int | None:
        """Return the stored offset of the next member at or after `start` that has a valid frame, or None."""
        size = self._shard.nbytes
        if not self._magic or size is None:
            return None
        for offset in range(start, size, _PIECE_NBYTES):
            piece = self._shard.reader.read_at(offset, _PIECE_NBYTES + len(self._magic) - 1)
            found = piece.find(self._magic)
            while found >= 0 and self._left > 0:
                if self._holds_frame(offset + found):
                    return offset + found
                found = piece.find(self._magic, found + 1)
        return None

    def _holds_frame(self, member: int) -> bool:
        data = inflate_start(self._shard.reader, self._shard.compression, _PROOF_NBYTES, start=member)
        self._left -= len(data)
        return bool(data) and _native.find_next_frame(data, 0, len(data), True)[0]
