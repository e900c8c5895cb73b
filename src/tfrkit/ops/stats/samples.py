"""Pick the records of a chunk that a report shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tfrkit._types import Int64Array, UInt64Array
from tfrkit.features.name_words import is_label_name
from tfrkit.features.schema import decode_name
from tfrkit.ops.stats.bytes import MAX_SHOWN_NBYTES
from tfrkit.ops.stats.chunks import Chunk
from tfrkit.ops.stats.columns import ColumnSpec
from tfrkit.ops.stats.features import FeatureKey, FeatureSummary, NativeColumn
from tfrkit.ops.stats.picks import MAX_CLASSES, NUM_EXAMPLES, NUM_SAMPLES, Examples, Pick
from tfrkit.ops.stats.sketches import scatter

# A list with more values per record does not hold the classes of objects.
_MAX_LENGTH = 64


class Picker:
    """Picks records of a chunk; `is_kept` marks those that are Examples."""

    def __init__(self, chunk: Chunk, is_kept: np.ndarray[Any, np.dtype[np.bool_]] | None) -> None:
        self._chunk = chunk
        records, offsets = chunk.list_records(), chunk.list_offsets()
        self._records: Int64Array = records if is_kept is None else records[is_kept]
        self._offsets: Int64Array = offsets if is_kept is None else offsets[is_kept]
        numbers = self._records.astype(np.uint64) | np.uint64(chunk.number << 40)
        self._priorities: UInt64Array = scatter(numbers)

    def pick_samples(self) -> list[Pick]:
        """Pick the NUM_SAMPLES rows whose hashes are lowest."""
        rows = np.argsort(self._priorities)[:NUM_SAMPLES].tolist()
        is_pipe = self._chunk.shard.nbytes is None
        return [
            self._pick(row, self._chunk.read_at(int(self._offsets[row])) if is_pipe else None) for row in sorted(rows)
        ]

    def pick_examples(
        self,
        specs: Sequence[ColumnSpec],
        columns: Sequence[NativeColumn],
        features: Mapping[FeatureKey, FeatureSummary],
    ) -> dict[FeatureKey, Examples]:
        """Pick some rows of each class of the features that look like labels by their names."""
        found = {}
        for (key, kind, _), column in zip(specs, columns, strict=True):
            summary = features.get(key)
            values = None if summary is None else summary.values
            if key[1] or kind == "float" or values is None or not is_label_name(decode_name(key[0])):
                continue
            is_long = values.count > _MAX_LENGTH * len(self._records)
            if is_long or not values.table.is_exact or values.num_distinct > MAX_CLASSES:
                continue
            found[key] = self._pick_each(*_list_classes(kind, column))
        return found

    def _pick_each(self, named: Sequence[Any], codes: Int64Array, rows: Int64Array) -> Examples:
        pairs = np.unique(codes << 32 | rows)  # a record with two objects of a class is picked once
        codes, rows = pairs >> 32, pairs & 0xFFFFFFFF
        order = np.lexsort((self._priorities[rows], codes))
        codes, rows = codes[order], rows[order]
        places = np.arange(len(codes)) - np.searchsorted(codes, codes)
        is_picked = places < NUM_EXAMPLES
        examples: Examples = {}
        for code, row in zip(codes[is_picked].tolist(), rows[is_picked].tolist(), strict=True):
            examples.setdefault(named[code], []).append(self._pick(row))
        return examples

    def _pick(self, row: int, payload: bytes | None = None) -> Pick:
        shard = self._chunk.shard.name
        return Pick(int(self._priorities[row]), shard, int(self._records[row]), int(self._offsets[row]), payload)


def _list_classes(kind: str, column: NativeColumn) -> tuple[list[Any], Int64Array, Int64Array]:
    """Return the distinct values of a column, the number of each value among them, and the row of each value."""
    values, splits, _, _, _ = column
    if kind == "bytes":
        data, offsets = values
        content, edges = data.tobytes(), offsets.tolist()
        numbers: dict[bytes, int] = {}
        listed = [
            numbers.setdefault(content[start : min(stop, start + MAX_SHOWN_NBYTES + 1)], len(numbers))
            for start, stop in pairwise(edges)
        ]
        named: list[Any] = list(numbers)
        codes = np.array(listed, np.int64)
    else:
        distinct, found = np.unique(values, return_inverse=True)
        named, codes = distinct.tolist(), found.astype(np.int64)
    if splits is None:
        return named, codes, np.arange(len(codes), dtype=np.int64)
    return named, codes, np.repeat(np.arange(len(splits) - 1, dtype=np.int64), np.diff(splits))
