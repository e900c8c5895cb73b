"""A random sample of records, as a file or as rows."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from tfrkit import _native
from tfrkit._types import UInt64Array
from tfrkit.batches.access import Records
from tfrkit.container.codecs import CompressionWord, Level, read_compression
from tfrkit.container.faults import fault_to_error
from tfrkit.container.records import Policy
from tfrkit.ops.reshape.outputs import Outputs, OutShard
from tfrkit.ops.reshape.rewrite import STDOUT, Rewrite, Rewritten, WriteOptions
from tfrkit.ops.reshape.sample import pick_rows
from tfrkit.orders.order import Shuffled, Whole
from tfrkit.outputs.shard import Tally
from tfrkit.outputs.target import Target
from tfrkit.passes.frame_sources import open_sources
from tfrkit.progress import Progress, Quiet
from tfrkit.sidecars.carry import collect_carried
from tfrkit.storage.resolve import Address, show_address

_PICKS_AT_ONCE = 256


def sample(
    address: Address | Iterable[Address],
    output: str | os.PathLike[str],
    count: int,
    *,
    seed: int = 0,
    compression: CompressionWord | None = None,
    level: Level = "default",
    force: bool = False,
    incomplete: bool = False,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> Rewritten:
    """Copy `count` records chosen at random, all equally likely, byte for byte and in file order.

    They are the first `count` of ``ds.shuffle(seed)``. Reads the chosen records and, without an index, all frame
    headers; compressed files are inflated.

    Args:
        address: Path, glob, folder, or a list of these.
        output: The file to write; - is standard output.
        count: Number of records; all if there are fewer.
        seed: Seed of the random choice.
        compression: Compression of the new file; default: that of the source.
        level: "default", "fast", "small", or a level number of the codec.
        force: Replace existing files.
        incomplete: Continue if shards of a set are missing.
        jobs: Compression threads.
        progress: Progress callback.
    """
    path = show_address(output)
    options = WriteOptions(read_compression(compression), level, force, jobs, progress or Quiet())
    with open_sources(address, incomplete=incomplete) as sources:
        sources.require_files("sample")
        records = Records(sources.shards, Policy())
        numbers = choose_numbers(len(records), count, seed)
        share = sources.stored_nbytes * len(numbers) // max(1, len(records))
        job = Rewrite(
            "sample",
            sources,
            collect_carried(sources.sidecars),
            options,
            {"count": count, "seed": seed},
            seed=seed,
            expected_nbytes=share,
        )
        if len(numbers) < count:
            job.notes.append(f"there are only {len(numbers)} records")
        options.progress.begin(len(numbers), share)

        def feed(outputs: Outputs) -> Tally:
            return _copy_picks(records, numbers, outputs, options.progress)

        if path == STDOUT:
            return job.run_to_stdout(feed)
        target = Target(path, as_file=True)
        return job.run(target, target.name, [OutShard(os.path.basename(path), None, len(numbers) or None)], feed)


def sample_rows(address: Address | Iterable[Address], count: int, *, seed: int = 0) -> Iterator[tuple[int, Any]]:
    """Yield (record number, row) of `count` records chosen at random, in file order."""
    return pick_rows(address, lambda num_records: choose_numbers(num_records, count, seed))


def choose_numbers(num_records: int, count: int, seed: int) -> UInt64Array:
    """Return the numbers of the first `count` records of a shuffle with this seed, ascending.

    Example:
        >>> choose_numbers(3, 5, 0).tolist(), len(choose_numbers(1000, 5, 0))
        ([0, 1, 2], 5)
    """
    if operator.index(count) < 0:
        raise ValueError(f"expected 0 or more records, got {count}")
    positions = np.arange(min(count, num_records), dtype=np.uint64)
    return np.sort(Shuffled(Whole(num_records), operator.index(seed)).at(positions))


def _copy_picks(records: Records, numbers: UInt64Array, outputs: Outputs, progress: Progress) -> Tally:
    total = Tally()
    shards, ordinals = records.locate_many(numbers)
    for shard in np.unique(shards).tolist():
        chosen = ordinals[shards == shard]
        access = records.open_shard(int(shard))
        for start in range(0, len(chosen), _PICKS_AT_ONCE):
            wanted = np.ascontiguousarray(chosen[start : start + _PICKS_AT_ONCE])
            frames: Any
            if access.table is not None:
                frames, digest, num_frames, fault = _native.gather_picks(
                    [access.table], np.zeros(len(wanted), np.uint32), wanted, "all"
                )
                if fault is not None:
                    record = int(wanted[num_frames])
                    raise fault_to_error(fault, shard=access.name, record=record, offset=access.offset_of(record))
            else:
                # Read one by one, in stored order.
                frames = _native.frame_records([access.read(int(record)) for record in wanted])
                _, digest, _, _ = _native.sum_frames(frames, 0, len(frames), 1 << 62, 1 << 62, "lengths")
            total += Tally(len(wanted), len(frames), digest)
            outputs.put(0, frames)
            progress.advance(len(wanted), len(frames), 0)
    return total
