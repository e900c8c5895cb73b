"""Prepare a build: scan the source, decide splits and shards, and find every problem before anything is written."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tfrkit.build.estimate import SizeEstimate, sample_sizes
from tfrkit.build.plan import BuildPlan, PlannedShard, describe_inputs, digest_shards, make_shards
from tfrkit.build.report import Report, Skipped
from tfrkit.build.splits import Assignment, SplitSize, assign_splits, group_by_pattern
from tfrkit.build.task import OnBad
from tfrkit.container.codecs import Compression, Level
from tfrkit.engines.base import EngineName
from tfrkit.engines.choose import check_engine
from tfrkit.errors import SourceError
from tfrkit.features.rename import rename_schema
from tfrkit.features.schema_json import to_json
from tfrkit.outputs.sizes import ShardSizes
from tfrkit.outputs.target import Target
from tfrkit.sources.base import Items, Problem, RecordOrder, Scan, Source, require_some
from tfrkit.storage.git_lfs import REMEDY, describe_pointer_file
from tfrkit.storage.inputs import forget_inputs
from tfrkit.storage.options import StorageOptions, given_options


@dataclass(frozen=True)
class BuildOptions:
    """Options of a build; `build` describes them and has their defaults."""

    splits: Mapping[str, SplitSize] | None
    shards: int | Mapping[str, int] | None
    shard_size: int | str | None
    seed: int
    order: RecordOrder | None
    stratify: bool
    group: str | None
    compression: Compression | None
    level: Level
    keys: Mapping[str, str]
    on_bad: OnBad
    jobs: int | None
    force: bool
    engine: EngineName
    engine_address: str | None
    part: str | None

    def __post_init__(self) -> None:
        if self.on_bad not in ("fail", "skip"):
            raise ValueError(f"on_bad expected 'fail' or 'skip', got {self.on_bad!r}")
        if self.order not in (None, "seeded", "source"):
            raise ValueError(f"order expected 'seeded' or 'source', got {self.order!r}")
        if self.jobs is not None and self.jobs < 1:
            raise ValueError(f"jobs expected from 1 up, got {self.jobs}")
        check_engine(self.engine, self.engine_address)
        if self.part is not None and self.engine != "local":
            raise ValueError(f"part is only for engine 'local', got {self.engine!r}")

    @property
    def sizes(self) -> ShardSizes:
        """The requested number or size of shards."""
        return ShardSizes.of(self.shards, self.shard_size)

    def to_json(self) -> dict[str, Any]:
        """Return the options that affect the bytes, as a JSON value."""
        splits = {
            name: os.fspath(size) if isinstance(size, os.PathLike) else size
            for name, size in (self.splits or {}).items()
        }
        return {
            "splits": splits or None,
            "shards": dict(self.shards) if isinstance(self.shards, Mapping) else self.shards,
            "shard_size": self.sizes.nbytes,
            "seed": self.seed,
            "stratify": self.stratify,
            "group": self.group,
            "level": self.level,
            "keys": dict(self.keys),
        }


@dataclass
class Prepared:
    """A scanned and planned build, and the problems found so far."""

    source: Source
    target: Target
    options: BuildOptions
    scan: Scan
    plan: BuildPlan
    compression: Compression
    estimate: SizeEstimate
    problems: list[Problem]
    notes: list[str]
    num_left_out: int = 0

    @property
    def stores(self) -> dict[str, StorageOptions]:
        """The options of the stores of the inputs, for workers."""
        return given_options(str(value) for value in self.source.options().values() if isinstance(value, str))

    @property
    def stops(self) -> list[Problem]:
        """The problems that prevent the build."""
        return [problem for problem in self.problems if problem.blocking or self.options.on_bad == "fail"]

    def expected_nbytes(self, shard: PlannedShard) -> float:
        """Return the approximate size of a shard."""
        return self.estimate.of(self.scan, shard.numbers)

    def new_report(self) -> Report:
        """Return a report with the results of the scan; nothing is written yet."""
        items = self.scan.items
        return Report(
            out=self.target.out,
            source=f"{self.source.kind} {self.source.title}",
            found=self.scan.num_inputs,
            skipped=[Skipped.of(problem) for problem in self.problems if not problem.blocking],
            ignored=dict(sorted(self.scan.ignored.items())),
            nbytes_in=None if items.nbytes is None else int(items.nbytes.sum()),
            seed=self.options.seed,
            notes=list(self.notes),
            counts=self.scan.counts,
        )


def prepare(source: Source, target: Target, options: BuildOptions, scratch: str) -> Prepared:
    """Scan and plan. Problems with inputs are collected, not raised, unless there is nothing to build."""
    pointer = describe_pointer_file(source.title)
    if pointer is not None:
        raise SourceError(f"expected data, got {pointer}", shard=source.title, hint=REMEDY)
    forget_inputs(source.title)
    scan = source.scan(scratch)
    require_some(scan)
    problems = list(scan.problems)
    schema = None if scan.schema is None else rename_schema(scan.schema, options.keys)
    if options.keys and scan.reader.gives == "records":
        raise SourceError("records are copied as they are, so their features cannot be renamed")
    assignment = _split_items(scan.items, options, problems)
    is_split = len(assignment.splits) > 1
    order = options.order or ("seeded" if is_split else scan.order)
    estimate = sample_sizes(scan)
    nbytes = {name: estimate.of(scan, numbers) for name, numbers in assignment.splits.items()}
    assignment.splits = _drop_empty(assignment)
    shards = make_shards(
        assignment,
        options.sizes,
        name=target.name,
        single_file=target.single_file,
        seed=options.seed,
        order=order,
        estimate=nbytes,
    )
    compression = options.compression or target.suffix_compression or "none"
    described = {name: value for name, value in source.options().items() if name != "path"}
    description = {
        "source": source.kind,
        "options": described,
        "build": {**options.to_json(), "order": order, "compression": compression},
        "inputs": {**describe_inputs(scan.items), "fingerprint": scan.fingerprint},
        # Names of classes may come from a file that changed while its path did not.
        "schema_digest": "" if schema is None else _digest(to_json(schema)),
        "records": digest_shards(shards),
    }
    # A round trip through JSON turns tuples into lists, so that the plan equals one loaded from a file.
    plan = BuildPlan(shards, json.loads(json.dumps(description)))
    notes = [*scan.notes, *assignment.notes]
    if is_split or order == "seeded":
        notes.append(f"seed {options.seed}")
    return Prepared(
        source, target, options, scan, plan, compression, estimate, problems, notes, assignment.num_left_out
    )


def _split_items(items: Items, options: BuildOptions, problems: list[Problem]) -> Assignment:
    """Assign splits; errors are added to `problems`."""
    groups: Any = items.groups
    if not items.size:
        return Assignment({})
    if options.group is not None:
        if items.keys is None:
            raise ValueError("group expected a source with file names, got rows")
        groups, unmatched = group_by_pattern(items, options.group)
        if unmatched:
            problems += unmatched
            return Assignment({})
    try:
        assignment = assign_splits(items, options.splits, seed=options.seed, stratify=options.stratify, groups=groups)
    except ValueError:
        # Bad inputs may be the reason that a split has too few records: report the bad inputs first.
        if any(problem.blocking or options.on_bad == "fail" for problem in problems):
            return Assignment({})
        raise
    problems += assignment.problems
    return assignment


def _drop_empty(assignment: Assignment) -> dict[str, Any]:
    """Return the splits that are not empty, and add a note for each empty one unless all are empty."""
    empty = [name for name, numbers in assignment.splits.items() if not len(numbers)]
    if len(empty) < len(assignment.splits):
        assignment.notes += [f"split {name!r} is empty" for name in empty]
    return {name: numbers for name, numbers in assignment.splits.items() if len(numbers)}


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]
