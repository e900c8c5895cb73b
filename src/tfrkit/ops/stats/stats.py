"""Statistics of a dataset: every feature, the balance of classes, and how its splits differ."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tfrkit._types import OnError
from tfrkit.container.faults import SKIP
from tfrkit.container.names import note_missing_shards
from tfrkit.container.records import Finding, Policy
from tfrkit.container.shards import Shard, find_shards
from tfrkit.errors import CodecError, ContainerError, Hint, MissingFeatureError, StorageError
from tfrkit.features.schema import Schema, encode_name, show_name
from tfrkit.ops.stats.columns import refuse_too_many
from tfrkit.ops.stats.describe import feature_to_json, find_spec, guess_specs, is_label, refine_specs, summary_to_json
from tfrkit.ops.stats.features import DatasetSummary
from tfrkit.ops.stats.read import StatsReader, StatsTask
from tfrkit.ops.stats.splits import compare_splits, count_classes
from tfrkit.passes.shard_tasks import OnEngine, VerbEngine, choose_cluster
from tfrkit.progress import Progress, Quiet
from tfrkit.sidecars.class_names import ClassNames
from tfrkit.sidecars.read import Sidecars
from tfrkit.storage.resolve import Address

_HINT = Hint(SKIP)


@dataclass
class Stats:
    """Result of `stats`, in its JSON form. `findings` lists damaged places and records that were left out."""

    records: int = 0
    kind: str = "example"
    files: list[dict[str, Any]] = field(default_factory=list)
    record_bytes: dict[str, Any] | None = None
    features: list[dict[str, Any]] = field(default_factory=list)
    splits: list[dict[str, Any]] = field(default_factory=list)
    classes: list[dict[str, Any]] = field(default_factory=list)
    comparison: dict[str, Any] | None = None
    skipped: int = 0
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    html: str | None = None

    @property
    def ok(self) -> bool:
        """Was every record read?"""
        return self.skipped == 0

    def to_json(self) -> dict[str, Any]:
        """Return every field by name as a JSON object, `findings` as objects."""
        return {**vars(self), "findings": [finding.to_json() for finding in self.findings]}


@dataclass
class Collected:
    """The statistics of a dataset, and what a report makes of them: summaries by split, a schema, picked records."""

    result: Stats
    whole: DatasetSummary
    splits: dict[str, DatasetSummary]
    schema: Schema
    names: ClassNames


def collect_stats(
    address: Address | Iterable[Address],
    *,
    features: Sequence[str] | None = None,
    jobs: int | None = None,
    on_error: OnError = "raise",
    progress: Progress | None = None,
    has_picks: bool = False,
    engine: VerbEngine = "local",
    engine_address: str | None = None,
) -> Collected:
    """Read every record once and compute the statistics of every feature.

    Memory is bounded for any number of records: about 1 MB per feature and split. The numbers do not depend on `jobs`.
    With `has_picks`, places of some records, and of some records of each class, are kept.
    """
    cluster = choose_cluster(engine, engine_address, jobs)
    paths = find_shards(address)
    sidecars = Sidecars(paths)
    names = None if features is None else [encode_name(name) for name in dict.fromkeys(features)]
    policy = Policy("all", on_error)
    shards = _open_shards(paths, policy)
    try:
        if cluster is None:
            reader = StatsReader(policy, names=names, has_picks=has_picks)
            summaries = reader.read(shards, jobs=jobs, progress=progress)
        else:
            wanted = None if names is None else tuple(names)
            tasks = [StatsTask(shard.name, at, wanted, on_error, has_picks) for at, shard in enumerate(shards)]
            summaries = _read_on(
                cluster, tasks, sum(shard.nbytes or 0 for shard in shards), policy, progress or Quiet()
            )
        named = dict(zip(paths, sidecars.split_names, strict=True))
        files, splits = _merge_splits(summaries, shards, [named[shard.name] for shard in shards])
    finally:
        for shard in shards:
            shard.close()
    whole = DatasetSummary()
    for summary in splits.values():
        whole.merge(summary)
    refuse_too_many(len(whole.features))
    num_damaged = len(policy.findings)
    _check_kinds(whole, policy)
    _check_names(whole, features, paths[0])
    found = _describe(sidecars, files, whole, splits)
    order = {path: number for number, path in enumerate(paths)}
    result = found.result
    result.findings = sorted(policy.findings.values(), key=lambda one: (order.get(one.shard, -1), one.offset))
    result.skipped = num_damaged + (0 if result.kind == "raw" else whole.num_others)
    return found


def _open_shards(paths: Sequence[str], policy: Policy) -> list[Shard]:
    shards = []
    for path in paths:
        try:
            shards.append(Shard.open(path))
        except (ContainerError, StorageError) as error:
            # If the only file cannot be opened, there is no result.
            if policy.on_error == "raise" or len(paths) == 1:
                raise
            policy.take(Finding.of(error, shard=path), error)
    return shards


def _read_on(
    cluster: OnEngine, tasks: Sequence[StatsTask], nbytes: int, policy: Policy, progress: Progress
) -> Iterator[DatasetSummary]:
    """Yield the summary of each shard, in order; workers read, each a shard at a time."""
    progress.begin(0, nbytes)
    for summary, findings in cluster.run(tasks, progress.advance):
        policy.add(findings)
        yield summary
    progress.end()


def _merge_splits(
    summaries: Iterable[DatasetSummary], shards: Sequence[Shard], named: Sequence[str | None]
) -> tuple[list[dict[str, Any]], dict[str | None, DatasetSummary]]:
    """Return path, size, count and split of each file, and the summary of each split, in the order of the files."""
    files = []
    splits: dict[str | None, DatasetSummary] = {}
    for shard, split, summary in zip(shards, named, summaries, strict=True):
        files.append(
            {"path": shard.name, "bytes": shard.nbytes, "records": summary.records + summary.num_others, "split": split}
        )
        if split in splits:
            splits[split].merge(summary)
        else:
            splits[split] = summary
    return files, splits


def _check_kinds(whole: DatasetSummary, policy: Policy) -> None:
    """List records that are not Examples if most others are, or raise, as the policy says."""
    if whole.num_others == 0 or whole.num_others >= max(1, whole.records):
        return
    for finding in whole.others:
        error = CodecError(finding.cause, shard=finding.shard, record=finding.record, offset=finding.offset, hint=_HINT)
        policy.take(finding, error)


def _check_names(whole: DatasetSummary, features: Sequence[str] | None, path: str) -> None:
    found = {name for name, _ in whole.features}
    for name in features or ():
        if encode_name(name) not in found and whole.records:
            raise MissingFeatureError(
                f"no record has feature {show_name(name)}", shard=path, hint=f"see what is there: tfr info {path}"
            )


def _describe(
    sidecars: Sidecars,
    files: list[dict[str, Any]],
    whole: DatasetSummary,
    splits: dict[str | None, DatasetSummary],
) -> Collected:
    names = ClassNames(sidecars.classes, sidecars.class_file)
    is_raw = whole.num_others > 0 and whole.num_others >= whole.records
    result = Stats(files=files, notes=[*note_missing_shards(sidecars.paths), *sidecars.notes])
    named = {name: summary for name, summary in splits.items() if name is not None}
    result.splits = [
        {
            "name": name,
            "files": summary.num_files,
            "records": summary.records + (summary.num_others if is_raw else 0),
        }
        for name, summary in named.items()
    ]
    if is_raw:
        result.kind, result.records = "raw", whole.num_others + whole.records
        sizes = whole.other_sizes
        sizes.merge(whole.sizes)
        result.record_bytes = summary_to_json(sizes)
        return Collected(result, whole, named, Schema({}, kind="raw"), names)
    result.records = whole.records
    result.kind = "sequence_example" if any(is_list for _, is_list in whole.features) else "example"
    result.record_bytes = summary_to_json(whole.sizes) if whole.records else None
    specs = guess_specs(whole)
    schema = refine_specs(specs, sidecars)
    known = {key: find_spec(schema, key) for key in specs}
    for key in sorted(whole.features, key=lambda key: (key[1], key[0])):
        feature = whole.features[key]
        classes = names if is_label(key, feature, specs[key], names) else None
        result.features.append(feature_to_json(key, feature, known[key], whole.records, classes))
    result.classes = count_classes(whole, named, specs, names)
    result.comparison = compare_splits(whole, named)
    return Collected(result, whole, named, schema, names)
