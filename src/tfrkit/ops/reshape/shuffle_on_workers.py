"""A shuffle on the workers of a cluster, with the result of `shuffle` on one machine.

The permutation has an inverse, so the new place of every record is known before anything moves, and no records pass
through the engine. Large records are gathered from their files, each output shard by one task. Small ones take two
rounds through files on the shared disk: a task of the first round reads some source shards and writes runs, files of
frames sorted by bucket, with a table of offsets at the end; a task of the second round reads its stretch of every run
and puts it in order. A bucket is a range of positions of one output shard that fits into memory.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tfrkit._limits import LIMITS
from tfrkit._types import UInt64Array
from tfrkit.container.shards import Shard
from tfrkit.engines.base import Tick
from tfrkit.errors import StorageError
from tfrkit.ops.reshape.buckets import OpenBucket
from tfrkit.ops.reshape.direct_picks import DirectPicks, gather_shard
from tfrkit.ops.reshape.layout import Group
from tfrkit.ops.reshape.on_workers import OutputPart, Ticks, WorkerOutputs
from tfrkit.ops.reshape.outputs import Outputs
from tfrkit.ops.reshape.shuffle_plan import ShufflePlan
from tfrkit.outputs.shard import Tally, add_tallies
from tfrkit.passes.frame_sources import Counted, FrameSources, deal_frames
from tfrkit.progress import Progress
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.base import explain_os_error
from tfrkit.storage.resolve import open_reader
from tfrkit.storage.temporaries import make_scratch
from tfrkit.storage.work_folder import put_shared, read_shared, write_shared


class SharedPlan(NamedTuple):
    """What all tasks of a shuffle know: the order, the source files with their counts, and the buckets.

    It is a file in the folder of the workers: tasks of a hundred thousand shards must not hold as many names each.
    """

    plan: ShufflePlan
    paths: list[str]
    counts: list[Counted]
    buckets: list[int]
    memory: int


def write_plan(path: str, shared: SharedPlan) -> None:
    """Write a plan for other processes."""
    plan = shared.plan
    document = {
        "groups": [[group.split, group.shards, group.counts, group.nbytes] for group in plan.groups],
        "cuts": plan.cuts,
        "seed": plan.seed,
        "paths": [os.fsencode(path).decode("latin-1") for path in shared.paths],
        "counts": shared.counts,
        "buckets": shared.buckets,
        "memory": shared.memory,
    }
    write_shared(path, json.dumps(document))


@lru_cache(maxsize=2)
def read_plan(path: str) -> SharedPlan:
    """Read the plan that a task refers to."""
    found = json.loads(read_shared(path))
    groups = tuple(
        Group(split, tuple(shards), tuple(counts), nbytes) for split, shards, counts, nbytes in found["groups"]
    )
    plan = ShufflePlan(groups, tuple(map(tuple, found["cuts"])), found["seed"])
    paths = [os.fsdecode(name.encode("latin-1")) for name in found["paths"]]
    return SharedPlan(plan, paths, [Counted(*one) for one in found["counts"]], found["buckets"], found["memory"])


def shuffle_on_workers(
    outputs: WorkerOutputs, plan: ShufflePlan, sources: FrameSources, *, memory: int, is_direct: bool
) -> Tally:
    """Let workers write all output shards; return the tally of the records read."""
    buckets = [] if is_direct else plan.cut_shard_buckets(memory)
    place = os.path.join(outputs.folder, "plan.json")
    write_plan(place, SharedPlan(plan, sources.paths, sources.counts, buckets, memory))
    numbers = range(len(plan.shard_starts) - 1)
    if is_direct:
        return outputs.write([([number], GatheredPart(place, number)) for number in numbers])
    tasks = [RunTask(place, *ends) for ends in _cut_sources(sources.counts, len(buckets) - 1, memory)]
    made = outputs.run(tasks)
    names = [name for _, written in made for name in written]
    listed = os.path.join(outputs.folder, "runs.json")
    write_shared(listed, json.dumps(names))
    parts: list[tuple[Sequence[int], OutputPart]] = [
        ([number], MergedPart(place, listed, number)) for number in numbers
    ]
    outputs.write(parts)
    return add_tallies([tally for tally, _ in made])


def _cut_sources(counts: Sequence[Counted], num_buckets: int, memory: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of source shards whose runs have long stretches, and fit into memory if there are several."""
    wanted = min(memory // 4, num_buckets * LIMITS.run_stretch_nbytes)
    first = nbytes = 0
    for number, count in enumerate(counts):
        if number > first and nbytes + count.nbytes > wanted:
            yield first, number
            first, nbytes = number, 0
        nbytes += count.nbytes
    yield first, len(counts)


@dataclass(frozen=True)
class GatheredPart:
    """The records of one output shard, read from their files in the new order."""

    plan: str
    number: int

    def feed(self, outputs: Outputs, progress: Progress) -> tuple[Tally, None]:
        """Put the frames into the only output."""
        shared = read_plan(self.plan)
        with contextlib.closing(FrameSources(shared.paths, Shard.open_all(shared.paths))) as sources:
            picks = DirectPicks(sources, held_nbytes=shared.memory // 16)
            return gather_shard(shared.plan, self.number, picks, partial(outputs.put, 0), progress), None


@dataclass(frozen=True)
class RunTask:
    """Reads source shards `start` to `stop` and writes runs: their frames, sorted by bucket."""

    plan: str
    start: int
    stop: int

    @property
    def path(self) -> str:
        """The first source shard."""
        return read_plan(self.plan).paths[self.start]

    def run(self, tick: Tick) -> tuple[Tally, list[str]]:
        """Return the tally of the frames, and the names of the runs."""
        shared = read_plan(self.plan)
        paths = shared.paths[self.start : self.stop]
        find = shared.plan.find_parts(shared.buckets)
        writer = _RunWriter(
            self.plan, f"run-{self.start}", len(shared.buckets) - 1, max_nbytes=max(1, shared.memory // 4)
        )
        sources = FrameSources(paths, Shard.open_all(paths), _counts=shared.counts[self.start : self.stop])
        with contextlib.closing(sources):
            read = deal_frames(
                sources,
                lambda shard, start, stop: find(self.start + shard, start, stop),
                len(shared.buckets) - 1,
                writer.put,
                Ticks(tick),
            )
        writer.flush()
        return read, writer.names


class _RunWriter:
    """Collects frames by bucket, and writes them as a run when they fill the memory."""

    def __init__(self, plan: str, key: str, num_buckets: int, *, max_nbytes: int) -> None:
        self.names: list[str] = []
        self._folder = os.path.dirname(plan)
        self._key = key
        self._num_buckets = num_buckets
        self._max_nbytes = max_nbytes
        self._held: dict[int, list[memoryview]] = {}
        self._nbytes = 0

    def put(self, bucket: int, frames: memoryview) -> None:
        self._held.setdefault(bucket, []).append(frames)
        self._nbytes += len(frames)
        if self._nbytes >= self._max_nbytes:
            self.flush()

    def flush(self) -> None:
        """Write what is there. The file appears whole, so that a task may run twice at a time."""
        if not self._nbytes:
            return
        name = f"{self._key}-{len(self.names)}"
        place = os.path.join(self._folder, name)
        ends = np.zeros(self._num_buckets + 1, np.uint64)
        for bucket, pieces in self._held.items():
            ends[bucket + 1] = sum(map(len, pieces))
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(make_scratch("tfrkit-run")) if has_scheme(place) else self._folder
            hidden = os.path.join(folder, f"{name}.{secrets.token_hex(8)}")
            try:
                with open(hidden, "wb", buffering=0) as file:
                    for bucket in sorted(self._held):
                        for piece in self._held[bucket]:
                            while len(piece):
                                piece = piece[file.write(piece) :]
                    file.write(np.cumsum(ends, dtype=np.uint64).astype("<u8").tobytes())
                put_shared(hidden, place)
            except OSError as error:
                raise explain_os_error(error, place, verb="write") from None
        self.names.append(name)
        self._held, self._nbytes = {}, 0


@dataclass(frozen=True)
class MergedPart:
    """The records of one output shard, from its stretches of all runs."""

    plan: str
    runs: str
    number: int

    def feed(self, outputs: Outputs, progress: Progress) -> tuple[Tally, None]:
        """Put the frames into the only output, one bucket after the other. The records were read by the runs."""
        shared = read_plan(self.plan)
        first, last = shared.plan.shard_starts[self.number : self.number + 2]
        inside = [at for at, (start, stop) in enumerate(pairwise(shared.buckets)) if first <= start < stop <= last]
        with contextlib.ExitStack() as stack:
            runs = [
                stack.enter_context(_Run(os.path.join(os.path.dirname(self.plan), name), shared.buckets))
                for name in (_read_names(self.runs) if inside else ())
            ]
            for bucket in inside:
                start, stop = shared.buckets[bucket : bucket + 2]
                data = memoryview(b"".join([run.read(bucket) for run in runs]))
                opened = OpenBucket(data, shared.plan.rank(start, stop))
                for frames, begin, end in opened.pick_frames(start, [stop]):
                    outputs.put(0, frames)
                    progress.advance(end - begin, len(frames), 0)
        return Tally(), None


@lru_cache(maxsize=2)
def _read_names(path: str) -> list[str]:
    names: list[str] = json.loads(read_shared(path))
    return names


class _Run:
    """A run that is read by bucket."""

    def __init__(self, path: str, buckets: Sequence[int]) -> None:
        self._path = path
        self._reader = open_reader(path)
        size, table = self._reader.size or 0, 8 * len(buckets)
        if size < table:
            raise StorageError(f"a temporary file is damaged, {size} bytes, expected at least {table}", shard=path)
        self._ends: UInt64Array = np.frombuffer(self._reader.read_ranges([(size - table, size)])[0], "<u8")

    def __enter__(self) -> _Run:
        return self

    def __exit__(self, *_: Any) -> None:
        self._reader.close()

    def read(self, bucket: int) -> bytes:
        start, stop = int(self._ends[bucket]), int(self._ends[bucket + 1])
        return bytes(self._reader.read_ranges([(start, stop)])[0]) if stop > start else b""
