"""Check a dataset: every checksum, every record, every set of shards; with `deep`, also the content of records."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from tfrkit._native import MAX_NAMES
from tfrkit._threads import choose_threads, run_ahead
from tfrkit.batches.survey import note_kinds
from tfrkit.container.records import Finding, find_hole
from tfrkit.container.shards import ShardsInTurn, find_named_shards
from tfrkit.engines.base import Tick
from tfrkit.errors import ContainerError, NotATFRecordError, Step, StorageError, misuse
from tfrkit.ops.verify.result import ShardTally, Verification, VerifyFinding, kind_of_error, read_kinds
from tfrkit.ops.verify.shard_set import Asked, check_sets
from tfrkit.outputs.target import require_output
from tfrkit.passes.check import Checked, check_stretches, cut_shard, holds_examples, join_stretches
from tfrkit.passes.shard_tasks import VerbEngine, Workers, choose_cluster, connect_if
from tfrkit.passes.walk import measure_files
from tfrkit.pictures.pixels import ShapeWord, read_shape
from tfrkit.progress import Progress, Quiet
from tfrkit.sidecars.read import Sidecars
from tfrkit.storage.resolve import Address, expand_home
from tfrkit.storage.text_files import write_json


def verify(
    address: Address | Iterable[Address],
    *,
    parse: bool = True,
    deep: bool = False,
    shape: ShapeWord | None = None,
    sha256: bool = False,
    ignore: Collection[str] = (),
    jobs: int | None = None,
    engine: VerbEngine = "local",
    engine_address: str | None = None,
    progress: Progress | None = None,
) -> Verification:
    """Check the checksums of every frame, the form of every record, and that shards are complete and match sidecars.

    Continues after damage and lists every damaged place. A file that is not a TFRecord is a finding too, so that the
    other files are still checked. Cost: one pass at the speed of memory.

    Args:
        address: A file, or a set: a folder, a glob or several files. A missing shard of -of-N is a finding in a set and
            a note for one file.
        parse: Also check that every record is an Example, if most are.
        deep: Also decode every image, compare labels, sizes, boxes and masks with the schema and the sidecars, look
            for duplicates and for records that are in two splits, and compare sha256. Cost: every image is decoded.
        shape: With `deep`, the shape of raw pixels, such as "224x224" or "224x224x3", height first; values of another
            length are findings.
        sha256: Compare the files with the sha256 in their manifest; sizes and counts are always compared.
        ignore: Kinds of findings to leave out, such as "duplicate" or "near_duplicate".
        jobs: Number of threads; default one per core.
        engine: With "ray" or "dask", workers of a cluster read the files, each a shard at a time. They see the files
            at the same paths. This process compares shards with sidecars, and records with each other.
        engine_address: Address of the cluster; see `build`.
        progress: Progress callback.

    Example:
        >>> verify("train-*.tfrecord").ok
        True
    """
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs expected at least 1, got {jobs}")
    fixed = read_shape(shape)
    if fixed is not None and not deep:
        raise misuse(
            "shape is for a deep check, which compares raw pixels with it", Step("look deep: {deep}", deep=True)
        )
    cluster = choose_cluster(engine, engine_address, jobs)
    result = Verification(ignored=read_kinds(ignore))
    watch = progress or Quiet()
    threads = choose_threads(jobs)
    paths, folders, is_set = find_named_shards(address)
    asked = Asked(is_set=is_set, folders=tuple(folders))
    result.shards = [ShardTally(path) for path in paths]
    sidecars = Sidecars(path for path in paths if path != "-")
    sidecars.ask_ahead()
    with connect_if(cluster) as workers:
        _check_frames(result, parse=parse, sample=parse or deep, jobs=jobs, watch=watch, workers=workers)
        result.records = sum(tally.records for tally in result.shards)
        hashes = sha256 or deep
        check_sets(
            result, sidecars, asked, sha256=hashes, must_know=sha256, threads=threads, watch=watch, workers=workers
        )
        files = [tally for tally in result.shards if tally.nbytes is not None]
        sound = [tally.path for tally in files if tally.is_readable and not tally.is_damaged]
        result.notes += note_kinds(sound, features=not deep)
        if deep:
            from tfrkit.ops.verify.deep import check_deep

            check_deep(result, shape=fixed, threads=threads, watch=watch, workers=workers)
    result.close()
    return result


def write_report(result: Verification, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write the result as a JSON file, in the form of `Verification.to_json`."""
    target = expand_home(path)
    require_output(target, sources=[tally.path for tally in result.shards], force=force)
    write_json(target, result.to_json())


def _check_frames(
    result: Verification, *, parse: bool, sample: bool, jobs: int | None, watch: Progress, workers: Workers | None
) -> None:
    """Check every frame and every record; findings are added in the order of the files."""
    sizes = measure_files(tally.path for tally in result.shards)
    watch.begin(0, sum(sizes))
    threads = choose_threads(jobs, sum(sizes) if all(sizes) else None)  # 0 may be a pipe
    num_crowded = 0
    try:
        if workers is None:
            for found, crowded in _check_shards(result.shards, parse, sample, threads, watch.advance):
                result.add(found)
                num_crowded += crowded
        else:
            tasks = [VerifyTask(tally.path, parse, sample) for tally in result.shards]
            for number, (tally, found, crowded) in enumerate(workers.run(tasks, watch.advance)):
                result.shards[number] = tally
                result.add(found)
                num_crowded += crowded
    finally:
        watch.end()
    if num_crowded:
        result.notes.append(
            f"{num_crowded:,} {'record has' if num_crowded == 1 else 'records have'} more than {MAX_NAMES:,} features: "
            "sound, but more than tfrkit decodes"
        )


def _check_shards(
    tallies: list[ShardTally], parse: bool, sample: bool, threads: int, tick: Tick
) -> Iterator[tuple[list[VerifyFinding], int]]:
    """Check shards on threads and add up their tallies; yield findings and the number of crowded records."""
    stop = threading.Event()
    waiting: deque[tuple[ShardTally, int]] = deque()  # shard and bytes of each job, in job order
    for checked in run_ahead(_cut_jobs(tallies, waiting, parse, sample, stop), threads=threads, stop=stop):
        tally, nbytes = waiting.popleft()
        # Damage and records that are not Examples, by offset.
        found = [(finding, kind_of_error(error)) for finding, error in checked.damage]
        found += [(finding, "parse") for finding in checked.others]
        found.sort(key=lambda item: item[0].offset)
        findings = [
            VerifyFinding(
                one.shard, one.record, one.offset, one.cause, kind, stop=None if one.is_one_record else one.stop
            )
            for one, kind in found
        ]
        tally.num_frames += checked.num_frames
        tally.records += checked.num_frames - len(checked.others)
        tally.is_damaged |= bool(checked.damage)
        tally.hole = min(tally.hole, find_hole(finding for finding, _ in checked.damage))
        tick(0, nbytes, len(findings))
        yield findings, checked.num_crowded


@dataclass(frozen=True)
class VerifyTask:
    """Checks the frames of one shard."""

    path: str
    parse: bool
    sample: bool

    def run(self, tick: Tick) -> tuple[ShardTally, list[VerifyFinding], int]:
        """Return the tally, the findings and the number of crowded records."""
        tally = ShardTally(self.path)
        findings: list[VerifyFinding] = []
        num_crowded = 0
        for found, crowded in _check_shards([tally], self.parse, self.sample, 1, tick):
            findings += found
            num_crowded += crowded
        return tally, findings, num_crowded


def _cut_jobs(
    tallies: list[ShardTally],
    waiting: deque[tuple[ShardTally, int]],
    parse: bool,
    sample: bool,
    stop: threading.Event,
) -> Iterator[Callable[[], Checked]]:
    shards = ShardsInTurn([tally.path for tally in tallies])
    for number, tally in enumerate(tallies):
        try:
            shard = shards.open(number)
            tally.nbytes = shard.nbytes
            tally.holds_examples = sample and holds_examples(shard)
            tally.is_readable = True
            for group in join_stretches(cut_shard(shard)):
                waiting.append((tally, sum(stretch.nbytes for stretch in group)))
                yield partial(check_stretches, group, parse=parse and tally.holds_examples, stop=stop)
        except (ContainerError, StorageError) as error:
            # The hint may say how to convert a file of another format.
            remedy = f"; {error.hint}" if isinstance(error, NotATFRecordError) and error.hint else ""
            found = Finding(tally.path, error.record or 0, error.offset or 0, error.what + remedy)
            waiting.append((tally, 0))
            yield partial(Checked, damage=[(found, StorageError(error.what))])
