"""Estimate the size of a dataset from a few records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfrkit._types import Int64Array
from tfrkit.container.index import FRAME_OVERHEAD
from tfrkit.errors import CodecError, SourceError
from tfrkit.sources.base import Scan, read_items

# The sample is spread over all items and always the same, because the number of shards may depend on it.
_SAMPLE_ITEMS = 24
_FEATURE_NBYTES = 10  # lengths and tags of one feature
_SMALL_INT_NBYTES = 2


@dataclass(frozen=True)
class SizeEstimate:
    """Size estimate from a sample: output bytes per input byte, or bytes per record.

    Sizes are uncompressed. `per_byte` is None if inputs have no size or the output does not depend on it.
    """

    per_record: float
    per_byte: float | None
    is_guess: bool = False

    def of(self, scan: Scan, numbers: Int64Array) -> float:
        """Return the expected size in bytes of the records of these items."""
        if self.per_byte is not None and scan.items.nbytes is not None:
            return float(scan.items.nbytes[numbers].sum() * self.per_byte)
        return len(numbers) * self.per_record


def sample_sizes(scan: Scan) -> SizeEstimate:
    """Estimate sizes from a few items; unreadable items are ignored."""
    size = scan.items.size
    # Not `np.unique`: it imports NumPy's masked arrays, which adds ten milliseconds to every build.
    places = {number * size // _SAMPLE_ITEMS for number in range(_SAMPLE_ITEMS)} if size else set()
    numbers = np.array(sorted(places), np.int64)
    reader = scan.reader
    if reader.gives == "columns" or reader.gives == "frames":
        columns = reader.read_columns(numbers)
        rows = [{name: column[i] for name, column in columns.items()} for i in range(len(numbers))]
        return _summarize([size_row(row) for row in rows], None)
    if reader.gives == "records":
        return _summarize([FRAME_OVERHEAD + len(record) for record in reader.read_records(numbers)], None)
    sizes, inputs = [], []
    for item in read_items(scan.items.take(numbers), reader):
        try:
            sizes.append(size_row(reader.read(item)))
        except (SourceError, CodecError, OSError):
            continue
        inputs.append(0 if scan.items.nbytes is None else int(scan.items.nbytes[item.number]))
    reader.take_facts()
    return _summarize(sizes, inputs)


def size_row(row: Mapping[str, Any]) -> int:
    """Return the approximate size in bytes of a row in a file."""
    features = {name: value for name, value in row.items() if not isinstance(value, Mapping)}
    nested = sum(size_row(value) - FRAME_OVERHEAD for value in row.values() if isinstance(value, Mapping))
    names = sum(map(len, features)) + _FEATURE_NBYTES * len(features)
    return FRAME_OVERHEAD + nested + names + _size_values(features.values())


def _size_values(values: Iterable[Any]) -> int:
    nbytes = 0
    for value in values:
        if isinstance(value, (bytes, str)):
            nbytes += len(value)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "iu" and value.dtype.itemsize == 8:
            nbytes += _SMALL_INT_NBYTES * value.size
        elif isinstance(value, np.ndarray) and value.dtype != object:
            nbytes += value.nbytes
        elif isinstance(value, (list, tuple, np.ndarray)):
            nbytes += _size_values(value) + 4 * len(value)
        else:
            nbytes += 4 if isinstance(value, float) else _SMALL_INT_NBYTES
    return nbytes


def _summarize(sizes: list[int], inputs: list[int] | None) -> SizeEstimate:
    if not sizes:
        return SizeEstimate(0.0, None, is_guess=True)
    per_record = sum(sizes) / len(sizes)
    # The size of re-encoded images does not depend on the size of their files.
    follows_input = inputs is not None and sum(inputs) > 0 and max(sizes) > 1.05 * min(sizes)
    return SizeEstimate(per_record, sum(sizes) / sum(inputs) if follows_input and inputs else None)
