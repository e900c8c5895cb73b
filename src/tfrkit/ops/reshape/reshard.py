"""Copy a dataset into another number of shards, or shards of another size."""

from __future__ import annotations

import os
from collections.abc import Iterable

from tfrkit.container.codecs import CompressionWord, Level, read_compression
from tfrkit.errors import Step, misuse
from tfrkit.ops.reshape.layout import (
    choose_name,
    choose_target,
    cut_by_size,
    cut_evenly,
    group_sources,
    lay_out,
    note_fewer_shards,
    parts_by_position,
    read_sizes,
)
from tfrkit.ops.reshape.rewrite import OutShard, Rewrite, Rewritten, WriteOptions
from tfrkit.passes.frame_sources import deal_frames, open_sources
from tfrkit.progress import Progress, Quiet
from tfrkit.sidecars.carry import collect_carried
from tfrkit.storage.resolve import Address


def reshard(
    address: Address | Iterable[Address],
    output: str | os.PathLike[str],
    *,
    shards: int | None = None,
    shard_size: int | str | None = None,
    compression: CompressionWord | None = None,
    level: Level = "default",
    force: bool = False,
    incomplete: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Rewritten:
    """Copy records byte for byte and in order into another number of shards.

    Records stay in their split. A folder gets sets of files named name-split.tfrecord-00000-of-00005, their indexes,
    and the sidecars of the source.

    Args:
        address: Path, glob, folder, or a list of these.
        output: A folder, or NAME.tfrecord for one file.
        shards: Files per split, with nearly equal numbers of records; at most one per record.
        shard_size: Approximate size of a file before compression: 200MB, or a number of bytes.
        compression: Compression of the new files; default: that of the source.
        level: "default", "fast", "small", or a level number of the codec.
        force: Replace existing files.
        incomplete: Continue if shards of a set are missing.
        jobs: Compression threads.
        progress: Progress callback.
    """
    if (shards is None) == (shard_size is None):
        raise misuse(
            "expected either a number of shards or their size",
            Step("say one of them: {shards} or {shard_size}", shards=8, shard_size="200MB"),
        )
    sizes = read_sizes(shards, shard_size)
    target = choose_target(output)
    if target.is_file and shards != 1:
        raise misuse(
            f"one file expected 1 shard, got {shards or shard_size}", Step("name a folder: {output}", output="out/")
        )
    options = WriteOptions(read_compression(compression), level, force, jobs, progress or Quiet())
    with open_sources(address, incomplete=incomplete) as sources:
        sources.require_files("reshard")
        carried = collect_carried(sources.sidecars)
        groups = group_sources(sources, by_split=not target.is_file)
        cuts = []
        for group in groups:
            number = sizes.num_shards(group.split or "", group.num_records, group.nbytes)
            is_by_size = shards is None and number > 1
            cuts.append(cut_by_size(sources, group, number) if is_by_size else cut_evenly(group.num_records, number))
        name = choose_name(carried, target.out)
        planned = lay_out(name, groups, cuts)
        if target.is_file:
            planned = [OutShard(os.path.basename(target.out), None, sources.num_records)]
        recipe = {"shards": shards, "shard_size": sizes.nbytes}
        notes = note_fewer_shards(planned, shards)
        job = Rewrite("reshard", sources, carried, options, recipe, notes=notes)
        parts_of = parts_by_position(groups, cuts)
        sources.begin(options.progress)
        return job.run(
            target,
            name,
            planned,
            lambda outputs: deal_frames(sources, parts_of, len(planned), outputs.put, options.progress),
        )
