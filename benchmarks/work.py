"""What a side (tfrkit, TensorFlow, a peer) brings to a benchmark, and the digest by which results are compared."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

BATCH = 1024
IMAGE_BATCH = 64  # 1024 images of 100 KB would be a batch of 100 MB
DIGEST_PICKS = 2000  # random accesses that are compared


@dataclass(frozen=True)
class Work:
    """One side's ways of doing one piece of work.

    Every way does all of it and returns the number of records; the fastest way is the one that is timed against the
    other sides. ``digest`` does it once more and tells what came out. Works that write name their ``output`` instead,
    which TensorFlow then reads back.
    """

    ways: dict[str, Callable[[], int]]
    digest: Callable[[], dict[str, str]] | None = None
    output: Path | None = None


@dataclass
class Digest:
    """Hashes of the values of named columns, fed batch by batch; equal values give equal hashes on every side."""

    _hashes: dict[str, Any] = field(default_factory=dict)

    def add(self, name: str, values: np.ndarray | bytes) -> None:
        """Append numbers (as int64 or float32) or raw bytes to a column."""
        data = values if isinstance(values, bytes) else np.ascontiguousarray(values).reshape(-1).view(np.uint8)
        self._hashes.setdefault(name, hashlib.sha256()).update(data)

    def add_lengths(self, name: str, lengths: np.ndarray) -> None:
        """Append the number of values of each row (or of each step) of a column."""
        self.add(f"{name} lengths", np.asarray(lengths, np.int64))

    def add_strings(self, name: str, values: Iterable[bytes]) -> None:
        """Append byte strings to a column, so that ``[b"a", b"b"]`` and ``[b"ab"]`` differ."""
        strings = list(values)
        self.add(name, b"".join(strings))
        self.add(f"{name} nbytes", np.array([len(string) for string in strings], np.int64))

    def result(self) -> dict[str, str]:
        """Return the hash of every column."""
        return {name: digest.hexdigest()[:16] for name, digest in sorted(self._hashes.items())}


def drain(items: Iterable[Any]) -> None:
    """Take every item and keep none."""
    for _ in items:
        pass


def digest_strings(strings: Iterable[bytes]) -> dict[str, str]:
    """Digest a stream of records without holding them all."""
    digest = Digest()
    for string in strings:
        digest.add_strings("record", [string])
    return digest.result()
