"""Going over every record of a shard without keeping any."""

from __future__ import annotations

from tfrkit import _native
from tfrkit.batches.survey import Surveyed
from tfrkit.container.records import Finding, FrameStream, Policy
from tfrkit.container.shards import Shard
from tfrkit.storage.base import ByteSource

# So many records tell whether a shard holds Examples at all.
_SAMPLE_RECORDS = 256
_NOT_AN_EXAMPLE = "record is neither an Example nor a SequenceExample, as most others are"


def check_records(shard: Shard, policy: Policy, *, parse: bool) -> int:
    """Check a shard by its policy: the number of sound records; damage is in `policy.findings`.

    Records of a shard that holds something else than Examples are not parsed: any bytes are right there.
    """
    if shard.nbytes is None:
        parse = False  # a pipe is read once, and what its records are is known only behind them
    if parse:
        sample = Surveyed()
        sample.add_shard(shard, Policy("all", "skip"), max_records=_SAMPLE_RECORDS)
        parse = sample.decoded_kind != "raw"
    stream = FrameStream(shard, policy)
    others: list[tuple[int, int]] = []

    def check(data: ByteSource, start: int, stop: int) -> tuple[int, int, _native.Fault | None]:
        return _native.check_frames(data, start, stop, 1 << 62, policy.verify)

    def check_and_parse(data: ByteSource, start: int, stop: int) -> tuple[int, int, _native.Fault | None]:
        num_frames, found, next_start, fault = _native.find_others(data, start, stop, 1 << 62, policy.verify)
        others.extend((stream.record + record, stream.base + offset) for record, offset in found)
        return num_frames, next_start, fault

    num_records = 0
    while num_frames := stream.step(check_and_parse if parse else check):
        num_records += num_frames
    for record, offset in others:
        policy.findings[shard.name, offset] = Finding(shard.name, record, offset, _NOT_AN_EXAMPLE)
    in_order = sorted(policy.findings.items(), key=lambda item: item[0])
    policy.findings.clear()
    policy.findings.update(in_order)
    return num_records - len(others)
