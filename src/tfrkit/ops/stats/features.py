"""Mergeable statistics of features and of whole datasets, computed from decoded columns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfrkit._types import Int64Array
from tfrkit.codec.columns import ABSENT, PRESENT, UNSET
from tfrkit.container.records import Finding
from tfrkit.features.infer import FeatureStats, merge_stats
from tfrkit.features.spec import StorageKind
from tfrkit.ops.stats.bytes import BytesSummary, summarize_bytes
from tfrkit.ops.stats.numbers import NumberSummary, summarize_equal, summarize_floats, summarize_ints
from tfrkit.ops.stats.picks import Picks

FeatureKey = tuple[bytes, bool]
"""Name as stored, and whether it is a feature list."""

NativeColumn = tuple[Any, Any, Any, Any, Any]
"""A column as the native core returns it: values, splits, list_splits, presence, frame_presence."""

# Limit on listed records that are not Examples; all of them are counted.
MAX_FINDINGS = 1000
# Number of values that are summarized at once.
_BLOCK_VALUES = 32768


@dataclass
class FeatureSummary:
    """Statistics of one feature. `values` is None if records disagree on its kind or none sets it."""

    present: int = 0  # records that have the name
    unset: int = 0  # records (for a feature list, steps) in which it has no kind
    kinds: Counter[str] = field(default_factory=Counter)  # records (steps) of each kind
    lengths: NumberSummary = field(default_factory=NumberSummary)  # values per record (step) that has a kind
    frames: NumberSummary = field(default_factory=NumberSummary)  # steps per record, for feature lists
    values: NumberSummary | BytesSummary | None = None

    @property
    def kind(self) -> str | None:
        """The kind in all records, "mixed" if they disagree, or None if no record sets one."""
        if len(self.kinds) > 1:
            return "mixed"
        return next(iter(self.kinds), None)

    def merge(self, other: FeatureSummary) -> None:
        """Add the counts and values of another summary."""
        self.present += other.present
        self.unset += other.unset
        for kind, count in other.kinds.items():  # several times faster than `update`
            self.kinds[kind] += count
        if len(self.kinds) > 1:
            # Statistics of some of the values would be mistaken for statistics of all.
            self.values = None
            self.lengths = NumberSummary()
        else:
            self.lengths.merge(other.lengths)
            if other.values is not None:
                self.values = type(other.values)() if self.values is None else self.values
                self.values.merge(other.values)  # type: ignore[arg-type]
        self.frames.merge(other.frames)


@dataclass
class DatasetSummary:
    """Statistics of the records of any number of shards."""

    records: int = 0
    sizes: NumberSummary = field(default_factory=NumberSummary)
    features: dict[FeatureKey, FeatureSummary] = field(default_factory=dict)
    probes: dict[FeatureKey, FeatureStats] = field(default_factory=dict)  # surveys of some records, to infer meanings
    num_others: int = 0  # records that are neither Examples nor SequenceExamples; not counted in `records`
    others: list[Finding] = field(default_factory=list)
    other_sizes: NumberSummary = field(default_factory=NumberSummary)
    picks: Picks = field(default_factory=Picks)
    num_files: int = 0

    def merge(self, other: DatasetSummary) -> None:
        """Add another summary. It must not change afterwards, because parts of it are shared, not copied."""
        self.records += other.records
        self.num_files += other.num_files
        self.sizes.merge(other.sizes)
        for key, feature in other.features.items():
            self.features.setdefault(key, FeatureSummary()).merge(feature)
        for key, probe in other.probes.items():
            self.probes[key] = merge_stats(self.probes[key], probe) if key in self.probes else probe
        self.num_others += other.num_others
        self.others += other.others[: MAX_FINDINGS - len(self.others)]
        self.other_sizes.merge(other.other_sizes)
        self.picks.merge(other.picks)

    def list_limits(self) -> dict[FeatureKey, int]:
        """Return the `limit` of the sketch of each feature, if it has one."""
        limits = {}
        for key, feature in self.features.items():
            distinct = None if feature.values is None else feature.values.distinct
            if distinct is not None and distinct.limit is not None:
                limits[key] = distinct.limit
        return limits


def summarize_column(
    kind: StorageKind, is_list: bool, column: NativeColumn, num_rows: int, limit: int | None = None
) -> FeatureSummary:
    """Summarize a decoded feature; without row splits it has one value per record. `limit`: see `DistinctSketch`."""
    values, splits, list_splits, presence, frame_presence = column
    summary = FeatureSummary(present=num_rows)
    if presence is not None:
        summary.present = num_rows - int(np.count_nonzero(presence == ABSENT))
    if is_list:
        frames = np.diff(list_splits) if list_splits is not None else np.zeros(num_rows, np.int64)
        summary.frames = _summarize_lengths(frames if presence is None else frames[presence != ABSENT])
        presence = frame_presence
    if presence is not None:
        summary.unset = int(np.count_nonzero(presence == UNSET))
    if splits is None and not is_list:
        summary.lengths = summarize_equal(1, num_rows)
    elif splits is not None:
        lengths = np.diff(splits)
        summary.lengths = _summarize_lengths(lengths if presence is None else lengths[presence == PRESENT])
    if summary.lengths.count:
        summary.kinds[kind] = summary.lengths.count
        summary.values = _summarize_values(kind, values, limit)
    return summary


def _summarize_lengths(lengths: Int64Array) -> NumberSummary:
    # Fast path: most features have one value in each record.
    if len(lengths) and lengths[0] == 1 and (lengths == 1).all():
        return summarize_equal(1, len(lengths))
    return summarize_ints(lengths)


def _summarize_values(kind: StorageKind, values: Any, limit: int | None) -> NumberSummary | BytesSummary:
    """Summarize the values of a column, in blocks that fit into the cache and bound the memory."""
    if kind == "bytes":
        data, offsets = values
        whole: NumberSummary | BytesSummary = summarize_bytes(data, offsets[: _BLOCK_VALUES + 1], limit)
        for start in range(_BLOCK_VALUES, len(offsets) - 1, _BLOCK_VALUES):
            whole.merge(summarize_bytes(data, offsets[start : start + _BLOCK_VALUES + 1], limit))  # type: ignore[arg-type]
        return whole
    summarize: Any = summarize_ints if kind == "int64" else summarize_floats
    whole = summarize(values[:_BLOCK_VALUES], limit)
    for start in range(_BLOCK_VALUES, len(values), _BLOCK_VALUES):
        whole.merge(summarize(values[start : start + _BLOCK_VALUES], limit))
    return whole
