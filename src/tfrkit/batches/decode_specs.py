"""Arguments of `decode`, and the dtypes and shapes that they result in."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from tfrkit.features.name_words import ENCODED_WORDS, split_words
from tfrkit.features.schema import show_name
from tfrkit.images.decode import NUM_CHANNELS
from tfrkit.images.mask import MaskOptions
from tfrkit.images.options import DecodeOptions


@dataclass(frozen=True)
class RawOptions:
    """Raw bytes of an array: its dtype, and its shape with at most one None for a size that varies."""

    dtype: str
    shape: tuple[int | None, ...] = ()

    def __post_init__(self) -> None:
        try:
            dtype = np.dtype(self.dtype)
        except TypeError:
            raise ValueError(f"dtype expected the name of a NumPy dtype, got {self.dtype!r:.64}") from None
        if dtype.kind not in "biufc":
            raise ValueError(f"dtype expected numbers, got {self.dtype!r:.64}")
        object.__setattr__(self, "dtype", dtype.str if dtype.byteorder == ">" else dtype.name)
        if not isinstance(self.shape, (tuple, list)):
            raise TypeError(f"shape expected a tuple of sizes, got {self.shape!r:.64}")
        shape = tuple(None if size is None else operator.index(size) for size in self.shape)
        if any(size is not None and size < 0 for size in shape) or shape.count(None) > 1:
            raise ValueError(f"shape expected sizes of 0 or more with at most one None, got {shape!r:.64}")
        if None in shape and 0 in shape:
            raise ValueError(f"shape expected no size of 0 together with None, got {shape!r:.64}")
        object.__setattr__(self, "shape", shape)


@dataclass(frozen=True)
class TextOptions:
    """UTF-8 text as str."""


DecodeSpec = DecodeOptions | MaskOptions | RawOptions | TextOptions

_KINDS: dict[str, type[DecodeSpec]] = {
    "image": DecodeOptions,
    "mask": MaskOptions,
    "raw": RawOptions,
    "text": TextOptions,
}
_DEFAULTS = {field.name: field.default for field in fields(DecodeOptions)}


@dataclass(frozen=True)
class DecodeRequest:
    """The request to decode one feature.

    Attributes:
        spec: The options, unless the schema gives another kind.
        open_options: The options given without a kind; None if the caller named the kind.
        is_by_schema: The argument was True: the schema chooses the kind, so text becomes str.
    """

    spec: DecodeSpec
    open_options: Mapping[str, Any] | None = None
    is_by_schema: bool = False

    def for_feature(self, name: str, logical: str) -> DecodeRequest:
        """Return the request for a feature of a schema, whose `logical` type is image, mask, text or another.

        A mask of the schema is decoded as a mask unless the caller named another kind. An option that masks do
        not have raises TypeError.
        """
        if self.is_by_schema and logical == "text":
            if ENCODED_WORDS & set(split_words(name)[-2:]):
                raise TypeError(
                    f"decode of feature {show_name(name)}: True takes the schema's type, which is text; expected "
                    "'text' for str, 'image' or (height, width) for a picture"
                )
            return DecodeRequest(TextOptions())
        if self.open_options is None or logical != "mask":
            return DecodeRequest(self.spec)
        known = [field.name for field in fields(MaskOptions)]
        foreign = [option for option in self.open_options if option not in known]
        if foreign:
            given = ", ".join(f'"{option}": {value!r:.64}' for option, value in self.open_options.items())
            raise TypeError(
                f"decode of feature {show_name(name)}: option {foreign[0]!r} is for images, but the schema calls this "
                f"a mask, which has {', '.join(known)}\n"
                f'  decode it as an image, which blends the numbers: {{"type": "image", {given}}}'
            )
        return DecodeRequest(MaskOptions(**self.open_options))


def read_request(name: str, argument: Any) -> DecodeRequest:
    """Parse one argument of `decode`.

    Example:
        >>> read_request("image", (224, 224)).spec.size
        (224, 224)
        >>> read_request("pixels", {"dtype": "uint8", "shape": (28, 28)}).spec
        RawOptions(dtype='uint8', shape=(28, 28))
    """
    try:
        if isinstance(argument, DecodeOptions):
            changed = {one.name: getattr(argument, one.name) for one in fields(argument)}
            return DecodeRequest(argument, {key: value for key, value in changed.items() if value != _DEFAULTS[key]})
        if isinstance(argument, (MaskOptions, RawOptions, TextOptions)):
            return DecodeRequest(argument)
        if argument is True or argument == "image":
            return DecodeRequest(DecodeOptions(), {}, is_by_schema=argument is True)
        if isinstance(argument, str) and argument in _KINDS:
            return DecodeRequest(_read_options({"type": argument}))
        if isinstance(argument, (tuple, list)):
            return DecodeRequest(DecodeOptions(size=tuple(argument)), {"size": tuple(argument)})
        if isinstance(argument, Mapping):
            is_open = not {"type", "dtype"} & set(argument)
            return DecodeRequest(_read_options(argument), dict(argument) if is_open else None)
    except (TypeError, ValueError) as error:
        raise type(error)(f"decode of feature {show_name(name)}: {error}") from None
    raise TypeError(
        f"decode of feature {show_name(name)} expected (height, width), True, 'image', 'mask', 'text' or a dict of "
        f"options, got {argument!r:.64}"
    )


def _read_options(argument: Mapping[str, Any]) -> DecodeSpec:
    options = dict(argument)
    kind = options.pop("type", "raw" if "dtype" in options else "image")
    if kind not in _KINDS:
        raise ValueError(f"type expected {', '.join(map(repr, _KINDS))}, got {kind!r:.64}")
    known = [field.name for field in fields(_KINDS[kind])]
    for key in options:
        if key not in known:
            raise TypeError(f"unknown option {key!r:.64}, {kind} has {', '.join(known) or 'none'}")
    if kind == "raw" and "dtype" not in options:
        raise TypeError("raw bytes expected a dtype")
    return _KINDS[kind](**options)


def describe_output(spec: DecodeSpec) -> tuple[str | None, tuple[int | None, ...]]:
    """Return the dtype and shape of one decoded value; None marks a part that varies by record."""
    if isinstance(spec, TextOptions):
        return "str", ()
    if isinstance(spec, RawOptions):
        return spec.dtype, spec.shape
    height, width = spec.size or (None, None)
    if isinstance(spec, MaskOptions):
        return None, (height, width)  # uint8, or uint16 for a 16-bit file
    if spec.channels == "keep":
        return None, (height, width, None)
    return "uint8", (height, width, NUM_CHANNELS[spec.channels])
