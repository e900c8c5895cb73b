"""Check one record against the rules of its dataset: image, size, labels, boxes, mask."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tfrkit._types import Row, UInt8Array
from tfrkit.errors import CodecError
from tfrkit.features.schema import show_name
from tfrkit.images.decode import Scratch, decode_image
from tfrkit.images.encode import check_image, inspect_image
from tfrkit.images.orientation import find_orientation
from tfrkit.images.perceptual import SIDE
from tfrkit.images.resize import UPRIGHT, resize_into, swaps_sides
from tfrkit.images.sniff import SUFFIX_FORMATS, ImageInfo
from tfrkit.ops.duplicates import DIGEST_NBYTES
from tfrkit.ops.verify.result import FindingKind
from tfrkit.ops.verify.rules import ClassRange, RecordRules
from tfrkit.pictures.masks import describe_sizes, read_mask
from tfrkit.pictures.pixels import fold_pixels, read_size, to_pixels
from tfrkit.pictures.values import flatten_row, list_values, read_corners

# Channel counts that a feature may give for an image of each mode: as stored, or as a decoder returns them.
_CHANNELS = {"L": {1}, "LA": {1, 2}, "P": {1, 3, 4}, "RGB": {3}, "RGBA": {3, 4}, "CMYK": {3, 4}}
_GRAY = np.array([0.299, 0.587, 0.114])
# Pixels by which a box may exceed the image, because tools round.
_ROUNDING = 0.5
_MAX_SHOWN = 5

Bools = np.ndarray[Any, np.dtype[np.bool_]]
Size = tuple[int, int]
"""(height, width)."""


@dataclass
class Judged:
    """Problems of a record, and its fingerprints.

    `digest` is b"" if the record is not compared; `copy` is a small square gray image, or None without a picture.
    """

    problems: list[tuple[FindingKind, str]] = field(default_factory=list)
    digest: bytes = b""
    copy: UInt8Array | None = None


class RecordCheck:
    """Checks rows against rules. Not thread-safe. Memory: one decoded image."""

    def __init__(self, rules: RecordRules, *, wants_copy: bool) -> None:
        self._rules = rules
        self._wants_copy = wants_copy
        self._scratch = Scratch()

    def judge(self, row: Row) -> Judged:
        """Check a row; return its problems and fingerprints."""
        rules = self._rules
        values = flatten_row(row, rules.schema)
        judged = Judged()
        size = self._judge_images(values, judged)
        judged.problems += self._judge_labels(values)
        if rules.boxes is not None:
            judged.problems += self._judge_boxes(values, size)
        if rules.parts is not None and rules.parts.mask is not None:
            judged.problems += self._judge_mask(values, rules.parts.mask, size)
        return judged

    # -- images

    def _judge_images(self, values: Mapping[str, Any], judged: Judged) -> Size | None:
        """Decode every image; return the size of the picture, or None without one."""
        rules = self._rules
        size = None
        for name in rules.images:
            if rules.parts is not None and name == rules.parts.mask:
                continue
            items = list_values(values.get(name))
            is_picture = name == rules.image and len(items) == 1
            for item in items:
                try:
                    info, copy = self._decode(item, is_picture)
                except CodecError as error:
                    judged.problems.append(("image", f"feature {show_name(name)} {error.what}"))
                    info, copy = None, None
                if is_picture:
                    judged.digest = digest(item)
                    judged.copy = copy
                if is_picture and info is not None:
                    size = (info.height or 0, info.width or 0)
                    judged.problems += self._compare_facts(values, item, info)
        if rules.image is not None and rules.image not in rules.images:
            size = self._judge_pixels(values, judged)
        return size

    def _decode(self, data: Any, is_picture: bool) -> tuple[ImageInfo, UInt8Array | None]:
        if not isinstance(data, bytes):
            raise CodecError(f"expected an encoded image, got {type(data).__name__}")
        info = inspect_image(data)
        if not (is_picture and self._wants_copy):
            check_image(data, self._scratch)
            return info, None
        try:
            # Reads the whole file, but produces only the pixels that are needed.
            return info, decode_image(data, size=(SIDE, SIDE), channels="gray")[:, :, 0]
        except CodecError:
            # Sound files that cannot be converted to gray (32-bit floats) have no copy.
            check_image(data, self._scratch)
            return info, None

    def _compare_facts(
        self, values: Mapping[str, Any], data: bytes, info: ImageInfo
    ) -> Iterator[tuple[FindingKind, str]]:
        stored = self._stored_size(values)
        found = (info.height or 0, info.width or 0)
        if stored is not None and stored[:2] != found:
            why = _explain_size(stored[:2], found, find_orientation(memoryview(data)))
            yield "size", f"image expected {_show(stored[:2])} as its features say, got {_show(found)}{why}"
        for channels in () if stored is None else stored[2:]:
            if channels not in _CHANNELS.get(info.mode or "", {1, 3}):
                names = {1: "gray", 2: "gray with alpha", 3: "RGB", 4: "RGBA"}
                expected = names.get(channels, f"{channels} channels")
                yield "size", f"image expected {expected} as its features say, got {info.mode}"
        name = self._rules.format
        text = next(iter(list_values(values.get(name or ""))), None)
        said = SUFFIX_FORMATS.get(f".{text.decode('utf-8', 'replace').lower()}") if isinstance(text, bytes) else None
        if said is not None and said != info.format:
            yield "image", f"image expected {said} as feature {show_name(name or '')} says, got {info.format}"

    def _judge_pixels(self, values: Mapping[str, Any], judged: Judged) -> Size | None:
        """Check a picture stored as raw pixels; return its size, or None if it is not known."""
        name, parts = self._rules.image or "", self._rules.parts
        value = values.get(name)
        if value is None or isinstance(value, list) or parts is None:
            return None
        stored = self._stored_size(values)
        array = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else np.asarray(value)
        if array.size == 0:
            judged.problems.append(("image", f"feature {show_name(name)} expected an image, got nothing"))
            return None
        judged.digest = digest(array.tobytes())
        if array.ndim == 1:
            if stored is None and parts.sizes.fixed is None:
                return None
            try:
                # A value may take several bytes: without a feature for channels, any number of them that fits is valid.
                array = fold_pixels(array, values, parts.sizes, channels=None)
            except CodecError as error:
                prefix = "" if parts.sizes.fixed is None else f"feature {show_name(name)}: "
                judged.problems.append(("size", prefix + error.what))
                return None
        elif stored is not None and stored[:2] != array.shape[:2]:
            got = _show((array.shape[0], array.shape[1]))
            judged.problems.append(("size", f"pixels expected {_show(stored[:2])} as its features say, got {got}"))
        if self._wants_copy and array.ndim in (2, 3):
            judged.copy = _copy_pixels(array)
        return (array.shape[0], array.shape[1]) if array.ndim in (2, 3) else None

    def _stored_size(self, values: Mapping[str, Any]) -> tuple[int, ...] | None:
        """Return (height, width) or (height, width, channels) of the picture according to features, or None."""
        size = None if self._rules.parts is None else read_size(values, self._rules.parts.sizes)
        return size if size is not None and len(size) <= 3 else None

    # -- labels

    def _judge_labels(self, values: Mapping[str, Any]) -> Iterator[tuple[FindingKind, str]]:
        for name, allowed in self._rules.labels.items():
            ids = np.asarray(list_values(values.get(name)), np.int64)
            wrong = _find_unknown_ids(ids, allowed)
            if wrong:
                yield "label", f"feature {show_name(name)} expected {describe_range(allowed)}, got {_list(wrong)}"
                continue
            text_name = self._rules.texts.get(name)
            if text_name is not None:
                yield from _compare_texts(name, ids.tolist(), text_name, values, allowed)

    # -- boxes

    def _judge_boxes(self, values: Mapping[str, Any], size: Size | None) -> Iterator[tuple[FindingKind, str]]:
        features = self._rules.boxes
        assert features is not None
        try:
            corners = read_corners(values, features)
        except CodecError as error:
            yield "box", error.what
            return
        if features.label is not None and features.label in values:
            num_labels = len(list_values(values[features.label]))
            if num_labels != len(corners):
                yield "box", f"boxes expected one label each, got {len(corners)} boxes and {num_labels} labels"
        if not len(corners):
            return
        stored = self._stored_size(values)
        if size is None and stored is not None:
            size = (stored[0], stored[1])
        problem = judge_corners(corners, size, is_pixels=self._rules.has_pixel_boxes)
        if problem is not None:
            yield "box", problem

    # -- masks

    def _judge_mask(self, values: Mapping[str, Any], name: str, size: Size | None) -> Iterator[tuple[FindingKind, str]]:
        value = values.get(name)
        if value is None:
            return
        # A single mask holds class ids; in a list of masks, each one holds an object.
        is_one = not isinstance(value, list)
        for item in [value] if is_one else list_values(value):
            try:
                numbers = read_mask(item, size)
            except CodecError as error:
                yield "mask", error.what
                continue
            if size is not None and numbers.shape != size:
                why = _explain_size(numbers.shape, size, self._find_orientation(values))
                yield "mask", describe_sizes(numbers.shape[::-1], (size[1], size[0])) + why
            elif is_one and self._rules.mask is not None:
                wrong = _find_unknown_ids(np.unique(numbers).astype(np.int64), self._rules.mask)
                if wrong:
                    yield "mask", f"mask expected {describe_range(self._rules.mask)}, got {_list(wrong)}"

    def _find_orientation(self, values: Mapping[str, Any]) -> int:
        """Return the EXIF orientation of the picture; upright if it is not an encoded image."""
        data = next(iter(list_values(values.get(self._rules.image or ""))), None)
        return find_orientation(memoryview(data)) if isinstance(data, bytes) else UPRIGHT


def digest(data: bytes | memoryview) -> bytes:
    """Hash bytes, to find equal records or images."""
    return hashlib.blake2b(data, digest_size=DIGEST_NBYTES).digest()


def describe_range(allowed: ClassRange) -> str:
    """Describe the ids of a range in words.

    Example:
        >>> describe_range(ClassRange(0, 10, "classes.txt", also=frozenset({255})))
        '0 to 9 as classes.txt says, or 255'
    """
    also = "".join(f", or {number}" for number in sorted(allowed.also))
    return f"{allowed.low} to {allowed.high - 1} as {allowed.origin} says{also}"


def judge_corners(corners: np.ndarray[Any, np.dtype[np.float64]], size: Size | None, *, is_pixels: bool) -> str | None:
    """Return a message about the first bad box, with the number of other bad ones, or None if all are valid.

    Example:
        >>> judge_corners(np.array([[0.1, 0.1, 0.5, 1.2]]), (100, 200), is_pixels=False)
        'box 0 (0.1, 0.1, 0.5, 1.2) is outside its image, expected 0 to 1'
    """
    height, width = size or (0, 0)
    if is_pixels:
        most = np.array([width, height], np.float64) if size else np.full(2, np.inf)
        slack = np.full(2, _ROUNDING)
    else:
        most = np.ones(2)
        slack = np.array([_ROUNDING / width, _ROUNDING / height]) if width and height else np.full(2, 1e-3)
    low, high = corners[:, :2], corners[:, 2:]
    is_finite: Bools = np.asarray(np.isfinite(corners).all(axis=1))
    is_ordered: Bools = np.asarray((low < high).all(axis=1))
    is_inside: Bools = np.asarray(((low > -slack) & (high < most + slack)).all(axis=1))
    bad = np.flatnonzero(~(is_finite & is_ordered & is_inside))
    if not len(bad):
        return None
    first = int(bad[0])
    shown = f"box {first} ({', '.join(f'{side:.4g}' for side in corners[first].tolist())})"
    if not is_finite[first]:
        what = "expected numbers"
    elif not is_ordered[first]:
        what = "expected xmin < xmax and ymin < ymax"
    else:
        expected = f"expected {_show((height, width))} pixels" if is_pixels else "expected 0 to 1"
        what = f"is outside its image, {expected}"
    more = f", and {len(bad) - 1} more" if len(bad) > 1 else ""
    return f"{shown} {what}{more}".replace(") expected", "), expected")


def _explain_size(size: tuple[int, ...], stored: Size, orientation: int) -> str:
    """Explain a wrong size if only height and width are swapped; otherwise return an empty string."""
    if size[::-1] != stored or size == stored:
        return ""
    if swaps_sides(orientation):
        return f"; {_show(size)} is the image turned by its EXIF orientation {orientation}, which is not applied"
    return "; height and width are swapped"


def _copy_pixels(array: np.ndarray[Any, Any]) -> UInt8Array | None:
    try:
        pixels = to_pixels(array)
    except CodecError:
        return None
    small = np.empty((SIDE, SIDE, 3), np.uint8)
    resize_into(np.ascontiguousarray(pixels), small, fit="stretch")
    copy: UInt8Array = (small @ _GRAY + 0.5).astype(np.uint8)
    return copy


def _find_unknown_ids(ids: np.ndarray[Any, Any], allowed: ClassRange) -> list[int]:
    outside = ids[(ids < allowed.low) | (ids >= allowed.high)]
    return [number for number in dict.fromkeys(outside.tolist()) if number not in allowed.also]


def _compare_texts(
    name: str, ids: list[int], text_name: str, values: Mapping[str, Any], allowed: ClassRange
) -> Iterator[tuple[FindingKind, str]]:
    texts = [text for text in list_values(values.get(text_name)) if isinstance(text, bytes)]
    if texts and len(texts) != len(ids):
        names = f"{show_name(name)} and {show_name(text_name)}"
        yield "label", f"features {names} expected one length, got {len(ids)} and {len(texts)}"
        return
    for number, text in zip(ids, texts, strict=False):
        expected = allowed.names.get(number)
        if expected is not None and expected.encode("utf-8", "surrogateescape") != text:
            shown = text[:64].decode("utf-8", "replace")
            expected = f"{expected!r:.64}, the name of {number}"
            yield "label", f"feature {show_name(text_name)} expected {expected}, got {shown!r}"
            return


def _list(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:_MAX_SHOWN]))
    return shown + (f" and {len(numbers) - _MAX_SHOWN} more" if len(numbers) > _MAX_SHOWN else "")


def _show(size: tuple[int, ...]) -> str:
    """Format a (height, width) as "WIDTHxHEIGHT"; other shapes as a tuple."""
    return "x".join(map(str, (size[1], size[0]))) if len(size) == 2 else str(size)
