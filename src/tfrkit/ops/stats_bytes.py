"""Statistics of bytes values: their sizes, how many differ, the frequent ones, and what they are."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from tfrkit import _native
from tfrkit._types import Int64Array, UInt8Array, UInt64Array
from tfrkit.images.sniff import ImageInfo, sniff_image
from tfrkit.ops.stats_numbers import NumberSummary, summarize_ints
from tfrkit.ops.stats_scratch import scratch
from tfrkit.ops.stats_sketches import MAX_VALUES, NO_VALUES, DistinctSketch, count_sorted

# Values up to this size are kept where they are frequent.
MAX_SHOWN_NBYTES = 64
# Most image headers are in the first bytes; some JPEGs have a picture and a colour profile before them.
_HEAD_NBYTES, _LONG_HEAD_NBYTES = 4096, 256 << 10
_MIN_IMAGE_NBYTES = 12
# Keys that are looked for one by one; it takes less than looking each value up where they are few.
_MAX_SOUGHT = 16
# What every image that can be sniffed begins with: looked for before any more is read.
_IMAGE_HEAD = re.compile(rb"\xff\xd8\xff|\x89PNG|GIF8|RIFF....WEBP|BM|II\*\0|MM\0\*|....ftyp", re.DOTALL)
_BEGINS_IMAGE = np.isin(np.arange(256), np.frombuffer(b"\xff\x89GRBIM\0", np.uint8))


class ImageSummary:
    """Formats, modes and sizes of the values that are images, by their headers."""

    __slots__ = ("count", "formats", "heights", "modes", "widths")

    def __init__(self) -> None:
        self.count = 0
        self.formats: Counter[str] = Counter()
        self.modes: Counter[str] = Counter()
        self.widths = NumberSummary()  # of those whose header tells it
        self.heights = NumberSummary()

    def add(self, images: list[ImageInfo]) -> None:
        """Count some images."""
        self.count += len(images)
        self.formats.update(image.format for image in images)
        self.modes.update(image.mode for image in images if image.mode is not None)
        sized = [
            (image.width, image.height) for image in images if image.width is not None and image.height is not None
        ]
        if sized:
            sizes = np.array(sized, np.int64)
            self.widths.merge(summarize_ints(sizes[:, 0].copy()))
            self.heights.merge(summarize_ints(sizes[:, 1].copy()))

    def merge(self, other: ImageSummary) -> None:
        self.count += other.count
        self.formats.update(other.formats)
        self.modes.update(other.modes)
        self.widths.merge(other.widths)
        self.heights.merge(other.heights)


class BytesSummary:
    """What is known about many bytes values.

    Values are told apart by a 64-bit hash, their key. `shown` has the bytes of the short values in the table.
    """

    __slots__ = ("distinct", "images", "is_text", "shown", "sizes", "table")

    def __init__(self) -> None:
        self.sizes = NumberSummary()
        self.table = NO_VALUES
        self.distinct: DistinctSketch | None = None
        self.shown: dict[int, bytes] = {}
        self.is_text = True
        self.images = ImageSummary()

    @property
    def count(self) -> int:
        return self.sizes.count

    @property
    def num_distinct(self) -> int:
        """Different values."""
        return len(self.table.values) if self.distinct is None else min(self.count, self.distinct.count)

    @property
    def are_images(self) -> bool:
        """Is every value an image?"""
        return 0 < self.images.count == self.count

    def merge(self, other: BytesSummary) -> None:
        """Add what another summary counted."""
        if other.count == 0:
            return
        self.sizes.merge(other.sizes)
        self.images.merge(other.images)
        self.is_text = self.is_text and other.is_text
        before, distinct = self.table, self.distinct
        self.table = before.merge(other.table)
        self.shown.update(other.shown)
        if len(self.shown) > 2 * MAX_VALUES:
            self.shown = {key: self.shown[key] for key in self.table.values.tolist() if key in self.shown}
        if not self.table.is_exact:
            self.distinct = DistinctSketch(before.values.astype(np.uint64)) if distinct is None else distinct
            self.distinct.merge(other.distinct or DistinctSketch(other.table.values))

    def list_top(self, count: int) -> list[tuple[bytes, int]]:
        """The most frequent of the short values; [] where one of the most frequent is too long to be shown."""
        top = self.table.list_top(count)
        if not all(key in self.shown for key, _ in top):
            return []
        return sorted(((self.shown[key], times) for key, times in top), key=lambda one: (-one[1], one[0]))


def summarize_bytes(data: UInt8Array, offsets: Int64Array, limit: int | None = None) -> BytesSummary:
    """A summary of the values `data[offsets[i]:offsets[i + 1]]`; `limit` as in `DistinctSketch`."""
    summary = BytesSummary()
    if len(offsets) < 2:
        return summary
    starts = offsets[:-1]
    sizes: Int64Array = np.subtract(offsets[1:], starts, out=scratch.take("sizes", np.int64, len(starts)))
    summary.sizes = summarize_ints(sizes)
    summary.images.add(_find_images(data, starts, sizes))
    summary.is_text = summary.images.count == 0 and _is_text(data, offsets)
    keys = _native.hash_values(data, offsets)
    in_order = scratch.take("in_order", np.uint64, len(keys))
    np.copyto(in_order, keys)
    in_order.sort()
    summary.table = count_sorted(in_order)
    if not summary.table.is_exact:
        low = in_order if limit is None else in_order[: np.searchsorted(in_order, np.uint64(limit), side="right")]
        summary.distinct = DistinctSketch(low, limit)
    rows = _find_rows(summary.table.values, keys)
    for key, start, size in zip(
        summary.table.values.tolist(), starts[rows].tolist(), sizes[rows].tolist(), strict=True
    ):
        if size <= MAX_SHOWN_NBYTES:
            summary.shown[key] = data[start : start + size].tobytes()
    return summary


def _find_rows(wanted: UInt64Array, keys: UInt64Array) -> Int64Array:
    """A row that has each of the keys that are wanted, which are in ascending order."""
    rows = np.zeros(len(wanted), np.int64)
    if len(wanted) <= _MAX_SOUGHT:
        is_wanted = scratch.take("is_wanted", bool, len(keys))
        for number, key in enumerate(wanted):
            rows[number] = np.equal(keys, key, out=is_wanted).argmax()
    else:
        places = np.minimum(np.searchsorted(wanted, keys), len(wanted) - 1)
        found = np.flatnonzero(wanted[places] == keys)
        rows[places[found]] = found
    return rows


def _find_images(data: UInt8Array, starts: Int64Array, sizes: Int64Array) -> list[ImageInfo]:
    """What each value is that is an image."""
    if len(data) == 0 or int(sizes.max()) < _MIN_IMAGE_NBYTES:
        return []
    heads = data[np.minimum(starts, len(data) - 1)]
    rows = np.flatnonzero(_BEGINS_IMAGE[heads] & (sizes >= _MIN_IMAGE_NBYTES))
    images = []
    for start, size in zip(starts[rows].tolist(), sizes[rows].tolist(), strict=True):
        if not _IMAGE_HEAD.match(data[start : start + _MIN_IMAGE_NBYTES].tobytes()):
            continue
        image = sniff_image(data[start : start + min(size, _HEAD_NBYTES)].tobytes())
        if image is not None and image.width is None and size > _HEAD_NBYTES:
            image = sniff_image(data[start : start + min(size, _LONG_HEAD_NBYTES)].tobytes())
        if image is not None:
            images.append(image)
    return images


def _is_text(data: UInt8Array, offsets: Int64Array) -> bool:
    """Is every value UTF-8 without control characters other than tab, line feed and carriage return?"""
    if _native.find_invalid_utf8(data, offsets) != -1:
        return False
    content = data[int(offsets[0]) : int(offsets[-1])]
    if len(content) == 0 or int(content.min()) >= 0x20:
        return not np.equal(content, 0x7F, out=scratch.take("is_delete", bool, len(content))).any()
    controls = content[(content < 0x20) | (content == 0x7F)]
    return bool(np.isin(controls, np.frombuffer(b"\t\n\r", np.uint8)).all())
