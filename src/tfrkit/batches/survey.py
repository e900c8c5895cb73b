"""Record kind and schema of a dataset, inferred from its records."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit._threads import map_ahead
from tfrkit._types import UInt64Array
from tfrkit.container.index import FRAME_OVERHEAD
from tfrkit.container.records import SAMPLED_SEARCH_NBYTES, FrameStream, Policy
from tfrkit.container.shard_list import ShardList
from tfrkit.container.shards import Shard
from tfrkit.errors import Hint, SchemaError, Step
from tfrkit.features.infer import FeatureStats, InferredSchema, count_kinds, infer_schema, merge_stats
from tfrkit.features.schema import Schema, decode_name, find_mismatches
from tfrkit.features.spec import RecordKind
from tfrkit.images.sniff import sniff_image
from tfrkit.sidecars.read import Sidecars
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.base import ByteSource
from tfrkit.storage.resolve import open_reader

T = TypeVar("T")

# Limits for inferring the schema of a large dataset: places per shard, and shards.
_PLACES = 16
_MAX_SHARDS = 64
# Limits for checking a given schema against the records before reading starts.
_SAMPLED_SHARDS = 4
_SAMPLED_RECORDS = 64
_PLACE_NBYTES = 4 << 20
_REMOTE_PLACE_NBYTES = 256 << 10

_KIND_WORDS: dict[RecordKind, str] = {
    "example": "Examples",
    "sequence_example": "SequenceExamples",
    "raw": "other records",
}


def kind_of_shapes(shapes: Mapping[str, int]) -> RecordKind:
    """Find the kind of all records from counts of shapes; "mixed" if some are Examples and some are not."""
    num_others = shapes["other"]
    num_examples = sum(shapes.values()) - num_others - shapes["empty"]
    if num_others:
        return "mixed" if num_examples else "raw"
    return "sequence_example" if shapes["sequence_example"] or shapes["loose_sequence"] else "example"


@dataclass
class RecordSizes:
    """Sizes of records in bytes, without frame overhead: count, sum, min and max."""

    num_records: int = 0
    nbytes: int = 0
    smallest: int = 0
    largest: int = 0

    def add(self, offsets: UInt64Array, stop: int) -> None:
        """Add adjacent frames that start at these offsets; the last one ends at `stop`."""
        sizes = np.diff(offsets.astype(np.int64), append=stop) - FRAME_OVERHEAD
        low, high = int(sizes.min()), int(sizes.max())
        self.smallest = min(self.smallest, low) if self.num_records else low
        self.largest = max(self.largest, high)
        self.num_records += len(sizes)
        self.nbytes += int(sizes.sum())

    def to_json(self) -> dict[str, Any] | None:
        """Return min, mean and max; None if there are no records."""
        if not self.num_records:
            return None
        return {"min": self.smallest, "mean": round(self.nbytes / self.num_records, 1), "max": self.largest}


@dataclass
class SurveyCounts:
    """The result of a survey as plain values: shapes and counts of features, to which others can be added."""

    shapes: dict[str, int]
    num_records: int
    features: list[FeatureStats]

    def merge(self, other: SurveyCounts) -> None:
        """Add the counts of other records, as if one survey had counted all of them."""
        self.shapes = {shape: count + other.shapes[shape] for shape, count in self.shapes.items()}
        self.num_records += other.num_records
        found = {(one["is_list"], one["name"]): one for one in self.features}
        for one in other.features:
            key = one["is_list"], one["name"]
            found[key] = merge_stats(found[key], one) if key in found else one
        self.features = [found[key] for key in sorted(found)]

    @property
    def decoded_kind(self) -> RecordKind:
        """The kind to decode records as: Examples if most records are Examples; the others are then faults."""
        num_others = self.shapes["other"]
        if num_others >= max(1, sum(self.shapes.values()) - num_others):
            return "raw"
        return kind_of_shapes({**self.shapes, "other": 0})

    def infer(self) -> InferredSchema:
        """Infer the schema of the records that are Examples."""
        kind = self.decoded_kind
        if kind == "raw":
            return infer_schema("raw", 0, [])
        return infer_schema(kind, self.num_records, self.features, sniff=sniff_image)


@dataclass
class Surveyed:
    """Counts over records: shapes and features."""

    survey: _native.Survey = field(default_factory=lambda: _native.Survey("sequence_example"))
    is_sample: bool = False  # whether there may be records that were not read
    stop: threading.Event | None = None  # ends a long survey, with InterruptedError

    def add_shard(
        self,
        shard: Shard,
        policy: Policy,
        *,
        max_records: int | None = None,
        sizes: RecordSizes | None = None,
        is_short: bool = False,
    ) -> int:
        """Add the records of a shard, or its first `max_records`, and their sizes; return the number of records.

        With `is_short`, those of a remote, uncompressed shard that one request brings are enough.
        """
        is_short = is_short and shard.reader.is_remote and shard.compression == "none"
        stream = FrameStream(shard, policy, ahead="none" if is_short else "more")

        def consume(data: ByteSource, start: int, stop: int) -> tuple[int, int, _native.Fault | None]:
            left = 1 << 62 if max_records is None else max_records - stream.record
            found = self.survey.add_frames(data, start, stop, left, policy.verify)
            if sizes is not None and found[0]:
                sizes.add(_native.index_frames(data, start, found[1], found[0], "none")[0], found[1])
            return found

        while stream.record != max_records and stream.step(consume):
            if is_short and stream.record:
                break
            if self.stop is not None and self.stop.is_set():
                raise InterruptedError("the survey was stopped")
        shard.reader.park()
        return stream.record

    @property
    def decoded_kind(self) -> RecordKind:
        """The kind to decode records as; see `SurveyCounts`."""
        return SurveyCounts(self.survey.shapes, 0, []).decoded_kind

    @property
    def counts(self) -> SurveyCounts:
        """The counts as plain values."""
        features: list[Any] = self.survey.features()
        return SurveyCounts(self.survey.shapes, self.survey.num_records, features)


def find_schema(
    shards: Sequence[Shard],
    policy: Policy,
    *,
    from_all: bool = False,
    sidecars: Sidecars | None = None,
    surveyed: Surveyed | None = None,
) -> Schema:
    """Find the schema of a dataset: from its manifest, else inferred from many records and refined by sidecars.

    If a sample of the records contradicts the manifest, it is not used and is listed in the problems of `sidecars`.
    With `from_all` every record is read. `surveyed` collects the counts, for callers that need the number of records.
    """
    shards = ShardList.of(shards)
    if sidecars is None:
        sidecars = Sidecars(shards.names)
    if not from_all and sidecars.schema is not None:
        if shards and shards.are_pinned:
            return sidecars.schema  # the manifest was written for these very objects
        mismatches = find_mismatches(sidecars.schema, sample_schema(shards, policy))
        if not mismatches:
            return sidecars.schema
        sidecars.refuse_schema(mismatches)
    # The reader reports damage later; a damaged record is only ignored here.
    lenient = Policy("none" if policy.verify == "none" else "all", "skip", search_nbytes=SAMPLED_SEARCH_NBYTES)
    surveyed = surveyed or Surveyed()
    is_small = shards.nbytes <= LIMITS.schema_nbytes
    sampled = shards if from_all or is_small else _spread(shards)
    per_shard = max(64, LIMITS.schema_records // max(1, len(sampled)))
    for shard in sampled:
        if shard.nbytes is None:
            raise SchemaError(
                "expected a schema, because records of a pipe can be read only once",
                shard=shard.name,
                hint=Hint(Step("describe them: {schema}", schema=...), "or write them to a file first"),
            )
        if from_all or (is_small and shard.compression == "none"):
            surveyed.add_shard(shard, lenient)
        elif shard.compression == "none":
            _add_places(surveyed, shard, per_shard)
        else:
            limit = LIMITS.schema_records if is_small else per_shard
            surveyed.is_sample |= surveyed.add_shard(shard, lenient, max_records=limit) == limit
    surveyed.is_sample |= not from_all and not is_small
    return sidecars.refine(surveyed.counts.infer())


def sample_schema(shards: Sequence[Shard], policy: Policy) -> Schema:
    """Infer a schema from the first records of the first shards: enough to detect a wrong name or kind."""
    lenient = Policy(policy.verify, "skip", search_nbytes=SAMPLED_SEARCH_NBYTES)
    surveyed = Surveyed()
    for shard in shards[:_SAMPLED_SHARDS]:
        if shard.compression == "none":
            shard.reader.begin(whole=False)  # of all at once
    for shard in shards[:_SAMPLED_SHARDS]:
        surveyed.add_shard(shard, lenient, max_records=_SAMPLED_RECORDS, is_short=True)
    return surveyed.counts.infer().schema


def note_kinds(paths: Sequence[str], *, features: bool = True) -> list[str]:
    """Return notes on files whose records differ in kind and, with `features`, on features that differ in kind.

    Reads the first records of some shards. The paths must be files.
    """
    if len(paths) < 2:
        return []
    lenient = Policy("all", "skip", search_nbytes=SAMPLED_SEARCH_NBYTES)
    records: dict[RecordKind, str] = {}
    seen: dict[str, dict[str, str]] = {}

    def survey(path: str) -> SurveyCounts:
        surveyed = Surveyed()
        reader = open_reader(path)
        reader.begin(whole=False)
        with contextlib.closing(Shard(reader)) as shard:
            surveyed.add_shard(shard, lenient, max_records=_SAMPLED_RECORDS, is_short=True)
        return surveyed.counts

    sampled = _spread(paths)
    threads = LIMITS.stream_blocks if any(map(has_scheme, sampled)) else 1
    for path, counts in zip(sampled, map_ahead(survey, sampled, threads=threads), strict=True):
        if sum(counts.shapes.values()) > counts.shapes["empty"]:  # an empty record is of every kind
            records.setdefault(counts.decoded_kind, path)
        for counted in counts.features if counts.decoded_kind != "raw" else ():
            for kind in count_kinds(counted):
                seen.setdefault(decode_name(counted["name"]), {}).setdefault(kind, path)
    notes = []
    if len(records) > 1:
        where = ", ".join(f"{_KIND_WORDS[kind]} in {path}" for kind, path in records.items())
        notes.append(f"files have records of different kinds: {where}")
    for name, kinds in seen.items() if features else ():
        if len(kinds) > 1 and len(set(kinds.values())) > 1:
            where = " and ".join(f"{kind} in {path}" for kind, path in kinds.items())
            notes.append(
                f"feature {name!r:.64} is {where}: reading them together fails; tfr verify --deep lists every record"
            )
    return notes


def _spread(shards: Sequence[T]) -> Sequence[T]:
    """Return all shards, or an evenly spaced sample of many."""
    number = min(len(shards), _MAX_SHARDS)
    return [shards[at * (len(shards) - 1) // max(1, number - 1)] for at in range(number)]


def _add_places(surveyed: Surveyed, shard: Shard, num_records: int) -> None:
    """Add records at evenly spaced places of a shard, each from the next frame on."""
    shard.confirm()
    span = shard.reader.span()
    if span is None:
        _add_remote_places(surveyed, shard, num_records)
        return
    shard.reader.check_unchanged()
    size = len(span)
    for place in range(_PLACES):
        start = size * place // _PLACES
        found, offset = _native.find_next_frame(span, start, size, True)
        if not found:
            continue
        stop = min(size, offset + _PLACE_NBYTES)
        num_frames, last, _ = surveyed.survey.add_frames(span, offset, stop, max(1, num_records // _PLACES), "all")
        if num_frames == 0:  # a record larger than a place
            _, last, _ = surveyed.survey.add_frames(span, offset, size, 1, "all")
        shard.reader.release(start, last)
    shard.reader.park()


def _add_remote_places(surveyed: Surveyed, shard: Shard, num_records: int) -> None:
    """Add records at evenly spaced places of a remote shard; those that are larger than a place are left out."""
    size = shard.nbytes or 0
    starts = [size * place // _PLACES for place in range(_PLACES)]
    for data in shard.reader.read_ranges([(start, start + _REMOTE_PLACE_NBYTES) for start in starts]):
        found, offset = _native.find_next_frame(data, 0, len(data), False)
        if found:
            surveyed.survey.add_frames(data, offset, len(data), max(1, num_records // _PLACES), "all")
