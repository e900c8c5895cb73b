"""Pick the sample records of a report, by a hash of their number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrkit._types import Int64Array
from tfrkit.features.names import is_label_name, split_words
from tfrkit.features.schema import decode_name
from tfrkit.features.spec import StorageKind
from tfrkit.ops.stats.bytes import MAX_SHOWN_NBYTES, BytesSummary
from tfrkit.ops.stats.columns import ColumnSpec
from tfrkit.ops.stats.features import NUM_SAMPLES, DatasetSummary, NativeColumn, Sample
from tfrkit.ops.stats.sketches import mix

# Larger images are left out, to keep the report small.
_MAX_IMAGE_NBYTES = 4 << 20
_MAX_IMAGES = 2  # features


def pick_samples(
    shard: str,
    number: int,
    records: Int64Array,
    specs: Sequence[ColumnSpec],
    columns: Sequence[NativeColumn],
    summary: DatasetSummary,
) -> list[Sample]:
    """Pick the rows with an image among the NUM_SAMPLES rows whose hashes are lowest, whatever the order of chunks."""
    images, labels = [], []
    for (key, kind, _), column in zip(specs, columns, strict=True):
        values = summary.features[key].values if key in summary.features else None
        if isinstance(values, BytesSummary) and values.are_images:
            images.append((key, kind, column))
        elif not key[1] and (is_label_name(name := decode_name(key[0])) or "text" in split_words(name)):
            labels.append((key, kind, column))
    if not images:
        return []
    priorities = mix(records.astype(np.uint64) | np.uint64(number << 40))
    samples = []
    for row in np.argsort(priorities)[:NUM_SAMPLES].tolist():
        found = {
            decode_name(key[0]): _read_first(key[1], kind, column, row) for key, kind, column in images[:_MAX_IMAGES]
        }
        kept = {name: value for name, value in found.items() if value is not None and len(value) <= _MAX_IMAGE_NBYTES}
        if kept:
            named = {decode_name(key[0]): _read_first(key[1], kind, column, row) for key, kind, column in labels}
            named = {name: value for name, value in named.items() if value is not None and not _is_long(value)}
            samples.append(Sample(int(priorities[row]), shard, int(records[row]), kept, named))
    return samples


def _read_first(is_list: bool, kind: StorageKind, column: NativeColumn, row: int) -> Any:
    """Return the first value of a row (for a feature list, of its first step), or None without values."""
    values, splits, list_splits, _, _ = column
    if is_list:
        if list_splits[row] == list_splits[row + 1]:
            return None
        row = int(list_splits[row])
    start = row if splits is None else int(splits[row])
    if splits is not None and start == int(splits[row + 1]):
        return None
    if kind != "bytes":
        return values[start].item()
    data, offsets = values
    return data[int(offsets[start]) : int(offsets[start + 1])].tobytes()


def _is_long(value: Any) -> bool:
    return isinstance(value, bytes) and len(value) > MAX_SHOWN_NBYTES
