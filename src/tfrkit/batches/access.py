"""Random access to records by number."""

from __future__ import annotations

import bisect
import contextlib
import operator
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING, TypeVar, overload

import numpy as np

from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit._threads import map_ahead
from tfrkit._types import Record, UInt64Array
from tfrkit.batches.ahead import count_ahead, open_streams
from tfrkit.batches.state import require_whole
from tfrkit.container.codecs import FORMATS
from tfrkit.container.compression import InflateReader
from tfrkit.container.faults import fault_to_error, list_damage, locate_memory_error
from tfrkit.container.index import ShardIndex
from tfrkit.container.locate import load_frames, scan_frames_once, warn_of_stale
from tfrkit.container.records import FrameStream, Policy, list_records, view_records
from tfrkit.container.seekable import SeekableInflate
from tfrkit.container.shard_list import ShardList
from tfrkit.container.shards import Shard
from tfrkit.errors import CompressionError, ContainerError, StaleIndexError, StorageError
from tfrkit.storage.base import ByteReader
from tfrkit.storage.forking import renew_lock_after_fork

T = TypeVar("T")

_HEADER_NBYTES = 8 + 4
_FRAME_OVERHEAD = 16
# Neighbouring records of a compressed shard are inflated in pieces of this size.
_STRETCH_NBYTES = 1 << 20
# A small remote shard is read as a whole once one record in this many was picked.
_HOLD_SHARE = 8


class ShardAccess:
    """Random access into one shard, compressed or not. Safe to share between threads."""

    def __init__(self, shard: Shard, index: ShardIndex, policy: Policy) -> None:
        self._shard = shard
        self._index = index
        self._verify = policy.verify
        self._lock = threading.Lock()
        self._is_holdable = True
        span = shard.reader.span() if shard.compression == "none" else None
        self.table: _native.FrameTable | None = None  # None for a compressed shard that is not in memory
        self.is_held = False
        self._num_picked = 0
        self._inflate: SeekableInflate | None = None
        if span is not None:
            pages = None if index.pages is None else index.pages.checker
            self.table = _native.FrameTable(span, index.offsets, policy.verify, pages)
            shard.reader.park()  # the table keeps its own map
        else:
            renew_lock_after_fork(self)
            # A scan that skipped damage did not see the true end of the stream.
            size = index.inflated_size if policy.on_error == "raise" else None
            try:
                self._inflate = SeekableInflate(shard.reader, shard.compression, index.checkpoints, inflated_size=size)
            except StaleIndexError as error:
                warn_of_stale(error)
                self._inflate = SeekableInflate(shard.reader, shard.compression, inflated_size=size)

    @property
    def name(self) -> str:
        return self._shard.name

    @property
    def needs_file(self) -> bool:
        """Whether reading unpacks the shard to a file, which stays open."""
        is_unpacked = self._shard.compression != "none" and not FORMATS[self._shard.compression].is_deflate
        return is_unpacked and not self.is_held

    def offset_of(self, record: int) -> int:
        self._index.require(record, record + 1)
        return int(self._index.offsets[record])

    def record_of(self, record: int) -> int:
        """Return the number of a record in its file, which counts damage that was skipped, for messages."""
        return self._index.record_of(record)

    def read(self, record: int) -> Record:
        """Read the payload of one record and check it."""
        payload = self.table.read(record) if self.table is not None else self._read_inflated(record)
        if not isinstance(payload, bytes) and self.is_remote:
            return self.read_again(record)
        return self._require(payload, record)

    @property
    def is_remote(self) -> bool:
        """Whether records are read from a store by ranges; False for a compressed shard, which is inflated in order."""
        return self._shard.reader.is_remote and self._shard.compression == "none"

    @property
    def reader(self) -> ByteReader:
        return self._shard.reader

    def bounds(self, record: int) -> tuple[int, int]:
        """Return the first byte of a frame, and the first byte of the next one or the end of the shard."""
        is_last = record + 1 == self._index.num_records
        return self.offset_of(record), self._index.inflated_size if is_last else self.offset_of(record + 1)

    def span_of(self, start: int, stop: int) -> tuple[int, int]:
        """Return the first byte of the frames [start, stop), and the byte after them."""
        return self.offset_of(start), self.bounds(stop - 1)[1]

    def offsets_of(self, start: int, stop: int) -> UInt64Array:
        """Return where the frames [start, stop) start."""
        self._index.require(start, stop)
        return self._index.offsets[start:stop]

    @property
    def is_paged(self) -> bool:
        """Whether parts of its index are requested when they are used."""
        return self._index.is_fetched

    def expect(self, records: Sequence[int]) -> None:
        """Request what is missing of the index to find these records."""
        self._index.expect(records)

    def read_again(self, record: int) -> Record:
        """Read a remote record past any cache, after its checksum failed: it is damage only if it fails again."""
        [frame] = self._shard.reader.read_ranges([self.bounds(record)], fresh=True)
        return self._require(_native.read_frame_at(frame, 0, self._verify), record)

    def check_frame(self, frame: bytes, record: int) -> Record:
        """Return the payload of a remote frame that was read elsewhere; it is read again if a checksum fails."""
        payload = _native.read_frame_at(frame, 0, self._verify)
        return payload if isinstance(payload, bytes) else self.read_again(record)

    def wants_all(self, num_picks: int) -> bool:
        """Count picks from a remote shard; return whether all of it should be read."""
        self._num_picked += num_picks
        return not self.is_remote or self._num_picked * _HOLD_SHARE >= self._index.num_records

    def read_bytes(self, offset: int, nbytes: int) -> bytes:
        """Read inflated bytes of the shard, unchecked; fewer at its end."""
        try:
            source = self._shard.reader if self._inflate is None else self._inflate
            return bytes(source.read_at(offset, nbytes))
        finally:
            self._shard.reader.park()

    def _require(self, payload: Record | _native.Fault, record: int) -> Record:
        if isinstance(payload, bytes):
            return payload
        raise fault_to_error(payload, shard=self.name, record=self.record_of(record), offset=self.offset_of(record))

    def read_stretch(self, start: int, stop: int) -> Iterator[Record | ContainerError]:
        """Yield the checked payload or the error of each record in a range; reads compressed shards in large blocks."""
        self._index.require(start, stop)
        while start < stop:
            limit = np.uint64(self.offset_of(start) + _STRETCH_NBYTES)
            end = max(start + 1, start + int(np.searchsorted(self._index.offsets[start:stop], limit)))
            yield from self._read_block(start, end)
            start = end

    def _read_block(self, start: int, stop: int) -> Iterator[Record | ContainerError]:
        offsets = self._index.offsets[start:stop].tolist()
        offsets.append(self.offset_of(stop) if stop < self._index.num_records else self._index.inflated_size)
        block: memoryview | None = None
        if self._inflate is not None and self.table is None:
            with contextlib.suppress(CompressionError):  # then read one by one, to get the records before the damage
                block = memoryview(self._inflate.read_at(offsets[0], offsets[-1] - offsets[0]))
        for record, (low, high) in enumerate(pairwise(offsets), start):
            try:
                if block is None:
                    yield self.read(record)
                    continue
                frame = block[low - offsets[0] : high - offsets[0]]
                yield self._require(_native.read_frame_at(frame, 0, self._verify), record)
            except ContainerError as error:
                yield error

    @property
    def inflated_size(self) -> int:
        return self._index.inflated_size

    def hold(self, reserve: Callable[[], bool]) -> bool:
        """Inflate a compressed shard into memory; return whether this call did so, with the space that it reserved.

        One thread inflates, others wait for it. Records of a damaged shard are still read one by one.
        """
        with self._lock:
            if self.is_held or not self._is_holdable or not reserve():
                return False
            reader = InflateReader(self._shard.reader, self._shard.compression)
            pieces = []
            try:
                while piece := reader.read(1 << 20):
                    pieces.append(piece)
            except CompressionError:
                self._is_holdable = False
                return False
            finally:
                self._shard.reader.park()
            self._index.require(0, self._index.num_records)
            self.table = _native.FrameTable(b"".join(pieces), self._index.offsets, self._verify)
            self.is_held = True
            return True

    def park(self) -> None:
        """Close the file; a table keeps its own map of it."""
        self._shard.reader.park()

    def _read_inflated(self, record: int) -> Record | _native.Fault:
        assert self._inflate is not None
        offset, stop = self.bounds(record)
        if self.is_remote:
            return _native.read_frame_at(self._shard.reader.read_at(offset, stop - offset), 0, self._verify)
        header = self._inflate.read_at(offset, _HEADER_NBYTES)
        # There may be damage between two frames, so the length in the header limits the read.
        nbytes = min(stop - offset, int.from_bytes(header[:8], "little") + _FRAME_OVERHEAD)
        frame = self._inflate.read_at(offset, nbytes)
        self._shard.reader.park()  # the inflater has its own map
        return _native.read_frame_at(frame, 0, self._verify)


class Records(_native.RecordPicker, Sequence[Record]):
    """Payload bytes of a dataset: iterate over them in file order, or pick them by number.

    Iterating reads each shard once from front to back and keeps no index. `len` and picking find the frames
    first: from the index if there is one, else by a scan of the headers. Safe to share between threads.
    """

    def __init__(
        self,
        shards: Sequence[Shard],
        policy: Policy,
        counts: Sequence[int] | None = None,
        recall: Callable[[], Sequence[int] | None] | None = None,
    ) -> None:
        """Read from `shards`; `counts` has the number of records of each, if already known.

        `recall` returns these numbers on demand, or None if only a scan can find them.
        """
        self._shards = ShardList.of(shards)
        self._policy = policy
        self._lock = threading.Lock()
        renew_lock_after_fork(self)
        self._starts: list[int] | None = None
        self._starts_array = np.zeros(1, np.uint64)
        self._scanned: dict[int, ShardIndex] = {}
        self._loaded: dict[int, ShardIndex] = {}  # of shards that are opened next
        self._open: OrderedDict[int, ShardAccess] = OrderedDict()
        self._unpacked: OrderedDict[int, None] = OrderedDict()  # open shards that may have an unpacked file
        self._unheld_nbytes = LIMITS.held_nbytes
        self._threads: int | None = None
        self._recall = recall
        self._stop = threading.Event()
        if counts is not None:
            self._starts = self._add_counts(counts)

    def __iter__(self) -> Iterator[Record]:
        return self._read(list_records)

    def views(self) -> Iterator[memoryview]:
        """Yield the records in file order as read-only views, without a copy.

        A view points into the mapped file and keeps the map alive. Do not truncate the file while views of it exist.
        Views of 1 KB and more are faster than bytes: 1.3 times, at 100 KB and ``verify="none"`` 3 times. A view of 200
        bytes costs twice as much as a copy.
        """
        return self._read(view_records)

    def _read(self, read: Callable[[FrameStream], Iterator[list[T]]]) -> Iterator[T]:
        policy = self._policy.for_one_pass()
        streams = open_streams(self._shards, policy, threads=self._threads, shares_plain=True)
        lists = chain.from_iterable(map(read, streams))
        return chain(chain.from_iterable(lists), policy.end_pass())

    def on_threads(self, threads: int | None) -> Records:
        """Return the same records, inflated and checked on this number of threads when all are read.

        None inflates on one per core, and reads files that are not compressed on the caller's thread.
        """
        if threads is None:
            return self
        require_whole("threads", threads, first=1)
        other = Records(self._shards, self._policy, self.known_counts, self._recall)
        other._threads = threads
        return other

    def __len__(self) -> int:
        if self._shards.has_pipe:
            # A TypeError, so that list() iterates without a length.
            name = next(shard.name for shard in self._shards if shard.nbytes is None)
            raise TypeError(f"the records of a pipe can be counted only by reading it - at {name}")
        return self.find_starts()[-1]

    if TYPE_CHECKING:
        # Implemented in the core, which reads from open shards and calls `_get` for anything else: for a small record,
        # Python code around the read would take longer than the read.
        @overload
        def __getitem__(self, index: int) -> Record: ...
        @overload
        def __getitem__(self, index: slice) -> list[Record]: ...
        def __getitem__(self, index: int | slice) -> Record | list[Record]:
            raise NotImplementedError

    def _get(self, index: int | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            return self.pick(range(*index.indices(len(self))))
        access, record = self._locate(_to_number(index))
        return access.read(record)

    def pick(self, numbers: Iterable[int]) -> list[Record]:
        """Return the records with these numbers, in the given order."""
        return [self[int(number)] for number in numbers]

    def decode_into(self, builder: _native.RowBuilder, number: int, columns: Sequence[str]) -> None:
        """Decode one record into a builder."""
        access, record = self._locate(number)
        try:
            if access.table is not None:
                fault = builder.append_pick(access.table, record, self._policy.verify)
            else:
                fault = builder.append_record(access.read(record))
        except MemoryError as error:
            raise locate_memory_error(
                error, shard=access.name, record=access.record_of(record), offset=access.offset_of(record)
            ) from None
        if fault is not None:
            raise fault_to_error(
                fault,
                shard=access.name,
                record=access.record_of(record),
                offset=access.offset_of(record),
                columns=columns,
            )

    def _locate(self, number: int) -> tuple[ShardAccess, int]:
        """Find the shard of a record and its number in that shard; negative numbers count from the end."""
        starts = self.find_starts()
        wanted = number + starts[-1] if number < 0 else number
        if not 0 <= wanted < starts[-1]:
            raise IndexError(f"record {number} of {starts[-1]} does not exist")
        shard = bisect.bisect_right(starts, wanted) - 1
        return self.open_shard(shard), wanted - starts[shard]

    @property
    def is_remote(self) -> bool:
        """Whether a shard is in a store."""
        return self._shards.is_remote

    @property
    def is_pipe(self) -> bool:
        """Whether the records can be read only once, sequentially."""
        return self._shards.has_pipe

    @property
    def has_unheld(self) -> bool:
        """Whether a compressed shard is too large to be kept inflated."""
        if self.is_remote:
            return True
        if self._shards.compressions <= {"none"}:
            return False
        accesses = (self.hold_shard(number) for number in range(len(self._shards)))
        return any(access.table is None for access in accesses)

    def count_by_shard(self) -> list[int]:
        """Return the number of records of each shard."""
        return [stop - start for start, stop in pairwise(self.find_starts())]

    def locate_many(self, numbers: UInt64Array) -> tuple[UInt64Array, UInt64Array]:
        """Return the shard number of each record, and its number in that shard."""
        self.find_starts()
        shards = np.searchsorted(self._starts_array, numbers, side="right") - 1
        return shards.astype(np.uint64), numbers - self._starts_array[shards]

    def number_of(self, shards: UInt64Array, ordinals: UInt64Array) -> UInt64Array:
        """Return the numbers of records that `locate_many` found."""
        return self._starts_array[shards.astype(np.int64)] + ordinals

    @property
    def known_counts(self) -> list[int] | None:
        """The number of records of each shard, if already counted."""
        return None if self._starts is None else self.count_by_shard()

    def find_starts(self) -> list[int]:
        """Return the number of the first record of each shard, followed by the total."""
        if self._starts is not None:
            return self._starts
        with self._lock:
            if self._starts is None:
                known = None if self._recall is None else self._recall()
                self._starts = self._add_counts(self._count_shards() if known is None else known)
            return self._starts

    def stop_count(self) -> None:
        """End a count that runs on another thread, with InterruptedError there."""
        self._stop.set()

    def _count_shards(self) -> Iterator[int]:
        policy = self._policy.for_one_pass()
        self._stop = threading.Event()  # set at the end of each count
        room = LIMITS.max_kept_offsets
        for number, counted in enumerate(count_ahead(self._shards, policy, threads=self._threads, stop=self._stop)):
            # Offsets from an index file are not kept: the file is read again when a record of the shard is picked.
            if counted.index is not None and counted.is_scanned and counted.num_records <= room:
                self._scanned[number] = counted.index
                room -= counted.num_records
            yield counted.num_records

    def _add_counts(self, counts: Iterable[int]) -> list[int]:
        starts = [0, *accumulate(counts)]
        self.set_starts(starts)
        self._starts_array = np.array(starts, np.uint64)
        return starts

    def open_together(self, numbers: Sequence[int]) -> None:
        """Load the indexes of remote shards that are not open yet, on threads: each waits for its requests."""
        missing = [number for number in numbers if number not in self._open] if self.is_remote else []
        if len(missing) < 2 or len(numbers) > LIMITS.max_open_shards:
            return

        def load(number: int) -> ShardIndex | None:
            shard = self._shards[number]
            shard.confirm()
            return load_frames(shard, self._policy, is_lazy=True)

        loaded = map_ahead(load, missing, threads=min(len(missing), LIMITS.first_requests))
        for number, index in zip(missing, loaded, strict=True):
            if index is not None:
                self._loaded[number] = index

    def open_shard(self, number: int) -> ShardAccess:
        with self._lock:
            access = self._open.get(number)
            if access is not None:
                self._open.move_to_end(number)
                if access.needs_file:
                    self._limit_unpacked(number)
                return access
            shard = self._shards[number]
            shard.confirm()
            index = self._scanned.get(number) or self._loaded.pop(number, None)
            index = index or load_frames(shard, self._policy, is_lazy=True)
            if index is None:
                # The offsets were too many to keep, or the index file is gone, or another process counted the records.
                index = self._scanned[number] = scan_frames_once(shard, self._policy.for_one_pass())
            self._check_count(number, index.num_records)
            access = self._open[number] = ShardAccess(shard, index, self._policy)
            self.set_table(number, access.table)
            if len(self._open) > LIMITS.max_open_shards:
                self._drop(next(iter(self._open)))
            if access.needs_file:
                self._limit_unpacked(number)
            return access

    def _check_count(self, number: int, num_records: int) -> None:
        if self._starts is None:
            return
        expected = self._starts[number + 1] - self._starts[number]
        if num_records != expected:
            raise StorageError(
                f"expected {expected} records as counted before or by its manifest, got {num_records}",
                shard=self._shards[number].name,
                hint=list_damage(self._shards[number].name),
            )

    def _limit_unpacked(self, number: int) -> None:
        self._unpacked[number] = None
        self._unpacked.move_to_end(number)
        if len(self._unpacked) > LIMITS.max_unpacked_shards:
            self._drop(next(iter(self._unpacked)))

    def _drop(self, number: int) -> None:
        """Close a shard; current readers keep it alive. The caller holds the lock."""
        dropped = self._open.pop(number)
        self._unpacked.pop(number, None)
        self.set_table(number, None)
        if dropped.is_held:
            self._unheld_nbytes += dropped.inflated_size
        dropped.park()

    def hold_shard(self, number: int, num_picks: int = 1) -> ShardAccess:
        """Open a shard for many picks: a compressed shard is kept inflated in memory if there is room.

        A remote one, too, once many of its records were picked.
        """
        access = self.open_shard(number)
        if access.table is not None or not access.wants_all(num_picks):
            return access
        is_reserved = False

        def reserve() -> bool:
            nonlocal is_reserved
            with self._lock:
                is_reserved = self._open.get(number) is access and access.inflated_size <= self._unheld_nbytes
                self._unheld_nbytes -= access.inflated_size if is_reserved else 0
            return is_reserved

        is_used = False
        try:
            is_used = access.hold(reserve)
        finally:
            with self._lock:
                # Space of a shard that was dropped meanwhile is free when its readers are done with it.
                if is_reserved and not (is_used and self._open.get(number) is access):
                    self._unheld_nbytes += access.inflated_size
        return access


def expect_records(wanted: Iterable[tuple[ShardAccess, Sequence[int]]]) -> None:
    """Request together what is missing of the indexes of remote shards to find some of their records."""
    paged = [(access, records) for access, records in wanted if access.is_paged]
    threads = min(len(paged), LIMITS.first_requests)
    deque(map_ahead(lambda pair: pair[0].expect(pair[1]), paged, threads=threads), maxlen=0)


def _to_number(index: object) -> int:
    try:
        return operator.index(index)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"expected a number or a slice, got {type(index).__name__}") from None
