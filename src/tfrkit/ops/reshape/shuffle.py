"""A full shuffle on disk, with bounded memory.

The order is that of `Dataset.shuffle`: a keyed permutation, which maps positions to records and back. Large records are
read from their files in the new order. Small records are dealt to buckets by their new position, a bucket being a range
of positions that fits into memory; then each bucket is read, reordered and written, so that all reads and writes are
long runs. Both methods give the same result.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable
from functools import partial

import numpy as np

from tfrkit._limits import DEFAULT_SHUFFLE_MEMORY, LIMITS
from tfrkit.container.codecs import CompressionWord, Level, read_compression
from tfrkit.errors import Step, misuse
from tfrkit.ops.reshape.buckets import Buckets, OpenBucket
from tfrkit.ops.reshape.direct_picks import DirectPicks, gather_shard
from tfrkit.ops.reshape.layout import (
    choose_name,
    choose_target,
    cut_evenly,
    group_sources,
    lay_out,
    note_fewer_shards,
    read_sizes,
)
from tfrkit.ops.reshape.outputs import Outputs, OutShard
from tfrkit.ops.reshape.rewrite import Rewrite, Rewritten, WriteOptions
from tfrkit.ops.reshape.shuffle_on_workers import shuffle_on_workers
from tfrkit.ops.reshape.shuffle_plan import HEADROOM, ShufflePlan
from tfrkit.outputs.shard import Tally, add_tallies
from tfrkit.outputs.sizes import parse_size
from tfrkit.passes.frame_sources import FrameSources, deal_frames, open_sources
from tfrkit.passes.shard_tasks import VerbEngine, choose_cluster, connect_if
from tfrkit.progress import Progress, Quiet
from tfrkit.sidecars.carry import collect_carried
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.resolve import Address


def shuffle(
    address: Address | Iterable[Address],
    output: str | os.PathLike[str],
    *,
    seed: int = 0,
    memory: int | str = DEFAULT_SHUFFLE_MEMORY,
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
    """Copy all records byte for byte, in the order of `Dataset.shuffle` with this seed.

    Records stay in their split, in the order of ``ds["train"].shuffle(seed)``; with one file as output all splits are
    shuffled together. The result does not depend on `memory`. Small records that do not fit into memory are written
    once to temporary files next to the output.

    Args:
        address: Path, glob, folder, or a list of these.
        output: A folder, or NAME.tfrecord for one file.
        seed: Seed of the order.
        memory: Approximate memory limit; exceeded only for a larger record.
        shards: Files per split; default: as in the source.
        shard_size: Approximate size of a file.
        compression: Compression of the new files; default: that of the source.
        level: "default", "fast", "small", or a level number of the codec.
        force: Replace existing files.
        incomplete: Continue if shards of a set are missing.
        jobs: Compression threads; with an engine, tasks at a time.
        engine: With "ray" or "dask", workers of a cluster write, each a new file at a time; see `build`. The limit of
            memory is for each worker.
        engine_address: Address of the cluster.
        progress: Progress callback.
    """
    seed = operator.index(seed)
    nbytes = parse_size(memory) if isinstance(memory, str) else memory
    if nbytes < LIMITS.min_shuffle_nbytes:
        raise ValueError(f"memory expected at least {LIMITS.min_shuffle_nbytes // 10**6}MB, got {memory}")
    sizes = read_sizes(shards, shard_size)
    target = choose_target(output)
    if target.is_file and shards not in (None, 1):
        raise misuse(
            f"one output file is one shard, got {shards}", Step("name a folder instead: {output}", output="out/")
        )
    cluster = choose_cluster(engine, engine_address, jobs)
    options = WriteOptions(read_compression(compression), level, force, jobs, progress or Quiet())
    with open_sources(address, incomplete=incomplete) as sources, connect_if(cluster) as workers:
        sources.require_files("shuffle")
        carried = collect_carried(sources.sidecars)
        sources.count_on(workers)
        groups = group_sources(sources, by_split=not target.is_file)
        cuts = []
        for group in groups:
            number = len(group.shards)
            if shards is not None or shard_size is not None:
                number = sizes.num_shards(group.split or "", group.num_records, group.nbytes)
            cuts.append(cut_evenly(group.num_records, max(1, min(number, group.num_records))))
        name = choose_name(carried, target.out)
        planned = lay_out(name, groups, cuts)
        if target.is_file:
            cuts = [[0, sources.num_records]]
            planned = [OutShard(os.path.basename(target.out), None, sources.num_records)]
        notes = note_fewer_shards(planned, shards)
        if len(groups) > 1:
            notes.append(f"each split is shuffled separately: {', '.join(group.split or 'others' for group in groups)}")
        plan = ShufflePlan(tuple(groups), tuple(map(tuple, cuts)), seed)
        if workers is None:
            order = _Shuffle(sources, plan, memory=nbytes)
            is_direct, scratch_nbytes = order.is_direct, order.scratch_nbytes
        else:
            is_direct = can_gather(sources)
            scratch_nbytes = 0 if is_direct else sources.known_nbytes
        job = Rewrite(
            "shuffle",
            sources,
            carried,
            options,
            {"seed": seed, "shards": shards, "shard_size": sizes.nbytes},
            seed=seed,
            notes=notes,
            queue_nbytes=nbytes // 8,
            scratch_nbytes=scratch_nbytes,
            workers=workers,
        )
        times = 1 if is_direct else 2  # with buckets, a record is read twice: from its file and from its bucket
        options.progress.begin(times * sources.num_records, times * sources.known_nbytes)
        return job.run(
            target,
            name,
            planned,
            lambda outputs: order.feed(outputs, options.progress),
            on_workers=lambda outputs: shuffle_on_workers(outputs, plan, sources, memory=nbytes, is_direct=is_direct),
        )


class _Shuffle:
    """Writes all records in the order of a plan, on this machine."""

    def __init__(self, sources: FrameSources, plan: ShufflePlan, *, memory: int) -> None:
        self._sources = sources
        self._plan = plan
        self._queue_nbytes = memory // 8
        # Data that fits into memory is fastest to read sequentially.
        is_small = sources.known_nbytes * HEADROOM < memory / 4
        self.is_direct = can_gather(sources) and not is_small
        self._bucket_starts = [] if self.is_direct else plan.cut_buckets(memory)

    @property
    def scratch_nbytes(self) -> int:
        """Size of the temporary files in bytes."""
        return self._sources.known_nbytes if len(self._bucket_starts) > 2 else 0

    def feed(self, outputs: Outputs, progress: Progress) -> Tally:
        """Write all frames in order."""
        return self._feed_direct(outputs, progress) if self.is_direct else self._feed_buckets(outputs, progress)

    def _feed_direct(self, outputs: Outputs, progress: Progress) -> Tally:
        picks = DirectPicks(self._sources, held_nbytes=self._queue_nbytes // 2)
        shards = range(len(self._plan.shard_starts) - 1)
        return add_tallies(
            [gather_shard(self._plan, shard, picks, partial(outputs.put, shard), progress) for shard in shards]
        )

    def _feed_buckets(self, outputs: Outputs, progress: Progress) -> Tally:
        """Deal the frames to buckets, then write one bucket after the other."""
        num_buckets = len(self._bucket_starts) - 1
        with Buckets(num_buckets, outputs.folder, outputs.threads.queue, held_nbytes=self._queue_nbytes) as buckets:
            find_buckets = self._plan.find_parts(self._bucket_starts)
            read = deal_frames(self._sources, find_buckets, num_buckets, buckets.put, progress)
            buckets.flush()
            # The next bucket is scanned while this one is written.
            coming = outputs.threads.pool.submit(self._open_bucket, buckets, 0)
            for number in range(num_buckets):
                bucket = coming.result()
                if number + 1 < num_buckets:
                    coming = outputs.threads.pool.submit(self._open_bucket, buckets, number + 1)
                self._write_bucket(bucket, number, outputs, progress)
                del bucket
                buckets.drop(number)
        return read

    def _open_bucket(self, buckets: Buckets, number: int) -> OpenBucket | None:
        first, last = self._bucket_starts[number], self._bucket_starts[number + 1]
        # A bucket holds its frames in the order of record numbers, so the rank of a number locates its frame.
        return None if first == last else OpenBucket(buckets.take(number), self._plan.rank(first, last))

    def _write_bucket(self, bucket: OpenBucket | None, number: int, outputs: Outputs, progress: Progress) -> None:
        if bucket is None:
            return
        first = self._bucket_starts[number]
        shard_starts = self._plan.shard_starts
        ends = [stop for stop in shard_starts[1:] if stop > first]
        for frames, start, stop in bucket.pick_frames(first, ends):
            outputs.put(int(np.searchsorted(shard_starts[:-1], start, side="right")) - 1, frames)
            progress.advance(stop - start, len(frames), 0)


def can_gather(sources: FrameSources) -> bool:
    """Are records so large that reading them in any order is about as fast as in file order?"""
    is_large = sources.known_nbytes >= LIMITS.large_record_nbytes * max(1, sources.num_records)
    return is_large and all(shard.compression == "none" and not has_scheme(shard.name) for shard in sources.shards)
