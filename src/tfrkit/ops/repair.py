"""Copy the readable records of damaged files, and report the losses."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tfrkit import _native
from tfrkit.container.codecs import Compression, CompressionWord, compression_of_name, read_compression
from tfrkit.container.index import load_index
from tfrkit.container.names import refuse_foreign_suffix
from tfrkit.container.records import Finding, find_hole, read_list
from tfrkit.container.salvage import Gap, Salvage
from tfrkit.container.shards import Shard, find_shards
from tfrkit.container.writer import ShardWriter, frame_records
from tfrkit.errors import CompressionError, ContainerError, StorageError, TfrkitError
from tfrkit.outputs.stored import require_free
from tfrkit.outputs.target import require_output
from tfrkit.passes.check import holds_examples
from tfrkit.passes.walk import CollectPolicy, measure_files, walk_streams
from tfrkit.progress import Progress, Quiet
from tfrkit.sidecars.read import Sidecars
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.base import ByteWriter
from tfrkit.storage.local import LocalWriter, require_space
from tfrkit.storage.resolve import Address, open_writer, show_address
from tfrkit.storage.sync import sync_folder, sync_tree
from tfrkit.storage.temporaries import MadeFolders, TemporaryFolder

# Bytes copied per step: each is accessed three times, so they should fit into the CPU cache.
_PIECE_NBYTES = 1 << 18
_PIECE_RECORDS = 4096


@dataclass(frozen=True)
class Loss:
    """Lost bytes [offset, stop) of a shard, after inflating.

    `stored` is the range of bytes of a compressed file that do not inflate. Without `is_one_record`, the number of
    records in the range is unknown; record numbers after it count it as one, and are not `is_record_certain`.
    """

    shard: str
    record: int
    offset: int
    stop: int
    cause: str
    stored: tuple[int, int] | None = None
    is_one_record: bool = False
    is_record_certain: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: shard, record, offset, stop, cause, stored_offset, stored_stop, record_certain."""
        start, stop = self.stored or (None, None)
        return {
            "shard": self.shard,
            "record": self.record,
            "offset": self.offset,
            "stop": self.stop,
            "cause": self.cause,
            "stored_offset": start,
            "stored_stop": stop,
            "record_certain": self.is_record_certain,
        }


@dataclass
class Repair:
    """Report of a repair: copied files and losses.

    `lost_records` is None if the original number is unknown. `num_others` of the copied records are not Examples,
    although most are; a pipe is not parsed.
    """

    records: int = 0
    files: list[tuple[str, str, int]] = field(default_factory=list)
    findings: list[Loss] = field(default_factory=list)
    lost_records: int | None = 0
    num_others: int = 0

    @property
    def lost_nbytes(self) -> int:
        """Number of lost bytes, after inflating."""
        return sum(loss.stop - loss.offset for loss in self.findings)

    @property
    def lost_stored_nbytes(self) -> int:
        """Number of stored bytes of compressed files that do not inflate."""
        return sum(loss.stored[1] - loss.stored[0] for loss in self.findings if loss.stored is not None)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: records, lost_records, lost_bytes, lost_stored_bytes, files, lost, not_examples."""
        return {
            "records": self.records,
            "lost_records": self.lost_records,
            "lost_bytes": self.lost_nbytes,
            "lost_stored_bytes": self.lost_stored_nbytes,
            "files": [{"source": source, "output": output, "records": count} for source, output, count in self.files],
            "lost": [loss.to_json() for loss in self.findings],
            "not_examples": self.num_others,
        }


def repair(
    address: Address | Iterable[Address],
    output: str | os.PathLike[str],
    *,
    compression: CompressionWord | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> Repair:
    """Copy every record with valid checksums into new, undamaged files.

    Frames are repaired, not their content: a record with valid checksums that is not an Example is copied and counted.
    One file is copied to the file `output`, several into the folder `output` under their own names. Records and sources
    are not changed. `compression` defaults to that of the output's suffix (.gz), else of the source. Among several
    files, one that is not a TFRecord is reported as lost and not copied; a single such file raises.
    """
    paths = find_shards(address, incomplete="warn")
    target, asked = show_address(output), read_compression(compression)
    is_remote = has_scheme(target)
    is_folder = len(paths) > 1 or os.path.isdir(target) or target.endswith(os.sep)
    targets = [os.path.join(target, os.path.basename(path)) if is_folder else target for path in paths]
    for destination, num_sources in Counter(targets).items():
        if num_sources > 1:
            raise StorageError(
                "two files would be written under one name", shard=destination, hint="repair them one by one"
            )
        (require_free if is_remote else require_output)(destination, sources=paths, force=force)
    sizes = measure_files(paths)
    require_space(tempfile.gettempdir() if is_remote else target, max(sizes, default=0) if is_remote else sum(sizes))
    if asked is None and not is_folder:
        refuse_foreign_suffix(target)
    made = MadeFolders()
    watch = progress or Quiet()
    watch.begin(0, sum(sizes))
    result = Repair()
    # A new folder appears with all of its files, or not at all.
    staged = None
    if is_folder and not is_remote and not os.path.exists(target):
        staged = TemporaryFolder(os.path.realpath(target), make_folders=True)
    try:
        if not is_remote and staged is None:
            made.make(target if is_folder else os.path.dirname(target))
        for source, destination, nbytes in zip(paths, targets, sizes, strict=True):
            try:
                shard = Shard.open(source)
            except ContainerError as error:
                if len(paths) == 1:
                    raise
                result.findings.append(Loss(source, 0, 0, nbytes, error.what))
                _add_lost(result, find_count(source, None), 0, [result.findings[-1]])
                continue
            known = find_count(source, shard)
            chosen = asked or (None if is_folder else compression_of_name(destination)) or shard.compression
            if staged is None:
                writer = open_writer(destination)
            else:  # all files are synced together
                writer = LocalWriter(os.path.join(staged.path, os.path.basename(destination)), durable=False)
                writer.name = destination
            count, num_others, losses = _copy_sound(shard, writer, chosen)
            result.records += count
            result.num_others += num_others
            result.files.append((source, destination, count))
            result.findings += losses
            _add_lost(result, known, count, losses)
            made.keep()
            watch.advance(0, nbytes, len(losses))
        if staged is not None and result.files:
            sync_tree(staged.path, target)
            staged.place(os.path.realpath(target))
            sync_folder(os.path.dirname(os.path.realpath(target)))
    finally:
        if staged is not None:
            staged.remove()
        made.remove()
        watch.end()
    return result


def find_count(path: str, shard: Shard | None) -> int | None:
    """Return the original number of records of a shard, by its manifest or a matching index, or None."""
    entry = Sidecars([path]).entry(0)
    if entry is not None and entry.records is not None:
        return entry.records
    if shard is None or shard.nbytes is None:
        return None
    with contextlib.suppress(ContainerError):
        index = load_index(shard.reader)  # stale, as expected for a damaged shard
        return None if index is None else index.num_records
    return None


def _add_lost(result: Repair, known: int | None, count: int, losses: list[Loss]) -> None:
    """Add the lost records of one shard: by the original number, else known only if each loss is one record."""
    lost: int | None = None
    if known is not None and known >= count:
        lost = known - count
    elif all(loss.is_one_record for loss in losses):
        lost = len(losses)
    result.lost_records = None if lost is None or result.lost_records is None else result.lost_records + lost


def _copy_sound(shard: Shard, output: ByteWriter, compression: Compression) -> tuple[int, int, list[Loss]]:
    """Copy records; return the number of them, of those that are not Examples although most are, and the losses."""
    is_parsed = holds_examples(shard)
    policy = CollectPolicy()
    parts = Salvage(shard, policy)
    count = num_others = 0
    with contextlib.closing(shard), ShardWriter(output, compression=compression) as writer:
        for stretch in walk_streams(parts, read_list, _PIECE_RECORDS, _PIECE_NBYTES):
            writer.write(frame_records(stretch.taken))
            count += stretch.num_frames
            if is_parsed:
                place = stretch.data, stretch.start, stretch.stop, stretch.num_frames
                num_others += len(_native.find_others(*place, "none")[1])
        writer.commit()
    return count, num_others, _list_losses(policy.listed, parts.gaps)


def _list_losses(taken: list[tuple[Finding, TfrkitError]], gaps: list[Gap]) -> list[Loss]:
    """Return the losses in file order; damage of the compression gets the stored bytes that did not inflate."""
    left = iter(gaps)
    hole = find_hole(finding for finding, _ in taken)
    losses = []
    for finding, error in taken:
        gap = next(left, None) if isinstance(error, CompressionError) else None
        stored = None if gap is None else (gap.start, gap.stop)
        losses.append(
            Loss(
                finding.shard,
                finding.record,
                finding.offset,
                finding.stop,
                finding.cause,
                stored,
                finding.is_one_record,
                finding.record <= hole,
            )
        )
    return losses
