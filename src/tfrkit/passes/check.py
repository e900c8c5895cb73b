"""Check frames: both checksums and optionally the messages, in stretches that threads can share."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from tfrkit import _native
from tfrkit._limits import LIMITS
from tfrkit._types import Verify
from tfrkit.batches.survey import Surveyed
from tfrkit.container.records import SAMPLED_SEARCH_NBYTES, Finding, FrameStream, Policy, Stretch
from tfrkit.container.salvage import Salvage
from tfrkit.container.shards import Shard
from tfrkit.errors import ContainerError, CorruptRecordError, LimitError, StorageError, TfrkitError, TruncatedShardError
from tfrkit.passes.walk import CollectPolicy, walk_streams
from tfrkit.storage.base import ByteSource

# Records sampled to find out whether a shard holds Examples.
_SAMPLE_RECORDS = 256
# From this number of stretches on, those of a local file are twice as long.
_LARGE_STRETCHES = 64
NOT_AN_EXAMPLE = "record is neither an Example nor a SequenceExample, as most others are"


@dataclass
class Checked:
    """Result of a check: number of sound frames, damage with its errors, and records that are not Examples (`others`).

    `num_crowded` records have more feature names than `MAX_NAMES`.
    """

    num_frames: int = 0
    num_crowded: int = 0
    damage: list[tuple[Finding, TfrkitError]] = field(default_factory=list)
    others: list[Finding] = field(default_factory=list)


def holds_examples(shard: Shard) -> bool:
    """Whether most of the first records of a shard are Examples, so that all should be parsed.

    False for a pipe: it can be read only once.
    """
    if shard.nbytes is None:
        return False
    sample = Surveyed()
    policy = Policy("all", "skip", search_nbytes=SAMPLED_SEARCH_NBYTES)
    try:
        sample.add_shard(shard, policy, max_records=_SAMPLE_RECORDS, is_short=True)
    except LimitError:
        return True  # only Examples have names to count
    return sample.decoded_kind != "raw"


def join_stretches(stretches: Iterable[Stretch]) -> Iterator[list[Stretch]]:
    """Yield stretches in groups of at most `LIMITS.check_nbytes`, or alone: those of a remote shard are small."""
    group: list[Stretch] = []
    for stretch in stretches:
        if group and (not stretch.num_frames or sum(one.nbytes for one in (*group, stretch)) > LIMITS.check_nbytes):
            yield group
            group = []
        group.append(stretch)
    if group:
        yield group


def cut_shard(shard: Shard) -> Iterator[Stretch]:
    """Yield the stretches of a shard in order, found by its frame headers; a small or compressed shard is one stretch.

    A stretch with 0 frames is the unscanned rest of the shard and may hold any damage. It follows if a header is bad,
    and starts one stretch before that header, because only the frames before show whether the length is wrong or the
    header is damaged.
    """
    rest = held = Stretch(shard, b"", 0, shard.nbytes or 0, 0, 0, 0)
    if shard.compression == "none" and (rest.nbytes > 2 * LIMITS.check_nbytes or shard.reader.is_remote):
        stream = FrameStream(shard, Policy("lengths"), releases=False, ahead="most")
        # Of a large file there are enough longer ones for all threads, and handing them on takes less time.
        is_large = rest.nbytes > _LARGE_STRETCHES * LIMITS.check_nbytes and not shard.reader.is_remote
        max_nbytes = LIMITS.check_nbytes * (2 if is_large else 1)
        try:
            while stretch := stream.take(_native.check_frames, max_nbytes=max_nbytes):
                if held is not rest:
                    yield held
                held = stretch
        except (CorruptRecordError, TruncatedShardError):
            held = rest._replace(start=held.offset, record=held.record)
    yield held


def check_stretches(stretches: Sequence[Stretch], *, parse: bool, stop: threading.Event | None = None) -> Checked:
    """Check stretches of one shard that follow each other; see `check_stretch`."""
    total = Checked()
    for stretch in stretches:
        checked = check_stretch(stretch, parse=parse, stop=stop)
        total.num_frames += checked.num_frames
        total.num_crowded += checked.num_crowded
        total.damage += checked.damage
        total.others += checked.others
    return total


def check_stretch(stretch: Stretch, *, parse: bool, stop: threading.Event | None = None) -> Checked:
    """Check both checksums of every frame of a stretch and, with `parse`, every message; damage is collected.

    Several threads may check stretches of one shard. The check ends early after `stop` is set.
    """
    shard, policy, checked = stretch.shard, CollectPolicy(), Checked()
    others: list[tuple[int, int]] = []

    def find_others(
        data: ByteSource, start: int, end: int, most: int, verify: Verify
    ) -> tuple[int, int, _native.Fault | None]:
        nonlocal others
        num_frames, others, num_crowded, after, fault = _native.find_others(data, start, end, most, verify)
        checked.num_crowded += num_crowded
        return num_frames, after, fault

    is_cut = stretch.num_frames > 0
    parts: Iterable[FrameStream]
    try:
        if is_cut:
            parts = [FrameStream(shard, policy, within=stretch)]
        else:
            parts = Salvage(shard, policy, start=stretch.start, record=stretch.record)
        for part in walk_streams(parts, find_others if parse else _native.check_frames):
            checked.num_frames += part.num_frames
            for number, at in others:
                place = part.record + number, part.offset + at - part.start
                checked.others.append(Finding(shard.name, *place, NOT_AN_EXAMPLE, kind="wire"))
            if is_cut:
                part.release()
            if stop is not None and stop.is_set():
                break
    except (StorageError, ContainerError) as error:
        checked = Checked()
        policy.take(Finding.of(error, shard=shard.name), error)
    checked.damage = policy.listed
    return checked
