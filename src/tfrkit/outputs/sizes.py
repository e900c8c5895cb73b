"""Sizes and numbers of shards: parsing and checks."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from tfrkit._limits import DEFAULT_SHARD_NBYTES

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 1 << 10, "MI": 1 << 20, "GI": 1 << 30}


@dataclass(frozen=True)
class ShardSizes:
    """Requested shards: a number per split, or an approximate size."""

    count: int | Mapping[str, int] | None = None
    nbytes: int | None = None

    @classmethod
    def of(cls, count: int | Mapping[str, int] | None, size: int | str | None) -> ShardSizes:
        """Create from user input: a size may be text such as "256MB"."""
        return cls(count, parse_size(size) if isinstance(size, str) else size)

    def num_shards(self, split: str, num_records: int, estimated_nbytes: float) -> int:
        """Return the number of shards of one split: at least one, and at most one per record."""
        wanted: int | None
        if isinstance(self.count, Mapping):
            wanted = self.count.get(split)
        else:
            wanted = self.count
        if wanted is None:
            wanted = -(-int(estimated_nbytes) // (self.nbytes or DEFAULT_SHARD_NBYTES))
        return max(1, min(wanted, num_records))

    def check(self, splits: Collection[str]) -> None:
        """Raise for invalid numbers and unknown splits."""
        counts = self.count if isinstance(self.count, Mapping) else {} if self.count is None else {"": self.count}
        for name, count in counts.items():
            if isinstance(count, bool) or not isinstance(count, int) or count < 1:
                raise ValueError(f"shards expected a number from 1 up, got {count!r}")
            if name and name not in splits:
                raise ValueError(f"shards expected one of the splits {', '.join(splits)}, got {name!r}")
        if self.count is not None and self.nbytes is not None:
            raise ValueError("shards expected a number or a size, got both")
        if self.nbytes is not None and self.nbytes < 1:
            raise ValueError(f"shard size expected from 1 byte up, got {self.nbytes}")


def parse_size(text: str) -> int:
    """Parse a size such as "256MB", "64MiB" or a plain number into bytes.

    Example:
        >>> parse_size("256MB"), parse_size("1GiB")
        (256000000, 1073741824)
    """
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMG]I?)?B?\s*", text.upper())
    if match is None:
        raise ValueError(f"size expected a number of bytes such as 256MB or 1GiB, got {text!r}")
    return int(float(match[1]) * _UNITS[match[2] or ""])
