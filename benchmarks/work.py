"""What a side (tfrkit, TensorFlow, a peer) brings to a benchmark, and the digest by which results are compared."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

BATCH = 1024
IMAGE_BATCH = 64  # 1024 images of 100 KB would be a batch of 100 MB
DIGEST_PICKS = 2000  # random accesses that are compared
PIXELS = 224  # height and width that images are resized to
SHUFFLE_BUFFER = 10_000  # rows
IMAGE_SHUFFLE_BUFFER = 1_000
COMPARED_IMAGES = 50
PIXEL_STEP = 16  # every 16th pixel of every 16th line is compared

Answer = dict[str, "str | list[float]"]
"""By name of a column: a hash that must be equal on every side, or numbers that must be close."""


@dataclass(frozen=True)
class Work:
    """One side's ways of doing one piece of work.

    Every way does all of it and returns the number of records; the fastest way is the one that is timed against the
    other sides. ``digest`` runs it again and returns a digest of the result. Works that write name their ``output``
    instead, which TensorFlow then reads back with its ``reader``. ``prepare`` runs before each time, off the clock.
    ``note`` returns the text for the report.
    """

    ways: dict[str, Callable[[], int]]
    digest: Callable[[], Answer] | None = None
    output: Path | None = None
    reader: str = "tabular"
    prepare: Callable[[], None] | None = None
    note: Callable[[], str] | None = None


@dataclass
class Digest:
    """Hashes of the values of named columns, fed batch by batch; equal values give equal hashes on every side."""

    _hashes: dict[str, Any] = field(default_factory=dict)
    _unordered: dict[str, list[np.ndarray]] = field(default_factory=dict)
    _near: dict[str, list[float]] = field(default_factory=dict)

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

    def add_unordered(self, columns: Mapping[str, Any]) -> None:
        """Append a batch of rows whose order does not matter: one number, or one byte string, a row and column.

        Each column is sorted before it is hashed. That would not distinguish a table with mixed-up columns from the
        true one, so a number made of each whole row is sorted and hashed as well.
        """
        rows: np.ndarray | int = 0
        for name, values in columns.items():
            numbers = number_values(values)
            self._unordered.setdefault(name, []).append(numbers)
            # A different odd factor for each column, so that columns cannot change places.
            rows = rows + numbers * np.uint64(2 * zlib.crc32(name.encode()) + 1)
        self._unordered.setdefault("whole rows", []).append(np.asarray(rows, np.uint64))

    def add_near(self, name: str, values: np.ndarray) -> None:
        """Set numbers that other sides must come close to."""
        self._near[name] = np.asarray(values, float).reshape(-1).tolist()

    def result(self) -> Answer:
        """Return the hash of every column, and the numbers to come close to."""
        answer: Answer = {name: digest.hexdigest()[:16] for name, digest in sorted(self._hashes.items())}
        for name, pieces in sorted(self._unordered.items()):
            answer[f"{name}, sorted"] = hashlib.sha256(np.sort(np.concatenate(pieces)).tobytes()).hexdigest()[:16]
        return answer | dict(sorted(self._near.items()))


def number_values(values: Any) -> np.ndarray:
    """Return one uint64 a value that is equal for equal values."""
    if isinstance(values, list):
        return np.array([zlib.crc32(value) | len(value) << 32 for value in values], np.uint64)
    array = np.ascontiguousarray(values).reshape(-1)
    return (
        array.view(np.uint32).astype(np.uint64) if array.dtype == np.float32 else array.astype(np.int64).view(np.uint64)
    )


@dataclass
class PixelDigest:
    """Labels of images in any order, and some pixels of some of them."""

    num_images: int
    _digest: Digest = field(default_factory=Digest)

    def add(self, images: np.ndarray, labels: np.ndarray) -> None:
        """Append a batch of uint8 images of (rows, height, width, 3)."""
        if images.dtype != np.uint8 or images.shape[1:] != (PIXELS, PIXELS, 3):
            raise ValueError(f"expected uint8 images of {PIXELS}x{PIXELS}x3, got {images.dtype} {images.shape}")
        labels = np.asarray(labels).reshape(-1)
        self._digest.add_unordered({"label": labels})
        every = max(1, self.num_images // COMPARED_IMAGES)
        for image, label in zip(images, labels.tolist(), strict=True):
            if label % every == 0:
                self._digest.add_near(f"pixels of image {label}", image[PIXEL_STEP // 2 :: PIXEL_STEP, ::PIXEL_STEP])

    def result(self) -> Answer:
        """Return the hash of the labels and the pixels to come close to."""
        return self._digest.result()


def score_mixing(numbers: np.ndarray) -> float:
    """Return the mean distance of neighbours relative to a random order: 1 is a perfect shuffle, 0 none."""
    numbers = numbers.astype(np.int64)
    return float(min(1.0, np.abs(np.diff(numbers)).mean() / (len(numbers) / 3)))


def drain(items: Iterable[Any]) -> None:
    """Take every item and keep none."""
    for _ in items:
        pass


def digest_unordered_files(paths: Iterable[Path]) -> str:
    """Digest the records of uncompressed files, in any order: a sum of hashes of the payloads, and how many."""
    from plain_frames import iterate_frames

    total = count = 0
    for path in paths:
        for frame in iterate_frames(path):
            total += int.from_bytes(hashlib.blake2b(frame, digest_size=8).digest(), "little")
            count += 1
    return f"{count} records, {total % 2**64:016x}"


def digest_strings(strings: Iterable[bytes]) -> Answer:
    """Digest a stream of records without holding them all."""
    digest = Digest()
    for string in strings:
        digest.add_strings("record", [string])
    return digest.result()
