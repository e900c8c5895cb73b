"""A full shuffle on disk, with bounded memory.

The order is that of `Dataset.shuffle`: a keyed permutation, which maps positions to records and back. Large records are
read from their files in the new order. Small records are dealt to buckets by their new position, a bucket being a range
of positions that fits into memory; then each bucket is read, reordered and written, so that all reads and writes are
long runs. Both methods give the same result.
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

import numpy as np

from tfrkit._limits import DEFAULT_SHUFFLE_MEMORY, LIMITS
from tfrkit._types import UInt64Array
from tfrkit.container.codecs import CompressionWord, Level, read_compression
from tfrkit.errors import Step, misuse
from tfrkit.ops.reshape.buckets import Buckets, OpenBucket
from tfrkit.ops.reshape.direct_picks import DirectPicks
from tfrkit.ops.reshape.layout import (
    Group,
    choose_name,
    choose_target,
    cut_evenly,
    group_sources,
    lay_out,
    note_fewer_shards,
    read_sizes,
)
from tfrkit.ops.reshape.rewrite import Outputs, OutShard, Rewrite, Rewritten, WriteOptions
from tfrkit.orders.order import keyed_permutation
from tfrkit.outputs.shard import Tally
from tfrkit.outputs.sizes import parse_size
from tfrkit.passes.frame_sources import FrameSources, PartsOf, UInt32Array, deal_frames, open_sources
from tfrkit.progress import Progress, Quiet
from tfrkit.sidecars.carry import collect_carried
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.resolve import Address

_POSITIONS_AT_ONCE = 4096
# Buckets have equal numbers of records, but some have more bytes than others.
_HEADROOM = 1.1


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
        jobs: Compression threads.
        progress: Progress callback.
    """
    seed = operator.index(seed)
    nbytes = parse_size(memory) if isinstance(memory, str) else memory
    if nbytes < LIMITS.min_shuffle_nbytes:
        raise ValueError(f"memory expected at least {LIMITS.min_shuffle_nbytes >> 20}MiB, got {memory}")
    sizes = read_sizes(shards, shard_size)
    target = choose_target(output)
    if target.is_file and shards not in (None, 1):
        raise misuse(f"one file expected 1 shard, got {shards}", Step("name a folder instead: {output}", output="out/"))
    options = WriteOptions(read_compression(compression), level, force, jobs, progress or Quiet())
    with open_sources(address, incomplete=incomplete) as sources:
        sources.require_files("shuffle")
        carried = collect_carried(sources.sidecars)
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
        order = _Shuffle(sources, groups, cuts, seed=seed, memory=nbytes)
        job = Rewrite(
            "shuffle",
            sources,
            carried,
            options,
            {"seed": seed, "shards": shards, "shard_size": sizes.nbytes},
            seed=seed,
            notes=notes,
            queue_nbytes=nbytes // 8,
            scratch_nbytes=order.scratch_nbytes,
        )
        times = 1 if order.is_direct else 2  # with buckets, a record is read twice: from its file and from its bucket
        options.progress.begin(times * sources.num_records, times * sources.known_nbytes)
        return job.run(target, name, planned, lambda outputs: order.feed(outputs, options.progress))


class _Shuffle:
    """Positions of all groups, concatenated and cut into buckets that fit into memory."""

    def __init__(
        self, sources: FrameSources, groups: Sequence[Group], cuts: Sequence[Sequence[int]], *, seed: int, memory: int
    ) -> None:
        self._sources = sources
        self._groups = groups
        self._permutations = [
            keyed_permutation(group.num_records, seed) if group.num_records else None for group in groups
        ]
        self._starts = [0, *accumulate(group.num_records for group in groups)]
        # First positions of the output shards of all groups.
        self._shard_starts = [
            start + cut for start, group_cuts in zip(self._starts, cuts, strict=False) for cut in group_cuts[:-1]
        ]
        self._queue_nbytes = memory // 8
        # Data that fits into memory is fastest to read sequentially.
        is_small = sources.known_nbytes * _HEADROOM < memory / 4
        is_large = sources.known_nbytes >= LIMITS.large_record_nbytes * max(1, sources.num_records)
        is_mapped = all(shard.compression == "none" and not has_scheme(shard.name) for shard in sources.shards)
        self.is_direct = is_large and not is_small and is_mapped
        self._bucket_starts = [] if self.is_direct else self._cut_buckets(memory)

    @property
    def scratch_nbytes(self) -> int:
        """Size of the temporary files in bytes."""
        return self._sources.known_nbytes if len(self._bucket_starts) > 2 else 0

    def feed(self, outputs: Outputs, progress: Progress) -> Tally:
        """Write all frames in order."""
        return self._feed_direct(outputs, progress) if self.is_direct else self._feed_buckets(outputs, progress)

    def _feed_direct(self, outputs: Outputs, progress: Progress) -> Tally:
        picks = DirectPicks(self._sources, held_nbytes=self._queue_nbytes // 2)
        total = Tally()
        bounds = [*self._shard_starts, self._starts[-1]]
        for at, group in enumerate(self._groups):
            firsts = np.cumsum([0, *group.counts], dtype=np.uint64)
            numbers = np.asarray(group.shards, np.uint32)
            for shard in range(len(self._shard_starts)):
                first, last = max(bounds[shard], self._starts[at]), min(bounds[shard + 1], self._starts[at + 1])
                for start in range(first, last, _POSITIONS_AT_ONCE):
                    stop = min(last, start + _POSITIONS_AT_ONCE)
                    items = self._permute(at, start, stop)
                    places = np.searchsorted(firsts, items, side="right") - 1
                    for picked in picks.gather(numbers[places], items - firsts[places]):
                        outputs.put(shard, picked.frames)
                        progress.advance(picked.num_picks, picked.tally.nbytes, 0)
                        total += picked.tally
        return total

    def _permute(self, at: int, start: int, stop: int) -> UInt64Array:
        """Return the records at positions `start` to `stop` of group `at`, as numbers in that group."""
        permutation, first = self._permutations[at], self._starts[at]
        assert permutation is not None
        return permutation.at_range(start - first, stop - first)

    def _feed_buckets(self, outputs: Outputs, progress: Progress) -> Tally:
        """Deal the frames to buckets, then write one bucket after the other."""
        num_buckets = len(self._bucket_starts) - 1
        with Buckets(num_buckets, outputs.folder, outputs.threads.queue, held_nbytes=self._queue_nbytes) as buckets:
            read = deal_frames(self._sources, self._find_buckets(), num_buckets, buckets.put, progress)
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

    def _cut_buckets(self, memory: int) -> list[int]:
        """Return the first position of each bucket, and the end; a bucket never spans two groups."""
        # The offsets of an output shard, kept for its index, use memory, too.
        widest = max((stop - start for start, stop in pairwise([*self._shard_starts, self._starts[-1]])), default=0)
        bucket_nbytes = max(memory // 8, memory // 4 - 4 * widest)
        starts: list[int] = []
        for start, group in zip(self._starts, self._groups, strict=False):
            number = max(1, -(-int(group.nbytes * _HEADROOM) // bucket_nbytes))
            starts += [
                start + cut for cut in cut_evenly(group.num_records, min(number, max(1, group.num_records)))[:-1]
            ]
        starts.append(self._starts[-1])
        if len(starts) - 1 > LIMITS.max_buckets + len(self._groups):
            needed = sum(group.nbytes for group in self._groups) * 2 / LIMITS.max_buckets
            raise ValueError(
                f"memory expected at least {needed / 1e6:,.0f}MB for this much data, got {memory / 1e6:,.0f}MB"
            )
        return starts

    def _find_buckets(self) -> PartsOf:
        bounds = np.asarray(self._bucket_starts[1:], np.uint64)
        place: dict[int, tuple[int, int]] = {}
        for at, group in enumerate(self._groups):
            for number, first in zip(group.shards, [0, *accumulate(group.counts)], strict=False):
                place[number] = at, first

        def find_parts(shard: int, start: int, stop: int) -> UInt32Array:
            at, first = place[shard]
            permutation = self._permutations[at]
            assert permutation is not None
            positions = permutation.positions_of_range(first + start, first + stop) + np.uint64(self._starts[at])
            return np.searchsorted(bounds, positions, side="right").astype(np.uint32)

        return find_parts

    def _open_bucket(self, buckets: Buckets, number: int) -> OpenBucket | None:
        first, last = self._bucket_starts[number], self._bucket_starts[number + 1]
        if first == last:
            return None
        items = self._permute(self._find_group(first), first, last)
        # A bucket holds its frames in the order of record numbers, so the rank of a number locates its frame.
        ranks = np.empty(len(items), np.uint64)
        ranks[np.argsort(items)] = np.arange(len(items), dtype=np.uint64)
        return OpenBucket(buckets.take(number), ranks)

    def _write_bucket(self, bucket: OpenBucket | None, number: int, outputs: Outputs, progress: Progress) -> None:
        if bucket is None:
            return
        first = self._bucket_starts[number]
        ends = [stop for stop in [*self._shard_starts[1:], self._starts[-1]] if stop > first]
        for frames, start, stop in bucket.pick_frames(first, ends):
            outputs.put(int(np.searchsorted(self._shard_starts, start, side="right")) - 1, frames)
            progress.advance(stop - start, len(frames), 0)

    def _find_group(self, position: int) -> int:
        return next(at for at in range(len(self._groups)) if self._starts[at] <= position < self._starts[at + 1])
