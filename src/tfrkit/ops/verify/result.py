"""The result of `verify`, and its public JSON form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

from tfrkit._limits import LIMITS
from tfrkit.container.records import NO_LIMIT
from tfrkit.errors import CompressionError, ContainerError, CorruptRecordError, StorageError, TruncatedShardError

FindingKind = Literal[
    "file",
    "checksum",
    "truncated",
    "compression",
    "parse",
    "set",
    "index",
    "schema",
    "image",
    "size",
    "label",
    "box",
    "mask",
    "duplicate",
    "near_duplicate",
    "leak",
]
KINDS: tuple[FindingKind, ...] = get_args(FindingKind)


@dataclass(frozen=True)
class RecordPlace:
    """The location of a record; `is_record_certain` as in `VerifyFinding`."""

    shard: str
    record: int
    offset: int
    is_record_certain: bool = True

    def __str__(self) -> str:
        return f"record {self.record}{'' if self.is_record_certain else ' (uncertain)'} of {self.shard}"

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: shard, record, offset, record_certain."""
        return {
            "shard": self.shard,
            "record": self.record,
            "offset": self.offset,
            "record_certain": self.is_record_certain,
        }


@dataclass(frozen=True)
class VerifyFinding:
    """One problem. `record` and `offset` are None if it does not concern a single record.

    `other` is the record that a duplicate or a leak is a copy of. `stop` is the end of damaged bytes that may hold
    several records, else None. Record numbers after such bytes count them as one and are not `is_record_certain`.
    """

    shard: str
    record: int | None
    offset: int | None
    cause: str
    kind: FindingKind
    other: RecordPlace | None = None
    stop: int | None = None
    is_record_certain: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: shard, record, offset, cause, kind, other, stop, record_certain."""
        return {
            "shard": self.shard,
            "record": self.record,
            "offset": self.offset,
            "cause": self.cause,
            "kind": self.kind,
            "other": None if self.other is None else self.other.to_json(),
            "stop": self.stop,
            "record_certain": self.is_record_certain,
        }


@dataclass
class ShardTally:
    """The counts of one shard: sound records, frames, findings.

    `num_frames` counts records with valid checksums, including those that are not Examples although most others are.
    `nbytes` is None for a pipe and for a file that cannot be opened. Record numbers after `hole` are uncertain.
    """

    path: str
    nbytes: int | None = None
    records: int = 0
    num_frames: int = 0
    num_findings: int = 0
    is_damaged: bool = False
    is_readable: bool = False
    holds_examples: bool = False
    hole: int = NO_LIMIT

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: shard, records, nbytes, findings."""
        return {"shard": self.path, "records": self.records, "nbytes": self.nbytes, "findings": self.num_findings}


@dataclass
class Verification:
    """Result of `verify`. `records` counts the sound records.

    At most 10,000 findings of each kind are listed; `counts` includes all of them.
    """

    records: int = 0
    findings: list[VerifyFinding] = field(default_factory=list)
    shards: list[ShardTally] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    counts: Counter[FindingKind] = field(default_factory=Counter)
    ignored: frozenset[FindingKind] = frozenset()

    @property
    def ok(self) -> bool:
        """Whether there are no findings."""
        return not self.counts

    def add(self, findings: Iterable[VerifyFinding]) -> None:
        """Count findings, and list them up to the limit; findings of ignored kinds are dropped."""
        for finding in findings:
            if finding.kind in self.ignored:
                continue
            self.counts[finding.kind] += 1
            if self.counts[finding.kind] <= LIMITS.max_findings:
                self.findings.append(finding)

    def close(self) -> None:
        """Add a note for each kind with unlisted findings, mark uncertain record numbers, count findings by shard."""
        for kind, number in self.counts.items():
            if number > LIMITS.max_findings:
                self.notes.append(f"{number:,} findings of kind {kind}, of which {LIMITS.max_findings:,} are listed")
        holes = {tally.path: tally.hole for tally in self.shards}
        for number, finding in enumerate(self.findings):
            if finding.record is not None and finding.record > holes.get(finding.shard, NO_LIMIT):
                self.findings[number] = replace(finding, is_record_certain=False)
        by_shard = Counter(finding.shard for finding in self.findings)
        for tally in self.shards:
            tally.num_findings = by_shard[tally.path]

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: ok, records, findings, counts (by kind), shards, notes."""
        return {
            "ok": self.ok,
            "records": self.records,
            "findings": [finding.to_json() for finding in self.findings],
            "counts": {kind: self.counts[kind] for kind in KINDS if self.counts[kind]},
            "shards": [tally.to_json() for tally in self.shards],
            "notes": self.notes,
        }


def kind_of_error(error: Exception) -> FindingKind:
    """Return the kind of finding for an error."""
    if isinstance(error, CorruptRecordError):
        return "checksum"
    if isinstance(error, TruncatedShardError):
        return "truncated"
    if isinstance(error, CompressionError):
        return "compression"
    return "file" if isinstance(error, (StorageError, ContainerError)) else "parse"


def read_kinds(kinds: Collection[str]) -> frozenset[FindingKind]:
    """Convert names to kinds of findings; raises `ValueError` for an unknown name."""
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"expected kinds of findings to ignore ({', '.join(KINDS)}), got {kind!r:.64}")
    return frozenset(kind for kind in KINDS if kind in kinds)
