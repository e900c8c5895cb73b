"""Batches from the native engine: which passes it can make, and the Python code that opens shards for it."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing, suppress
from typing import Any

import numpy as np

from tfrkit import _native
from tfrkit._limits import DEFAULT_AHEAD_NBYTES, LIMITS
from tfrkit._threads import map_ahead
from tfrkit._types import UInt64Array
from tfrkit.batches.ahead import FramesAhead, choose_inflaters
from tfrkit.batches.byte_ranges import read_ranges
from tfrkit.batches.shard_set import ShardSet
from tfrkit.batches.stream import SizedBatch, read_batches
from tfrkit.codec.decode import Decoder
from tfrkit.container.faults import fault_to_error, locate_memory_error
from tfrkit.container.records import Finding, Policy, Stretch
from tfrkit.container.shards import Shard
from tfrkit.errors import TfrkitError
from tfrkit.orders.order import Order
from tfrkit.orders.plan import BatchPlan
from tfrkit.orders.token_batches import TokenPlan

# Maps are kept until the pass ends, and Linux allows 65,530 maps per process.
_MAX_SHARDS = 8192
# Bytes that justify starting another thread: a millisecond of decoding.
_THREAD_NBYTES = 1 << 20
# Record lists are made for several batches at a time, for more batches later in the pass, up to these limits.
_MAX_FED_ROWS = 1 << 16
_MAX_FED_BATCHES = 64

Faults = list[tuple[int, int, int, _native.Fault | None]]
"""Records that became no rows: shard, record in the shard, byte in the shard, and the damage."""

Taken = tuple[list[Any], int, Faults | None]
"""Columns of the core, their number of rows, and the damage that was skipped."""


def explain_no_engine(shard_set: ShardSet, *, is_stream: bool, threads: int | None) -> str | None:
    """Explain why Python threads read a pass; None if the native engine reads it. The only place that decides this."""
    if not _native.MAPS_ARE_GUARDED:
        return "truncating a mapped file would end the process on this system"
    if len(shard_set.shards) > _MAX_SHARDS:
        return f"more than {_MAX_SHARDS} shards would be open at a time"
    if is_stream and shard_set.policy.on_error == "skip":
        return "in file order rows after damage fill the batch up, which is known only once it is decoded"
    if shard_set.shards.has_pipe:
        return "a pipe can be read only in order"
    if shard_set.shards.is_remote:
        return "remote shards are not mapped"
    compressed = [shard for shard in shard_set.shards if shard.compression != "none"]
    if not compressed or not is_stream:
        return None
    if len(compressed) < len(shard_set.shards):
        return "some shards are inflated, others are mapped"
    if choose_inflaters(shard_set.shards, threads) > 1:
        return None
    return "one thread inflates and decodes in turn, while the bytes are in its cache"


def choose_workers(threads: int, nbytes: int, *, is_given: bool, feeds_steps: bool = False) -> int:
    """Choose the number of native threads for a pass over `nbytes`; 0 if the caller's thread does the work.

    A given number is used unchanged; the default is reduced for small inputs. If the batches go to steps on as many
    Python threads, half of the number read: steps usually take longer than reading.
    """
    if not is_given:
        threads = min(threads, nbytes // _THREAD_NBYTES)
    if threads <= 1:
        return 0
    return max(1, threads // 2) if feeds_steps else threads


class EnginePass:
    """One pass of the native engine. Iterate over it once; the engine is closed when the iteration ends or fails.

    With `exchange`, the `__dlpack_c_exchange_api__` of a framework, columns of one number per row are its tensors.
    """

    def __init__(
        self,
        shard_set: ShardSet,
        decoder: Decoder,
        policy: Policy,
        *,
        workers: int,
        ahead_nbytes: int,
        inflaters: int = 0,
        exchange: Any = None,
        used: Collection[str] = (),
    ) -> None:
        """`inflaters` is the number of threads that inflate compressed shards for `read_in_order`.

        `used` are features whose values are all read in a step.
        """
        self._shards: Sequence[Shard] = shard_set.shards
        self._records = shard_set.records
        self._decoder = decoder
        self._policy = policy
        self._workers = workers
        self._inflaters = inflaters
        self._ahead_nbytes = ahead_nbytes
        self._failures: dict[int, Exception] = {}
        self.is_unheld = False
        """Whether the pass ended because a compressed shard that it picks from is too large to be kept inflated."""
        self._is_stream = False
        self._ahead: FramesAhead | None = None
        self._pieces: Iterator[Stretch] | None = None
        self._held: deque[Stretch] = deque()  # pieces that the engine reads
        self._num_dropped = self._held_nbytes = 0
        self._lists: Iterator[tuple[Any, list[int]]] | None = None
        self._num_fed = self._num_taken = 0
        self._engine = self._decoder.new_engine(
            verify=policy.verify,
            skips=policy.on_error == "skip",
            threads=workers,
            ahead_nbytes=ahead_nbytes // 4 if inflaters else ahead_nbytes,
            num_shards=0 if inflaters else len(self._shards),
            used=used,
        )
        if exchange is not None:
            self._engine.give_tensors(exchange)

    def read_in_order(self, batch_size: int) -> EnginePass:
        """Read all records in file order, without an index."""
        self._is_stream = True
        if not self._inflaters:
            self._engine.read_in_order(batch_size)
            return self
        self._ahead = FramesAhead(
            self._shards,
            self._policy,
            threads=self._inflaters,
            max_nbytes=self._ahead_nbytes * 5 // 8,
            verify="none" if self._policy.verify == "none" else "lengths",
        )
        self._pieces = iter(self._ahead)
        self._engine.read_pieces(batch_size)
        return self

    def read_plan(self, plan: BatchPlan | TokenPlan, order: Order, epoch: int, numbers: range) -> EnginePass:
        """Read the given batches of a plan."""
        starts = np.array(self._records.find_starts(), np.uint64)
        steps = order.steps(epoch) if isinstance(plan, BatchPlan) else None
        if isinstance(plan, BatchPlan) and steps is not None:
            self._engine.read_plan(
                starts,
                steps,
                size=plan.size,
                start=plan.start,
                batch_size=plan.batch_size,
                rank=plan.rank,
                world_size=plan.world_size,
                pads=plan.even == "pad",
                num_batches=len(numbers),
                first=numbers.start,
                stride=numbers.step,
            )
        else:
            self._engine.read_lists(starts)
            self._lists = _list_rows(plan, order, epoch, numbers)
        return self

    @property
    def is_foreign(self) -> bool:
        """Whether this process was forked after the pass began; it then needs a pass of its own."""
        return self._engine.is_foreign

    def __iter__(self) -> Iterator[Taken]:
        """Yield the columns of each batch, for `Decoder.assemble`."""
        engine, take = self._engine, self._engine.take
        is_fed, ahead = self._lists is not None, self._ahead
        try:
            while True:
                if is_fed and self._lists is not None:
                    self._feed(self._lists)
                if ahead is not None:
                    self._feed_pieces(ahead)
                taken = take()
                if taken is None:
                    if self._open_wanted() or (engine.is_hungry and not self.is_unheld):
                        continue
                    return
                self._num_taken += 1
                if taken[2] is not None:
                    self._note(taken[2])
                if taken[1] is None:
                    raise self._failures[taken[0]]
                yield taken
        finally:
            try:
                engine.close()
            finally:  # also if Ctrl-C comes now
                if ahead is not None:
                    ahead.close()

    def _feed_pieces(self, ahead: FramesAhead) -> None:
        """Pass inflated frames to the engine while it has room. Wait for frames only if the engine waits for them."""
        engine, held = self._engine, self._held
        while self._num_dropped < engine.first_piece:
            self._held_nbytes -= held.popleft().nbytes
            self._num_dropped += 1
        while self._pieces is not None:
            has_room = self._held_nbytes < self._ahead_nbytes // 8
            if not engine.is_hungry and not (has_room and ahead.has_next()):
                return
            try:
                piece = next(self._pieces, None)
            except (TfrkitError, OSError, MemoryError) as error:
                self._failures[self._num_dropped + len(held)] = error
                self._pieces = None
                engine.fail_piece()
                return
            if piece is None:
                self._pieces = None
                engine.end_pieces()
                return
            held.append(piece)
            self._held_nbytes += piece.nbytes
            engine.add_piece(piece.data, piece.start, piece.stop)

    def _feed(self, lists: Iterator[tuple[Any, list[int]]]) -> None:
        """Pass record lists to the engine until it has enough work."""
        while self._num_fed - self._num_taken <= 4 * self._workers:
            found = next(lists, None)
            if found is None:
                self._engine.end_feed()
                self._lists = None
                return
            records, counts = found
            self._num_fed += len(counts)
            self._engine.feed(records, np.array(counts, np.uint64))

    def _open_wanted(self) -> bool:
        """Open the shards that the engine waits for. An error is raised with the batch that needs the shard."""
        wanted = self._engine.take_wanted()
        packed = [number for number in wanted if self._shards[number].compression != "none" and not self._is_stream]
        if packed:
            threads = min(len(packed), self._workers, LIMITS.max_inflaters)
            with closing(map_ahead(self._hold, packed, threads=threads)) as held:
                deque(held, maxlen=0)
        for number in wanted:
            try:
                if self._is_stream:
                    shard = self._shards[number]
                    shard.start_reading()
                    self._engine.set_span(number, shard.reader.span())
                    shard.reader.park()  # the engine keeps the map
                else:
                    table = self._records.open_shard(number).table
                    if table is None:
                        self.is_unheld = True
                        return False
                    self._engine.set_table(number, table)
            except (TfrkitError, OSError, MemoryError, Warning) as error:
                self._failures[number] = error
                self._engine.fail_shard(number)
        return bool(wanted)

    def _hold(self, number: int) -> None:
        """Keep a compressed shard inflated, if it fits. An error is met again when the shard is opened."""
        with suppress(TfrkitError, OSError, MemoryError, Warning):
            self._records.hold_shard(number)

    def find_lost(self, faults: Faults) -> UInt64Array:
        """Return the numbers of the records that gave no row."""
        starts = self._records.find_starts()
        return np.array([starts[shard] + record for shard, record, _, _ in faults], np.uint64)

    def _note(self, faults: Faults) -> None:
        """Raise or record damage, depending on the policy."""
        for number, record, offset, fault in faults:
            if self._ahead is None:
                name = self._shards[number].name
                if not self._is_stream:
                    record = self._records.open_shard(number).record_of(record)
            else:
                piece = self._held[number - self._num_dropped]
                name, record, offset = piece.shard.name, piece.record + record, piece.offset + offset
            if fault is None:
                raise locate_memory_error(MemoryError(), shard=name, record=record, offset=offset)
            error = fault_to_error(fault, shard=name, record=record, offset=offset, columns=self._decoder.column_names)
            self._policy.take(Finding(name, record, offset, error.what), error)


def read_stream(
    shard_set: ShardSet, decoder: Decoder, policy: Policy, *, batch_size: int, threads: int
) -> Iterator[SizedBatch]:
    """Yield batches in file order, of `batch_size` rows, or of any number if that is faster."""
    shards = shard_set.shards
    workers = choose_workers(threads, shards.nbytes, is_given=False)
    if workers == 0 or explain_no_engine(shard_set, is_stream=True, threads=threads) is not None:
        yield from read_batches(shards, decoder, policy, batch_size=batch_size, drop_last=False, threads=threads)
        return
    is_plain = shards.compressions <= {"none"}
    if is_plain and policy.verify == "all" and policy.on_error == "raise":
        yield from read_ranges(shards, decoder, threads=workers)
        return
    inflaters = 0 if is_plain else choose_inflaters(shards, threads)
    made = EnginePass(
        shard_set, decoder, policy, workers=workers, ahead_nbytes=DEFAULT_AHEAD_NBYTES, inflaters=inflaters
    )
    for columns, num_rows, _ in made.read_in_order(batch_size):
        yield decoder.assemble(columns, num_rows), num_rows


def _list_rows(
    plan: BatchPlan | TokenPlan, order: Order, epoch: int, numbers: range
) -> Iterator[tuple[Any, list[int]]]:
    """Yield the record numbers of several batches at a time, and the rows of each batch. The first batch is alone."""
    start, count = 0, 1
    while start < len(numbers):
        rows = [plan.rows(number) for number in numbers[start : start + count]]
        counts = [len(part) for part in rows]
        yield order.at(np.concatenate(rows), epoch), counts
        start += count
        fits = _MAX_FED_ROWS // max(1, max(counts))
        count = max(1, min(2 * count, _MAX_FED_BATCHES, fits))
