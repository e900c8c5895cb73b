"""Change or drop the records that match a condition; the rest of the dataset is kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import accumulate

import numpy as np

from tfrkit._types import Record, UInt64Array
from tfrkit.codec.set_features import set_features
from tfrkit.container.records import Policy, read_list
from tfrkit.container.writer import frame_records
from tfrkit.errors import CodecError, QueryError, Step, StorageError, misuse
from tfrkit.features.name_words import TEXTS_OF_LABELS
from tfrkit.features.schema import show_name
from tfrkit.ops.edit.change import (
    Changed,
    ChangeOptions,
    Put,
    ShardWork,
    feed_shard,
    keep_all,
    names_folder,
    open_to_change,
)
from tfrkit.ops.edit.query import Matches, find_matches
from tfrkit.ops.edit.write import Change
from tfrkit.passes.frame_sources import FrameSources, UInt32Array
from tfrkit.passes.walk import walk_frames
from tfrkit.progress import Progress, Quiet
from tfrkit.storage.resolve import Address, show_address

_PIECE_NBYTES = 1 << 20
_PIECE_RECORDS = 4096


def edit(
    address: Address | Iterable[Address],
    output: str | os.PathLike[str] | None = None,
    *,
    where: str | None = None,
    set: Mapping[str, str | int | float] | None = None,
    drop: bool = False,
    in_place: bool = False,
    dry_run: bool = False,
    binary: Collection[str] = (),
    force: bool = False,
    incomplete: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Changed:
    """Set features of the records that match a condition, or drop these records.

    Shards, their order, splits, compression and sidecars are kept; counts in sidecars and indexes are updated. Shards
    and records without a match keep their bytes. In a changed record, only the features in `set` change.

    Args:
        address: A file, a glob or a folder; shards of one folder.
        output: Target of the changed copy: a file if the dataset is one file, else a folder.
        where: A condition in DuckDB's SQL over the features, as in `tfrkit.sql`; default: all records.
        set: New values, as SQL over the features of the record: `{"label": "label - 1"}`. A class may be
            given by its name: `{"label": "'cat'"}`. A number that float32 would round, such as 0.1, is refused until
            a cast rounds it: `{"score": "0.1::float"}`.
        drop: Drop the records instead.
        in_place: Change the files themselves. The new files are read back before they replace the old ones, all
            together or not at all.
        dry_run: Write nothing, and report the number of changes per file.
        binary: Text features to read as bytes, if some are not UTF-8.
        force: Replace an existing output.
        incomplete: Continue if shards of a set are missing.
        jobs: Threads for decoding and compression.
        progress: Progress callback.

    Example:
        >>> tfrkit.tools.edit("flowers/", "fixed/", where="label = 7", set={"label": "3"}).changed
        30
    """
    expressions = {name: value if isinstance(value, str) else repr(value) for name, value in (set or {}).items()}
    if drop == bool(expressions):
        raise ValueError("expected values to set, or drop, got " + ("both" if drop else "neither"))
    if where is not None and not where.strip():
        raise misuse(
            "the condition is empty", Step("say which records: {where}, or leave it out for all of them", where=...)
        )
    if drop and where is None:
        raise misuse(
            "expected a condition for records to drop, got none", Step("say which records: {where}", where=...)
        )
    out = None if output is None else show_address(output)
    options = ChangeOptions(out, in_place, dry_run, force, incomplete, jobs, progress or Quiet())
    with open_to_change(address, options) as sources:
        starts = [0, *accumulate(count.num_records for count in sources.counts)]

        def locate(number: int) -> tuple[str, int]:
            shard = int(np.searchsorted(starts, number, side="right")) - 1
            return sources.paths[shard], number - starts[shard]

        found = find_matches(sources.paths, where, expressions, locate=locate, binary=binary, jobs=jobs)
        works = keep_all(sources)
        recipe = {"where": where, "drop": True} if drop else {"where": where, "set": expressions}
        is_folder = names_folder(address, sources)
        change = Change("edit", sources, works, options, recipe, is_folder, is_optional=True)
        if not len(found.numbers):
            change.notes.append("the condition is true for no record")
        if drop and len(found.numbers) == starts[-1] > 0:
            raise QueryError(
                f"the condition is true for all {starts[-1]:,} records, expected some to be left",
                hint="nothing was written",
            )
        _plan(sources, works, found, starts, drop=drop, progress=options.progress)
        change.notes += note_empty(works)
        made = change.run()
        if len(found.numbers) and not made.changed and not made.dropped:
            count = len(found.numbers)
            verbs = ("record matches", "has") if count == 1 else ("records match", "have")
            made.notes.append(f"{count:,} {verbs[0]}, and {verbs[1]} these values already")
        if made.changed:
            made.notes += _note_class_texts(found)
        return made


def _note_class_texts(found: Matches) -> list[str]:
    """Return a note for each class label that was set without the feature that holds the class name."""
    pairs = ((name, TEXTS_OF_LABELS.get(name)) for name in found.names)
    return [
        f"{show_name(text)} holds the name of the class in {show_name(name)} and stays as it was; set it too: "
        f"""--set "{text} = '...'\""""
        for name, text in pairs
        if text is not None and text in found.features and text not in found.names
    ]


def note_empty(works: Sequence[ShardWork]) -> list[str]:
    """Return a note for each split that became empty, and one for other shards that did."""
    left: dict[str | None, int] = {}
    for work in works:
        left[work.split] = left.get(work.split, 0) + work.num_records
    gone = {work.split for work in works if work.dropped}
    notes = [f"no record of split {split!r} is left" for split, count in left.items() if split in gone and not count]
    empty = [work.name for work in works if work.dropped and not work.num_records and left[work.split]]
    if empty:
        more = f" and {len(empty) - 1:,} more" if len(empty) > 1 else ""
        notes.append(f"shards without a record now: {empty[0]}{more}; fewer shards: tfr reshard")
    return notes


def _plan(
    sources: FrameSources, works: list[ShardWork], found: Matches, starts: list[int], *, drop: bool, progress: Progress
) -> None:
    """Plan the rewrite of each shard that has a matching record."""
    bounds = np.searchsorted(found.numbers, np.asarray(starts, np.uint64))
    if len(found.numbers) and int(found.numbers[-1]) >= starts[-1]:
        raise StorageError("the files changed while they were read", shard=sources.paths[-1])
    for number, work in enumerate(works):
        first, stop = int(bounds[number]), int(bounds[number + 1])
        if first == stop:
            continue
        inside = found.numbers[first:stop] - np.uint64(starts[number])
        if drop:
            drop_records(sources, number, work, inside, progress)
            continue

        def replace(record: Record, at: int, first: int = first) -> Record:
            values = found.values[first + at]
            if found.is_raw:
                return values[0] or b""
            return set_features(record, dict(zip(found.names, values, strict=True)))

        _set_records(sources, number, work, inside, replace, progress)


def drop_records(sources: FrameSources, number: int, work: ShardWork, numbers: UInt64Array, progress: Progress) -> None:
    """Plan to rewrite a shard without the records `numbers`, which are ascending."""
    work.dropped = len(numbers)
    work.num_records -= len(numbers)

    def parts_of(_: int, start: int, stop: int) -> UInt32Array:
        parts = np.zeros(stop - start, np.uint32)
        low, high = np.searchsorted(numbers, np.asarray([start, stop], np.uint64))
        parts[(numbers[low:high] - np.uint64(start)).astype(np.int64)] = 1  # no such part: dropped
        return parts

    work.feed = feed_shard(sources, number, progress, parts_of)


def _set_records(
    sources: FrameSources,
    number: int,
    work: ShardWork,
    numbers: UInt64Array,
    replace: Callable[[Record, int], Record],
    progress: Progress,
) -> None:
    """Plan to rewrite a shard with the records `numbers` replaced: `replace(record, n)` returns the n-th new record."""
    shard = sources.shards[number]
    wanted = numbers.tolist()

    def feed(put: Put) -> None:
        work.changed = 0
        at = num_records = 0
        for stretch in walk_frames([shard], Policy(), read_list, _PIECE_RECORDS, _PIECE_NBYTES):
            records: list[Record] = stretch.taken
            first, num_records = stretch.record, stretch.record + stretch.num_frames
            while at < len(wanted) and wanted[at] < num_records:
                old = records[wanted[at] - first]
                try:
                    new = replace(old, at)
                except CodecError as error:
                    raise error.replace(shard=shard.name, record=wanted[at]) from None
                work.changed += new != old
                records[wanted[at] - first] = new
                at += 1
            put(frame_records(records))
            progress.advance(stretch.num_frames, sum(map(len, records)), 0)
        if num_records != work.num_records:
            raise StorageError(
                f"the file changed, {num_records} records, expected {work.num_records}", shard=shard.name
            )

    work.feed = feed
