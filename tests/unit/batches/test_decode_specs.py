from __future__ import annotations

from typing import Any

import pytest

from tfrkit.batches.decode_specs import RawOptions, TextOptions, describe_output, read_request
from tfrkit.images.mask import MaskOptions
from tfrkit.images.options import DecodeOptions


@pytest.mark.parametrize(
    ("argument", "spec"),
    [
        ((224, 200), DecodeOptions(size=(224, 200))),
        ([224, 200], DecodeOptions(size=(224, 200))),
        ("image", DecodeOptions()),
        ({}, DecodeOptions()),
        ({"size": (8, 8), "channels": "gray", "antialias": False}, DecodeOptions((8, 8), "gray", antialias=False)),
        ({"type": "image", "fit": "crop"}, DecodeOptions(fit="crop")),
        ("mask", MaskOptions()),
        ({"type": "mask", "size": (8, 8)}, MaskOptions(size=(8, 8))),
        ("text", TextOptions()),
        ({"type": "text"}, TextOptions()),
        ({"dtype": "uint8", "shape": (28, 28)}, RawOptions("uint8", (28, 28))),
        ({"type": "raw", "dtype": "float32"}, RawOptions("float32", ())),
        ({"dtype": float, "shape": [None, 2]}, RawOptions("float64", (None, 2))),
        ({"dtype": ">i4"}, RawOptions(">i4")),
        (DecodeOptions(size=(3, 3)), DecodeOptions(size=(3, 3))),
    ],
)
def test_argument_is_read(argument: Any, spec: Any) -> None:
    assert read_request("x", argument).spec == spec


@pytest.mark.parametrize(
    ("argument", "error", "message"),
    [
        (224, TypeError, r"decode of feature 'x' expected \(height, width\), True, 'image', 'mask', 'text' or a dict"),
        (None, TypeError, "decode of feature 'x' expected"),
        ("jpeg", TypeError, "got 'jpeg'"),
        ("raw", TypeError, "decode of feature 'x': raw bytes expected a dtype"),
        ((1, 2, 3), TypeError, r"decode of feature 'x': size expected \(height, width\), got \(1, 2, 3\)"),
        ((0, 2), ValueError, "decode of feature 'x': size expected a height and a width from 1 up"),
        ({"sise": (1, 1)}, TypeError, "unknown option 'sise', image has size, channels, fit, filter, antialias"),
        ({"type": "mask", "antialias": True}, TypeError, "unknown option 'antialias', mask has size, fit"),
        ({"type": "text", "size": 1}, TypeError, "unknown option 'size', text has none"),
        ({"type": "video"}, ValueError, "type expected 'image', 'mask', 'raw', 'text', got 'video'"),
        ({"dtype": "unit8"}, ValueError, "dtype expected the name of a NumPy dtype, got 'unit8'"),
        ({"dtype": "U3"}, ValueError, "dtype expected numbers, got 'U3'"),
        ({"dtype": "uint8", "shape": 28}, TypeError, "shape expected a tuple of sizes, got 28"),
        ({"dtype": "uint8", "shape": (None, None)}, ValueError, "with at most one None"),
        ({"dtype": "uint8", "shape": (None, 0)}, ValueError, "no size of 0 together with None"),
        ({"dtype": "uint8", "shape": (-1,)}, ValueError, "shape expected sizes of 0 or more"),
    ],
)
def test_wrong_argument_names_the_feature(argument: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        read_request("x", argument)


@pytest.mark.parametrize(
    ("argument", "output"),
    [
        ((4, 5), ("uint8", (4, 5, 3))),
        ("image", ("uint8", (None, None, 3))),
        ({"size": (4, 5), "channels": "gray"}, ("uint8", (4, 5, 1))),
        ({"channels": "rgba"}, ("uint8", (None, None, 4))),
        ({"size": (4, 5), "channels": "keep"}, (None, (4, 5, None))),
        ({"type": "mask", "size": (4, 5)}, (None, (4, 5))),
        ("text", ("str", ())),
        ({"dtype": "int16", "shape": (2, None)}, ("int16", (2, None))),
    ],
)
def test_output_is_known_before_anything_is_decoded(argument: Any, output: Any) -> None:
    assert describe_output(read_request("x", argument).spec) == output
