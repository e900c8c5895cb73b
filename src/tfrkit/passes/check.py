"""Going over every record of a shard without keeping any, in one go or in stretches that threads share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tfrkit import _native
from tfrkit.batches.survey import Surveyed
from tfrkit.container.faults import fault_to_error
from tfrkit.container.records import SAMPLED_SEARCH_NBYTES, Finding, Policy
from tfrkit.container.salvage import Gap, Salvage
from tfrkit.container.shards import Shard
from tfrkit.errors import LimitError, StorageError
from tfrkit.storage.base import ByteSource

# Records sampled to see whether a shard holds Examples at all.
_SAMPLE_RECORDS = 256
_NOT_AN_EXAMPLE = "record is neither an Example nor a SequenceExample, as most others are"
# Large enough that handing one to a thread does not show, small enough that several fit into memory.
_STRETCH_NBYTES = 8 << 20
_NO_LIMIT = 1 << 62


@dataclass(frozen=True)
class Stretch:
    """A run of frames of one shard: those from byte `start` on, of which the first has number `record`.

    With a `stop`, every header in between holds, and so does the one behind it, or nothing is behind it. Without one
    it is all that follows, and may hold any damage.
    """

    start: int = 0
    record: int = 0
    stop: int | None = None


@dataclass
class Checked:
    """What a check counted: frames that are sound, and those among them that are no Examples as the others are.

    `gaps` are stored bytes of a compressed shard that did not inflate; `num_crowded` records have more names of
    features than `MAX_NAMES`.
    """

    num_frames: int = 0
    num_crowded: int = 0
    others: list[Finding] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)


def holds_examples(shard: Shard) -> bool:
    """Whether records of this shard are to be parsed: most of its first ones are Examples.

    Of a pipe it is not known: it is read once, and what its records are is known only behind them.
    """
    if shard.nbytes is None:
        return False
    sample = Surveyed()
    policy = Policy("all", "skip", search_nbytes=SAMPLED_SEARCH_NBYTES)
    try:
        sample.add_shard(shard, policy, max_records=_SAMPLE_RECORDS)
    except LimitError:
        return True  # only Examples have names to count
    return sample.decoded_kind != "raw"


def cut_shard(shard: Shard) -> Iterator[Stretch]:
    """The stretches of a shard in order, found by its headers; one for all of a small or compressed shard.

    Where a header does not hold, the last stretch begins a little before it and has no stop: a wrong length can
    only be told from a damaged header by what stands before.
    """
    span = shard.reader.span() if shard.compression == "none" else None
    if span is None or len(span) <= 2 * _STRETCH_NBYTES:
        yield Stretch()
        return
    size = len(span)
    held: Stretch | None = None
    start = record = 0
    while start < size:
        shard.reader.check_unchanged()
        stop = min(size, start + _STRETCH_NBYTES)
        num_frames, next_start, _ = _native.check_frames(span, start, stop, _NO_LIMIT, "lengths")
        if num_frames == 0:
            # A frame that is longer than a stretch, or a header that does not hold.
            num_frames, next_start, _ = _native.check_frames(span, start, size, 1, "lengths")
        if num_frames == 0:
            yield Stretch(start, record) if held is None else Stretch(held.start, held.record)
            return
        if held is not None:
            yield held
        held = Stretch(start, record, next_start)
        start = next_start
        record += num_frames
    if held is not None:
        yield held


def check_stretch(
    shard: Shard, stretch: Stretch, policy: Policy, *, parse: bool, on_step: Callable[[], None] | None = None
) -> Checked:
    """Check a stretch: both checksums of every frame and, with `parse`, every message. Damage goes to the policy.

    Several threads may check stretches of one shard, each with a policy of its own. `on_step` is called every few
    megabytes; what it raises ends the check.
    """
    if stretch.stop is None:
        return _check_rest(shard, stretch, policy, parse, on_step)
    return _check_between(shard, stretch.start, stretch.stop, stretch.record, policy, parse)


def _check_between(shard: Shard, start: int, stop: int, record: int, policy: Policy, parse: bool) -> Checked:
    """Check frames whose headers are known to hold: a damaged one is one lost record."""
    span = shard.reader.span()
    assert span is not None
    shard.reader.check_unchanged()
    checked = Checked()
    offset = start
    while offset < stop:
        found: list[tuple[int, int]] = []
        if parse:
            num_frames, found, num_crowded, next_start, fault = _native.find_others(
                span, offset, stop, _NO_LIMIT, policy.verify
            )
            checked.num_crowded += num_crowded
        else:
            num_frames, next_start, fault = _native.check_frames(span, offset, stop, _NO_LIMIT, policy.verify)
        checked.num_frames += num_frames
        checked.others += [_note_other(shard, record + number, at) for number, at in found]
        record += num_frames
        offset = next_start
        if fault is None:
            continue
        if fault.kind != "payload_checksum":
            raise StorageError("the file changed while it was read", shard=shard.name, record=record, offset=offset)
        error = fault_to_error(fault, shard=shard.name, record=record, offset=offset)
        policy.take(Finding.of(error, lost_nbytes=fault.resume - offset), error)
        record += 1
        offset = fault.resume
    shard.reader.release(start, stop)
    return checked


def _check_rest(
    shard: Shard, stretch: Stretch, policy: Policy, parse: bool, on_step: Callable[[], None] | None
) -> Checked:
    checked = Checked()
    parts = Salvage(shard, policy, start=stretch.start, record=stretch.record)
    for stream in parts:

        def check(data: ByteSource, start: int, stop: int) -> tuple[int, int, _native.Fault | None]:
            return _native.check_frames(data, start, stop, _NO_LIMIT, policy.verify)

        def check_and_parse(data: ByteSource, start: int, stop: int) -> tuple[int, int, _native.Fault | None]:
            num_frames, found, num_crowded, next_start, fault = _native.find_others(
                data, start, stop, _NO_LIMIT, policy.verify
            )
            checked.num_crowded += num_crowded
            record, base = stream.record, stream.base  # noqa: B023 - called before the next stream is there
            checked.others.extend(_note_other(shard, record + number, base + at) for number, at in found)
            return num_frames, next_start, fault

        while num_frames := stream.step(check_and_parse if parse else check):
            checked.num_frames += num_frames
            if on_step is not None:
                on_step()
    checked.gaps = parts.gaps
    return checked


def _note_other(shard: Shard, record: int, offset: int) -> Finding:
    return Finding(shard.name, record, offset, _NOT_AN_EXAMPLE)


def check_records(shard: Shard, policy: Policy, *, parse: bool) -> int:
    """Check a shard by its policy: the number of sound records; damage is in `policy.findings`, in file order.

    Records of a shard that holds something else than Examples are not parsed: any bytes are right there.
    """
    checked = check_stretch(shard, Stretch(), policy, parse=parse and holds_examples(shard))
    for finding in checked.others:
        policy.findings[shard.name, finding.offset] = finding
    in_order = sorted(policy.findings.items(), key=lambda item: item[0])
    policy.findings.clear()
    policy.findings.update(in_order)
    return checked.num_frames - len(checked.others)
