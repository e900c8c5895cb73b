"""Copy a dataset into another number of shards, or shards of another size."""

from __future__ import annotations

import bisect
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate

from tfrkit.container.codecs import CompressionWord, Level, read_compression
from tfrkit.errors import Step, misuse
from tfrkit.ops.reshape.layout import (
    Group,
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
from tfrkit.ops.reshape.outputs import Outputs, OutShard
from tfrkit.ops.reshape.rewrite import Rewrite, Rewritten, WriteOptions
from tfrkit.outputs.shard import Tally, add_tallies
from tfrkit.passes.frame_sources import FrameRange, FrameSources, deal_frames, deal_range, open_sources
from tfrkit.passes.shard_tasks import VerbEngine, choose_cluster, connect_if
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
    engine: VerbEngine = "local",
    engine_address: str | None = None,
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
        jobs: Compression threads; with an engine, tasks at a time.
        engine: With "ray" or "dask", workers of a cluster write, each a new file at a time; see `build`.
        engine_address: Address of the cluster.
        progress: Progress callback.
    """
    if (shards is None) == (shard_size is None):
        raise misuse(
            "expected either a number of shards or their size",
            Step("give one of them: {shards} or {shard_size}", shards=8, shard_size="200MB"),
        )
    sizes = read_sizes(shards, shard_size)
    target = choose_target(output)
    if target.is_file and shards != 1:
        raise misuse(
            f"one output file is one shard, got {shards or shard_size}", Step("name a folder: {output}", output="out/")
        )
    cluster = choose_cluster(engine, engine_address, jobs)
    options = WriteOptions(read_compression(compression), level, force, jobs, progress or Quiet())
    with open_sources(address, incomplete=incomplete) as sources, connect_if(cluster) as workers:
        sources.require_files("reshard")
        carried = collect_carried(sources.sidecars)
        sources.count_on(workers)
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
        job = Rewrite("reshard", sources, carried, options, recipe, notes=notes, workers=workers)
        parts_of = parts_by_position(groups, cuts)
        sources.begin(options.progress)
        return job.run(
            target,
            name,
            planned,
            lambda outputs: deal_frames(sources, parts_of, len(planned), outputs.put, options.progress),
            on_workers=lambda outputs: outputs.write(_cut_parts(sources, groups, cuts)),
        )


@dataclass(frozen=True)
class RangesPart:
    """Consecutive records of files, for consecutive output shards: each range with the ends of its shards."""

    ranges: tuple[tuple[FrameRange, tuple[int, ...]], ...]
    first_shards: tuple[int, ...]
    """The first shard of each range, as a number in the job."""

    def feed(self, outputs: Outputs, progress: Progress) -> tuple[Tally, None]:
        """Put the frames of each range into its shards."""
        read = [
            deal_range(wanted, cuts, outputs.put, progress, first_part=first)
            for (wanted, cuts), first in zip(self.ranges, self.first_shards, strict=True)
        ]
        return add_tallies(read), None


def _cut_parts(
    sources: FrameSources, groups: Sequence[Group], cuts: Sequence[Sequence[int]]
) -> list[tuple[list[int], RangesPart]]:
    """Return the records of each output shard; shards that begin in one compressed file are one part.

    A compressed file has to be read from its start, so each is read for at most two parts.
    """
    parts = []
    first_shard = 0
    for group, ends in zip(groups, cuts, strict=True):
        starts = [0, *accumulate(group.counts)]
        runs: list[list[int]] = []
        last = None
        for shard, start in enumerate(ends[:-1]):
            source = max(0, bisect.bisect_right(starts, start, hi=len(starts) - 1) - 1)
            is_compressed = sources.shards[group.shards[min(source, len(group.shards) - 1)]].compression != "none"
            if runs and is_compressed and source == last:
                runs[-1].append(shard)
            else:
                runs.append([shard])
            last = source
        for run in runs:
            parts.append(([first_shard + shard for shard in run], _make_part(sources, group, starts, ends, run)))
        first_shard += len(ends) - 1
    return parts


def _make_part(
    sources: FrameSources, group: Group, starts: Sequence[int], ends: Sequence[int], run: Sequence[int]
) -> RangesPart:
    first, last = ends[run[0]], ends[run[-1] + 1]
    ranges, first_shards = [], []
    for number, start, count in zip(group.shards, starts, group.counts, strict=False):
        begin, end = max(first, start), min(last, start + count)
        if begin >= end:
            continue
        inside = [shard for shard in run if ends[shard + 1] > begin and ends[shard] < end]
        wanted = FrameRange(sources.paths[number], begin - start, end - start, count)
        ranges.append((wanted, tuple(min(ends[shard + 1], end) - start for shard in inside)))
        first_shards.append(inside[0] - run[0])
    return RangesPart(tuple(ranges), tuple(first_shards))
