"""Append records to a dataset, as new shards of one of its splits."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from tfrkit.batches.shard_set import ShardSet
from tfrkit.batches.survey import find_schema
from tfrkit.container.compression import Compression
from tfrkit.container.names import OF_SET
from tfrkit.container.records import Policy
from tfrkit.errors import SchemaError, Step, StorageError, misuse
from tfrkit.features.schema import Schema, find_mismatches, show_name
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
from tfrkit.ops.edit.query import find_classes
from tfrkit.ops.edit.write import Change
from tfrkit.orders.split_names import find_nearest_split, find_splits
from tfrkit.passes.frame_sources import FrameSources, open_sources
from tfrkit.progress import Progress, Quiet
from tfrkit.sidecars.read import Sidecars
from tfrkit.sidecars.same_classes import require_same_classes
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.resolve import Address, show_address

_SHOWN_MISMATCHES = 5


def append(
    address: Address | Iterable[Address],
    new: Address | Iterable[Address],
    output: str | os.PathLike[str] | None = None,
    *,
    split: str | None = None,
    in_place: bool = False,
    dry_run: bool = False,
    force: bool = False,
    incomplete: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Changed:
    """Add the records of other files to a dataset, at the end of one of its splits.

    Each new file becomes a shard, compressed like the others; its records keep their bytes. Numbered shards
    (-00000-of-00005) are renumbered, so that the set is complete. A split of a single unnumbered file stays one file,
    to which the records are appended. The new records must match the schema and the classes of the dataset.

    Args:
        address: A file, a glob or a folder; shards of one folder.
        new: Files, globs or folders with the records to add.
        output: Target of the larger copy: a file if the dataset is one, else a folder.
        split: The split to add to; not needed if there is only one.
        in_place: Change the dataset itself, all files together or not at all.
        dry_run: Write nothing, and report what would be added.
        force: Replace an existing output.
        incomplete: Continue if shards of the new files' sets are missing.
        jobs: Compression threads.
        progress: Progress callback.

    Example:
        >>> tfrkit.tools.append("flowers/", "monday.tfrecord", split="train", in_place=True).added
        250
    """
    out = None if output is None else show_address(output)
    options = ChangeOptions(out, in_place, dry_run, force, False, jobs, progress or Quiet())
    with open_to_change(address, options) as sources, open_sources(new, incomplete=incomplete) as added:
        added.require_files("append")
        _require_others(sources, added)
        chosen, numbers = _choose_split(sources.sidecars, split)
        if not added.num_records:
            raise StorageError("expected records to append, got none", shard=added.paths[0])
        _require_fitting(sources, added)
        works = _plan(sources, added, chosen, numbers, options.progress)
        is_folder = names_folder(address, sources)
        recipe = {"new": [os.path.basename(path) for path in added.paths], "split": chosen}
        change = Change("append", sources, works, options, recipe, is_folder, more_sources=added.paths)
        change.notes += added.notes
        others = [name for name in added.sidecars.splits if name != chosen]
        if others:
            whole = "the dataset" if chosen is None else f"split {chosen!r}"
            change.notes.append(f"records of split {', '.join(map(repr, others))} of the new files go to {whole}")
        return change.run()


def _require_others(sources: FrameSources, added: FrameSources) -> None:
    for path in added.paths:
        for own in sources.paths:
            if path == own or (not has_scheme(path) and not has_scheme(own) and os.path.samefile(path, own)):
                raise StorageError("the file to append is one of the dataset", shard=path)


def _choose_split(sidecars: Sidecars, wanted: str | None) -> tuple[str | None, list[int]]:
    """Return the split to add to, and its shard numbers. Without known splits, the file names decide."""
    splits = sidecars.splits
    if not splits:
        return None, _choose_set(sidecars, wanted)
    if wanted is not None:
        if wanted not in splits:
            raise _refuse_split(sidecars, wanted, list(splits))
        return wanted, splits[wanted]
    if len(splits) > 1:
        raise _ask_for_split(list(splits))
    return next(iter(splits.items()))


def _choose_set(sidecars: Sidecars, wanted: str | None) -> list[int]:
    sets: dict[str, list[int]] = {}
    for number, path in enumerate(sidecars.paths):
        match = OF_SET.fullmatch(os.path.basename(path))
        sets.setdefault(match[1] if match else "", []).append(number)
    if wanted is None:
        if len(sets) > 1:
            raise _ask_for_split([name for name in sets if name])
        return next(iter(sets.values()))
    named = [name for name in sets if wanted in (name, *re.split(r"[-_.]", name))]
    if len(named) != 1:
        raise _refuse_split(sidecars, wanted, [name for name in sets if name])
    return sets[named[0]]


def _ask_for_split(names: list[str]) -> ValueError:
    return misuse(
        f"expected the split to append to, the dataset has {', '.join(names)}",
        Step("name it: {split}", split=names[0]),
    )


def _refuse_split(sidecars: Sidecars, wanted: str, names: list[str]) -> StorageError:
    nearest = find_nearest_split(wanted, names)
    meant = "" if nearest is None else f", did you mean {nearest!r}"
    known = f"splits: {', '.join(names)}" if names else "the names of the files have no splits"
    return StorageError(f"no split {wanted!r}{meant}", shard=sidecars.folders[0] or ".", hint=known)


# ---- checks of the new records ---------------------------------------------------------------------------------------


def _require_fitting(sources: FrameSources, added: FrameSources) -> None:
    """Raise `SchemaError` if the new records do not match the schema or the classes of the dataset."""
    if not sources.num_records:
        return
    known = sources.sidecars.schema is not None
    wanted = find_schema(sources.shards, Policy(), from_all=not known, sidecars=sources.sidecars)
    found = find_schema(added.shards, Policy(), from_all=True, sidecars=Sidecars([]))
    mismatches = find_mismatches(wanted, found)
    if wanted.kind == found.kind:
        more = [name for name in found.names if name not in wanted]
        mismatches += [f"feature {show_name(name)} ({found[name].kind}) is not in the dataset" for name in more]
    first = added.paths[0]
    hint = f"see both: tfr schema {sources.paths[0]}    tfr schema {first}"
    if mismatches:
        shown = "; ".join(mismatches[:_SHOWN_MISMATCHES])
        rest = len(mismatches) - _SHOWN_MISMATCHES
        raise SchemaError(
            "the new records do not fit the dataset: " + shown + (f"; and {rest} more" if rest > 0 else ""),
            shard=first,
            hint=hint,
        )
    require_same_classes([sources.sidecars, added.sidecars])
    _require_classes(wanted, sources, added)


def _require_classes(schema: Schema, sources: FrameSources, added: FrameSources) -> None:
    """Raise if a new record has a class id that the dataset does not have."""
    for name, spec in schema.features.items():
        classes = find_classes(schema, name, spec, sources.paths)
        if classes is None or spec.shape != () or spec.optional:
            continue
        values = ShardSet(added.shards, Policy()).read_column(name).tolist()
        for number, value in enumerate(values):
            if value == spec.ignore or value in classes.ids:
                continue
            for path, count in zip(added.paths, added.counts, strict=True):
                if number < count.num_records:
                    try:
                        classes.check(name, value)
                    except SchemaError as error:
                        raise SchemaError(error.what, shard=path, record=number) from None
                number -= count.num_records


# ---- plan of the new shards ------------------------------------------------------------------------------------------


def _plan(
    sources: FrameSources, added: FrameSources, split: str | None, numbers: Sequence[int], progress: Progress
) -> list[ShardWork]:
    works = keep_all(sources)
    chosen = [works[number] for number in numbers]
    filled = [sources.shards[number] for number in numbers if sources.shards[number].nbytes]
    compression: Compression = filled[0].compression if filled else "none"
    counted = [(at, count) for at, count in enumerate(added.counts) if count.num_records]
    numbered = [OF_SET.fullmatch(work.name) for work in chosen]
    if not any(numbered) and len(chosen) == 1:
        _grow(sources, added, numbers[0], chosen[0], progress)
        return works
    names = _renumber(chosen, len(counted)) if all(numbered) else _name_new(sources, added, split, counted)
    new = []
    for (at, count), name in zip(counted, names, strict=True):
        work = ShardWork(name, split, None, compression, count.num_records, added=count.num_records)
        work.expected_nbytes = added.shards[at].nbytes or 0
        work.feed = feed_shard(added, at, progress)
        new.append(work)
    last = numbers[-1] + 1
    return [*works[:last], *new, *works[last:]]


def _grow(sources: FrameSources, added: FrameSources, number: int, work: ShardWork, progress: Progress) -> None:
    """Plan to append the new records to the only file of a split."""
    old = feed_shard(sources, number, progress)
    more = [feed_shard(added, at, progress) for at in range(len(added.paths))]
    work.added = added.num_records
    work.num_records += added.num_records
    work.expected_nbytes = added.stored_nbytes

    def feed(put: Put) -> None:
        for one in [old, *more]:
            one(put)

    work.feed = feed


def _renumber(works: Sequence[ShardWork], num_new: int) -> list[str]:
    """Rename the shards of a numbered set for a larger one; return the names of the new shards."""
    found = [OF_SET.fullmatch(work.name) for work in works]
    parts = [match.groups() for match in found if match is not None]
    sets = {(head, total, tail) for head, _, total, tail in parts}
    [head, total, tail] = min(sets)
    if len(sets) > 1 or {int(number) for _, number, _, _ in parts} != set(range(int(total))):
        raise StorageError(
            f"append expected one whole set of {int(total)} numbered shards, got {len(works)} shards of {len(sets)}",
            shard=works[0].source,
            hint="name the folder, or make one set of them: tfr reshard",
        )
    count = len(works) + num_new
    width = max(len(total), len(str(count)))

    def name(number: int) -> str:
        return f"{head}-{number:0{width}d}-of-{count:0{width}d}{tail}"

    for work, (_, number, _, _) in zip(works, parts, strict=True):
        work.name = name(int(number))
    return [name(number) for number in range(len(works), count)]


def _name_new(
    sources: FrameSources, added: FrameSources, split: str | None, counted: Sequence[tuple[int, object]]
) -> list[str]:
    """Return the names of new files next to unnumbered ones: their own, which must belong to the split."""
    names = [os.path.basename(added.paths[at]) for at, _ in counted]
    taken = {os.path.basename(path) for path in sources.paths}
    for name in names:
        if name in taken:
            raise StorageError(
                f"a file named {name} is in the dataset already", shard=sources.paths[0], hint="rename the new one"
            )
        taken.add(name)
    everything = [*map(os.path.basename, sources.paths), *names]
    listed = all(manifest is not None for manifest in sources.sidecars.manifests)
    said = find_splits(everything, list(sources.sidecars.tfds_lengths(0)))
    for at, name in enumerate(names, len(sources.paths)):
        found = next((one for one, numbers in said.items() if at in numbers), None)
        if found != split and not listed:
            expected = "no split" if split is None else f"split {split!r}"
            got = "none" if found is None else repr(found)
            raise StorageError(f"the name of a new file expected {expected}, got {got}", shard=name, hint="rename it")
    return names
