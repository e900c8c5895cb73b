"""Check a dataset: every checksum, every record, every set of shards; and, asked to look deep, what records hold."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from tfrkit._ahead import choose_threads, run_ahead
from tfrkit._native import MAX_NAMES
from tfrkit.batches.survey import note_kinds
from tfrkit.container.records import Finding, Policy
from tfrkit.container.shards import Shard, find_shards
from tfrkit.errors import ContainerError, NotATFRecordError, StorageError, TfrkitError
from tfrkit.ops.verify.result import ShardTally, Verification, VerifyFinding, kind_of_error, read_kinds
from tfrkit.ops.verify.shard_set import Asked, check_sets
from tfrkit.outputs.place import require_output
from tfrkit.passes.check import Checked, Stretch, check_stretch, cut_shard, holds_examples
from tfrkit.pictures.pixels import ShapeWord, read_shape
from tfrkit.progress import Progress, Quiet
from tfrkit.storage.resolve import Address, expand_address, expand_home
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
    progress: Progress | None = None,
) -> Verification:
    """Check both checksums of every frame, that every record is well-formed, and that shards are as they should be.

    Goes on behind damage and lists every place of it. A file that cannot be read as a TFRecord at all is a finding
    too, so that one such file does not hide the others. Cost: one pass at the speed of memory.

    Args:
        address: Where the files are. A folder, a glob or several files are a set: a shard of -of-N that is not there
            is a finding. Of one file named alone it is a note.
        parse: Also look whether every record is an Example where most are.
        deep: Also decode every image, hold labels, sizes, boxes and masks against what the dataset says of them, look
            for duplicates and for records that are in two splits, and compare sha256. Costs a decoding of all images.
        shape: With `deep`, that of raw pixels, "224x224" or "224x224x3", height first; bytes of another length are
            findings.
        sha256: Compare the files with the sha256 of their manifest; their sizes and counts always are.
        ignore: Kinds of findings to leave out, such as "duplicate" or "near_duplicate".
        jobs: How many threads; one for each core by default.
        progress: Told how it goes on.

    Example:
        >>> verify("train-*.tfrecord").ok
        True
    """
    if jobs is not None and jobs < 1:
        raise ValueError(f"jobs expected at least 1, got {jobs}")
    fixed = read_shape(shape)
    if fixed is not None and not deep:
        raise ValueError("shape is for a deep check, which holds raw pixels against it\n  look deep: deep=True")
    result = Verification(ignored=read_kinds(ignore))
    watch = progress or Quiet()
    threads = choose_threads(jobs)
    asked, paths = _resolve(address)
    result.shards = [ShardTally(path) for path in paths]
    _check_frames(result, parse=parse, sample=parse or deep, threads=threads, watch=watch)
    result.records = sum(tally.records for tally in result.shards)
    check_sets(result, asked, sha256=sha256 or deep, must_know=sha256, threads=threads, watch=watch)
    if not deep:
        files = [tally for tally in result.shards if tally.nbytes is not None]
        result.notes += note_kinds([tally.path for tally in files if tally.is_readable and not tally.is_damaged])
    if deep:
        from tfrkit.ops.verify.deep import check_deep

        check_deep(result, shape=fixed, threads=threads, watch=watch)
    result.close()
    return result


def write_report(result: Verification, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Write what was found as a JSON file, in the form of `Verification.to_json`."""
    target = expand_home(path)
    require_output(target, sources=[tally.path for tally in result.shards], force=force)
    write_json(target, result.to_json())


def _resolve(address: Address | Iterable[Address]) -> tuple[Asked, list[str]]:
    addresses = [address] if isinstance(address, (str, bytes, os.PathLike)) else list(address)
    paths = find_shards(addresses)
    folders = [path for path in expand_address(addresses) if os.path.isdir(path)]
    is_alone = len(paths) == 1 and len(addresses) == 1 and expand_home(addresses[0]) == paths[0]
    return Asked(is_set=not is_alone, folders=tuple(folders)), paths


class _KindPolicy(Policy):
    """Goes on behind damage and keeps what it was, in the order it was met."""

    def __init__(self) -> None:
        super().__init__("all", "skip")
        self.listed: list[VerifyFinding] = []

    def take(self, finding: Finding, error: TfrkitError) -> None:
        place = (finding.shard, finding.record, finding.offset)
        self.listed.append(VerifyFinding(*place, finding.cause, kind_of_error(error)))


@dataclass
class _Outcome:
    """What was found in a stretch of shard `number`."""

    number: int
    checked: Checked = field(default_factory=Checked)
    findings: list[VerifyFinding] = field(default_factory=list)
    nbytes: int = 0


def _check_frames(result: Verification, *, parse: bool, sample: bool, threads: int, watch: Progress) -> None:
    """Every checksum and every record, on threads; findings come in the order of the files."""
    stop = threading.Event()
    watch.begin(0, sum(_size_of(tally.path) for tally in result.shards))
    num_crowded = 0
    try:
        jobs = _cut_jobs(result.shards, parse, sample, stop)
        for outcome in run_ahead(jobs, threads=threads, max_nbytes=1 << 30, size_of=lambda outcome: 1):
            tally = result.shards[outcome.number]
            tally.num_frames += outcome.checked.num_frames
            num_crowded += outcome.checked.num_crowded
            tally.records += outcome.checked.num_frames - len(outcome.checked.others)
            tally.is_damaged |= any(finding.kind != "parse" for finding in outcome.findings)
            result.add(outcome.findings)
            watch.advance(0, outcome.nbytes, len(outcome.findings))
    finally:
        # After an interrupt, threads that still check end at their next step.
        stop.set()
        watch.end()
    if num_crowded:
        result.notes.append(
            f"{num_crowded:,} {'record has' if num_crowded == 1 else 'records have'} more than {MAX_NAMES:,} features: "
            "sound, but more than tfrkit decodes"
        )


def _cut_jobs(
    tallies: list[ShardTally], parse: bool, sample: bool, stop: threading.Event
) -> Iterator[Callable[[], _Outcome]]:
    for number, tally in enumerate(tallies):
        try:
            shard = Shard.open(tally.path)
            tally.nbytes = shard.nbytes
            tally.holds_examples = sample and holds_examples(shard)
            tally.is_readable = True
            for stretch in cut_shard(shard):
                yield partial(_check, number, shard, stretch, parse and tally.holds_examples, stop)
        except (ContainerError, StorageError) as error:
            # A file that is something else may have a way to become what it should be.
            remedy = f"; {error.hint}" if isinstance(error, NotATFRecordError) and error.hint else ""
            finding = VerifyFinding(tally.path, error.record or 0, error.offset or 0, error.what + remedy, "file")
            yield partial(_Outcome, number, findings=[finding])


def _check(number: int, shard: Shard, stretch: Stretch, parse: bool, stop: threading.Event) -> _Outcome:
    def end_if_stopped() -> None:
        if stop.is_set():
            raise StorageError("stopped", shard=shard.name)

    policy = _KindPolicy()
    checked = Checked()
    try:
        checked = check_stretch(shard, stretch, policy, parse=parse, on_step=end_if_stopped)
    except (StorageError, ContainerError) as error:
        place = (shard.name, error.record or 0, error.offset or 0)
        policy.listed.append(VerifyFinding(*place, error.what, kind_of_error(error)))
    others = [VerifyFinding(other.shard, other.record, other.offset, other.cause, "parse") for other in checked.others]
    findings = sorted([*policy.listed, *others], key=lambda finding: finding.offset or 0)
    stop_at = stretch.stop if stretch.stop is not None else shard.nbytes or 0
    return _Outcome(number, checked, findings, max(0, stop_at - stretch.start))


def _size_of(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
