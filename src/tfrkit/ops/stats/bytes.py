"""Statistics of bytes values: sizes, distinct and frequent values, and whether they are text or images."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from tfrkit import _native
from tfrkit._types import Int64Array, UInt8Array
from tfrkit.images.sniff import ImageInfo, sniff_image
from tfrkit.ops.stats.numbers import NumberSummary, summarize_ints, take_figures
from tfrkit.ops.stats.sketches import MAX_VALUES, NO_VALUES, SIZES, DistinctSketch, ValueTable

# Frequent values are kept up to this size.
MAX_SHOWN_NBYTES = 64
# Limit of the counted pairs of width and height.
MAX_PAIRS = 600
# Most image headers are in the first bytes; some JPEGs have a thumbnail and a colour profile before them.
_HEAD_NBYTES, _LONG_HEAD_NBYTES = 4096, 256 << 10


class ImageSummary:
    """Formats, modes and sizes of the values that are images, from their headers.

    `pairs` counts (width, height), rounded down to multiples of `step`: a power of two, so that there are few pairs. It
    does not depend on the order in which summaries are merged.
    """

    __slots__ = ("count", "formats", "heights", "modes", "pairs", "step", "widths")

    def __init__(self) -> None:
        self.count = 0
        self.formats: Counter[str] = Counter()
        self.modes: Counter[str] = Counter()
        self.widths = NumberSummary()  # of images whose headers have a size
        self.heights = NumberSummary()
        self.pairs: Counter[tuple[int, int]] = Counter()
        self.step = 1

    def add(self, images: list[ImageInfo]) -> None:
        """Add images to the counts."""
        if not images:
            return
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
            self._add_pairs(Counter(sized), 1)

    def merge(self, other: ImageSummary) -> None:
        if other.count == 0:
            return
        self.count += other.count
        self.formats.update(other.formats)
        self.modes.update(other.modes)
        self.widths.merge(other.widths)
        self.heights.merge(other.heights)
        self._add_pairs(other.pairs, other.step)

    def _add_pairs(self, pairs: Mapping[tuple[int, int], int], step: int) -> None:
        step = max(step, self.step)
        while True:
            if step > self.step:
                self.pairs, self.step = _round_pairs(self.pairs, step), step
            added = _round_pairs(pairs, step)
            if len(self.pairs.keys() | added.keys()) <= MAX_PAIRS:
                break
            step *= 2
        self.pairs.update(added)


def _round_pairs(pairs: Mapping[tuple[int, int], int], step: int) -> Counter[tuple[int, int]]:
    rounded: Counter[tuple[int, int]] = Counter()
    for (width, height), count in pairs.items():
        rounded[width // step * step, height // step * step] += count
    return rounded


class BytesSummary:
    """Statistics of many bytes values.

    Values are identified by a 64-bit hash, their key. `shown` maps keys to the bytes of short values.
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
        """Number of distinct values, or an estimate of it."""
        return len(self.table.values) if self.distinct is None else min(self.count, self.distinct.count)

    @property
    def are_images(self) -> bool:
        """Is every value an image?"""
        return 0 < self.images.count == self.count

    def merge(self, other: BytesSummary) -> None:
        """Add the values of another summary."""
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
        """List the most frequent values with their counts; [] if one of them is too long to be shown."""
        top = self.table.list_top(count)
        if not all(key in self.shown for key, _ in top):
            return []
        return sorted(((self.shown[key], times) for key, times in top), key=lambda one: (-one[1], one[0]))


def summarize_bytes(data: UInt8Array, offsets: Int64Array, limit: int | None = None) -> BytesSummary:
    """Summarize the values `data[offsets[i]:offsets[i + 1]]`; `limit` as in `summarize_ints`."""
    summary = BytesSummary()
    if len(offsets) < 2:
        return summary
    figures = _native.summarize_bytes(data, offsets, SIZES, limit)
    summary.sizes = take_figures(len(offsets) - 1, figures.sizes)
    summary.images.add(_sniff_images(data, offsets, figures.images))
    summary.is_text = summary.images.count == 0 and _is_text(data, offsets)
    summary.table = ValueTable(figures.keys, figures.counts, 0 if figures.is_whole else 1)
    if not figures.is_whole:
        summary.distinct = DistinctSketch(figures.hashes, is_exact=False)
    keys, rows = figures.keys, figures.rows
    for key, start, stop in zip(keys.tolist(), offsets[rows].tolist(), offsets[rows + 1].tolist(), strict=True):
        if stop - start <= MAX_SHOWN_NBYTES:
            summary.shown[key] = data[start:stop].tobytes()
    return summary


def _sniff_images(data: UInt8Array, offsets: Int64Array, rows: Int64Array) -> list[ImageInfo]:
    """Read the image headers of the values at `rows`; values that are not images are left out."""
    images = []
    for start, stop in zip(offsets[rows].tolist(), offsets[rows + 1].tolist(), strict=True):
        image = sniff_image(data[start : min(stop, start + _HEAD_NBYTES)].tobytes())
        if image is not None and image.width is None and stop - start > _HEAD_NBYTES:
            image = sniff_image(data[start : min(stop, start + _LONG_HEAD_NBYTES)].tobytes())
        if image is not None:
            images.append(image)
    return images


def _is_text(data: UInt8Array, offsets: Int64Array) -> bool:
    """Is every value UTF-8 without control characters other than tab, line feed and carriage return?"""
    if _native.find_invalid_utf8(data, offsets) != -1:
        return False
    content = data[int(offsets[0]) : int(offsets[-1])]
    if len(content) == 0 or int(content.min()) >= 0x20:
        return not bool((content == 0x7F).any())
    controls = content[(content < 0x20) | (content == 0x7F)]
    return bool(np.isin(controls, np.frombuffer(b"\t\n\r", np.uint8)).all())
