"""Grain: a dataset as a random access source."""

from __future__ import annotations

import operator
from typing import Any, Protocol, SupportsIndex

from tfrkit._optional import import_or_explain
from tfrkit._types import Row
from tfrkit.batches.loop import BatchLoop
from tfrkit.batches.state import Position


class RowAccess(Protocol):
    """Rows by number."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: Any) -> Any: ...


class GrainSource:
    """A random access source of rows, for `grain.DataLoader` and `grain.MapDataset.source`.

    A row is a dict of Python numbers, bytes, str and NumPy arrays. The source can be pickled for Grain's workers. Grain
    stores the repr of a source in its checkpoints and rejects a source with another repr, so the repr has the
    fingerprints of the dataset and of the order of its rows, not the paths of the files.

    Example:
        >>> pipeline = grain.MapDataset.source(ds.to_grain()).shuffle(seed=7).map(parse).batch(32)
    """

    def __init__(self, rows: RowAccess, batches: BatchLoop) -> None:
        import_or_explain("grain", "grain")
        self._rows = rows
        self._num_rows = len(rows)
        state = batches.save(Position())  # has the fingerprints
        self._repr = f"tfrkit.GrainSource(dataset={state['dataset']}, order={state['order']})"

    def __len__(self) -> int:
        return self._num_rows

    def __getitem__(self, record_key: SupportsIndex) -> Row:
        row: Row = self._rows[operator.index(record_key)]
        return row

    def __repr__(self) -> str:
        return self._repr
