"""Split a dataset into parts, such as train, validation and test, each with its own files."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Mapping
from itertools import pairwise

import numpy as np

from tfrkit.batches.shard_set import ShardSet
from tfrkit.container.codecs import FORMATS, CompressionWord, Level, read_compression
from tfrkit.container.records import Policy
from tfrkit.errors import Step, misuse
from tfrkit.ops.reshape.layout import choose_name, choose_target, cut_evenly, name_shards, note_fewer_shards, read_sizes
from tfrkit.ops.reshape.outputs import OutShard
from tfrkit.ops.reshape.rewrite import Rewrite, Rewritten, WriteOptions
from tfrkit.orders.order import Order, Whole
from tfrkit.orders.shares import Parts
from tfrkit.orders.split_by import split_by
from tfrkit.orders.split_names import require_split_names
from tfrkit.passes.frame_sources import FrameSources, PartsOf, UInt32Array, deal_frames, open_sources
from tfrkit.progress import Progress, Quiet
from tfrkit.sidecars.carry import collect_carried
from tfrkit.storage.resolve import Address

# All shards of all parts are open at the same time, and xz or zstd needs megabytes for each.
_MAX_PACKED_SHARDS = 512


def split(
    address: Address | Iterable[Address],
    output: str | os.PathLike[str],
    parts: Parts,
    *,
    seed: int = 0,
    stratify: str | None = None,
    group: str | None = None,
    hash_by: str | None = None,
    shards: int | None = None,
    shard_size: int | str | None = None,
    compression: CompressionWord | None = None,
    level: Level = "default",
    force: bool = False,
    incomplete: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Rewritten:
    """Copy records byte for byte into one set of shards per part.

    The parts are those of `Dataset.split` with the same arguments. Within a part records keep file order.

    Args:
        address: Path, glob, folder, or a list of these.
        output: The folder to write.
        parts: Name and size of each part: a ratio (0.8), a number of records (500), or None for the rest.
        seed: Seed of the random split.
        stratify: A feature whose values have the same shares in every part.
        group: A feature whose equal values stay in one part (a patient, a video).
        hash_by: A feature whose hash decides the part; ratios only, approximate.
        shards: Files per part; at most one per record.
        shard_size: Approximate size of a file; default 256 MiB.
        compression: Compression of the new files; default: that of the source.
        level: "default", "fast", "small", or a level number of the codec.
        force: Replace existing files.
        incomplete: Continue if shards of a set are missing.
        jobs: Compression threads.
        progress: Progress callback.
    """
    seed = operator.index(seed)
    sizes = read_sizes(shards, shard_size)
    require_split_names(parts)
    target = choose_target(output)
    if target.is_file:
        raise misuse(
            f"split expected a folder to write to, got {target.out!r}", Step("name one: {output}", output="out/")
        )
    options = WriteOptions(read_compression(compression), level, force, jobs, progress or Quiet())
    with open_sources(address, incomplete=incomplete) as sources:
        sources.require_files("split")
        carried = collect_carried(sources.sidecars)
        orders, notes = _split_records(sources, parts, seed=seed, stratify=stratify, group=group, hash_by=hash_by)
        known = sources.sidecars.splits
        if len(known) > 1:
            notes.append(f"the splits that the files name were combined: {', '.join(known)}")
        name = choose_name(carried, target.out)
        planned: list[OutShard] = []
        shard_of = np.zeros(sources.num_records, np.uint32)
        for part, order in orders.items():
            share = sources.known_nbytes * order.size / max(1, sources.num_records)
            cuts = cut_evenly(order.size, sizes.num_shards(part, order.size, share))
            numbers = np.sort(order.at(np.arange(order.size, dtype=np.uint64)))
            for number, (start, stop) in enumerate(pairwise(cuts), len(planned)):
                shard_of[numbers[start:stop]] = number
            planned += name_shards(name, part, [stop - start for start, stop in pairwise(cuts)])
        packing = options.choose_compression(sources, target)
        if packing != "none" and not FORMATS[packing].is_deflate and len(planned) > _MAX_PACKED_SHARDS:
            raise ValueError(
                f"split into {packing} expected at most {_MAX_PACKED_SHARDS} shards, got {len(planned)}\n"
                "  reshard them later"
            )
        notes += note_fewer_shards(planned, shards)
        recipe = {
            "parts": dict(parts),
            "seed": seed,
            "stratify": stratify,
            "group": group,
            "hash_by": hash_by,
            "shards": shards,
            "shard_size": sizes.nbytes,
        }
        job = Rewrite("split", sources, carried, options, recipe, seed=seed, notes=notes)
        sources.begin(options.progress)
        return job.run(
            target,
            name,
            planned,
            lambda outputs: deal_frames(
                sources, _look_up(sources, shard_of), len(planned), outputs.put, options.progress
            ),
        )


def _split_records(
    sources: FrameSources,
    parts: Parts,
    *,
    seed: int,
    stratify: str | None,
    group: str | None,
    hash_by: str | None,
) -> tuple[Mapping[str, Order], list[str]]:
    """Return the records of each part, as in `Dataset.split`, and notes."""
    shard_set = ShardSet(sources.shards, Policy())
    return split_by(
        Whole(sources.num_records),
        parts,
        shard_set.read_key,
        seed=seed,
        stratify=stratify,
        group=group,
        hash_by=hash_by,
    )


def _look_up(sources: FrameSources, shard_of: UInt32Array) -> PartsOf:
    starts = np.cumsum([0, *(count.num_records for count in sources.counts)])

    def find_parts(shard: int, start: int, stop: int) -> UInt32Array:
        first = int(starts[shard])
        return np.ascontiguousarray(shard_of[first + start : first + stop])

    return find_parts
