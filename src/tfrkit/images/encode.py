"""Prepare images for records: keep them unchanged, or re-encode them as raw pixels, PNG or JPEG.

How unusual pixels are converted when an image is re-encoded:

    palette            its colours
    16-bit channels    the upper 8
    CMYK               RGB
    alpha              dropped
    gray               RGB, unless gray is requested
    EXIF orientation   ignored, unless `exif="apply"`
    several frames     the first one

The bytes of a kept image do not change: width and height are those of its stored pixels. With `exif="apply"` an
image that is not upright is turned and re-encoded; width and height are those of the turned image.
"""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from tfrkit import _native
from tfrkit.errors import CodecError, Hint, SourceError, Step
from tfrkit.images.decode import Scratch
from tfrkit.images.jpeg import decode_jpeg, is_jpeg, read_jpeg_header
from tfrkit.images.options import DEFAULT_MAX_PIXELS
from tfrkit.images.orientation import find_orientation
from tfrkit.images.pillow import check_pixels, find_image_format, image_to_pixels, load_image
from tfrkit.images.png import decode_png, read_png
from tfrkit.images.resize import UPRIGHT, Pixels, resize_as_pillow, turn_upright
from tfrkit.images.sniff import SUFFIX_FORMATS, ImageInfo, sniff_image
from tfrkit.images.turn import ExifPolicy, StoredImage, count_channels, require_upright, turn_image

Encode = Literal["auto", "keep", "raw", "png", "jpeg"]
Check = Literal["decode", "header", "none"]
Turn = Literal["upright", "rotated", "turned", "turned with annotations"]
"""What was done about the EXIF orientation: there was none, it was ignored, or it was applied."""

# A file of a few kilobytes can declare a thousand times more pixels than a camera has.
MAX_PIXELS = DEFAULT_MAX_PIXELS
_GRAY_MODES = frozenset({"1", "L", "LA", "I", "I;16", "I;16B", "I;16L"})
# Limit of distinct image sizes that are counted separately, to bound memory.
_MAX_SIZES = 16
# Bytes needed to detect the format.
_HEAD_NBYTES = 64


@dataclass(frozen=True)
class ImageOptions:
    """Image options of a source.

    Attributes:
        resize: Width and height to which every image is resized (bicubic, as in Pillow), or None.
        gray: One channel instead of three.
        encode: "keep" stores the file unchanged; "raw" stores pixels, rows from the top, channels last; "png"; "jpeg".
            "auto" keeps unchanged images, stores resized images as raw pixels, and other gray images as PNG.
        quality: Quality of re-encoded JPEGs, 1 to 100.
        check: How kept images are checked. "decode" decodes each image, so that damaged files are found before
            training; "header" and "none" read only format and size.
        exif: What to do with images that have an EXIF orientation. "keep" uses their pixels as stored, as TensorFlow
            does; "apply" turns them upright and re-encodes them if they would be kept; "fail" refuses them. Sizes,
            boxes and masks always refer to the image in the record.
    """

    resize: tuple[int, int] | None = None
    gray: bool = False
    encode: Encode = "auto"
    quality: int = 95
    check: Check = "decode"
    exif: ExifPolicy = "keep"

    def __post_init__(self) -> None:
        for name, value, choices in (
            ("encode", self.encode, get_args(Encode)),
            ("check", self.check, get_args(Check)),
            ("exif", self.exif, get_args(ExifPolicy)),
        ):
            if value not in choices:
                raise ValueError(f"{name} expected one of {', '.join(choices)}, got {value!r}")
        if not 1 <= self.quality <= 100:
            raise ValueError(f"quality expected from 1 to 100, got {self.quality}")
        if self.resize is not None:
            width, height = self.resize
            if min(width, height) < 1 or width * height > MAX_PIXELS:
                raise ValueError(f"resize expected a width and a height from 1 up, got {width}x{height}")
        if self.encode == "keep" and (self.resize or self.gray):
            raise ValueError("images that are resized or made gray cannot be kept\n  use encode raw, png or jpeg")

    @property
    def stored_as(self) -> Literal["keep", "raw", "png", "jpeg"]:
        """The encoding that is used, with "auto" resolved."""
        if self.encode != "auto":
            return self.encode
        if self.resize:
            return "raw"
        return "png" if self.gray else "keep"

    def to_json(self) -> dict[str, Any]:
        """Return the options as a JSON value."""
        return asdict(self)

    def describe(self) -> list[str]:
        """Describe the options for display, one sentence each."""
        if self.stored_as == "keep":
            looked = {"decode": "every one is decoded once", "header": "headers only", "none": "not checked"}
            again = ", those with an EXIF orientation are turned and re-encoded" if self.exif == "apply" else ""
            return [f"images: encoded bytes kept unchanged{again}, {looked[self.check]}"]
        size = f", resized to {self.resize[0]}x{self.resize[1]} (bicubic)" if self.resize else ""
        form = {"raw": "raw uint8 pixels", "png": "PNG", "jpeg": f"JPEG of quality {self.quality}"}[self.stored_as]
        turned = "turned as EXIF says" if self.exif == "apply" else "not turned by EXIF"
        colours = "gray" if self.gray else "RGB"
        return [f"images: {form}, {colours}{size}; palettes, CMYK and 16 bits become 8-bit, alpha is dropped, {turned}"]

    def describe_seen(self, facts: Mapping[str, Mapping[ImageFact, int]]) -> list[str]:
        """Describe unusual images, one sentence for each kind, from the facts of an `ImageStore` for each feature.

        Unusual are images with an EXIF orientation, kept CMYK images, and files with a wrong suffix.
        """
        seen: Counter[Turn] = Counter()
        misnamed: Counter[str] = Counter()
        total = num_cmyk = 0
        for counts in facts.values():
            for fact, count in counts.items():
                total += count
                seen[fact.turn] += count
                num_cmyk += count if fact.is_cmyk else 0
                misnamed[fact.misnomer] += count
        del misnamed[""]
        notes: list[str] = []
        if num_cmyk and self.stored_as == "keep":
            what = f"images in CMYK, kept unchanged, which not every reader decodes: {num_cmyk:,} of {total:,}; "
            jpeg = Step(f"{what}to re-encode as RGB: {{encode}}", encode="jpeg")
            notes.append(Hint(jpeg, Step("{encode}", encode="png"), gap=" or "))
        if misnamed:
            kinds = ", ".join(f"{kind} {count:,}" for kind, count in misnamed.most_common())
            notes.append(f"files whose suffix does not match their format, read by format: {kinds}")
        num_turned = seen["turned"] + seen["turned with annotations"]
        if num_turned:
            notes.append(f"images turned by their EXIF orientation: {num_turned:,} of {total:,}")
        if seen["turned with annotations"]:
            notes.append(_note_annotations(seen["turned with annotations"]))
        if seen["rotated"]:
            what = f"images with an EXIF orientation, pixels taken as stored: {seen['rotated']:,} of {total:,}; "
            notes.append(Hint(Step(f"{what}to store them upright use {{exif}}", exif="apply")))
        return notes


class ImageFact(NamedTuple):
    """Properties by which stored images are counted; height and width are None after the first 16 sizes.

    `misnomer` describes a file with a wrong suffix: "png called .jpg".
    """

    format: str
    channels: int
    bits: int
    height: int | None
    width: int | None
    turn: Turn = "upright"
    is_cmyk: bool = False
    misnomer: str = ""


class ImageStore:
    """Makes stored images with fixed options and counts their properties. Picklable; not thread-safe."""

    def __init__(self, options: ImageOptions) -> None:
        self.options = options
        self._keeps = options.stored_as == "keep"
        self._facts: Counter[ImageFact] = Counter()
        self._sizes: set[tuple[int | None, int | None]] = set()
        self._scratch = Scratch()

    def store(self, data: bytes, name: str = "", *, is_annotated: bool = False) -> StoredImage:
        """Return the image to write; raise `SourceError` for a file that is not an image, is damaged or too large.

        `name` is the file name, whose suffix is checked. `is_annotated` says that the image has boxes or a mask; such
        images are counted separately if they are turned.
        """
        options = self.options
        orientation = find_orientation(memoryview(data))
        if options.exif == "fail":
            require_upright(orientation)
        is_turned = options.exif == "apply" and orientation != UPRIGHT
        try:
            if not self._keeps:
                image, bits = _make(data, options, self._scratch, orientation if is_turned else UPRIGHT), 8
                info = sniff_image(data[:_HEAD_NBYTES]) or ImageInfo("?")
            else:
                info = inspect_image(data)
                if options.check == "decode":
                    check_image(data, self._scratch)
                image = turn_image(data, info, orientation, options.quality) if is_turned else _keep(data, info)
                bits = info.bits
        except CodecError as error:
            raise SourceError(error.what) from None
        turned: Turn = "turned with annotations" if is_annotated else "turned"
        turn: Turn = "upright" if orientation == UPRIGHT else turned if is_turned else "rotated"
        size: tuple[int | None, int | None] = (image.height, image.width)
        if len(self._sizes) < _MAX_SIZES:
            self._sizes.add(size)
        if size not in self._sizes:
            size = (None, None)
        suffix, found = os.path.splitext(name)[1].lower(), info.format
        misnomer = "" if SUFFIX_FORMATS.get(suffix, found) == found else f"{found.lower()} called {suffix}"
        self._facts[ImageFact(image.format, image.channels, bits, *size, turn, info.mode == "CMYK", misnomer)] += 1
        return image

    def take_facts(self) -> Counter[ImageFact]:
        """Return and reset the counts of each kind of image."""
        facts, self._facts, self._sizes = self._facts, Counter(), set()
        return facts

    def __getstate__(self) -> dict[str, Any]:
        fresh = {"_facts": Counter(), "_sizes": set(), "_scratch": Scratch()}
        return {"options": self.options, "_keeps": self._keeps, **fresh}


def _note_annotations(number: int) -> str:
    """Return the note that boxes and masks of turned images are not turned."""
    what = "1 turned image has annotations" if number == 1 else f"{number:,} turned images have annotations"
    text = f"{what}, which are taken as made on the upright image; made on the stored pixels? use {{exif}}"
    return Hint(Step(text, exif="keep"))


def inspect_image(data: bytes) -> ImageInfo:
    """Read format, size and mode of an image; raise `CodecError` if it is not an image or too large."""
    view = memoryview(data)
    if is_jpeg(view):
        header = read_jpeg_header(view)
        mode = {1: "L", 4: "CMYK"}.get(header.num_components, "RGB")
        info = ImageInfo("JPEG", header.width, header.height, mode, header.bits)
    else:
        info = find_image_format(view)
        if info.format == "TIFF":  # its header may be anywhere in the file
            info = sniff_image(data) or info
        if info.width is None or info.height is None or info.mode is None:
            image = load_image(view, MAX_PIXELS)
            info = ImageInfo(info.format, image.width, image.height, image.mode, info.bits)
    height, width = info.height or 0, info.width or 0
    if height * width == 0:
        raise CodecError(f"image has no pixels, {width}x{height}")
    check_pixels(height, width, MAX_PIXELS)
    return info


def image_spec(options: ImageOptions, facts: Iterable[ImageFact] | None = None) -> Any:
    """Return keyword arguments of a `Spec` for the stored images, from the properties that all images share.

    Sizes, channels and formats that differ are left open. `facts` are from `ImageStore`, or None before reading.
    """
    seen = list(facts or ())
    formats, channels = {fact.format for fact in seen}, {fact.channels for fact in seen}
    sizes = {(fact.height, fact.width) for fact in seen}
    if options.resize is not None:
        sizes = {options.resize[::-1]}
    height, width = sizes.pop() if len(sizes) == 1 else (None, None)
    num_channels = 1 if options.gray else 3 if options.stored_as != "keep" or len(channels) != 1 else channels.pop()
    if options.stored_as == "raw":
        shape = (height, width, num_channels)
        return {"kind": "bytes", "shape": shape, "logical": "image", "encoding": "raw", "dtype": "uint8"}
    image_format = formats.pop() if len(formats) == 1 else None
    if options.stored_as in ("png", "jpeg"):
        image_format = options.stored_as
    spec: dict[str, Any] = {"kind": "bytes", "logical": "image", "decoded_shape": (height, width, num_channels)}
    if image_format is not None:
        spec["format"] = image_format
    if {fact.bits for fact in seen} == {16} and image_format == "png":
        spec["dtype"] = "uint16"
    return spec


def check_image(data: bytes, scratch: Scratch) -> None:
    """Check all data of an image; raise `CodecError` if it does not decode.

    Of an ordinary JPEG only the entropy-coded data is checked: this finds damage without the cost of computing pixels.
    If the check fails, the image is decoded in a small size to report the cause.
    """
    view = memoryview(data)
    if is_jpeg(view):
        if _native.is_sound_jpeg(data):
            return
        header = read_jpeg_header(view)
        if header.num_components in (1, 3):
            decode_jpeg(view, header, "GRAY", scratch.take(-(-header.height // 8) * -(-header.width // 8)), 1)
            return
    png = read_png(view, MAX_PIXELS)
    if png is None:
        load_image(view, MAX_PIXELS)
    else:
        decode_png(png)


def _keep(data: bytes, info: ImageInfo) -> StoredImage:
    width, height = info.width or 0, info.height or 0
    return StoredImage(data, info.format.lower(), width, height, count_channels(info), width, height)


def _make(data: bytes, options: ImageOptions, scratch: Scratch, orientation: int) -> StoredImage:
    pixels = _decode(memoryview(data), options, scratch)
    if orientation != UPRIGHT:
        pixels = np.ascontiguousarray(turn_upright(pixels, orientation))
    source_height, source_width = pixels.shape[:2]
    width, height = options.resize or (source_width, source_height)
    channels = 1 if options.gray else 3
    if pixels.shape != (height, width, channels):
        # Resize in colour, then convert to gray, to match existing scripts.
        pixels = resize_as_pillow(pixels, (height, width), "bicubic", channels=channels)
    stored_as = options.stored_as
    stored = pixels.tobytes() if stored_as == "raw" else _encode(pixels, stored_as, options.quality)
    return StoredImage(stored, stored_as, width, height, channels, source_width, source_height)


def _decode(data: memoryview, options: ImageOptions, scratch: Scratch) -> Pixels:
    """Return pixels as stored, with three channels, or one if the options and the image allow it."""
    if is_jpeg(data):
        header = read_jpeg_header(data)
        if header.num_components in (1, 3):
            is_gray = options.gray and header.num_components == 1
            buffer = scratch.take(header.height * header.width * (1 if is_gray else 3))
            return decode_jpeg(data, header, "GRAY" if is_gray else "RGB", buffer)
    png = read_png(data, MAX_PIXELS)
    if png is not None:
        pixels = decode_png(png)
        needs_colour = pixels.shape[2] == 1 and not options.gray
        return np.repeat(pixels, 3, axis=2) if needs_colour else pixels
    image = load_image(data, MAX_PIXELS)
    is_gray = options.gray and image.mode in _GRAY_MODES
    return np.ascontiguousarray(image_to_pixels(image, "gray" if is_gray else "rgb"))


def _encode(pixels: Pixels, form: str, quality: int) -> bytes:
    from PIL import Image

    image = Image.fromarray(pixels if pixels.shape[2] == 3 else pixels[:, :, 0])
    file = io.BytesIO()
    if form == "png":
        image.save(file, "PNG")
    else:
        image.save(file, "JPEG", quality=quality)
    return file.getvalue()
