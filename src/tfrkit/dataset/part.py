"""Reading of the rows of a dataset, with a selection, an order and steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, overload

import numpy as np

from tfrkit._limits import LIMITS
from tfrkit._types import Row, UInt64Array
from tfrkit.batches.access import Records
from tfrkit.batches.choose import KeyIndex
from tfrkit.batches.fetch import Fetcher
from tfrkit.batches.loop import Stage
from tfrkit.batches.part_records import PartRecords, count_from_start
from tfrkit.batches.rows import make_rows, pick_row, read_rows
from tfrkit.batches.shard_set import ShardSet
from tfrkit.errors import WireError
from tfrkit.features.schema import Schema
from tfrkit.orders.order import Order


@dataclass(frozen=True)
class Recipe:
    """Features, order and steps of the rows to read."""

    features: tuple[str, ...] | None = None
    order: Order | None = None  # None: every record in file order
    stages: tuple[Stage, ...] = ()
    epoch: int = 0
    is_endless: bool = False


class Part:
    """Reads rows of shards, by number or in order, for `Dataset`."""

    def __init__(
        self, shard_set: ShardSet, *, features: Sequence[str] | None = None, recipe: Recipe | None = None
    ) -> None:
        if not isinstance(shard_set, ShardSet):
            raise TypeError(
                f"a Dataset expected shards that are open, got {type(shard_set).__name__}\n"
                "  open files by name: tfrkit.open(path)"
            )
        self._set = shard_set
        self._recipe = recipe or Recipe(None if features is None else tuple(features))
        self._fetcher: Fetcher | None = None
        self._keys: dict[str, KeyIndex] = {}

    @property
    def schema(self) -> Schema:
        """The features of the records: as given, or from a file next to the shards, else inferred from many records."""
        if self._recipe.features is None:
            return self._set.schema
        return self._set.schema.select(self._recipe.features)

    def __len__(self) -> int:
        """Number of rows, from the index or a scan of the headers."""
        if self._recipe.is_endless:
            raise TypeError("a dataset that repeats without end has no length")
        return len(self._set.records) if self._recipe.order is None else self._recipe.order.size

    def records(self, *, threads: int | None = None) -> Records | PartRecords:
        """Payload bytes of the rows, as stored and in the order of the rows: iterate over them, or pick by number.

        After `split`, `take`, `filter`, `shuffle` and similar, only the records of the selected rows. Payloads have all
        features, even if only some were selected. Compressed shards are inflated ahead on `threads` when all records
        are read in file order; default one per core. Given a number, threads also map in and check files that are not
        compressed: faster for records of 10 KB and more. The order does not change.

        Example:
            >>> with tfrkit.Writer("test.tfrecord") as w:
            ...     for record in test.records():
            ...         w.write_record(record)
        """
        if self._recipe.stages:
            raise ValueError(
                "records are bytes as stored, and map or decode change rows, not records\n"
                "  ask for records() before map and decode, or write what they return: Writer.write(row)"
            )
        if self._recipe.order is None:
            return self._set.records.on_threads(threads)
        return PartRecords(self._set.records, self._recipe.order, self._recipe.epoch, self._set.policy)

    def by(self, feature: str, key: object) -> Row:
        """Find the row whose `feature` has the value `key`. The first call reads that feature of all rows."""
        index = self._keys.get(feature)
        if index is None:
            index = self._keys[feature] = KeyIndex(feature, self._read_column(feature))
        return self[index.find(key)]

    @overload
    def __getitem__(self, index: int | np.integer[Any]) -> Row: ...
    @overload
    def __getitem__(self, index: str) -> Self: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int] | np.ndarray[Any, Any]) -> list[Row]: ...
    def __getitem__(
        self, index: int | np.integer[Any] | str | slice | Sequence[int] | np.ndarray[Any, Any]
    ) -> Row | Self | list[Row]:
        """Return one row by number (negative from the end), or a list of rows for a slice or several numbers.

        A string is a split in TFDS's syntax: ``ds["train[:75%]"]`` is a Dataset.
        """
        if isinstance(index, str):
            return self._pick_split(index)
        if isinstance(index, (int, np.integer)):
            return self._pick_one(int(index))
        if isinstance(index, slice):
            chosen = range(*index.indices(len(self)))
            return self._pick_rows(np.arange(chosen.start, chosen.stop, chosen.step, dtype=np.int64))
        numbers = np.asarray(index)
        if numbers.dtype.kind in "US":
            raise TypeError(
                f"expected numbers of rows, got {index!r:.64}\n  only some features: ds.select({index!r:.64})"
            )
        if numbers.dtype == bool and numbers.shape == (len(self),):
            numbers = np.flatnonzero(numbers)
        if numbers.ndim != 1 or (numbers.size and numbers.dtype.kind not in "iu"):
            raise TypeError(f"expected a number, a slice or a list of numbers, got {index!r}")
        return self._pick_rows(numbers.astype(np.int64))

    def __contains__(self, value: object) -> bool:
        raise TypeError(
            f"`in` does not search a Dataset, got {value!r:.64}\n"
            '  names of the features: "label" in ds.columns    a row by a value: ds.by("id", 7)'
        )

    def __iter__(self) -> Iterator[Row]:
        """Yield the rows in order."""
        fetcher = self._get_fetcher()
        return read_rows(self._set, fetcher) if self._is_plain else self._iterate_rows(fetcher)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_fetcher": None, "_keys": {}}

    def _derive(self, **changes: Any) -> Self:
        return type(self)(self._set, recipe=replace(self._recipe, **changes))

    @property
    def _is_plain(self) -> bool:
        """Whether the rows are all records in file order, as stored."""
        return self._recipe.order is None and not self._recipe.stages

    def _get_order(self) -> Order:
        return self._set.file_order if self._recipe.order is None else self._recipe.order

    def _get_fetcher(self) -> Fetcher:
        if self._fetcher is None:
            self._fetcher = Fetcher(self._set.records, self._set.new_decoder(self._recipe.features), self._set.policy)
        return self._fetcher

    def _read_column(self, name: str) -> np.ndarray[Any, Any]:
        """Read a feature with one value per row, in the order of the rows."""
        return self._put_in_order(self._set.read_column(name))

    def _read_key(self, name: str) -> np.ndarray[Any, Any]:
        """Read a feature that decides the part of each row, in the order of the rows."""
        return self._put_in_order(self._set.read_key(name))

    def _put_in_order(self, column: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        order = self._recipe.order
        return column if order is None else column[order.at(np.arange(order.size, dtype=np.uint64))]

    def _pick_split(self, text: str) -> Self:
        from tfrkit.batches.named_splits import refuse_feature, slice_splits

        if self._recipe.order is not None:
            refuse_feature(self._set, text)
            raise TypeError(f"splits are of whole files, got {text!r} for a dataset that was cut or shuffled")
        return self._derive(order=slice_splits(self._set, text))

    def _pick_one(self, number: int) -> Row:
        size = len(self)
        if not -size <= number < size:
            raise IndexError(f"record {number} of {size} does not exist")
        wanted = number + size if number < 0 else number
        if self._is_plain:
            rows = pick_row(self._set, self._get_fetcher(), wanted)
        else:
            rows = self._pick_rows(np.array([wanted]))
        if not rows:
            raise WireError("record was skipped, it does not decode", record=number, hint="list them: ds.errors")
        return rows[0]

    def _pick_rows(self, numbers: np.ndarray[Any, np.dtype[np.int64]]) -> list[Row]:
        rows = self._make_rows(count_from_start(numbers, len(self)), self._get_fetcher())
        self._set.policy.warn_of_skipped()
        return rows

    def _make_rows(self, positions: UInt64Array, fetcher: Fetcher) -> list[Row]:
        numbers = self._get_order().at(positions, self._recipe.epoch)
        return make_rows(numbers, fetcher, self._recipe.stages)

    def _iterate_rows(self, fetcher: Fetcher) -> Iterator[Row]:
        size = self._get_order().size
        for start in range(0, size, LIMITS.rows_at_once):
            positions = np.arange(start, min(size, start + LIMITS.rows_at_once), dtype=np.uint64)
            yield from self._make_rows(positions, fetcher)
        self._set.policy.warn_of_skipped()
