"""Records by number: shard, frame, payload."""

from __future__ import annotations

import bisect
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import overload

import numpy as np

from tfrkit import _native
from tfrkit._types import Record
from tfrkit.container.faults import fault_to_error
from tfrkit.container.index import ShardIndex
from tfrkit.container.locate import find_frames
from tfrkit.container.records import Policy, read_records
from tfrkit.container.seekable import SeekableInflate
from tfrkit.container.shards import Shard
from tfrkit.errors import StorageError

_HEADER_NBYTES = 8 + 4
_FRAME_OVERHEAD = 16


class ShardAccess:
    """Random access into one shard, compressed or not. Safe to share between threads."""

    def __init__(self, shard: Shard, index: ShardIndex, policy: Policy) -> None:
        self._shard = shard
        self._offsets = index.offsets
        self._ends = index.inflated_size
        self._verify = policy.verify
        self.num_records = index.num_records
        span = shard.reader.span() if shard.compression == "none" else None
        self._table: _native.FrameTable | None = None
        self._inflate: SeekableInflate | None = None
        if span is not None:
            self._table = _native.FrameTable(span, index.offsets, policy.verify, shard.reader.descriptor())
        else:
            self._inflate = SeekableInflate(
                shard.reader, shard.compression, index.checkpoints, inflated_size=index.inflated_size
            )

    @property
    def name(self) -> str:
        return self._shard.name

    def offset_of(self, record: int) -> int:
        return int(self._offsets[record])

    def read(self, record: int) -> Record:
        """The payload of one record, checked."""
        payload = self._table.read(record) if self._table is not None else self._read_inflated(record)
        if isinstance(payload, bytes):
            return payload
        if payload is None:
            self._shard.reader.check_unchanged()
            raise StorageError("the file cannot be read any more", shard=self._shard.name)
        raise fault_to_error(payload, shard=self._shard.name, record=record, offset=self.offset_of(record))

    def _read_inflated(self, record: int) -> Record | _native.Fault:
        assert self._inflate is not None
        offset = self.offset_of(record)
        frame = self._inflate.read_at(offset, self._frame_nbytes(record, offset))
        return _native.read_frame_at(frame, 0, self._verify)

    def _frame_nbytes(self, record: int, offset: int) -> int:
        assert self._inflate is not None
        header = self._inflate.read_at(offset, _HEADER_NBYTES)
        stop = int(self._offsets[record + 1]) if record + 1 < self.num_records else self._ends
        # What lies between two frames may be damage; the header tells where the payload ends.
        return min(stop - offset, int.from_bytes(header[:8], "little") + _FRAME_OVERHEAD)


class Records(Sequence[Record]):
    """Payload bytes of a dataset: iterate over them in file order, or pick them by number.

    Iterating reads each shard once from front to back and keeps no index. `len` and picking find the frames
    first: from the index if there is one, else by a scan of the headers.
    """

    def __init__(self, shards: Sequence[Shard], policy: Policy) -> None:
        self._shards = shards
        self._policy = policy
        self._lock = threading.Lock()
        self._accesses: list[ShardAccess] | None = None
        self._starts: list[int] = []

    def __iter__(self) -> Iterator[Record]:
        policy = self._policy.for_one_pass()
        return chain.from_iterable(chain.from_iterable(read_records(shard, policy) for shard in self._shards))

    def __len__(self) -> int:
        self._open_accesses()
        return self._starts[-1]

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        accesses = self._accesses or self._open_accesses()
        if isinstance(index, slice):
            return self.pick(range(*index.indices(len(self))))
        if len(accesses) == 1 and 0 <= index < self._starts[-1]:
            return accesses[0].read(index)
        shard, record = self.locate(index)
        return accesses[shard].read(record)

    def pick(self, numbers: Iterable[int]) -> list[Record]:
        """Several records, in the order asked for."""
        return [self[int(number)] for number in numbers]

    def decode_into(self, builder: _native.ColumnBuilder, number: int, columns: Sequence[str]) -> None:
        """Add one record to a column builder."""
        shard, record = self.locate(number)
        access = self._open_accesses()[shard]
        fault = builder.append_record(access.read(record))
        if fault is not None:
            raise fault_to_error(
                fault, shard=access.name, record=record, offset=access.offset_of(record), columns=columns
            )

    def locate(self, number: int) -> tuple[int, int]:
        """(shard, record in it) of a record of the dataset; negative numbers count from the end."""
        total = len(self)
        wanted = number + total if number < 0 else number
        if not 0 <= wanted < total:
            raise IndexError(f"record {number} of {total}")
        shard = bisect.bisect_right(self._starts, wanted) - 1
        return shard, wanted - self._starts[shard]

    def counts(self) -> list[int]:
        """Number of records of each shard."""
        return [access.num_records for access in self._open_accesses()]

    def _open_accesses(self) -> list[ShardAccess]:
        with self._lock:
            if self._accesses is None:
                policy = self._policy.for_one_pass()
                accesses = [ShardAccess(shard, find_frames(shard, policy), policy) for shard in self._shards]
                self._starts = [0, *np.cumsum([access.num_records for access in accesses]).tolist()]
                self._accesses = accesses
            return self._accesses
