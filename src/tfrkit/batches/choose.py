"""Selection of rows by value: one pass reads the features, the result is positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tfrkit._limits import LIMITS
from tfrkit._types import Int64Array, Row, UInt64Array
from tfrkit.batches.fetch import Fetcher
from tfrkit.batches.loop import Stage
from tfrkit.batches.pad import Pad, choose_pad
from tfrkit.batches.rows import make_rows
from tfrkit.batches.shard_set import ShardSet
from tfrkit.batches.stages import Processes, find_kept, require_function
from tfrkit.batches.stream import read_batches
from tfrkit.codec.columns import Ragged
from tfrkit.container.faults import copy_readable
from tfrkit.errors import SchemaError, ShapeError, TfrkitError
from tfrkit.features.schema import find_part
from tfrkit.orders.order import Order
from tfrkit.orders.token_batches import TokenBatches

_NUMBERS_AT_ONCE = 1 << 20  # record numbers per step


def choose_rows(
    order: Order,
    fetcher: Fetcher,
    stages: Sequence[Stage],
    function: Callable[[Row], object],
    processes: int | None,
) -> UInt64Array:
    """Return the positions of an order whose rows a function accepts."""
    require_function("filter", function)
    workers = None if processes is None else Processes(function, processes)
    at_once = LIMITS.rows_at_once if workers is None else 16 * LIMITS.rows_at_once * workers.count
    kept: list[UInt64Array] = []
    for start in range(0, order.size, at_once):
        positions = np.arange(start, min(order.size, start + at_once), dtype=np.uint64)
        numbers = order.at(positions)
        rows = make_rows(numbers, fetcher, stages)
        if len(rows) != len(positions):
            raise TfrkitError(
                "filter expected every row to decode, some are damaged",
                hint=copy_readable(),
            )
        answers = workers.run(rows) if workers else [function(row) for row in rows]
        kept.append(find_kept(answers, start, partial(_locate, fetcher, numbers)))
    return np.concatenate(kept) if kept else np.empty(0, np.uint64)


def _locate(fetcher: Fetcher, numbers: UInt64Array, row: int) -> tuple[str, int, int]:
    return fetcher.where(int(numbers[row]))


def measure_lengths(shard_set: ShardSet, name: str) -> Int64Array:
    """Return the number of values of a feature in each record of a dataset; of one in both parts, those of the list."""
    part, plain = find_part(shard_set.schema, name)
    decoder = shard_set.new_decoder([name])
    pieces: list[Any] = []
    policy = shard_set.policy.for_one_pass()
    batches = read_batches(shard_set.shards, decoder, policy, batch_size=4096, drop_last=False, threads=1)
    for batch, num_rows in batches:
        columns = batch
        if part is not None:
            columns = batch[part]
        elif "feature_lists" in batch and name not in batch:
            columns = {**batch["context"], **batch["feature_lists"]}
        column = columns[plain]
        width = column.shape[1] if isinstance(column, np.ndarray) and column.ndim > 1 else 1
        pieces.append(column.lengths if isinstance(column, Ragged) else np.full(num_rows, width, np.int64))
    lengths = np.concatenate(pieces) if pieces else np.empty(0, np.int64)
    num_records = len(shard_set.records)
    if len(lengths) != num_records:
        raise SchemaError(
            f"feature {name!r} was read from {len(lengths)} of {num_records} records, some are damaged",
            hint=copy_readable(),
        )
    return lengths


def order_by_tokens(
    order: Order,
    shard_set: ShardSet,
    name: str,
    *,
    max_tokens: int,
    max_rows: int | None,
    pad: Pad | float | None,
    locate: Callable[[int], tuple[str, int, int]],
) -> TokenBatches:
    """Cut an order into batches by the lengths of a feature. A row longer than `max_tokens` raises `ShapeError`."""
    lengths = measure_lengths(shard_set, name)
    choice = choose_pad(pad, find_part(shard_set.schema, name)[1])
    if choice is not None and choice.length is not None:
        lengths = np.full_like(lengths, choice.length)  # every row has this length
    if (lengths > max_tokens).any():
        for start in range(0, order.members().size, _NUMBERS_AT_ONCE):
            stop = min(order.members().size, start + _NUMBERS_AT_ONCE)
            numbers = order.members().at(np.arange(start, stop, dtype=np.uint64))
            over = numbers[lengths[numbers] > max_tokens]
            if len(over):
                shard, record, offset = locate(int(over[0]))
                raise ShapeError(
                    f"feature {name!r} expected at most max_tokens = {max_tokens} values in a row, "
                    f"got {int(lengths[over[0]])}",
                    shard=shard,
                    record=record,
                    offset=offset,
                    hint=f"leave such rows out: ds.filter(lambda row: len(row[{name!r}]) <= {max_tokens})    "
                    f"or cut them: pad={{{name!r}: (0, {max_tokens})}}, truncate=True",
                )
    return TokenBatches(order, lengths, max_tokens=max_tokens, max_rows=max_rows)


class KeyIndex:
    """Finds positions by the value of a feature. Keeps the column and 16 bytes per row in memory."""

    def __init__(self, name: str, column: np.ndarray[Any, Any]) -> None:
        self._name = name
        self._column = column
        hashes = np.fromiter(map(hash, column.tolist()), np.int64, len(column))
        self._sorted = np.argsort(hashes, kind="stable")
        self._hashes = hashes[self._sorted]

    def find(self, key: object) -> int:
        """Return the only position where the feature has this value; a str is looked up as UTF-8."""
        wanted = key.encode() if isinstance(key, str) and self._column.dtype == object else key
        first, last = (int(np.searchsorted(self._hashes, hash(wanted), side)) for side in ("left", "right"))
        found = [int(row) for row in self._sorted[first:last] if self._column[row] == wanted]
        if len(found) == 1:
            return found[0]
        if not found:
            raise KeyError(f"no record with {self._name} = {key!r} among {len(self._column)}")
        shown = ", ".join(map(str, found[:3])) + (", …" if len(found) > 3 else "")
        raise KeyError(f"{len(found)} records with {self._name} = {key!r}, expected one: {shown}")
