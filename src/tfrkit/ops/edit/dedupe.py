"""Drop duplicate records, and list records that are in two splits."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np

from tfrkit._threads import choose_threads
from tfrkit._types import Int64Array
from tfrkit.container.records import Policy, read_list
from tfrkit.errors import MissingFeatureError
from tfrkit.features.schema import PARTS, find_part
from tfrkit.ops.edit.change import Changed, ChangeOptions, keep_all, names_folder, open_to_change
from tfrkit.ops.edit.edit import drop_records, note_empty
from tfrkit.ops.edit.query import miss_feature
from tfrkit.ops.edit.write import Change
from tfrkit.ops.query.errors import quote_name
from tfrkit.ops.query.places import NUMBER_COLUMN
from tfrkit.ops.query.query import QuerySession
from tfrkit.ops.query.scan import QueryTable
from tfrkit.passes.frame_sources import FrameSources
from tfrkit.passes.walk import walk_frames
from tfrkit.progress import Progress, Quiet
from tfrkit.storage.resolve import Address, show_address

DIGEST_NBYTES = 16  # a collision by chance becomes likely only at 2**64 records
# Limits the size of the report.
MAX_LEAKS = 10_000
_TABLE = "tfrkit_dataset"


@dataclass(frozen=True)
class Leak:
    """A record that is also in an earlier split."""

    shard: str
    record: int
    split: str
    other_shard: str
    other_record: int
    other_split: str

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: shard, record, split, other_shard, other_record, other_split."""
        return dict(vars(self))


@dataclass
class Deduped(Changed):
    """Report of `dedupe`, done or planned.

    Attributes:
        leaks: Records in two splits; at most the first 10,000.
        num_leaks: Total number of leaks.
    """

    leaks: list[Leak] = field(default_factory=list)
    num_leaks: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object of `Changed`, plus num_leaks and leaks."""
        return {**super().to_json(), "num_leaks": self.num_leaks, "leaks": [leak.to_json() for leak in self.leaks]}


def dedupe(
    address: Address | Iterable[Address],
    output: str | os.PathLike[str] | None = None,
    *,
    by: Sequence[str] = (),
    per_split: bool = False,
    in_place: bool = False,
    dry_run: bool = False,
    force: bool = False,
    incomplete: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Deduped:
    """Drop each record that equals an earlier one, in the order of the shards.

    Shards, splits, compression and sidecars are kept, as by `edit`. Records are equal if all their bytes are equal, or
    with `by` if these features have equal values; a record that lacks one of these features equals no other.

    Args:
        address: A file, a glob or a folder; shards of one folder.
        output: Target of the copy: a file if the dataset is one file, else a folder.
        by: Features to compare instead of whole records.
        per_split: Keep one copy in each split; records in two splits are still listed in `leaks`.
        in_place: Change the files themselves, all together or not at all.
        dry_run: Write nothing, and report what would be dropped.
        force: Replace an existing output.
        incomplete: Continue if shards of a set are missing.
        jobs: Threads for decoding and compression.
        progress: Progress callback.

    Example:
        >>> tfrkit.tools.dedupe("flowers/", "clean/", by=["image/encoded"]).dropped
        12
    """
    if isinstance(by, str):
        raise TypeError(f"by expected a list of names, got the string {by!r}")
    out = None if output is None else show_address(output)
    options = ChangeOptions(out, in_place, dry_run, force, incomplete, jobs, progress or Quiet())
    with open_to_change(address, options) as sources:
        firsts = _group_by_values(sources, by, jobs) if by else _group_by_bytes(sources, options.progress)
        counts = [count.num_records for count in sources.counts]
        shards = np.repeat(np.arange(len(counts)), counts)
        splits = _number_splits(sources)[shards]
        kept = _find_firsts(np.stack([firsts, splits], axis=1)) if per_split else firsts
        dropped = np.flatnonzero(kept != np.arange(len(kept)))
        works = keep_all(sources)
        starts = np.asarray([0, *accumulate(counts)])
        bounds = np.searchsorted(dropped, starts)
        for number, work in enumerate(works):
            inside = dropped[bounds[number] : bounds[number + 1]] - starts[number]
            if len(inside):
                drop_records(sources, number, work, inside.astype(np.uint64), options.progress)
        is_folder = names_folder(address, sources)
        recipe = {"by": [*by], "per_split": per_split}
        change = Change("dedupe", sources, works, options, recipe, is_folder, is_optional=in_place)
        change.notes += note_empty(works)
        made = change.run()
        leaks = np.flatnonzero(splits != splits[firsts])
        if per_split:
            leaks = leaks[kept[leaks] == leaks]
        listed = [_name_leak(sources, starts, int(at), int(firsts[at])) for at in leaks[:MAX_LEAKS].tolist()]
        return Deduped(made.output, made.is_written, made.files, made.notes, listed, len(leaks))


def _group_by_bytes(sources: FrameSources, progress: Progress) -> Int64Array:
    """Return for each record the number of the first record with the same bytes."""
    digests = bytearray()
    sources.begin(progress)
    for stretch in walk_frames(sources.shards, Policy(), read_list, 4096, 1 << 20):
        digests += b"".join(hashlib.blake2b(record, digest_size=DIGEST_NBYTES).digest() for record in stretch.taken)
        progress.advance(stretch.num_frames, sum(map(len, stretch.taken)), 0)
    progress.end()
    return _find_firsts(np.frombuffer(digests, np.uint64).reshape(-1, 2))


def _find_firsts(keys: np.ndarray[Any, np.dtype[Any]]) -> Int64Array:
    """Return for each row of two numbers the number of the first equal row."""
    # The sort is stable, so equal rows stay in order.
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    is_new = np.ones(len(order), np.bool_)
    is_new[1:] = False
    for column in (0, 1):  # one at a time, which takes half of the memory
        sorted_keys = keys[order, column]
        is_new[1:] |= sorted_keys[1:] != sorted_keys[:-1]
        del sorted_keys
    firsts = np.empty(len(order), np.int64)
    firsts[order] = order[is_new][np.cumsum(is_new) - 1]
    return firsts


def _group_by_values(sources: FrameSources, by: Sequence[str], jobs: int | None) -> Int64Array:
    """Return for each record the number of the first one with the same values, or its own if it lacks a feature."""
    table = QueryTable(sources.paths)
    with contextlib.closing(table.shard_set):
        table.refuse_column(NUMBER_COLUMN)
        columns = [_find_column(table, name) for name in by]
    is_absent = " or ".join(f"{column} is null" for column, _ in columns)
    keys = ", ".join([key for _, key in columns] + [f"case when {is_absent} then {NUMBER_COLUMN} end"])
    text = f"select min({NUMBER_COLUMN}) over (partition by {keys}) from {_TABLE} order by {NUMBER_COLUMN}"
    with contextlib.closing(QuerySession(text, {_TABLE: sources.paths}, threads=choose_threads(jobs))) as session:
        return np.asarray(session.fetch_numbers(session.parsed), np.int64)


def _find_column(table: QueryTable, name: str) -> tuple[str, str]:
    """Return the SQL expressions for a feature and for its comparison key: a digest for bytes, which may be large."""
    schema = table.schema
    try:
        named, name = find_part(schema, name)
    except MissingFeatureError:
        raise miss_feature(table, name) from None
    part = (named or PARTS[name not in schema.features]) if schema.kind == "sequence_example" else ""
    specs = schema.feature_lists if part == PARTS[1] else schema.features
    column = f"{part}." * bool(part) + quote_name(table.name_of(part, name))
    spec = specs[name]
    is_bytes = spec.kind == "bytes" and spec.shape == () and spec.encoding == "list" and not spec.is_list
    return column, f"sha256({column})" if is_bytes else column


def _number_splits(sources: FrameSources) -> Int64Array:
    """Return the split of each shard as a number; shards without a split share one."""
    names = sources.sidecars.split_names
    known = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.asarray([known[name] for name in names], np.int64)


def _name_leak(sources: FrameSources, starts: Int64Array, record: int, other: int) -> Leak:
    numbers = [int(np.searchsorted(starts, at, side="right")) - 1 for at in (record, other)]
    splits = [sources.sidecars.split_names[number] or "" for number in numbers]
    return Leak(
        sources.paths[numbers[0]],
        record - int(starts[numbers[0]]),
        splits[0],
        sources.paths[numbers[1]],
        other - int(starts[numbers[1]]),
        splits[1],
    )
