"""PyTorch: a loader that resumes exactly, and datasets for PyTorch's own loaders.

Worker w of N makes the batches w, w + N, w + 2N, ... of an epoch. DataLoader takes a batch from each worker in turn, so
the sequence of batches is the same for any number of workers, and the state of a pass is one number.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any, ClassVar

from tfrkit._types import Row
from tfrkit.batches.loop import BatchLoop
from tfrkit.batches.state import Position, require_count
from tfrkit.codec.decode import Batch
from tfrkit.feeds.grain import RowAccess
from tfrkit.feeds.loader import Loader, share_loop
from tfrkit.feeds.torch_device import DeviceFeed
from tfrkit.feeds.torch_tensors import OpenParcel, Parcel, convert_batch, convert_batches, find_exchange, load_torch
from tfrkit.orders.plan import Even

# Options of DataLoader that the dataset already decides.
_NOT_OPTIONS = ("batch_size", "shuffle", "sampler", "batch_sampler", "drop_last", "collate_fn", "in_order", "dataset")


class TorchLoader(Loader):
    """A loader of batches of tensors. Each pass over it is the next epoch; `epoch` is the epoch of the next pass.

    A batch is a dict. Numbers are tensors over the memory they were decoded into, of the same dtype as in NumPy
    (PyTorch has uint16, uint32 and uint64, but few operations on them). Bytes are a list of bytes, text is a list of
    str. Features of varying length are a `RaggedTensor` of values and row_splits; pad them in `batch` to get dense
    tensors. SequenceExamples keep {"context": ..., "feature_lists": ...}.

    `state_dict` counts delivered batches, not batches in the workers; it may be loaded with another number of workers
    or ranks, or another batch size. A resumed pass ends with its epoch. If the state was saved at the last batch of an
    epoch, the resumed pass is empty, so that code after an epoch still runs.

    Example:
        >>> loader = ds.shuffle(seed=7).batch(64).to_torch(num_workers=2)
        >>> while loader.epoch < 10:
        ...     for batch in loader:
        ...         train(batch["image"], batch["label"])
        ...         torch.save({"model": model.state_dict(), "loader": loader.state_dict()}, "checkpoint.pt")
    """

    def __init__(
        self,
        loop: BatchLoop,
        *,
        num_workers: int = 0,
        rank: int | None = None,
        world_size: int | None = None,
        even: Even = "pad",
        device: Any = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        torch = load_torch()
        options = dict(options or {})
        device = loop.device if device is None else device
        self._feed = None if device is None else DeviceFeed(device)
        if self._feed is not None and num_workers:
            raise ValueError(
                f"device needs threads, got num_workers={num_workers}\n"
                "  leave num_workers out: worker processes cannot share the device with this one"
            )
        for name in _NOT_OPTIONS:
            if name in options:
                raise TypeError(
                    f"{name} is set before PyTorch's loader, got {options[name]!r:.64}\n"
                    "  order, size and content of batches are those of ds.shuffle(...).map(...).batch(...)"
                )
        shared = share_loop(loop, rank=rank, world_size=world_size, even=even, find_rank=find_rank)
        super().__init__(shared.leave_images() if self._feed is not None and self._feed.decodes else shared)
        self._source = TorchBatches(self._loop, with_rows=True)
        self._given_init = options.get("worker_init_fn")
        # Without workers or options, DataLoader would only add overhead.
        self._is_direct = not num_workers and not options
        self._loader = torch.utils.data.DataLoader(
            self._source, batch_size=None, collate_fn=_as_it_is, num_workers=num_workers, **options
        )

    @property
    def dataset(self) -> TorchBatches:
        """The same batches as an IterableDataset, for your own loader."""
        return TorchBatches(self._loop)

    def __getitem__(self, index: object) -> Any:
        raise TypeError(
            "this is a loader already: iterate over it, without a DataLoader around it\n"
            "  for a DataLoader of your own: DataLoader(ds.batch(64).to_torch_dataset(), batch_size=None), "
            "or rows: DataLoader(ds.to_torch(), batch_size=64)"
        )

    @property
    def on_cpu(self) -> dict[str, int]:
        """The number of images that the CPU decoded for a device, by reason."""
        return {} if self._feed is None else dict(self._feed.on_cpu)

    def _describe(self) -> str:
        return f", num_workers={self._loader.num_workers}" if self._feed is None else f", on {self._feed.device}"

    def _start(self, start: Position) -> Iterator[tuple[Batch, int]]:
        if self._feed is not None:
            batches = self._loop.run(epoch=start.epoch, row=start.row)
            return self._feed.run(batches, has_images=self._loop.device is not None)
        if self._is_direct and load_torch().utils.data.get_worker_info() is None:
            return convert_batches(self._loop.run(epoch=start.epoch, row=start.row, exchange=find_exchange()))
        self._source.start_at(start)
        if self._is_direct:  # in a worker of another loader
            return self._collect(iter(self._source))
        if self._loader.num_workers and _get_start_method(self._loader) != "forkserver":
            self._loader.worker_init_fn = partial(_start_worker, os.getpid(), self._given_init)
        return self._collect(iter(self._loader))

    def _collect(self, batches: Iterator[tuple[Batch, int, list[Any]]]) -> Iterator[tuple[Batch, int]]:
        """Yield batches, and record what workers skipped: one warning here, not one in each worker."""
        policy = self._loop.policy
        for batch, row, skipped in batches:
            policy.add(skipped)
            yield batch, row
        policy.warn_of_skipped()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if isinstance(state, Mapping) and state.get("given"):
            raise ValueError(
                "expected a state of a loader, got that of one of its workers\n"
                "  load it into the StatefulDataLoader that saved it"
            )
        super().load_state_dict(state)


def _get_start_method(loader: Any) -> str:
    import multiprocessing

    return str((loader.multiprocessing_context or multiprocessing).get_start_method())


def _start_worker(parent: int, then: Callable[[int], object] | None, number: int) -> None:
    """Exit if the parent process is gone: PyTorch would watch the new parent instead and never end the worker."""
    if os.getppid() != parent:
        os._exit(1)
    if then is not None:
        then(number)


def find_rank() -> tuple[int, int]:
    """Return (rank, world size) of torch.distributed if initialized, else RANK and WORLD_SIZE, which torchrun sets."""
    distributed = load_torch().distributed
    if distributed.is_available() and distributed.is_initialized():
        return int(distributed.get_rank()), int(distributed.get_world_size())
    # A loader is often made before the process group, and even then must not deliver all rows on every rank.
    rank, world_size = (os.environ.get(name, "") for name in ("RANK", "WORLD_SIZE"))
    if not rank and world_size in ("", "1"):
        return 0, 1
    if not rank or not world_size:
        given, absent = ("WORLD_SIZE", "RANK") if world_size else ("RANK", "WORLD_SIZE")
        raise ValueError(
            f"RANK and WORLD_SIZE of the environment expected both or neither, got {given}={rank or world_size!s:.64} "
            f"without {absent}\n  start with torchrun, which sets both, remove {given}, or give rank= and world_size="
        )
    try:
        return int(rank), int(world_size)
    except ValueError:
        raise ValueError(
            f"RANK and WORLD_SIZE of the environment expected whole numbers, got {rank!r:.64} and {world_size!r:.64}\n"
            "  remove them, or give rank= and world_size="
        ) from None


class _TorchDataset:
    """Base of datasets that become subclasses of PyTorch's with the first object, so that import needs no PyTorch."""

    base: ClassVar[str]

    def __new__(cls, *_: Any, **__: Any) -> Any:
        derive: Any = _derive
        return object.__new__(derive(cls))


@cache
def _derive(cls: type[Any]) -> type[Any]:
    base = getattr(load_torch().utils.data, cls.base)
    if issubclass(cls, base):
        return cls
    return types.new_class(cls.__name__, (cls, base), exec_body=lambda body: body.update(__module__=cls.__module__))


class TorchBatches(_TorchDataset):
    """Batches of tensors as a torch.utils.data.IterableDataset: pass it to a DataLoader with ``batch_size=None``.

    Any number of workers share the batches. The state is that of one worker, as torchdata's StatefulDataLoader saves
    and restores it. Each pass is the next epoch if workers persist or there are none; if each pass starts new workers,
    call `set_epoch` before each pass.
    """

    base = "IterableDataset"

    def __init__(self, loop: BatchLoop, *, with_rows: bool = False) -> None:
        torch = load_torch()
        self._loop = loop
        self._with_rows = with_rows
        # The next pass, and the number of its batches that this worker has already delivered.
        self._next, self._num_skipped = Position(loop.epoch, 0), 0
        # The current pass: its start, delivered batches, and row of the epoch.
        self._start, self._num_given, self._row = self._next, 0, 0
        # The start of the next pass, for persistent workers: number of the request, epoch, row.
        self._asked = torch.zeros(3, dtype=torch.int64).share_memory_()
        self._num_asked = 0
        self._pid = -1

    def __len__(self) -> int:
        """Number of batches of a whole epoch, of all workers together."""
        return len(self._loop)

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch that the next pass reads from its start."""
        self._loop.set_epoch(epoch)
        self.start_at(Position(epoch, 0))

    def start_at(self, position: Position) -> None:
        """Set the start of the next pass, here and in workers."""
        self._aim(position, 0)
        self._num_asked += 1
        self._asked.numpy()[:] = self._num_asked, position.epoch, position.row

    def _aim(self, position: Position, num_skipped: int) -> None:
        self._next, self._num_skipped = position, num_skipped
        self._start, self._num_given, self._row = position, num_skipped, position.row

    def __iter__(self) -> Iterator[Any]:
        self._take_orders()
        start, num_skipped = self._next, self._num_skipped
        self._aim(start, num_skipped)
        self._next, self._num_skipped = Position(start.epoch + 1, 0), 0
        worker, num_workers = _find_worker()
        return self._run(start, worker + num_skipped * num_workers, num_workers)

    def _take_orders(self) -> None:
        """Check for a new position set in the parent process.

        The first pass of a worker uses the position that it was started with, because the parent may already have set
        a position for the next workers.
        """
        is_first, self._pid = os.getpid() != self._pid, os.getpid()
        number, epoch, row = self._asked.tolist()
        if not is_first and number != self._num_asked:
            self._aim(Position(epoch, row), 0)
            self._num_asked = number

    def _run(self, start: Position, first: int, num_workers: int) -> Iterator[Any]:
        loop = self._loop
        is_worker = load_torch().utils.data.get_worker_info() is not None
        # Worker processes already run in parallel, so each uses one thread unless more are requested.
        threads = (loop.batching.threads or 1) if is_worker else None
        has_owner = is_worker and self._with_rows  # a `TorchLoader` that warns for all its workers
        batches = loop.run(
            epoch=start.epoch,
            row=start.row,
            worker=first,
            num_workers=num_workers,
            threads=threads,
            warns=not has_owner,
            exchange=None if is_worker else find_exchange(),
        )
        num_sent = 0
        for batch, row in batches:
            self._num_given += 1
            self._row = row
            if self._with_rows:
                skipped = list(loop.policy.findings.values())[num_sent:] if has_owner and loop.may_skip else []
                num_sent += len(skipped)
                yield (Parcel(batch) if is_worker else convert_batch(batch)), row, skipped
            elif is_worker:
                parcel = Parcel(batch)
                yield OpenParcel(parcel, parcel.open())
            else:
                yield convert_batch(batch)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of this worker, a JSON value under 1 KB."""
        _, num_workers = _find_worker()
        if num_workers == 1:
            return self._loop.save(self._start._replace(row=self._row))
        state = self._loop.save(self._start)
        return {**state, "given": self._num_given, "num_workers": num_workers} if self._num_given else state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resume the next pass from a state saved with the same number of workers."""
        position = self._loop.load(state)
        _, num_workers = _find_worker()
        num_given = require_count("state key 'given'", state.get("given", 0), self._loop.num_rows)
        if num_given and state.get("num_workers") != num_workers:
            raise ValueError(
                f"the state is from one of {state.get('num_workers')!r:.64} workers, there are {num_workers}\n"
                "  the loader of to_torch() resumes with any number of them"
            )
        if num_workers == 1:
            self.start_at(position)
        else:
            self._aim(position, num_given)  # other workers have their own states

    def __reduce__(self) -> tuple[object, ...]:
        state = {name: value for name, value in self.__dict__.items() if name != "_loop"}
        return TorchBatches, (self._loop,), state


class TorchRows(_TorchDataset):
    """Rows as a map-style torch.utils.data.Dataset, for a DataLoader with a sampler.

    A row is a dict. Arrays are tensors; numbers, bytes, text and the contents of feature lists are Python objects. The
    rows of a batch are read in one call. A row without a feature does not have its key.

    Example:
        >>> loader = torch.utils.data.DataLoader(ds.to_torch(), batch_size=32, shuffle=True)
    """

    base = "Dataset"

    def __init__(self, rows: RowAccess) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> Row:
        return convert_batch(self._rows[int(index)])

    def __getitems__(self, indices: Sequence[int]) -> list[Row]:
        return [convert_batch(row) for row in self._rows[[int(index) for index in indices]]]

    def __reduce__(self) -> tuple[object, ...]:
        return TorchRows, (self._rows,)


def _find_worker() -> tuple[int, int]:
    """Return (number of this worker, number of workers)."""
    info = load_torch().utils.data.get_worker_info()
    return (0, 1) if info is None else (info.id, info.num_workers)


def _as_it_is(batch: Any) -> Any:
    return batch
