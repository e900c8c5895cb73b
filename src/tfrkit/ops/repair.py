"""Copy what is readable of damaged files, and say what was not."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tfrkit.container.codecs import Compression
from tfrkit.container.records import Finding, Policy, read_records
from tfrkit.container.shards import Shard, find_shards
from tfrkit.container.writer import ShardWriter, frame_records
from tfrkit.errors import StorageError
from tfrkit.storage.resolve import Address, open_writer


@dataclass
class Repair:
    """What was copied from where to where, and what was lost."""

    records: int = 0
    files: list[tuple[str, str, int]] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def lost_nbytes(self) -> int:
        return sum(finding.lost_nbytes for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """The public form: records, lost_bytes, files (source, output, records), lost."""
        return {
            "records": self.records,
            "lost_bytes": self.lost_nbytes,
            "files": [{"source": source, "output": output, "records": count} for source, output, count in self.files],
            "lost": [{**finding.to_json(), "stop": finding.offset + finding.lost_nbytes} for finding in self.findings],
        }


def repair(
    address: Address | Iterable[Address],
    output: str | os.PathLike[str],
    *,
    compression: Compression | None = None,
    force: bool = False,
) -> Repair:
    """Copy every record whose checksums hold into new files that verify.

    One file is copied to the file `output`, several into the folder `output` under their own names. Record bytes are
    not changed; `compression` is that of the source unless one is given. The sources stay as they are.
    """
    paths = find_shards(address)
    target = os.fspath(output)
    is_folder = len(paths) > 1 or os.path.isdir(target) or target.endswith(os.sep)
    if is_folder:
        os.makedirs(target, exist_ok=True)
    targets = [os.path.join(target, os.path.basename(path)) if is_folder else target for path in paths]
    _check_targets(paths, targets, force)
    result = Repair()
    for source, destination in zip(paths, targets, strict=True):
        count, findings = _copy_sound(source, destination, compression)
        result.records += count
        result.files.append((source, destination, count))
        result.findings += findings
    return result


def _check_targets(paths: list[str], targets: list[str], force: bool) -> None:
    for path, target in zip(paths, targets, strict=True):
        if os.path.exists(target) and os.path.samefile(path, target):
            raise StorageError("the output is the file to repair", shard=target, hint="choose another name: -o")
        if os.path.exists(target) and not force:
            raise StorageError("the output is there already", shard=target, hint="replace it: --force")
        if targets.count(target) > 1:
            raise StorageError("two files would be written under one name", shard=target, hint="repair them one by one")


def _copy_sound(source: str, destination: str, compression: Compression | None) -> tuple[int, list[Finding]]:
    shard = Shard.open(source)
    policy = Policy("all", "skip")
    writer = ShardWriter(open_writer(destination), compression=compression or shard.compression)
    count = 0
    try:
        for records in read_records(shard, policy):
            writer.write(frame_records(records))
            count += len(records)
        writer.commit()
    except BaseException:
        writer.discard()
        raise
    finally:
        shard.close()
    return count, list(policy.findings.values())
