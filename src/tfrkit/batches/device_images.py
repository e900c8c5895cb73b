"""Images of a batch for a device to decode. Images that the device cannot decode are decoded on the CPU."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tfrkit._types import Int64Array
from tfrkit.batches.raw_images import RawShapes
from tfrkit.codec.columns import BytesColumn
from tfrkit.errors import CodecError
from tfrkit.features.schema import show_name
from tfrkit.images.decode import Scratch, decode_pixels, decode_with
from tfrkit.images.jpeg import is_jpeg, read_jpeg_header
from tfrkit.images.options import DecodeOptions
from tfrkit.images.pillow import check_pixels
from tfrkit.images.resize import UPRIGHT, Pixels, place

Place = tuple[str, int, int]
"""Shard, record in the shard, byte in the shard."""

# A JPEG ends with this marker. If it is missing, hardware decoders return gray pixels without an error.
_END_MARKER = b"\xff\xd9"
_TAIL_NBYTES = 64  # cameras pad the end of a file


@dataclass(frozen=True)
class EncodedImages:
    """A column of encoded images.

    Attributes:
        values: The encoded bytes.
        options: Size, channels and fit of the result.
        heights, widths: The stored size of each image; 0 if the CPU has decoded it.
        on_cpu: Pixels of the images that the device cannot decode, by row.
        reasons: Why the device cannot decode them, by row: "progressive JPEG", "not a JPEG", …
        places: The places of their records, by row.
    """

    values: BytesColumn
    options: DecodeOptions
    heights: Int64Array
    widths: Int64Array
    on_cpu: dict[int, Pixels]
    reasons: dict[int, str]
    places: dict[int, Place] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """Size in bytes of the encoded images and of the pixels decoded on the CPU."""
        return int(self.values.lengths.sum()) + sum(pixels.nbytes for pixels in self.on_cpu.values())

    def decode_on_cpu(self, row: int) -> Pixels:
        """Decode one image; a damaged image raises `CodecError`."""
        return decode_with(memoryview(self.values[row]), self.options, Scratch())

    def take(self, rows: Int64Array) -> EncodedImages:
        """Copy some rows."""
        moved = {old: new for new, old in enumerate(rows.tolist())}

        def pick(found: dict[int, Any]) -> dict[int, Any]:
            return {moved[row]: value for row, value in found.items() if row in moved}

        taken = BytesColumn.from_values([self.values[int(row)] for row in rows])
        heights, widths = self.heights[rows], self.widths[rows]
        return EncodedImages(
            taken, self.options, heights, widths, pick(self.on_cpu), pick(self.reasons), pick(self.places)
        )

    def with_places(self, places: dict[int, Place]) -> EncodedImages:
        """Return the same images with the places of the records that the CPU decoded."""
        return replace(self, places=places)

    def place(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """Compute how each image fits the result: (rows, columns) x (size, whole, start, origin, extent) x image.

        `size` is the stored size; the others are the fields of `images.resize.Placement`.
        """
        options = self.options
        assert options.size is not None
        height, width = options.size
        count = len(self)
        if options.fit == "stretch":
            made = np.zeros((2, 5, count), np.int64)
            made[:, 1] = made[:, 4] = np.array([[height], [width]])
        else:
            made = np.empty((2, 5, count), np.int64)
            for row, size in enumerate(zip(self.heights.tolist(), self.widths.tolist(), strict=True)):
                fitted = place(size if all(size) else options.size, options.size, options.fit)
                for axis in range(2):
                    parts = (fitted.whole, fitted.start, fitted.origin, fitted.extent)
                    made[axis, 1:, row] = [part[axis] for part in parts]
        made[0, 0], made[1, 0] = self.heights, self.widths
        return made


def require_device_options(name: str, options: DecodeOptions) -> None:
    """Raise if a device cannot decode with these options."""
    if options.size is None:
        raise TypeError(
            f"decode of feature {show_name(name)} on a device expected a size, got none\n"
            f"  the images of a batch are one array: {name}=(224, 224)"
        )
    for option, known in (("channels", ("rgb", "gray")), ("filter", ("bilinear",))):
        if getattr(options, option) not in known:
            raise ValueError(
                f"decode of feature {show_name(name)} on a device expected {option} "
                f"{' or '.join(map(repr, known))}, got {getattr(options, option)!r}"
            )


def split_images(
    values: BytesColumn, options: DecodeOptions, shapes: RawShapes
) -> tuple[EncodedImages, dict[int, CodecError]]:
    """Split images into those for the device and those for the CPU; return them and the errors by row.

    A device decodes baseline JPEGs with 1 or 3 components. All other images are decoded here.
    """
    count = len(values)
    heights, widths = np.zeros(count, np.int64), np.zeros(count, np.int64)
    on_cpu: dict[int, Pixels] = {}
    reasons: dict[int, str] = {}
    failures: dict[int, CodecError] = {}
    data, offsets = values.data.data, values.offsets.tolist()
    scratch = Scratch()
    for row in range(count):
        encoded = data[offsets[row] : offsets[row + 1]]
        try:
            found = _find_size(encoded, options)
            if isinstance(found, tuple):
                heights[row], widths[row] = found
                continue
            reasons[row] = found
            on_cpu[row] = decode_with(encoded, options, scratch)
        except CodecError as error:
            shape = shapes.find(row, encoded)
            if shape is None:
                failures[row] = shapes.explain(error, row, encoded)
                continue
            reasons[row] = "raw pixels"
            on_cpu[row] = decode_pixels(encoded, shape, options)
    return EncodedImages(values, options, heights, widths, on_cpu, reasons), failures


def _find_size(encoded: memoryview, options: DecodeOptions) -> tuple[int, int] | str:
    """Return (height, width) of a JPEG that a device can decode, or the reason why it cannot."""
    if not is_jpeg(encoded):
        return "not a JPEG"
    header = read_jpeg_header(encoded)
    check_pixels(header.height, header.width, options.max_pixels)
    if header.is_progressive:
        return "progressive JPEG"
    if header.num_components not in (1, 3):
        return f"JPEG with {header.num_components} components"
    if options.exif == "apply" and header.orientation != UPRIGHT:
        return "JPEG to be turned upright"
    if _END_MARKER not in bytes(encoded[-_TAIL_NBYTES:]):
        return "JPEG without an end marker"
    return header.height, header.width
