"""Batches of records picked by number, from any number of shards."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import Future

import numpy as np

from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit._types import Row, UInt64Array
from tfrkit.batches.access import Records, ShardAccess, expect_records
from tfrkit.batches.collate import stack_rows
from tfrkit.batches.held_window import HeldStretch, HeldWindow, hold_stretches
from tfrkit.codec.decode import Batch, Decoder
from tfrkit.container.faults import fault_to_error, locate_memory_error
from tfrkit.container.records import Finding, Policy
from tfrkit.errors import CodecError, ContainerError, SchemaError, TfrkitError
from tfrkit.storage.remote import read_many

# The one that batches read from, one that some batches still read from, and the next.
_MAX_WINDOWS = 3

_Builder = _native.ColumnBuilder | _native.RowBuilder


class Fetched:
    """A batch, and the record numbers of its rows.

    After a function on rows, `rows` has its results, and the batch is made on demand.
    """

    __slots__ = ("_batch", "numbers", "rows")

    def __init__(self, batch: Batch, numbers: UInt64Array, *, rows: list[Row] | None = None) -> None:
        self._batch = batch  # if there are rows: the batch that they were made from
        self.numbers = numbers
        self.rows = rows

    @property
    def batch(self) -> Batch:
        """The columns of all rows; raises if the rows have no common shape."""
        return self._batch if self.rows is None else stack_rows(self.rows, self._batch)

    @property
    def origin(self) -> Batch:
        """The columns that the rows were made from, or the batch itself if there are no rows."""
        return self._batch


class Fetcher:
    """Decodes records picked by number. Safe to share between threads."""

    def __init__(self, records: Records, decoder: Decoder, policy: Policy) -> None:
        self._records = records
        self.decoder = decoder
        self.policy = policy
        self._idle: queue.SimpleQueue[_native.ColumnBuilder] = queue.SimpleQueue()
        self._idle_rows: queue.SimpleQueue[_native.RowBuilder] = queue.SimpleQueue()
        self._windows: OrderedDict[Hashable, dict[tuple[int, int], bytes]] = OrderedDict()
        self._stretches: OrderedDict[Hashable, Future[HeldWindow | None]] = OrderedDict()
        self._window_lock = threading.Lock()
        self._has_unheld: bool | None = None  # None: not checked yet
        self.is_remote = records.is_remote  # then windows are held instead of shards

    def fetch(self, numbers: UInt64Array) -> Fetched:
        """Read these records into one batch, in this order. Damage is raised, or skipped and recorded."""
        builder = self._take_builder()
        try:
            shards, ordinals = self._records.locate_many(numbers)
            kept = self._append(builder, shards, ordinals)
            return Fetched(self.decoder.take_batch(builder), numbers if kept is None else numbers[kept])
        except BaseException:
            builder.finish()
            raise
        finally:
            self._idle.put(builder)

    def fetch_rows(self, numbers: UInt64Array) -> list[Row]:
        """Read these records as rows, in this order. Damage is raised, or skipped and recorded."""
        with self.lend_row_builder() as builder:
            self._append(builder, *self._records.locate_many(numbers))
            return builder.finish()

    @contextlib.contextmanager
    def lend_row_builder(self) -> Iterator[_native.RowBuilder]:
        """Lend an empty builder to this thread; rows left in the builder are dropped."""
        try:
            builder = self._idle_rows.get_nowait()
        except queue.Empty:
            builder = self.decoder.new_row_builder()
        try:
            yield builder
        finally:
            builder.finish()
            self._idle_rows.put(builder)

    def hold_window(self, key: Hashable, find_numbers: Callable[[], UInt64Array]) -> None:
        """Read all records of a window together, if they are remote, or a compressed shard is too large to keep.

        Batches of a shuffled window pick from the same blocks; otherwise each batch would read or inflate all blocks.
        Two windows are kept, because a batch may span both.
        """
        if self.is_remote and self._load_stretches(key, find_numbers).result() is not None:
            return
        with self._window_lock:
            if self._has_unheld is None:
                self._has_unheld = self._records.has_unheld
            if not self._has_unheld or key in self._windows:
                return
            shards, ordinals = self._records.locate_many(find_numbers())
            payloads = self._read_sorted(shards, ordinals)
            places = zip(shards.tolist(), ordinals.tolist(), strict=True)
            held = {place: read for place, read in zip(places, payloads, strict=True) if isinstance(read, bytes)}
            self._windows[key] = held
            if len(self._windows) > 2:
                self._windows.popitem(last=False)

    def expect_window(self, key: Hashable, find_numbers: Callable[[], UInt64Array]) -> None:
        """Start to read a window that is needed next, on a thread; only if its shards are remote."""
        with self._window_lock:
            is_known = key in self._stretches
        if self.is_remote and not is_known:
            threading.Thread(target=self._load_stretches, args=(key, find_numbers), daemon=True).start()

    def _load_stretches(self, key: Hashable, find_numbers: Callable[[], UInt64Array]) -> Future[HeldWindow | None]:
        """Return the records of a window in memory; the first caller reads them, others wait for the result."""
        with self._window_lock:
            held = self._stretches.get(key)
            if held is not None:
                return held
            held = self._stretches[key] = Future()
            while len(self._stretches) > _MAX_WINDOWS:
                self._stretches.popitem(last=False)
        try:
            held.set_result(hold_stretches(self._records, find_numbers(), self.policy.verify))
        except (TfrkitError, OSError, MemoryError) as error:
            held.set_exception(error)
        finally:
            if not held.done():
                held.set_exception(InterruptedError("reading of a window was interrupted"))
            if held.exception() is not None:
                with self._window_lock:
                    self._stretches.pop(key, None)  # the next batch tries again
        return held

    def rows_of(self, fetched: Fetched) -> list[Row]:
        """Return the rows of a batch as dicts, also after steps that changed its columns."""
        if fetched.rows is not None:
            return fetched.rows
        return self.decoder.rows(fetched.batch, len(fetched.numbers))

    def where(self, number: int) -> tuple[str, int, int]:
        """Return (shard, record in the shard, byte in the shard) of a record, for messages."""
        if self._records.is_pipe:  # a pipe cannot be read again
            return "-", number, 0
        shards, ordinals = self._records.locate_many(np.array([number], np.uint64))
        access, ordinal = self._records.open_shard(int(shards[0])), int(ordinals[0])
        return access.name, access.record_of(ordinal), access.offset_of(ordinal)

    def note(self, number: int, error: TfrkitError) -> None:
        """Treat an unusable record as damage: raise the error, or record it."""
        shard, record, offset = self.where(number)
        self.policy.take(Finding.of(error, shard=shard, record=record, offset=offset), error)

    def _take_builder(self) -> _native.ColumnBuilder:
        try:
            return self._idle.get_nowait()
        except queue.Empty:
            return self.decoder.new_builder()

    def _append(
        self, builder: _Builder, shards: UInt64Array, ordinals: UInt64Array
    ) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
        """Decode records into the builder; return a mask of the rows that decoded, None if all did."""
        if self._stretches and (found := self._find_stretches(shards, ordinals)) is not None:
            stretches, chosen, inside = found
            held = [stretch.table for stretch in stretches]
            return self._run(
                len(inside), lambda row: self._append_mapped(builder, stretches, held, chosen, inside, row)
            )
        distinct, places, counts = np.unique(shards, return_inverse=True, return_counts=True)
        if len(distinct) <= LIMITS.max_batch_shards and not (self._windows and self.is_remote):
            self._records.open_together(distinct.tolist())
            opened = [
                self._records.hold_shard(shard, count)
                for shard, count in zip(distinct.tolist(), counts.tolist(), strict=True)
            ]
            tables = [access.table for access in opened]
            mapped = [table for table in tables if table is not None]
            if len(mapped) == len(tables):
                picks = places.astype(np.uint32)
                return self._run(
                    len(ordinals),
                    lambda row: self._append_mapped(builder, opened, mapped, picks, ordinals, row),
                )
        payloads = self._read_sorted(shards, ordinals)
        return self._run(len(ordinals), lambda row: self._append_payload(builder, shards, ordinals, payloads, row))

    def _find_stretches(
        self, shards: UInt64Array, ordinals: UInt64Array
    ) -> tuple[list[HeldStretch], np.ndarray[tuple[int], np.dtype[np.uint32]], UInt64Array] | None:
        """Find records in the windows that are in memory: (stretches, the stretch of each, its number there)."""
        numbers = self._records.number_of(shards, ordinals)
        chosen = np.zeros(len(numbers), np.uint32)
        inside = np.zeros(len(numbers), np.uint64)
        missing = np.ones(len(numbers), np.bool_)
        stretches: list[HeldStretch] = []
        with self._window_lock:
            loaded = [held for held in self._stretches.values() if held.done() and held.exception() is None]
        for window in filter(None, (held.result() for held in reversed(loaded))):
            places = window.find(numbers)
            hits = missing & (places >= 0)
            chosen[hits] = (places[hits] + len(stretches)).astype(np.uint32)
            inside[hits] = window.ordinals(numbers[hits], places[hits])
            missing &= ~hits
            stretches += window.stretches
            if not missing.any():
                return stretches, chosen, inside
        return None

    def _run(
        self, num_rows: int, append_from: Callable[[int], tuple[int, TfrkitError | None]]
    ) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
        row = 0
        lost: list[int] = []
        while row < num_rows:
            appended, error = append_from(row)
            row += appended
            if error is None:
                continue
            self.policy.take(Finding.of(error), error)
            lost.append(row)
            row += 1
        if not lost:
            return None
        kept = np.ones(num_rows, np.bool_)
        kept[lost] = False
        return kept

    def _append_mapped(
        self,
        builder: _Builder,
        opened: Sequence[ShardAccess | HeldStretch],
        tables: list[_native.FrameTable],
        picks: np.ndarray[tuple[int], np.dtype[np.uint32]],
        ordinals: UInt64Array,
        row: int,
    ) -> tuple[int, TfrkitError | None]:
        try:
            appended, fault = builder.append_picks(tables, picks[row:], ordinals[row:], self.policy.verify)
        except MemoryError as error:
            row = min(row + getattr(error, "num_frames", 0), len(picks) - 1)
            access, ordinal = opened[int(picks[row])], int(ordinals[row])
            raise self._locate(access, ordinal) from None
        if fault is None:
            return appended, None
        access, ordinal = opened[int(picks[row + appended])], int(ordinals[row + appended])
        if access.is_remote and fault.kind in ("length_checksum", "payload_checksum"):
            try:
                payload = access.read_again(ordinal)
            except ContainerError as error:
                return appended, error
            again = builder.append_record(payload)
            if again is None:
                return appended + 1, None
            fault = again
        return appended, self._explain(fault, access, ordinal)

    def _read_sorted(self, shards: UInt64Array, ordinals: UInt64Array) -> list[bytes | TfrkitError]:
        """Return payloads in the given order, but read them in file order, because inflating is sequential."""
        payloads: list[bytes | TfrkitError] = [b""] * len(ordinals)
        windows = list(self._windows.values())
        fetched = self._fetch_remote(shards, ordinals, windows)
        for row in np.lexsort((ordinals, shards)).tolist():
            place = (int(shards[row]), int(ordinals[row]))
            held = next((window[place] for window in windows if place in window), None)
            if held is not None:
                payloads[row] = held
                continue
            access = self._records.open_shard(place[0])
            try:
                frame = fetched.pop(place, None)
                payloads[row] = access.read(place[1]) if frame is None else access.check_frame(frame, place[1])
            except ContainerError as error:
                payloads[row] = error
        return payloads

    def _fetch_remote(
        self, shards: UInt64Array, ordinals: UInt64Array, windows: Sequence[Mapping[tuple[int, int], bytes]]
    ) -> dict[tuple[int, int], bytes]:
        """Return the frames of those records that are in remote shards and in no window, all requested together."""
        wanted: dict[int, list[int]] = {}
        for place in dict.fromkeys(zip(shards.tolist(), ordinals.tolist(), strict=True)):
            if not any(place in window for window in windows):
                wanted.setdefault(place[0], []).append(place[1])
        self._records.open_together([*wanted])
        opened = {shard: self._records.open_shard(shard) for shard in wanted}
        remote = [shard for shard, access in opened.items() if access.is_remote and access.table is None]
        expect_records((opened[shard], wanted[shard]) for shard in remote)
        asked = [(opened[shard].reader, [opened[shard].bounds(record) for record in wanted[shard]]) for shard in remote]
        return {
            (shard, record): frame
            for shard, frames in zip(remote, read_many(asked), strict=True)
            for record, frame in zip(wanted[shard], frames, strict=True)
        }

    def _append_payload(
        self,
        builder: _Builder,
        shards: UInt64Array,
        ordinals: UInt64Array,
        payloads: list[bytes | TfrkitError],
        row: int,
    ) -> tuple[int, TfrkitError | None]:
        payload = payloads[row]
        if isinstance(payload, TfrkitError):
            return 0, payload
        try:
            fault = builder.append_record(payload)
        except MemoryError:
            raise self._locate(self._records.open_shard(int(shards[row])), int(ordinals[row])) from None
        if fault is None:
            return 1, None
        return 0, self._explain(fault, self._records.open_shard(int(shards[row])), int(ordinals[row]))

    def _locate(self, access: ShardAccess | HeldStretch, ordinal: int) -> MemoryError:
        place = {"record": access.record_of(ordinal), "offset": access.offset_of(ordinal)}
        return locate_memory_error(MemoryError(), shard=access.name, **place)

    def _explain(self, fault: _native.Fault, access: ShardAccess | HeldStretch, ordinal: int) -> TfrkitError:
        error = fault_to_error(
            fault,
            shard=access.name,
            record=access.record_of(ordinal),
            offset=access.offset_of(ordinal),
            columns=self.decoder.column_names,
        )
        assert isinstance(error, (ContainerError, CodecError, SchemaError))
        return error
