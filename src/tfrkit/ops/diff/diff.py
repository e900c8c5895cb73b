"""Compare two datasets: records added, removed and changed, and what changed in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfrkit._types import Int64Array, Record
from tfrkit.batches.shard_set import ShardSet
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard, find_shards
from tfrkit.errors import StorageError
from tfrkit.ops.diff.keys import Matching, digest_records, match_keys, show_key
from tfrkit.ops.diff.runs import RecordRuns, compare_ahead
from tfrkit.ops.diff.values import Change, FeatureChange, compare_schemas, make_comparison
from tfrkit.progress import Progress
from tfrkit.storage.resolve import Address

_ADVANCED_AT_ONCE = 4096


@dataclass(frozen=True)
class NumberedRecord:
    """The location of a record: its number across all shards, its shard, and its number within that shard."""

    number: int
    shard: str
    record: int

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class RecordChange:
    """A record that differs between the two sides; `a` is None if it was added, `b` is None if it was removed."""

    change: Change
    a: NumberedRecord | None
    b: NumberedRecord | None
    key: str | None = None
    features: tuple[FeatureChange, ...] = ()

    def to_json(self) -> dict[str, Any]:
        return {
            "change": self.change,
            "a": None if self.a is None else self.a.to_json(),
            "b": None if self.b is None else self.b.to_json(),
            "key": self.key,
            "features": [feature.to_json() for feature in self.features],
        }


@dataclass
class Difference:
    """Result of `diff`. `listed` holds the first changes of each kind; the counts cover all changes.

    `recoded` counts records with equal values but different bytes (features in another order, say): not a change.
    `schema_only` counts records that differ only by changes listed in `schema`, with the same numbers.
    """

    records_a: int = 0
    records_b: int = 0
    equal: int = 0
    recoded: int = 0
    schema_only: int = 0
    changed: int = 0
    added: int = 0
    removed: int = 0
    features: dict[str, int] = field(default_factory=dict)
    schema: list[FeatureChange] = field(default_factory=list)
    listed: list[RecordChange] = field(default_factory=list)

    @property
    def same(self) -> bool:
        return not (self.changed or self.added or self.removed or self.schema)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: same, records_a, records_b, counts, features, schema, changes."""
        return {
            "same": self.same,
            "records_a": self.records_a,
            "records_b": self.records_b,
            "equal": self.equal,
            "recoded": self.recoded,
            "schema_only": self.schema_only,
            "changed": self.changed,
            "added": self.added,
            "removed": self.removed,
            "features": self.features,
            "schema": [change.to_json() for change in self.schema],
            "changes": [change.to_json() for change in self.listed],
        }


def diff(
    a: Address | Iterable[Address],
    b: Address | Iterable[Address],
    *,
    key: str | None = None,
    max_listed: int = 100,
    progress: Progress | None = None,
) -> Difference:
    """Compare two datasets record by record: matched by position, or by the value of feature `key`.

    Sharding and compression are ignored. Records with equal bytes are not decoded. Memory use is bounded; with
    `key`, 8 or 16 bytes are held per record.

    Args:
        a: Files, folders or globs of the old dataset.
        b: Files, folders or globs of the new dataset.
        key: A feature that holds one integer or text per record, different in every record.
        max_listed: Limit on listed records per kind of change.
        progress: Progress callback.

    Example:
        >>> found = tfrkit.tools.diff("old/", "new/", key="id")
        >>> found.changed, found.features
        (2, {'label': 2})
    """
    with _open(a) as set_a, _open(b) as set_b:
        comparison = _Comparison(set_a, set_b, key, max_listed, progress)
        if key is None:
            comparison.compare_by_position()
        else:
            comparison.compare_by_key(match_keys(set_a, set_b, key))
        return comparison.finish()


@contextmanager
def _open(address: Address | Iterable[Address]) -> Iterator[ShardSet]:
    with closing(ShardSet(Shard.open_all(find_shards(address, incomplete="warn")), Policy())) as shard_set:
        if shard_set.shards.has_pipe:
            raise StorageError(
                "expected files, got a pipe, which can be read only once", shard="-", hint="save it first"
            )
        yield shard_set


class _Comparison:
    """Compares the records of two datasets and keeps the counts."""

    def __init__(self, a: ShardSet, b: ShardSet, key: str | None, max_listed: int, progress: Progress | None) -> None:
        self._a, self._b = a, b
        self._key = key
        self._max_listed = max_listed
        self._listed: Counter[Change] = Counter()
        self._features: Counter[str] = Counter()
        self._found = Difference(schema=compare_schemas(a.schema, b.schema))
        names_a, names_b = set(a.schema.names), set(b.schema.names)
        # A feature missing from one schema is listed once, not for each record. But if the two sides share no feature,
        # every record counts as changed.
        is_alike = not names_a or not names_b or bool(names_a & names_b)
        self._compare = make_comparison(a.schema.kind, b.schema.kind, self._found.schema if is_alike else ())
        plain = all(shard.compression == "none" for shard in a.shards)
        # Counting the records of compressed shards would take another pass over them.
        self._progress = progress if plain else None
        if self._progress is not None:
            self._progress.begin(len(a.records), sum(shard.nbytes or 0 for shard in a.shards))

    def finish(self) -> Difference:
        if self._progress is not None:
            self._progress.end()
        self._found.features = dict(self._features.most_common())
        return self._found

    def compare_by_position(self) -> None:
        """Compare record n of one side with record n of the other; the rest of the longer side was added or removed."""
        found = self._found
        a = RecordRuns(self._a.shards, self._a.policy.for_one_pass())
        b = RecordRuns(self._b.shards, self._b.policy.for_one_pass())
        while a.fill() and b.fill():
            count, differing = compare_ahead(a, b)
            found.equal += count - len(differing)
            for ahead in differing:
                self._add_pair(a.number + ahead, b.number + ahead, a.record(ahead), b.record(ahead))
            before = a.nbytes
            a.skip(count)
            b.skip(count)
            self._advance(count, a.nbytes - before)
        self._add_missing("removed", a.number, a.skip_rest())
        self._add_missing("added", b.number, b.skip_rest())
        found.records_a, found.records_b = a.number, b.number

    def compare_by_key(self, matching: Matching) -> None:
        """Compare the records that have the same key, in the order of side a."""
        found = self._found
        partners = matching.partners
        found.records_a, found.records_b = len(partners), len(self._b.records)
        is_aligned = found.records_a == found.records_b and bool(np.all(partners == np.arange(len(partners))))
        if is_aligned:
            self.compare_by_position()
            return
        for number in np.flatnonzero(partners < 0).tolist():
            self._add_missing("removed", number, 1)
        for number in matching.added.tolist():
            self._add_missing("added", number, 1)
        self._compare_pairs(np.flatnonzero(partners >= 0), partners)

    def _compare_pairs(self, numbers: Int64Array, partners: Int64Array) -> None:
        found = self._found
        if any(shard.compression != "none" for side in (self._a, self._b) for shard in side.shards):
            # Random access is slow in a compressed shard, so only records whose digests differ are read one by one.
            is_equal = digest_records(self._a)[numbers] == digest_records(self._b)[partners[numbers]]
            found.equal += int(is_equal.sum())
            numbers = numbers[~is_equal]
            for side in (self._a, self._b):
                for number in range(len(side.shards) if len(side.records) else 0):
                    side.records.hold_shard(number)
        records_a, records_b = self._a.records, self._b.records
        for place, number in enumerate(numbers.tolist()):
            partner = int(partners[number])
            record_a, record_b = records_a[number], records_b[partner]
            if record_a == record_b:
                found.equal += 1
            else:
                self._add_pair(number, partner, record_a, record_b)
            if place % _ADVANCED_AT_ONCE == _ADVANCED_AT_ONCE - 1:
                self._advance(_ADVANCED_AT_ONCE, 0)

    def _add_pair(self, number_a: int, number_b: int, record_a: Record, record_b: Record) -> None:
        changes, is_told = self._compare(record_a, record_b)
        if not changes:
            self._found.schema_only += is_told
            self._found.recoded += not is_told
            return
        self._found.changed += 1
        self._features.update(change.feature for change in changes)
        if self._may_list("changed"):
            place_a, place_b = _locate(self._a, number_a), _locate(self._b, number_b)
            self._found.listed.append(
                RecordChange("changed", place_a, place_b, self._show_key(self._a, number_a), tuple(changes))
            )

    def _add_missing(self, change: Change, first: int, count: int) -> None:
        if change == "added":
            self._found.added += count
        else:
            self._found.removed += count
        side = self._b if change == "added" else self._a
        for number in range(first, first + count):
            if not self._may_list(change):
                return
            place, key = _locate(side, number), self._show_key(side, number)
            is_added = change == "added"
            self._found.listed.append(
                RecordChange(change, None if is_added else place, place if is_added else None, key)
            )

    def _may_list(self, change: Change) -> bool:
        self._listed[change] += 1
        return self._listed[change] <= self._max_listed

    def _show_key(self, side: ShardSet, number: int) -> str | None:
        return None if self._key is None else show_key(side, self._key, number)

    def _advance(self, count: int, nbytes: int) -> None:
        if self._progress is not None:
            self._progress.advance(count, nbytes, 0)


def _locate(side: ShardSet, number: int) -> NumberedRecord:
    shards, inside = side.records.locate_many(np.array([number], np.uint64))
    return NumberedRecord(number, side.files[int(shards[0])], int(inside[0]))
