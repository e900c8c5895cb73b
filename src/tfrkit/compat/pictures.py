"""Decode images by TensorFlow's rules: channels as in the file, no EXIF rotation, palettes as colours."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from tfrkit.compat.dtypes import as_dtype
from tfrkit.compat.graph import deferrable
from tfrkit.compat.op_errors import InvalidArgumentError, UnimplementedError
from tfrkit.compat.tensor import Tensor, to_bytes, wrap
from tfrkit.errors import CodecError
from tfrkit.images.options import Channels
from tfrkit.images.sniff import sniff_image

_CHANNELS: dict[int, Channels] = {0: "keep", 1: "gray", 3: "rgb", 4: "rgba"}
_OFFERED = {"PNG": (0, 1, 3, 4), "JPEG": (0, 1, 3), "BMP": (0, 3, 4), "GIF": (0, 3), "WEBP": (0, 3, 4)}
_NOT_BMP = ("PNG", "JPEG", "GIF", "WEBP")  # TensorFlow's decoder of any one of these formats accepts all of them
_HEAD_NBYTES = 64
_Frames = Literal["one", "first", "all"]


@deferrable
def decode_image(
    contents: Any, channels: int | None = None, dtype: Any = "uint8", name: Any = None, expand_animations: bool = True
) -> Tensor:
    """Decode a PNG, JPEG or BMP to (height, width, channels); a GIF or WebP to (frames, height, width, channels)."""
    return _decode(contents, channels or 0, dtype, frames="all" if expand_animations else "first")


@deferrable
def decode_png(contents: Any, channels: int = 0, dtype: Any = "uint8", name: Any = None) -> Tensor:
    """Decode to (height, width, channels). Palette indices become colours: read masks with Pillow instead."""
    return _decode(contents, channels, dtype, only=_NOT_BMP)


@deferrable
def decode_jpeg(contents: Any, channels: int = 0, **options: Any) -> Tensor:
    """Decode to (height, width, channels). Options are ignored, but `ratio` must be 1."""
    if options.get("ratio", 1) != 1:
        raise UnimplementedError(None, None, f"decode_jpeg offers ratio=1 only, got {options['ratio']}")
    return _decode(contents, channels, "uint8", only=_NOT_BMP)


@deferrable
def decode_bmp(contents: Any, channels: int = 0, name: Any = None) -> Tensor:
    """Decode a BMP to (height, width, channels)."""
    return _decode(contents, channels, "uint8", only=("BMP",))


@deferrable
def decode_gif(contents: Any, name: Any = None) -> Tensor:
    """Decode a GIF to (frames, height, width, 3)."""
    return _decode(contents, 3, "uint8", frames="all", only=_NOT_BMP)


def _decode(
    contents: Any, channels: int, dtype: Any, *, frames: _Frames = "one", only: tuple[str, ...] | None = None
) -> Tensor:
    # Imported here, so that importing this module does not load an image library.
    from tfrkit.images.decode import decode_image as decode

    data = to_bytes(contents, "contents")
    info = sniff_image(data[:_HEAD_NBYTES])
    if info is None or info.format not in _OFFERED:
        raise InvalidArgumentError(
            None, None, f"expected a PNG, JPEG, GIF, BMP or WebP, got {info or 'something else'}"
        )
    if only is not None and info.format not in only:
        raise InvalidArgumentError(
            None, None, f"expected a {' or '.join(only)}, got a {info.format}\n  use tf.io.decode_image"
        )
    if channels not in _OFFERED[info.format]:
        raise InvalidArgumentError(
            None, None, f"channels of a {info.format} expected one of {_OFFERED[info.format]}, got {channels}"
        )
    try:
        pixels = decode(data, channels="rgb" if info.format == "GIF" else _CHANNELS[channels])
    except CodecError as error:
        raise InvalidArgumentError(None, None, error.what) from None
    rest = _later_frames(data, info.format, frames) if info.format in ("GIF", "WEBP") else []
    has_frames = frames == "all" and (only is not None or info.format in ("GIF", "WEBP"))
    return _scale(np.stack([pixels, *rest]) if has_frames else pixels, dtype)


def _later_frames(data: bytes, form: str, frames: _Frames) -> list[np.ndarray[Any, Any]]:
    """Decode the frames after the first if requested; raise if only one frame is allowed."""
    import io

    from PIL import Image, ImageSequence

    try:
        with Image.open(io.BytesIO(data), formats=("GIF", "WEBP")) as picture:
            num_frames = getattr(picture, "n_frames", 1)
            if num_frames > 1 and form == "WEBP":
                raise UnimplementedError(None, None, f"WebP pictures of one frame are decoded, got {num_frames}")
            if num_frames > 1 and frames == "one":
                raise InvalidArgumentError(
                    None, None, f"expected a picture of one frame, got {num_frames}\n  use tf.io.decode_gif"
                )
            if num_frames == 1 or frames == "first":
                return []
            return [np.asarray(frame.convert("RGB")) for frame in ImageSequence.Iterator(picture)][1:]
    except (OSError, ValueError, SyntaxError, EOFError, IndexError) as error:
        raise InvalidArgumentError(None, None, f"picture does not decode, {str(error)[:64]}") from None


def _scale(pixels: np.ndarray[Any, Any], dtype: Any) -> Tensor:
    """Convert pixels to another type: integers are scaled to its range, floats to 0 to 1."""
    wanted = as_dtype(dtype).name
    is_wide = pixels.dtype == np.uint16
    if wanted == "uint8":
        return wrap((pixels >> 8).astype(np.uint8) if is_wide else pixels)
    if wanted == "uint16":
        return wrap(pixels if is_wide else pixels.astype(np.uint16) * 257)
    if wanted == "float32":
        return wrap(pixels.astype(np.float32) / np.float32(65535 if is_wide else 255))
    raise UnimplementedError(None, None, f"pictures are decoded to uint8, uint16 or float32, got {wanted}")
