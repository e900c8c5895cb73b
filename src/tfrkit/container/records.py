"""Read a shard from its first frame to its last, raising or skipping damage.

`FrameStream` keeps the position and handles damage; calls of the core consume the frames: they take (data, start, stop)
and return their progress. The bytes come from the windows of `windows.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit._types import OnError, Record, Verify
from tfrkit.container.codecs import FORMATS
from tfrkit.container.compression import InflateReader
from tfrkit.container.faults import advise_repair, describe_truncated, fault_to_error, list_damage, locate_memory_error
from tfrkit.container.shards import Shard
from tfrkit.container.windows import CHECKSUMS, InflateWindows, SpanWindows
from tfrkit.errors import (
    ContainerError,
    CorruptRecordError,
    Hint,
    LimitError,
    SkippedRecordsWarning,
    StorageError,
    TfrkitError,
    TruncatedShardError,
    in_one_line,
    warn_caller,
)
from tfrkit.storage.base import Ahead, ByteSource

# Number of records copied to bytes objects per step.
_READ_RECORDS = 4096
# Of larger records this much is copied per step: with 64 KiB, a step would read few of them.
_LARGE_RECORD_NBYTES = 2 << 10
_LARGE_READ_NBYTES = 1 << 20
# Views are not copied, so this only has to be large enough to hide the Python overhead per call.
_VIEW_NBYTES = 1 << 21
# Deflate expands at most 1032 times, so a frame length above that is damage.
_MAX_DEFLATE_RATIO = 1032
# A frame of a stream is collected in memory, so the length in a hostile header must not exhaust it. No protobuf message
# is larger than this.
MAX_STREAMED_NBYTES = 1 << 31

# Frames checked per search step.
_CHECKED_AT_ONCE = 4096

# Search limit if records are read only to identify the file.
SAMPLED_SEARCH_NBYTES = 64 << 20
# Bytes to read to tell an impossible length from a truncated stream.
_LOOK_NBYTES = 4 << 20

_HEADER_NBYTES = 8 + 4
_TRUNCATED = ("truncated_header", "truncated_payload")
_MISPLACED = (*_TRUNCATED, "length_checksum")
NO_LIMIT = 1 << 62
# Bytes that failed a checksum are damage if they come twice, or if this number of requests in a row gave wrong ones.
MAX_AGAIN = 3

Read = Callable[[ByteSource, int, int, int, Verify], tuple[Any, int, "_native.Fault | None"]]
"""(data, start, stop, max_frames, verify) → frames or their number, start of the next frame, fault or None."""

Consume = Callable[[ByteSource, int, int], tuple[int, int, "_native.Fault | None"]]


@dataclass(frozen=True)
class Finding:
    """Damage at one position in a shard. `kind` is the `fault` of its error, such as "payload_checksum".

    Without `is_one_record`, the number of records in the lost bytes is unknown. `record` counts such bytes as one.
    """

    shard: str
    record: int
    offset: int
    cause: str
    lost_nbytes: int = 0
    kind: str | None = None
    is_one_record: bool = True

    @property
    def stop(self) -> int:
        """End of the lost bytes."""
        return self.offset + self.lost_nbytes

    @classmethod
    def of(cls, error: TfrkitError, **changes: Any) -> Finding:
        """Make a finding from an error."""
        found = cls(error.shard or "?", error.record or 0, error.offset or 0, error.what, kind=error.fault)
        return replace(found, **changes) if changes else found

    def to_json(self) -> dict[str, Any]:
        return {"shard": self.shard, "record": self.record, "offset": self.offset, "cause": self.cause}


def find_hole(findings: Iterable[Finding]) -> int:
    """Return the number of the first record whose bytes may hold several: record numbers after it are uncertain."""
    return min((finding.record for finding in findings if not finding.is_one_record), default=NO_LIMIT)


@dataclass
class Policy:
    """Which checksums are compared, and what happens on damage.

    `findings` is shared by all passes over a dataset and lists each damaged position once; `max_errors` is per pass.
    """

    verify: Verify = "all"
    on_error: OnError = "raise"
    max_errors: int | None = None
    search_nbytes: int = MAX_STREAMED_NBYTES
    """How far to search for the next valid frame after damage in a compressed shard."""
    findings: dict[tuple[str, int], Finding] = field(default_factory=dict)
    _num_taken: int = 0
    _warned_of: set[tuple[str, int]] = field(default_factory=set)

    def for_one_pass(self) -> Self:
        """Return a copy of the policy with an error count of zero."""
        return replace(self, _num_taken=0)

    def take(self, finding: Finding, error: TfrkitError) -> None:
        """Record the finding or raise the error, according to the policy."""
        if self.on_error == "raise":
            raise error
        self.findings[finding.shard, finding.offset] = finding
        self._num_taken += 1
        if self.max_errors is not None and self._num_taken > self.max_errors:
            raise error.replace(
                hint=Hint(
                    f"this is damaged place {self._num_taken}, max_errors allows {self.max_errors}",
                    list_damage(finding.shard),
                )
            )

    def add(self, findings: Iterable[Finding]) -> None:
        """Record damage skipped by another process."""
        for finding in findings:
            self.findings.setdefault((finding.shard, finding.offset), finding)

    def end_pass(self) -> Iterator[Any]:
        """Return an empty iterator that warns about skipped damage; chained to the end of a pass."""
        self.warn_of_skipped()
        yield from ()

    def warn_of_skipped(self) -> None:
        """Give one warning for all damage skipped since the last warning."""
        found = [finding for place, finding in list(self.findings.items()) if place not in self._warned_of]
        if not found or self.on_error != "skip":
            return
        self._warned_of.update((finding.shard, finding.offset) for finding in found)
        first = found[0]
        places = "1 damaged place" if len(found) == 1 else f"{len(found):,} damaged places, the first"
        where = f"{in_one_line(first.shard)}, record {first.record}, byte {first.offset}"
        warn_caller(
            SkippedRecordsWarning(f"skipped {places}: {first.cause} - at {where}\n  list all damage: ds.errors")
        )


class Stretch(NamedTuple):
    """Contiguous frames of one shard: bytes [start, stop) of `data`, and the result of reading them (`taken`).

    `record` is the ordinal of the first frame in the shard, `offset` its inflated byte offset there.
    """

    shard: Shard
    data: ByteSource
    start: int
    stop: int
    record: int
    offset: int
    num_frames: int
    taken: Any = None

    @property
    def nbytes(self) -> int:
        return self.stop - self.start

    def read(self, read: Read, verify: Verify) -> tuple[_native.Fault, TfrkitError] | None:
        """Call `read` on these frames, on any thread; return a fault in them and its error, or None."""
        try:
            num_frames, start, fault = read(self.data, self.start, self.stop, self.num_frames, verify)
        except MemoryError as error:
            raise locate_memory_error(
                error, shard=self.shard.name, record=self.record, offset=self.offset, start=self.start
            ) from None
        if fault is None:
            return None
        place = {"record": self.record + num_frames, "offset": self.offset + start - self.start}
        return fault, fault_to_error(fault, shard=self.shard.name, **place)

    def fetch_again(self, fault: _native.Fault, num_frames: int, start: int) -> Stretch | None:
        """Request the frames from `start` on once more, after a fault there; None if that changes nothing.

        `num_frames` are before it. Only the bytes of a remote shard may have been wrong on their way.
        """
        if fault.kind not in CHECKSUMS or self.shard.compression != "none" or not self.shard.reader.is_remote:
            return None
        offset = self.offset + start - self.start
        again = _fetch_again(self.shard, memoryview(self.data)[start : self.stop], offset)
        if again is None:
            return None
        left = self.num_frames - num_frames
        return Stretch(self.shard, again, 0, len(again), self.record + num_frames, offset, left)

    def release(self) -> None:
        """Release the pages of a mapped file."""
        if self.shard.compression == "none":
            self.shard.reader.release(self.start, self.stop)


def _fetch_again(shard: Shard, data: memoryview, offset: int) -> bytes | None:
    """Request bytes of a remote, uncompressed shard once more, past any cache; None if they are the same."""
    again = shard.reader.read_ranges([(offset, offset + len(data))], fresh=True)[0]
    return None if again == data else again


class FrameStream:
    """A position in a shard, advanced by calls of the core.

    Use it from one thread at a time. `record` is the ordinal of the next frame, `offset` its inflated byte offset. A
    stream starts at the first frame, or at frame `record`, which is at byte `start`. In a compressed shard it starts
    with the member stored at byte `member`, and offsets count from `start`. With `within`, it reads a stretch of a
    file whose headers were checked. With `releases`, pages of a mapped file are released after reading; pass False if
    other readers still use the pages. `verify` overrides the policy's choice of checksums. `ahead` is how much of
    a remote file is requested before it is read.

    Remote bytes that fail a checksum are requested again before that is damage. A caller that leaves checksums
    to others who read the bytes without a stream sets `checks_arrival`: all are then compared as the bytes arrive.
    """

    def __init__(
        self,
        shard: Shard,
        policy: Policy,
        *,
        columns: Sequence[str] = (),
        start: int = 0,
        record: int = 0,
        member: int = 0,
        within: Stretch | None = None,
        releases: bool = True,
        verify: Verify | None = None,
        ahead: Ahead = "more",
        checks_arrival: bool = False,
    ) -> None:
        self.shard = shard
        self._policy = policy
        self._within = within
        self._columns = columns
        self._is_torn_reported = False
        self._search: tuple[ByteSource, _native.FrameSearch] | None = None
        self._wasted_nbytes = 0  # bytes with failed checksums
        self._sure = -1  # damage before this offset was requested again
        self._again_at, self._num_again = -1, 0
        self.record = record
        self.num_unusable = 0  # records that were skipped although their frames are sound
        self.verify: Verify = policy.verify if verify is None else verify
        shard.start_reading()
        self._windows: SpanWindows | InflateWindows
        if within is not None:
            self.record = within.record
            self._windows = SpanWindows(shard.reader, within.data, within.start, within.stop, releases=False)
            self._windows.base = within.offset - within.start
        elif shard.compression == "none" and (span := shard.reader.span()) is not None:
            self._windows = SpanWindows(shard.reader, span, start, None, releases=releases)
        elif shard.compression == "none" and shard.reader.is_remote:
            checks = checks_arrival and policy.verify != "none"
            self._windows = InflateWindows(shard, 0, start, checks=checks, ahead=ahead, in_pieces=True)
        else:
            self._windows = InflateWindows(shard, member, start, checks=policy.verify != "none", ahead=ahead)

    @property
    def offset(self) -> int:
        return self._windows.base + self._windows.start

    @property
    def base(self) -> int:
        """Offset in the shard of byte 0 of the data passed to a consumer."""
        return self._windows.base

    @property
    def torn_member(self) -> int | None:
        """Stored offset of the compressed member whose damage ended the stream, or None."""
        windows = self._windows
        if isinstance(windows, SpanWindows) or windows.tear is None or not isinstance(windows.source, InflateReader):
            return None
        return windows.source.member_offset

    @property
    def torn_offset(self) -> int | None:
        """Stored offset at which inflating failed, or None."""
        tear = getattr(self._windows, "tear", None)
        return None if tear is None else tear.offset

    def take(
        self, read: Read, max_frames: int = NO_LIMIT, max_nbytes: int = NO_LIMIT, *, verify: Verify | None = None
    ) -> Stretch | None:
        """Read the next frames with `read`: at least one, else within the limits; None at the end of the shard.

        `verify` overrides the stream's choice of checksums. Damage is raised, or recorded and skipped, by the policy.
        """
        wanted, shard, windows, taken = self.verify if verify is None else verify, self.shard, self._windows, None

        def consume(data: ByteSource, start: int, stop: int) -> tuple[int, int, _native.Fault | None]:
            nonlocal taken
            near = min(stop, start + max_nbytes)
            found, after, fault = read(data, start, near, max_frames, wanted)
            num_frames = found if isinstance(found, int) else len(found)
            if not num_frames and near < stop:  # a frame longer than the limit, or damage
                found, after, fault = read(data, start, stop, 1, wanted)
                num_frames = found if isinstance(found, int) else len(found)
            taken = Stretch(shard, data, start, after, self.record, windows.base + start, num_frames, found)
            return num_frames, after, fault

        return taken if self.step(consume) else None

    def step(self, consume: Consume) -> int:
        """Call `consume` on the next frames; return the number it took, 0 only at the end of the shard.

        Damage is raised, or recorded and skipped, by the policy.
        """
        windows = self._windows
        if isinstance(windows, SpanWindows):
            # The file may have been truncated between two steps. The core handles truncation; Python code that holds
            # views of the file does not.
            self.shard.reader.check_unchanged()
        while True:
            if windows.start == windows.stop:
                if windows.is_final:
                    self._report_tear()
                    if self._within is None:
                        self.shard.reader.park()
                    return 0
                windows.grow(1)
                continue
            stop, fault = windows.stop, None
            # In a hostile file, headers whose length reaches to the end may be between any two valid frames, and
            # checking each payload would take quadratic time. Once failed checksums have covered more bytes than were
            # read so far, `FrameSearch` checks frames before they are read.
            if self._wasted_nbytes > windows.base + len(windows.data):
                stop, fault = self._find_sound_stop()
            num_frames = 0
            if fault is None:
                try:
                    num_frames, next_start, fault = consume(windows.data, windows.start, stop)
                except MemoryError as error:
                    raise locate_memory_error(
                        error, shard=self.shard.name, record=self.record, offset=self.offset, start=windows.start
                    ) from None
                if fault is not None and fault.kind == "payload_checksum":
                    self._wasted_nbytes += fault.resume - next_start
            if num_frames:
                windows.start = next_start
                self.record += num_frames
                return num_frames
            if fault is None:
                raise RuntimeError("a consumer took no frame and named no fault")
            if fault.kind in CHECKSUMS and self._fetch_again():
                continue
            if fault.kind in _TRUNCATED and not windows.is_final and self._is_plausible(fault):
                self._grow(fault.stored + 16)
            elif fault.kind in _TRUNCATED and not windows.is_final and windows.stop - windows.start < _LOOK_NBYTES:
                self._grow(_LOOK_NBYTES)  # if the stream ends earlier, the fault has the available bytes
            else:
                self._step_over(fault)

    def _fetch_again(self) -> bool:
        """Request the bytes of the window once more, past any cache; return whether they are others now."""
        windows = self._windows
        # Inflated bytes are checked as they arrive.
        if self.shard.compression != "none" or not self.shard.reader.is_remote or self.offset < self._sure:
            return False
        again = _fetch_again(self.shard, memoryview(windows.data)[windows.start : windows.stop], self.offset)
        if again is None:
            self._sure = self.offset + windows.stop - windows.start
            return False
        # Other bytes may be wrong, too, if they came over the same bad way.
        self._num_again = self._num_again + 1 if self.offset == self._again_at else 1
        self._again_at = self.offset
        if self._num_again == MAX_AGAIN:
            self._sure = self.offset + 1
        self._search = None
        windows.replace(again)
        return True

    def _is_plausible(self, fault: _native.Fault) -> bool:
        """Whether the frame length in a header is possible in this shard. Checked before memory is allocated."""
        return fault.kind != "truncated_payload" or fault.stored <= self._max_length()

    def _max_length(self) -> int:
        if isinstance(self._windows, SpanWindows):
            return 1 << 62
        if self.shard.compression == "none" and self.shard.nbytes is not None:
            return max(0, self.shard.nbytes - self.offset)
        if FORMATS[self.shard.compression].is_deflate and self.shard.nbytes is not None:
            return min(MAX_STREAMED_NBYTES, self.shard.nbytes * _MAX_DEFLATE_RATIO)
        return MAX_STREAMED_NBYTES

    def _grow(self, wanted: int) -> None:
        if isinstance(self._windows, InflateWindows):
            self._search = None  # it would keep the bytes of the previous window alive
        self._windows.grow(wanted)

    def _get_search(self) -> _native.FrameSearch:
        data = self._windows.data
        if self._search is None or self._search[0] is not data:
            self._search = data, _native.FrameSearch(data)
        return self._search[1]

    def _find_sound_stop(self) -> tuple[int, _native.Fault | None]:
        """Return the end of the valid frames from here, and a fault if there are none."""
        windows = self._windows
        num_frames, stop, fault = self._get_search().check_frames(windows.start, windows.stop, _CHECKED_AT_ONCE)
        return stop, fault if num_frames == 0 else None

    def _report_tear(self, lost_nbytes: int = 0) -> None:
        tear = getattr(self._windows, "tear", None)
        if tear is not None and not self._is_torn_reported:
            self._is_torn_reported = True
            tear.record = self.record
            offset = self.offset - lost_nbytes
            self._policy.take(Finding.of(tear, offset=offset, lost_nbytes=lost_nbytes, is_one_record=False), tear)

    def _step_over(self, fault: _native.Fault) -> None:
        windows = self._windows
        tear = getattr(windows, "tear", None)
        if fault.kind in _TRUNCATED and tear is not None:
            # The frame is truncated because the compressed stream is damaged: report the damage of the stream.
            lost_nbytes = windows.stop - windows.start
            windows.start = windows.stop
            self._report_tear(lost_nbytes)
            return
        offset = self.offset
        if self._within is not None and fault.kind in _MISPLACED:
            what = "the file changed while it was read"
            raise StorageError(what, shard=self.shard.name, record=self.record, offset=offset)
        error = self._explain(fault, offset)
        if self._policy.on_error == "raise" or isinstance(error, LimitError):
            raise error
        is_one = self._pass_frame(fault)
        if not is_one and not self._search_frame():
            error.what += f"; the {self.offset - offset} bytes from there have no frame, the rest was not searched"
        found = Finding.of(error, offset=offset, lost_nbytes=self.offset - offset, is_one_record=is_one)
        self._policy.take(found, error)
        self.record += 1
        self.num_unusable += not isinstance(error, ContainerError)

    def _explain(self, fault: _native.Fault, offset: int) -> TfrkitError:
        name = self.shard.name
        if fault.kind == "truncated_payload" and self.shard.compression == "none" and self.shard.nbytes is not None:
            # A remote shard is not read to its end to report where it ends.
            return TruncatedShardError(
                describe_truncated(fault.stored, self.shard.nbytes - offset - _HEADER_NBYTES),
                shard=name,
                record=self.record,
                offset=offset,
                hint=advise_repair(name),
                fault=fault.kind,
            )
        if fault.kind == "truncated_payload" and not self._windows.is_final:
            # The length is impossible, so the rest of the shard was not read to look for its end.
            return CorruptRecordError(
                f"length {fault.stored} is more than the {self._max_length()} bytes a record of this "
                f"{self.shard.compression} shard may have",
                shard=name,
                record=self.record,
                offset=offset,
                hint=advise_repair(name),
            )
        return fault_to_error(fault, shard=name, record=self.record, offset=offset, columns=self._columns)

    def _pass_frame(self, fault: _native.Fault) -> bool:
        """Move to the end of the faulty frame; return False if its length cannot be trusted."""
        windows = self._windows
        if not fault.resume:
            return False
        nbytes = fault.resume - windows.start
        if fault.kind == "payload_checksum":
            # The length checksum matches, the payload checksum does not. If a frame follows, only this one is lost; if
            # not, the length may be wrong despite its checksum.
            if windows.stop - fault.resume < _HEADER_NBYTES and not windows.is_final:
                self._grow(nbytes + _HEADER_NBYTES)
            after = windows.start + nbytes
            header = bytes(windows.data[after : min(after + _HEADER_NBYTES, windows.stop)])
            if header and (
                len(header) < _HEADER_NBYTES
                or _native.masked_crc32c(header[:8]) != int.from_bytes(header[8:], "little")
            ):
                return False
        windows.start += nbytes
        return True

    def _search_frame(self) -> bool:
        """Move to the next valid frame or the end; return False if the search limit was reached first."""
        windows = self._windows
        offset = self.offset
        windows.start += 1
        # A span is complete, so a candidate may end after the window; for a stream, more has to be inflated first.
        is_whole = isinstance(windows, SpanWindows)
        while True:
            found, windows.start = self._get_search().find_next(
                windows.start, windows.stop, is_whole or windows.is_final, self._max_length()
            )
            if found or windows.is_final:
                return True
            if isinstance(windows, InflateWindows) and self.offset - offset > self._policy.search_nbytes:
                windows.give_up()
                return False
            self._grow(windows.stop - windows.start + LIMITS.inflate_nbytes)


def read_records(shard: Shard, policy: Policy) -> Iterator[list[Record]]:
    """Yield the records of a shard in file order, many at a time."""
    return list_records(FrameStream(shard, policy))


def list_records(stream: FrameStream) -> Iterator[list[Record]]:
    """Yield the records of a stream, many at a time."""
    return _read_lists(stream, read_list, LIMITS.read_nbytes)


def view_records(stream: FrameStream) -> Iterator[list[memoryview]]:
    """Yield the records as `list_records` does, but as read-only views of the mapped file or of inflated bytes.

    If the file is truncated while a view is in use, reading a page that is gone kills the process.
    """

    def view(data: ByteSource, start: int, stop: int, most: int, verify: Verify) -> Any:
        return _native.view_frames(data, start, stop, most, NO_LIMIT, verify)

    return _read_lists(stream, view, _VIEW_NBYTES)


def read_list(
    data: ByteSource, start: int, stop: int, max_frames: int, verify: Verify
) -> tuple[list[Record], int, _native.Fault | None]:
    """Read frames as a list of records, for `FrameStream.take`."""
    return _native.read_frames(data, start, stop, max_frames, NO_LIMIT, verify)


def _read_lists(stream: FrameStream, read: Read, max_nbytes: int) -> Iterator[list[Any]]:
    limit = max_nbytes
    while (stretch := stream.take(read, _READ_RECORDS, limit)) is not None:
        yield stretch.taken
        # A step costs as much Python as copying a large record.
        is_large = stretch.nbytes > stretch.num_frames * _LARGE_RECORD_NBYTES
        limit = max(max_nbytes, _LARGE_READ_NBYTES) if is_large else max_nbytes
