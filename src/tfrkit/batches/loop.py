"""The loop over a dataset: epochs of batches, made on threads, that can stop and resume at any batch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np

from tfrkit._limits import DEFAULT_AHEAD_NBYTES
from tfrkit._threads import choose_threads
from tfrkit._types import UInt64Array
from tfrkit.batches.ahead import choose_inflaters
from tfrkit.batches.collate import count_rows
from tfrkit.batches.engine import EnginePass, Faults, choose_workers, explain_no_engine
from tfrkit.batches.fetch import Fetched, Fetcher
from tfrkit.batches.pad import Pad, check_pad, pad_batch
from tfrkit.batches.shard_set import ShardSet
from tfrkit.batches.stages import DecodeFeatures
from tfrkit.batches.state import (
    MAX_EPOCH,
    Position,
    fingerprint_order,
    load_state,
    require_count,
    require_whole,
    save_state,
)
from tfrkit.batches.steps import Finished, Job, run_steps
from tfrkit.batches.stream import read_batches
from tfrkit.codec.decode import Batch
from tfrkit.container.records import Policy
from tfrkit.features.schema import Schema
from tfrkit.orders.order import Order, WindowShuffled
from tfrkit.orders.plan import BatchPlan, Even, check_ranks, share_of_worker
from tfrkit.orders.striped import Striped
from tfrkit.orders.token_batches import TokenBatches, TokenPlan

Stage = Callable[[Fetched, Fetcher], Fetched]
"""A step between decoding records and returning a batch."""

_MAX_NAMED = 5  # features listed in a repr


@dataclass(frozen=True)
class Batching:
    """Options of batching."""

    size: int | None  # rows of a batch; with `max_tokens`, the maximum
    drop_last: bool = False
    pad: Pad | float | None = None
    threads: int | None = None
    ahead_nbytes: int = DEFAULT_AHEAD_NBYTES
    rank: int = 0
    world_size: int = 1
    even: Even = "pad"
    truncate: bool = False
    per_rank: bool | None = None  # whether the size is per rank; None: not given, the size is global
    max_tokens: int | None = None

    @property
    def global_size(self) -> int:
        """The number of rows of a batch over all ranks. Not defined with `max_tokens`."""
        assert self.size is not None
        return self.size * self.world_size if self.per_rank else self.size

    def describe(self) -> str:
        """Describe a batch, such as "64 rows", "8 of 64 rows, rank 0 of 8" or "up to 4096 tokens, rank 1 of 2"."""
        if self.max_tokens is not None:
            rows = "" if self.size is None else f" and {self.size} rows"
            text = f"up to {self.max_tokens} tokens{rows}"
        elif self.world_size == 1:
            text = f"{self.size} row{'' if self.size == 1 else 's'}{' on each rank' if self.per_rank else ''}"
        else:
            text = f"{self.global_size // self.world_size} of {self.global_size} rows"
        return text if self.world_size == 1 else f"{text}, rank {self.rank} of {self.world_size}"

    def check_ranks(self) -> None:
        """Raise if the batches cannot be shared between these ranks."""
        if self.max_tokens is None:
            BatchPlan(0, self.global_size, rank=self.rank, world_size=self.world_size, even=self.even)
        else:
            check_ranks(self.rank, self.world_size, self.even)

    def __post_init__(self) -> None:
        if self.max_tokens is not None:
            self._check_tokens(self.max_tokens)
        elif self.size is None:
            raise TypeError("batch expected a number of rows, or max_tokens, got neither")
        if self.size is not None:
            require_whole("size", self.size, first=1)
        if self.per_rank not in (None, False, True):
            raise TypeError(f"per_rank expected True or False, got {self.per_rank!r:.64}")
        check_pad(self.pad, truncate=self.truncate)
        if self.threads is not None:
            require_whole("threads", self.threads, first=1)

    def _check_tokens(self, max_tokens: int) -> None:
        require_whole("max_tokens", max_tokens, first=1)
        if self.drop_last:
            raise ValueError("drop_last needs a number of rows: with max_tokens it differs between batches")
        if self.per_rank is False:
            raise ValueError("max_tokens is per rank, got per_rank=False: leave per_rank out")


class _Reading(NamedTuple):
    """How the engine reads a pass."""

    threads: int
    is_given: bool  # whether the number of threads was given
    exchange: Any
    feeds_steps: bool  # whether batches are finished on Python threads


class BatchLoop:
    """Batches of a dataset in an order. Each pass over it is the next epoch.

    Only the epoch changes. A loop can be pickled.
    """

    uses_engine = True  # False: Python threads make every batch; tests compare both

    def __init__(
        self,
        shard_set: ShardSet,
        batching: Batching,
        *,
        features: Sequence[str] | None = None,
        order: Order | None = None,
        stages: Sequence[Stage] = (),
        epoch: int = 0,
    ) -> None:
        self._shard_set = shard_set
        self._batching = batching
        self._features = features
        # None: file order, which does not need the number of records.
        self._order = order.for_batch(batching.global_size) if isinstance(order, Striped) else order
        self._stages = tuple(stages)
        self.epoch = epoch
        _ = self.fetcher  # raise now if the schema does not fit

    @property
    def schema(self) -> Schema:
        """The schema of the decoded records, before any step."""
        whole = self._shard_set.schema
        return whole if self._features is None else whole.select(self._features)

    @property
    def batching(self) -> Batching:
        return self._batching

    @cached_property
    def fetcher(self) -> Fetcher:
        decoder = self._shard_set.new_decoder(self._features)
        return Fetcher(self._shard_set.records, decoder, self._shard_set.policy)

    @property
    def order(self) -> Order:
        return self._shard_set.file_order if self._order is None else self._order

    @property
    def num_rows(self) -> int:
        """The number of rows of an epoch."""
        return self.order.size

    @property
    def policy(self) -> Policy:
        """The damage policy, with its findings."""
        return self._shard_set.policy

    @property
    def may_skip(self) -> bool:
        """Whether batches may have fewer rows than planned, because damage is skipped."""
        return self._shard_set.policy.on_error == "skip"

    def __len__(self) -> int:
        """Number of batches of an epoch. Raises TypeError if it varies between epochs: max_tokens with a shuffle."""
        if self.count_varies:
            raise TypeError(
                "batches of max_tokens over shuffled rows have no length: their number differs between epochs\n"
                "  give a trainer a number of steps, or count one epoch: sum(1 for batch in batches)"
            )
        return self.plan().num_batches

    @property
    def count_varies(self) -> bool:
        """Whether the number of batches may vary between epochs."""
        return isinstance(self._order, TokenBatches) and not self._order.is_fixed

    def __iter__(self) -> BatchIterator:
        return BatchIterator(self)

    def __repr__(self) -> str:
        names = self.schema.names
        shown = ", ".join(names[:_MAX_NAMED]) + (f", … {len(names)} features" if len(names) > _MAX_NAMED else "")
        return f"{type(self).__name__}({self._batching.describe()}, epoch {self.epoch}: {shown})"

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch that the next pass reads."""
        self.epoch = require_count("epoch", epoch, MAX_EPOCH)

    def share(self, *, rank: int, world_size: int, even: Even = "pad") -> BatchLoop:
        """Return a loop over the part of every batch that belongs to one rank."""
        return self.rebuild(replace(self._batching, rank=rank, world_size=world_size, even=even))

    def rebuild(self, batching: Batching | None = None, stages: Sequence[Stage] = ()) -> Self:
        """Return the same loop with another batching, or with more steps."""
        return type(self)(
            self._shard_set,
            batching or self._batching,
            features=self._features,
            order=self._order,
            stages=(*self._stages, *stages),
            epoch=self.epoch,
        )

    @property
    def device(self) -> str | None:
        """The device that `decode` puts images on; None is the CPU."""
        found = [stage.device for stage in self._stages if isinstance(stage, DecodeFeatures) and stage.device]
        return found[-1] if found else None

    def leave_images(self) -> BatchLoop:
        """Return the same loop with images left encoded, for a device to decode."""
        stages: list[Stage] = []
        leaves = False
        for stage in self._stages:
            if isinstance(stage, DecodeFeatures):
                leaves = leaves or stage.device is not None
                stages.append(stage if stage.device is None else stage.leave_images())
                continue
            if leaves:
                raise ValueError(
                    "map after decode(device=...) would get encoded images\n  call map before decode, change batches "
                    "after they are on the device, or leave device out of decode"
                )
            stages.append(stage)
        loop = copy.copy(self)
        loop._stages = tuple(stages)
        return loop

    def by_number(self) -> BatchLoop:
        """Return the same loop with every batch made by its number, so that all processes make the same batches.

        Otherwise a loop in file order that skips damage fills each batch with the rows after the damage.
        """
        if self._order is not None or not self.may_skip or self._shard_set.shards.has_pipe:
            return self
        loop = copy.copy(self)
        loop._order = self.order
        return loop

    def plan(self, row: int = 0, epoch: int = 0) -> BatchPlan | TokenPlan:
        """Plan the batches of an epoch, starting at `row`."""
        how = self._batching
        if isinstance(self._order, TokenBatches):
            return TokenPlan(self._order, epoch, how.rank, how.world_size, how.even, row)
        return BatchPlan(self.num_rows, how.global_size, how.drop_last, how.rank, how.world_size, how.even, row)

    def make_batch(self, number: int, *, epoch: int = 0, row: int = 0) -> Batch:
        """Make batch `number` of an epoch on this thread. Batches can be made in any order."""
        return self._make(self.plan(row, epoch), self.order, epoch, number)[0]

    def run(
        self,
        *,
        epoch: int,
        row: int = 0,
        worker: int = 0,
        num_workers: int = 1,
        threads: int | None = None,
        warns: bool = True,
        exchange: Any = None,
    ) -> Iterator[tuple[Batch, int]]:
        """Yield every `num_workers`-th batch from `row` on, each with the row of the epoch where it ends.

        Warns about skipped damage at the end, unless `warns` is False because the caller warns once for several runs.
        With `exchange`, the `__dlpack_c_exchange_api__` of a framework, columns of one number per row may be tensors.
        """
        how = self._batching
        is_given = (threads or how.threads) is not None
        threads = choose_threads(threads or how.threads)
        has_steps = bool(self._stages) or how.pad is not None
        feeds_steps = has_steps or self.fetcher.decoder.needs_python
        reading = _Reading(threads, is_given, None if feeds_steps else exchange, feeds_steps)
        is_alone = num_workers == 1 and how.world_size == 1
        is_stream = self._order is None and is_alone and (row == 0 or self._shard_set.policy.on_error == "skip")
        given = threads if is_given else None
        has_engine = self.explain_no_engine(is_stream=is_stream, threads=given) is None
        # The engine and the reader of a stream have threads of their own.
        is_made = not feeds_steps if has_engine else is_stream and not has_steps
        if is_stream:
            jobs = self._stream_engine(epoch, reading) if has_engine else self._stream(row, given, has_steps)
            num_batches = None
        else:
            plan, order = self.plan(row, epoch), self.order
            numbers = share_of_worker(plan.num_batches, worker, num_workers)
            if has_engine:
                jobs = self._run_engine(plan, order, epoch, numbers, reading)
            else:
                jobs = self._run_python(plan, order, epoch, numbers)
            num_batches = len(numbers)
        with closing(jobs):
            yield from run_steps(
                jobs,
                threads=1 if is_made else threads,
                num_batches=num_batches,
                ahead_nbytes=how.ahead_nbytes // 2 if has_engine else how.ahead_nbytes,
            )
        if warns:
            self.policy.warn_of_skipped()

    def explain_no_engine(self, *, is_stream: bool, threads: int | None = None) -> str | None:
        """Explain why the native engine does not read a pass on these threads; None if it does."""
        if not self.uses_engine:
            return "it is switched off"
        return explain_no_engine(self._shard_set, is_stream=is_stream, threads=threads)

    def _new_pass(self, num_rows: int | None, reading: _Reading) -> EnginePass:
        """Create a pass of the engine over some rows, None for all."""
        shard_set, policy, feeds_steps = self._shard_set, self._shard_set.policy, reading.feeds_steps
        inflaters = 0
        if num_rows is None:
            policy = policy.for_one_pass()
            if not shard_set.shards.compressions <= {"none"}:
                inflaters = choose_inflaters(shard_set.shards, reading.threads if reading.is_given else None)
            nbytes = shard_set.shards.nbytes
        else:
            nbytes = shard_set.mean_nbytes * num_rows
        workers = choose_workers(reading.threads, nbytes, is_given=reading.is_given, feeds_steps=feeds_steps)
        ahead_nbytes = self._batching.ahead_nbytes // (2 if feeds_steps else 1)
        return EnginePass(
            shard_set,
            self.fetcher.decoder,
            policy,
            workers=workers,
            ahead_nbytes=ahead_nbytes,
            inflaters=inflaters,
            exchange=reading.exchange,
            used={name for stage in self._stages if isinstance(stage, DecodeFeatures) for name in stage.names},
        )

    def _stream_engine(self, epoch: int, reading: _Reading) -> Generator[Job]:
        """Read batches in file order without an index, with the native engine."""
        size, drop_last, stop = self._batching.global_size, self._batching.drop_last, 0
        feeds_steps, assemble = reading.feeds_steps, self.fetcher.decoder.assemble
        made = self._new_pass(None, reading).read_in_order(size)
        for columns, num_rows, _ in made:
            if num_rows < size and drop_last:
                continue
            stop += num_rows
            if feeds_steps:
                yield partial(self._assemble, columns, num_rows, stop, partial(_count_up, stop - num_rows, stop))
            else:
                yield assemble(columns, num_rows), stop
        if made.is_foreign:
            plan = self.plan(stop, epoch)
            yield from self._run_engine(plan, self.order, epoch, range(plan.num_batches), reading)

    def _run_python(self, plan: BatchPlan | TokenPlan, order: Order, epoch: int, numbers: range) -> Generator[Job]:
        """Read the given batches of a plan on Python threads."""
        return (partial(self._make, plan, order, epoch, number) for number in numbers)

    def _run_engine(
        self, plan: BatchPlan | TokenPlan, order: Order, epoch: int, numbers: range, reading: _Reading
    ) -> Generator[Job]:
        """Read the given batches of a plan with the native engine."""
        feeds_steps, assemble = reading.feeds_steps, self.fetcher.decoder.assemble

        def find_numbers(made: EnginePass, number: int, faults: Faults | None) -> UInt64Array:
            found = order.at(plan.rows(number), epoch)
            return found if faults is None else found[~np.isin(found, made.find_lost(faults))]

        while numbers:
            num_rows = (plan.stop_of(numbers[-1]) - plan.start) // plan.world_size // numbers.step
            made = self._new_pass(num_rows, reading if len(numbers) > 1 else reading._replace(threads=1))
            num_made = 0
            for columns, count, faults in made.read_plan(plan, order, epoch, numbers):
                number, num_made = numbers[num_made], num_made + 1
                stop = plan.stop_of(number)
                if feeds_steps:
                    yield partial(self._assemble, columns, count, stop, partial(find_numbers, made, number, faults))
                else:
                    yield assemble(columns, count), stop
            numbers = numbers[num_made:]
            if made.is_unheld:  # the engine met a shard that it cannot pick from
                jobs, ahead_nbytes = self._run_python(plan, order, epoch, numbers), self._batching.ahead_nbytes // 2
                yield from run_steps(jobs, threads=reading.threads, num_batches=len(numbers), ahead_nbytes=ahead_nbytes)
            if not made.is_foreign:
                return

    def _assemble(
        self, columns: list[Any], num_rows: int, stop: int, find_numbers: Callable[[], UInt64Array]
    ) -> Finished:
        """Finish a batch of the engine."""
        batch = self.fetcher.decoder.assemble(columns, num_rows)
        if self._stages or self._batching.pad is not None:
            batch = self._finish(Fetched(batch, find_numbers()))
        return batch, stop

    def save(self, position: Position) -> dict[str, Any]:
        """Return a state for `load`."""
        return save_state(position, self._shard_set.fingerprint, self._order_name)

    def load(self, state: Mapping[str, Any]) -> Position:
        """Return the position of a state. A state of another dataset or order raises."""
        stored = state.get("dataset") if isinstance(state, Mapping) else None
        dataset = self._shard_set.fingerprint_like(stored)
        position = load_state(state, dataset, self._order_name, self.num_rows)
        if isinstance(self._order, TokenBatches):
            self.plan(position.row, position.epoch)  # raises if no batch ends there
        return position

    @cached_property  # some loaders save at every step, and hashing an order that lists its rows is slow
    def _order_name(self) -> str:
        return fingerprint_order(self.order)

    def _make(self, plan: BatchPlan | TokenPlan, order: Order, epoch: int, number: int) -> Finished:
        rows = plan.rows(number)
        if isinstance(order, (WindowShuffled, Striped)):
            self._hold_windows(order, rows, epoch)
        return self._finish(self.fetcher.fetch(order.at(rows, epoch))), plan.stop_of(number)

    def _hold_windows(self, order: WindowShuffled | Striped, rows: UInt64Array, epoch: int) -> None:
        """Read the windows of a batch, and start to read the next."""
        window: Any
        for window in order.windows_of(rows):
            self.fetcher.hold_window((epoch, window), partial(order.numbers_of, window, epoch))
            following: Any = order.next_window(window)
            if following is not None:
                self.fetcher.expect_window((epoch, following), partial(order.numbers_of, following, epoch))

    def _finish(self, fetched: Fetched) -> Batch:
        """Apply the steps and pad."""
        for stage in self._stages:
            fetched = stage(fetched, self.fetcher)
        how, batch, numbers = self._batching, fetched.batch, fetched.numbers
        if how.pad is None:
            return batch

        def locate(row: int) -> tuple[str, int, int] | None:
            # A batch function may return other rows.
            is_known = len(numbers) == count_rows(batch)
            return self.fetcher.where(int(numbers[row])) if is_known else None

        return pad_batch(batch, how.pad, truncate=how.truncate, locate=locate)

    def _stream(self, skip: int, threads: int | None, has_steps: bool) -> Generator[Job]:
        """Read batches in file order without an index, so that the first batch is available at once."""
        how, stop = self._batching, skip
        lost: list[int] = []
        for batch, num_rows in read_batches(
            self._shard_set.shards,
            self.fetcher.decoder,
            self._shard_set.policy.for_one_pass(),
            batch_size=how.global_size,
            drop_last=how.drop_last,
            # Without steps, threads share the decoding; reading ahead gains nothing on a mapped file.
            threads=1 if has_steps or how.threads is None else how.threads,
            inflaters=choose_inflaters(self._shard_set.shards, threads),
            skip=skip,
            lost=lost,
        ):
            stop += num_rows
            numbers = _count_up(stop - num_rows, stop)
            if lost:
                numbers += np.searchsorted(lost, numbers, side="right").astype(np.uint64)
            yield partial(self._finish_streamed, batch, numbers, stop)

    def _finish_streamed(self, batch: Batch, numbers: UInt64Array, stop: int) -> Finished:
        return self._finish(Fetched(batch, numbers)), stop

    def __getstate__(self) -> dict[str, Any]:
        _ = self._shard_set.schema  # inferred once here, not again in every process
        return {name: value for name, value in self.__dict__.items() if name != "fetcher"}


def _count_up(start: int, stop: int) -> UInt64Array:
    return np.arange(start, stop, dtype=np.uint64)


class BatchIterator(Iterator[Batch]):
    """One pass over a `BatchLoop` that can save and load its state."""

    def __init__(self, loop: BatchLoop) -> None:
        self._loop = loop
        self._position = Position(loop.epoch, 0)
        loop.epoch += 1
        self._batches: Iterator[tuple[Batch, int]] | None = None

    def __next__(self) -> Batch:
        if self._batches is None:
            self._batches = self._loop.run(epoch=self._position.epoch, row=self._position.row)
        batch, row = next(self._batches)
        self._position = Position(self._position.epoch, row)
        return batch

    def state_dict(self) -> dict[str, Any]:
        """Return the state of this pass for `load_state_dict`, also in another process: a JSON value under 1 KB."""
        return self._loop.save(self._position)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume from a saved state."""
        position = self._loop.load(state)
        self.close()
        self._position = position
        self._loop.epoch = position.epoch + 1

    def close(self) -> None:
        """Stop reading ahead."""
        batches, self._batches = self._batches, None
        if batches is not None:
            batches.close()  # type: ignore[attr-defined]
