"""Guess the meaning of a feature for display; the guess never affects decoding."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from tfrkit.features.name_words import BOX_WORDS, LABEL_WORDS, MASK_WORDS, SIZE_WORDS, can_be_class, split_words
from tfrkit.features.spec import Logical, Spec

_MAX_CLASS_ID = 9999

# First bytes of files other than images that a bytes value may hold.
_MAGIC = (
    (re.compile(rb"RIFF....WAVE", re.DOTALL), "WAV audio"),
    (re.compile(rb"fLaC"), "FLAC audio"),
    (re.compile(rb"OggS"), "Ogg audio"),
    (re.compile(rb"ID3|\xff[\xfb\xf3\xf2]"), "MP3 audio"),
    (re.compile(rb"....ftyp", re.DOTALL), "MP4 video"),
    (re.compile(rb"RIFF....AVI ", re.DOTALL), "AVI video"),
    (re.compile(rb"\x93NUMPY"), "NumPy file"),
    (re.compile(rb"\x1f\x8b\x08"), "gzip data"),
    (re.compile(rb"PK\x03\x04"), "zip data"),
    (re.compile(rb"%PDF-"), "PDF"),
)


class ImageLike(Protocol):
    """The properties of an image header used here; `tfrkit.images.sniff.ImageInfo` has them."""

    @property
    def format(self) -> str: ...
    @property
    def width(self) -> int | None: ...
    @property
    def height(self) -> int | None: ...
    @property
    def mode(self) -> str | None: ...
    @property
    def pixels(self) -> str: ...


@dataclass(frozen=True)
class FeatureView:
    """Input of the guess. `low` and `high` are the range of the numbers, `images` the first of `num_values` images."""

    name: str
    spec: Spec
    min_length: int
    max_length: int
    low: int | float | None = None
    high: int | float | None = None
    min_bytes: int = 0
    max_bytes: int = 0
    is_text: bool = False
    has_varying_rank: bool = False
    heads: Sequence[bytes] = ()
    images: Sequence[ImageLike] = ()
    num_values: int = 0


def guess_meaning(view: FeatureView) -> tuple[str, Logical]:
    """Guess the meaning of a feature; return it as text and as a logical type.

    Example:
        >>> guess_meaning(FeatureView("label", Spec("int64"), min_length=1, max_length=1, low=0, high=9))
        ('class id 0..9', 'class_label')
    """
    spec = view.spec
    if spec.seen == ():
        return "never set", "scalar"
    if spec.seen is not None:
        return f"{' and '.join(spec.seen)} in different records", "scalar"
    if spec.encoding == "tensor_proto":
        return _describe_tensor(view), "tensor"
    if view.max_length == 0:
        return "always empty", "scalar"
    if spec.kind == "bytes":
        return _guess_bytes(view)
    if spec.kind == "int64":
        return _guess_int(view)
    return _guess_float(view)


def find_media(heads: Sequence[bytes]) -> str | None:
    """Return the media type that all values have by their first bytes, other than images and text, or None.

    Example:
        >>> find_media([b"fLaC\\0\\0", b"fLaC\\0\\1"]), find_media([b"fLaC", b"x"])
        ('FLAC audio', None)
    """
    if not heads:
        return None
    return next((what for pattern, what in _MAGIC if all(pattern.match(head) for head in heads)), None)


def describe_images(images: Sequence[ImageLike]) -> str:
    """Describe format and size of some images: ``JPEG 640x480`` or ``JPEG 320x213 .. 800x600``.

    An image whose size is not in the sampled bytes does not count.
    """
    words = [" or ".join(dict.fromkeys(image.format for image in images))]
    widths = [image.width for image in images if image.width is not None]
    heights = [image.height for image in images if image.height is not None]
    if widths and heights:
        smallest, largest = f"{min(widths)}x{min(heights)}", f"{max(widths)}x{max(heights)}"
        words.append(smallest if smallest == largest else f"{smallest} .. {largest}")
    pixels = {image.pixels for image in images}
    if len(pixels) == 1:
        words += pixels
    return " ".join(words).strip()


def _guess_bytes(view: FeatureView) -> tuple[str, Logical]:
    if view.images:
        words = set(split_words(view.name))
        is_mask = bool(words & (MASK_WORDS | LABEL_WORDS)) and all(image.mode in ("P", "L") for image in view.images)
        sampled = "" if len(view.images) >= view.num_values else f" (of the first {len(view.images)})"
        return _prefix_count(view, describe_images(view.images) + sampled), "mask" if is_mask else "image"
    if view.max_bytes == 0:
        return _prefix_count(view, "empty bytes"), "bytes"
    if view.is_text:
        return _prefix_count(view, "UTF-8 text"), "text"
    media = find_media(view.heads)
    if media is not None:
        return _prefix_count(view, media), "bytes"
    size = str(view.min_bytes) if view.min_bytes == view.max_bytes else f"{view.min_bytes}..{view.max_bytes}"
    return _prefix_count(view, f"raw bytes, {size} each"), "bytes"


def _guess_int(view: FeatureView) -> tuple[str, Logical]:
    words = split_words(view.name)
    span = f"{view.low}..{view.high}" if view.low != view.high else f"{view.low}"
    is_small = view.low is not None and view.high is not None and view.low >= 0 and view.high <= _MAX_CLASS_ID
    is_label = is_small and can_be_class(view.name)
    if view.spec.shape != ():
        what = f"class ids {span}" if is_label else span
        return _show_count(view) + f", {what}", "class_label" if is_label else "tensor"
    if words and words[-1] in SIZE_WORDS:
        what = f"image {words[-1]}" if "image" in words or words[-1] in ("height", "width") else words[-1]
        return f"{what} {span}", "scalar"
    if is_label:
        return f"class id {span}", "class_label"
    if (view.low, view.high) == (0, 1):
        return "boolean 0/1", "scalar"
    if "id" in words or "ids" in words:
        return f"identifier {span}", "scalar"
    return f"scalar {span}", "scalar"


def _guess_float(view: FeatureView) -> tuple[str, Logical]:
    span = "all NaN" if view.low is None or view.high is None else f"{view.low:.6g} .. {view.high:.6g}"
    if view.low is not None and view.low == view.high:
        span = f"{view.low:.6g}"
    if set(split_words(view.name)) & BOX_WORDS:
        return _prefix_count(view, f"box coordinates {span}"), "boxes"
    if view.spec.shape == ():
        return f"scalar {span}", "scalar"
    return f"{_show_count(view)}, {span}", "tensor"


def _describe_tensor(view: FeatureView) -> str:
    spec = view.spec
    if spec.dtype is None:
        return "serialized tensors of several dtypes"
    if view.has_varying_rank:
        return f"serialized {spec.dtype} tensor, rank varies"
    return f"serialized {spec.dtype} tensor {spec.shape}"


def _prefix_count(view: FeatureView, what: str) -> str:
    return what if view.spec.shape == () else f"{_show_count(view)}, {what}"


def _show_count(view: FeatureView) -> str:
    if view.min_length == view.max_length:
        return f"{view.max_length} value{'' if view.max_length == 1 else 's'}"
    return f"{view.min_length}..{view.max_length} values"
