"""Check a dataset: every checksum, every record, every set of shards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tfrkit.batches.check import check_records
from tfrkit.container.records import Finding, Policy
from tfrkit.container.shards import Shard, find_shards
from tfrkit.errors import ContainerError, StorageError
from tfrkit.storage.resolve import Address


@dataclass
class Verification:
    """What `verify` found. `records` counts those that are sound."""

    records: int = 0
    findings: list[Finding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        """The public form: ok, records, findings (shard, record, offset, cause)."""
        return {
            "ok": self.ok,
            "records": self.records,
            "findings": [finding.to_json() for finding in self.findings],
        }


def verify(address: Address | Iterable[Address], *, parse: bool = True) -> Verification:
    """Check both checksums of every frame and, unless `parse` is False, that every record is well-formed.

    Goes on behind damage and lists every place of it. A file that cannot be read as a TFRecord at all is a
    finding too, so that one such file does not hide the others. Cost: one pass at the speed of memory.
    """
    result = Verification()
    for path in find_shards(address):
        try:
            shard = Shard.open(path)
        except (ContainerError, StorageError) as error:
            result.findings.append(Finding(path, 0, 0, error.what))
            continue
        try:
            policy = Policy("all", "skip")
            result.records += check_records(shard, policy, parse=parse)
            result.findings += policy.findings.values()  # in file order
        except StorageError as error:
            result.findings.append(Finding(path, error.record or 0, error.offset or 0, error.what))
        finally:
            shard.close()
    return result
