"""Columns that are no features: the number of each record in its table, its file and its split.

They exist only if a query names them, and are no part of `*`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tfrkit._types import Int64Array
from tfrkit.features.arrow_schema import ArrowField, ArrowType
from tfrkit.feeds.arrow_layout import Node

RECORD_COLUMN = "_record"
"""The column with the number of a record in its table, from 0."""

FILE_COLUMN = "_file"
"""The column with the file of a record, by the name that errors and reports have for it."""

SPLIT_COLUMN = "_split"
"""The column with the split of a record; NULL if its file is in none."""

PLACE_COLUMNS = (RECORD_COLUMN, FILE_COLUMN, SPLIT_COLUMN)

NUMBER_COLUMN = "tfrkit_record_number"
"""The same as `_record`, for queries of our own: a feature may be named `_record`."""

_FIELDS = {
    RECORD_COLUMN: ArrowField(RECORD_COLUMN, ArrowType("int64"), nullable=False),
    NUMBER_COLUMN: ArrowField(NUMBER_COLUMN, ArrowType("int64"), nullable=False),
    FILE_COLUMN: ArrowField(FILE_COLUMN, ArrowType("large_string"), nullable=False),
    SPLIT_COLUMN: ArrowField(SPLIT_COLUMN, ArrowType("large_string"), nullable=True),
}


def place_fields(names: Sequence[str]) -> list[ArrowField]:
    """Return the Arrow fields of some of these columns."""
    return [_FIELDS[name] for name in names]


@dataclass(frozen=True)
class ShardPlaces:
    """The files of a table, the split of each, and the number of the first record of each, followed by the total."""

    files: Sequence[str]
    splits: Sequence[str | None]
    starts: Sequence[int]

    def lay_out(self, column: str, numbers: Int64Array) -> Node:
        """Lay out a column for records of these numbers."""
        shards = np.searchsorted(np.asarray(self.starts[1:-1], np.int64), numbers, side="right")
        return lay_out_texts(self.files if column == FILE_COLUMN else self.splits, shards)


def lay_out_texts(texts: Sequence[str | None], chosen: Int64Array) -> Node:
    """Lay out a column of texts, of which each row has the chosen one; None is a missing value.

    Rows in a run have the same text, because records are read in the order of files.
    """
    num_rows = len(chosen)
    firsts = np.flatnonzero(np.diff(chosen, prepend=-1))
    counts = np.diff(firsts, append=num_rows)
    runs = [texts[number] for number in chosen[firsts].tolist()]
    stored = [b"" if text is None else text.encode("utf-8", "replace") for text in runs]
    lengths = np.repeat(np.array([len(text) for text in stored], np.int64), counts)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])
    data = b"".join(text * count for text, count in zip(stored, counts.tolist(), strict=True))
    bitmap, num_nulls = None, 0
    if None in runs:
        is_present = np.repeat(np.array([text is not None for text in runs], bool), counts)
        bitmap, num_nulls = np.packbits(is_present, bitorder="little"), int(num_rows - is_present.sum())
    return num_rows, num_nulls, (bitmap, offsets, np.frombuffer(data, np.uint8)), ()
