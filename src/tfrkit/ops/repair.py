"""Copy what is readable of damaged files, and say what was not."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tfrkit import _native
from tfrkit._types import Record
from tfrkit.build.progress import Progress, Quiet
from tfrkit.container.codecs import Compression
from tfrkit.container.records import Finding, Policy
from tfrkit.container.salvage import Gap, Salvage
from tfrkit.container.shards import Shard, find_shards
from tfrkit.container.writer import ShardWriter, frame_records
from tfrkit.errors import CompressionError, ContainerError, StorageError, TfrkitError
from tfrkit.ops.outputs import require_output
from tfrkit.storage.base import ByteSource
from tfrkit.storage.local import require_space
from tfrkit.storage.resolve import Address, open_writer

# How much is copied at a time: it is touched three times and should stay in the cache.
_PIECE_NBYTES = 1 << 18
_PIECE_RECORDS = 4096


@dataclass(frozen=True)
class Loss:
    """Bytes [offset, stop) of a shard that gave no record, after inflating.

    Where the bytes of a compressed shard do not inflate, `stored` is the range of them in the file.
    """

    shard: str
    record: int
    offset: int
    stop: int
    cause: str
    stored: tuple[int, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """The public form: shard, record, offset, stop, cause, stored_offset, stored_stop."""
        start, stop = self.stored or (None, None)
        return {
            "shard": self.shard,
            "record": self.record,
            "offset": self.offset,
            "stop": self.stop,
            "cause": self.cause,
            "stored_offset": start,
            "stored_stop": stop,
        }


@dataclass
class Repair:
    """What was copied from where to where, and what was lost."""

    records: int = 0
    files: list[tuple[str, str, int]] = field(default_factory=list)
    findings: list[Loss] = field(default_factory=list)

    @property
    def lost_nbytes(self) -> int:
        """Bytes that gave no record: of frames, and of compressed data that do not inflate."""
        lost = sum(loss.stop - loss.offset for loss in self.findings)
        return lost + sum(loss.stored[1] - loss.stored[0] for loss in self.findings if loss.stored is not None)

    def to_json(self) -> dict[str, Any]:
        """The public form: records, lost_bytes, files (source, output, records), lost."""
        return {
            "records": self.records,
            "lost_bytes": self.lost_nbytes,
            "files": [{"source": source, "output": output, "records": count} for source, output, count in self.files],
            "lost": [loss.to_json() for loss in self.findings],
        }


def repair(
    address: Address | Iterable[Address],
    output: str | os.PathLike[str],
    *,
    compression: Compression | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Repair:
    """Copy every record whose checksums hold into new files that verify.

    One file is copied to the file `output`, several into the folder `output` under their own names. Record bytes are
    not changed; `compression` is that of the source unless one is given. The sources stay as they are. Of several
    files, one that is no TFRecord at all is a loss and has no copy; one named alone raises.
    """
    paths = find_shards(address)
    target = os.fspath(output)
    is_folder = len(paths) > 1 or os.path.isdir(target) or target.endswith(os.sep)
    targets = [os.path.join(target, os.path.basename(path)) if is_folder else target for path in paths]
    for destination in targets:
        if targets.count(destination) > 1:
            raise StorageError(
                "two files would be written under one name", shard=destination, hint="repair them one by one"
            )
        require_output(destination, sources=paths, force=force)
    sizes = [_size_of(path) for path in paths]
    require_space(target, sum(sizes))
    if is_folder:
        os.makedirs(target, exist_ok=True)
    watch = progress or Quiet()
    watch.begin(0, sum(sizes))
    result = Repair()
    try:
        for source, destination, nbytes in zip(paths, targets, sizes, strict=True):
            try:
                shard = Shard.open(source)
            except ContainerError as error:
                if len(paths) == 1:
                    raise
                result.findings.append(Loss(source, 0, 0, nbytes, error.what))
                continue
            count, losses = _copy_sound(shard, destination, compression)
            result.records += count
            result.files.append((source, destination, count))
            result.findings += losses
            watch.advance(0, nbytes, len(losses))
    finally:
        watch.end()
    return result


class _LossPolicy(Policy):
    """Goes on behind damage, and keeps what it was together with its error."""

    def __init__(self) -> None:
        super().__init__("all", "skip")
        self.taken: list[tuple[Finding, TfrkitError]] = []

    def take(self, finding: Finding, error: TfrkitError) -> None:
        self.taken.append((finding, error))


def _copy_sound(shard: Shard, destination: str, compression: Compression | None) -> tuple[int, list[Loss]]:
    policy = _LossPolicy()
    parts = Salvage(shard, policy)
    writer = ShardWriter(open_writer(destination), compression=compression or shard.compression)
    count = 0
    records: list[Record] = []

    def consume(data: ByteSource, start: int, stop: int) -> tuple[int, int, _native.Fault | None]:
        nonlocal records
        records, next_start, fault = _native.read_frames(data, start, stop, _PIECE_RECORDS, _PIECE_NBYTES, "all")
        return len(records), next_start, fault

    try:
        for stream in parts:
            while stream.step(consume):
                writer.write(frame_records(records))
                count += len(records)
        writer.commit()
    except BaseException:
        writer.discard()
        raise
    finally:
        shard.close()
    return count, _list_losses(policy.taken, parts.gaps)


def _list_losses(taken: list[tuple[Finding, TfrkitError]], gaps: list[Gap]) -> list[Loss]:
    """Losses in file order; each torn member with the stored bytes that did not inflate."""
    left = iter(gaps)
    losses = []
    for finding, error in taken:
        gap = next(left, None) if isinstance(error, CompressionError) else None
        stored = None if gap is None else (gap.start, gap.stop)
        stop = finding.offset + finding.lost_nbytes
        losses.append(Loss(finding.shard, finding.record, finding.offset, stop, finding.cause, stored))
    return losses


def _size_of(path: str) -> int:
    try:
        return os.path.getsize(path)
    except OSError:
        return 0
