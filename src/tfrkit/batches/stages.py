"""User steps between reading and training: functions on rows or batches, in threads or processes."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tfrkit._types import Row, UInt64Array
from tfrkit.batches.collate import stack_rows
from tfrkit.batches.fetch import Fetched, Fetcher
from tfrkit.batches.state import require_whole
from tfrkit.codec.columns import Column, Ragged
from tfrkit.codec.decode import Batch
from tfrkit.errors import TfrkitError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from tfrkit.batches.decode import DecodeStage

RowFunction = Callable[[Row], Row]
BatchFunction = Callable[[Batch], Batch]


def require_function(verb: str, function: Any) -> None:
    """Raise for a step that is not callable."""
    if not callable(function):
        raise TypeError(f"{verb} expected a function, got {function!r:.64}")


class Processes:
    """A pool of processes that run one function. Started on first use, stopped with this object."""

    def __init__(self, function: Callable[..., Any], count: int) -> None:
        require_whole("processes", count, first=1)
        from multiprocessing.reduction import ForkingPickler

        try:
            ForkingPickler.dumps(function)
        except Exception:  # noqa: BLE001  (a function's own pickling may raise anything)
            raise TypeError(
                f"processes need a function of a module, got {getattr(function, '__qualname__', function)!r}\n"
                "  define it with def at the top of a file, or leave processes out to run it on threads"
            ) from None
        self.function = function
        self.count = count
        self._lock = threading.Lock()
        self._pool: Executor | None = None

    def run(self, items: Sequence[Any]) -> list[Any]:
        """Call the function with each item; return the results in order."""
        # Imported only if processes are used.
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor

        with self._lock:
            if self._pool is None:
                # Forking a process that has threads may hang it.
                context = multiprocessing.get_context("spawn")
                self._pool = ProcessPoolExecutor(self.count, mp_context=context)
                weakref.finalize(self, self._pool.shutdown, wait=False, cancel_futures=True)
        chunk = max(1, -(-len(items) // self.count))
        return list(self._pool.map(self.function, items, chunksize=chunk))

    def __reduce__(self) -> tuple[object, ...]:
        return Processes, (self.function, self.count)


class _Mapping:
    """A function to call, in this process or in others."""

    def __init__(self, function: Callable[..., Any], *, processes: int | None) -> None:
        require_function("map", function)
        self._function = function
        self._processes = None if processes is None else Processes(function, processes)


class MapRows(_Mapping):
    """Calls a function with every row as a dict. The results are stacked only if a batch is needed."""

    def __call__(self, fetched: Fetched, fetcher: Fetcher) -> Fetched:
        rows = fetcher.rows_of(fetched)
        made = [self._function(row) for row in rows] if self._processes is None else self._processes.run(rows)
        for row in made:
            if not isinstance(row, dict):
                raise TypeError(f"a function of map expected to return a dict, got {type(row).__name__}")
        return Fetched(fetched.origin, fetched.numbers, rows=made)


class MapBatches(_Mapping):
    """Calls a function with every batch."""

    def __call__(self, fetched: Fetched, fetcher: Fetcher) -> Fetched:
        if self._processes is None:
            return Fetched(self._function(fetched.batch), fetched.numbers)
        return Fetched(self._processes.run([fetched.batch])[0], fetched.numbers)


class DecodeFeatures:
    """Decodes encoded features to arrays. A row that does not decode is damage: raised, or skipped and recorded."""

    def __init__(self, stage: DecodeStage, *, leaves_images: bool = False) -> None:
        self._stage = stage
        self._leaves_images = leaves_images

    @property
    def device(self) -> str | None:
        """The device that decodes images; None is the CPU."""
        return self._stage.device

    def leave_images(self) -> DecodeFeatures:
        """Return the same step with images left encoded, for the device."""
        return DecodeFeatures(self._stage, leaves_images=True)

    @property
    def names(self) -> set[str]:
        """Features that are decoded."""
        return set(self._stage.outputs())

    @property
    def varying(self) -> set[str]:
        """Features whose shape varies between records."""
        return {name for name, (_, shape) in self._stage.outputs().items() if None in shape}

    def __call__(self, fetched: Fetched, fetcher: Fetcher) -> Fetched:
        if fetched.rows is not None:
            return self._decode_rows(fetched.rows, fetched, fetcher)
        batch, lost = self._decode(fetched.batch, fetched.numbers, fetcher)
        numbers = np.delete(fetched.numbers, lost) if lost else fetched.numbers
        if self._leaves_images:
            batch = {name: _name_places(column, numbers, fetcher) for name, column in batch.items()}
        return Fetched(batch, numbers)

    def _decode(self, batch: Batch, numbers: UInt64Array, fetcher: Fetcher) -> tuple[Batch, list[int]]:
        """Decode a batch; return it and the numbers of the rows left out."""
        decoded, dropped = self._stage(
            batch,
            None,  # no threads here: whole batches are made in parallel
            on_error=fetcher.policy.on_error,
            locate=lambda row: fetcher.where(int(numbers[row])),
            leaves_images=self._leaves_images,
        )
        for row, error in dropped:
            fetcher.note(int(numbers[row]), error)
        return decoded, [row for row, _ in dropped]

    def _decode_rows(self, rows: list[Row], fetched: Fetched, fetcher: Fetcher) -> Fetched:
        """Decode rows one by one, because they may have no common shape."""
        made: list[Row] = []
        kept: list[int] = []
        for number, row in enumerate(rows):
            parts = row if set(row) == {"context", "feature_lists"} else {"": row}
            chosen = {
                part: {name: values[name] for name in self._stage.features if values.get(name) is not None}
                for part, values in parts.items()
            }
            batch = {part: stack_rows([values]) for part, values in chosen.items()}
            decoded, lost = self._decode(
                batch[""] if "" in parts else batch, fetched.numbers[number : number + 1], fetcher
            )
            if lost:
                continue
            [values] = fetcher.decoder.rows(decoded, 1)
            if "" in parts:
                made.append({**row, **values})
            else:
                made.append({part: {**row[part], **values[part]} for part in row})
            kept.append(number)
        is_whole = len(kept) == len(rows)
        origin = _expect_arrays(fetched.origin, self._stage.features)
        return Fetched(origin, fetched.numbers if is_whole else fetched.numbers[kept], rows=made)


def _name_places(column: Column, numbers: UInt64Array, fetcher: Fetcher) -> Column:
    """Add the places of the images that the CPU decoded to a column for a device, for its report."""
    from tfrkit.batches.device_images import EncodedImages  # imported only by readers of images

    if not isinstance(column, EncodedImages):
        return column
    return column.with_places({row: fetcher.where(int(numbers[row])) for row in column.reasons})


def _expect_arrays(columns: Batch, names: Sequence[str]) -> Batch:
    """Return the form of a batch after some of its features are decoded to arrays."""
    if set(columns) == {"context", "feature_lists"}:
        return {part: _expect_arrays(inside, names) for part, inside in columns.items()}
    return {**columns, **{name: _to_arrays(columns.get(name)) for name in names}}


def _to_arrays(column: Column) -> Column:
    if isinstance(column, Ragged):
        return Ragged(_to_arrays(column.values), column.row_splits, column.presence)
    return []


def find_kept(
    is_kept: Sequence[Any], first: int, locate: Callable[[int], tuple[str, int, int]]
) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """Return the positions for which a filter returned a true value, counted from `first`.

    `locate` maps an index of `is_kept` to (shard, record, byte), for the message about an invalid result.
    """
    answers = [_is_yes(answer, row, locate) for row, answer in enumerate(is_kept)]
    return np.flatnonzero(answers).astype(np.uint64) + np.uint64(first)


def _is_yes(answer: Any, row: int, locate: Callable[[int], tuple[str, int, int]]) -> bool:
    # None is usually a forgotten return; an array of several values has no truth value.
    if answer is None or (isinstance(answer, np.ndarray) and answer.size != 1):
        got = "None" if answer is None else f"an array of shape {answer.shape}"
        shard, record, offset = locate(row)
        raise TfrkitError(
            f"a function of filter expected to return True or False, got {got}",
            shard=shard,
            record=record,
            offset=offset,
            hint="is a return statement missing?" if answer is None else "one answer per row: .any() or .all()",
        )
    return bool(answer)
