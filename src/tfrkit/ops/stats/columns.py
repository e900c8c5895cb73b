"""The features seen in records so far, and columns to decode them into."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit.errors import SchemaError
from tfrkit.features.spec import StorageKind
from tfrkit.ops.stats.features import FeatureKey

_KINDS: tuple[StorageKind | None, ...] = (None, "bytes", "float", "int64")


class ColumnSpec(NamedTuple):
    """A feature, and how to decode it; `length` is 1 for one value in every record, -1 for any number of values."""

    key: FeatureKey
    kind: StorageKind
    length: int = -1


class KnownColumns:
    """The features seen so far, and builders for them. Safe to share between threads.

    They affect only speed: a chunk with other features is read again on a slower path.
    """

    def __init__(self, names: Sequence[bytes] | None) -> None:
        self._lock = threading.Lock()
        self._names = None if names is None else frozenset(names)
        self._version = 0
        self._spare: list[tuple[int, list[ColumnSpec], _native.ColumnBuilder]] = []
        # None if no record has set a kind yet. A requested name may turn out to be a feature or a feature list.
        self._kinds: dict[FeatureKey, StorageKind | None] = {
            (name, is_list): None for name in names or () for is_list in (False, True)
        }
        self._varying = set(self._kinds)

    @property
    def is_selected(self) -> bool:
        """Whether only some features were requested."""
        return self._names is not None

    def wants(self, key: FeatureKey) -> bool:
        """Was this feature requested?"""
        return self._names is None or key[0] in self._names

    def learn(self, features: Iterable[Mapping[str, Any]], num_records: int) -> None:
        """Add the features of surveyed records."""
        features = list(features)
        with self._lock:
            for key, kind in choose_kinds(features).items():
                is_known = key in self._kinds if kind is None else self._kinds.get(key) is not None
                if self.wants(key) and not is_known:
                    self._kinds[key] = kind
                    self._version += 1
            for found in features:
                is_scalar = found["min_length"] == found["max_length"] == 1 and found["present"] == num_records
                if found["is_list"] or found["num_unset"] or not is_scalar:
                    self._vary((found["name"], found["is_list"]))
            refuse_too_many(len(self._kinds))

    def loosen(self, keys: Iterable[FeatureKey]) -> None:
        """Mark features that do not have exactly one value in every record."""
        with self._lock:
            for key in keys:
                self._vary(key)

    def borrow(self) -> tuple[int, list[ColumnSpec], _native.ColumnBuilder]:
        """Return a builder for all features seen so far, with its version and columns."""
        with self._lock:
            while self._spare:
                version, specs, builder = self._spare.pop()
                if version == self._version:
                    return version, specs, builder
            specs = [
                ColumnSpec(key, kind or "bytes", -1 if key in self._varying else 1) for key, kind in self._kinds.items()
            ]
            version = self._version
        return version, specs, make_builder(specs)

    def give_back(self, version: int, specs: list[ColumnSpec], builder: _native.ColumnBuilder) -> None:
        """Keep an emptied builder for the next chunk."""
        with self._lock:
            self._spare.append((version, specs, builder))

    def _vary(self, key: FeatureKey) -> None:
        if self.wants(key) and key not in self._varying:
            self._varying.add(key)
            self._version += 1


def refuse_too_many(num_features: int) -> None:
    """Raise `SchemaError` if there are more features than fit into memory."""
    if num_features > LIMITS.max_features:
        raise SchemaError(
            f"expected at most {LIMITS.max_features:,} different features, got more",
            hint="choose some: --features a,b",
        )


def choose_kinds(features: Iterable[Mapping[str, Any]]) -> dict[FeatureKey, StorageKind | None]:
    """Choose the most frequent kind of each surveyed feature; None if no record sets one."""
    kinds = {}
    for found in features:
        counts = found["kind_counts"]
        most = max(counts[1:])
        kinds[found["name"], found["is_list"]] = _KINDS[counts.index(most, 1)] if most else None
    return kinds


def make_builder(specs: Sequence[ColumnSpec]) -> _native.ColumnBuilder:
    """Create a builder of columns, for both Examples and SequenceExamples."""
    return _native.ColumnBuilder("sequence_example", [(key[0], kind, key[1], length) for key, kind, length in specs])
