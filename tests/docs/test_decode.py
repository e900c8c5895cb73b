"""Every option of `Dataset.decode` is in its reference, and the examples there run."""

from __future__ import annotations

import doctest
import inspect
import io
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tfrkit
from tfrkit.batches.decode_specs import RawOptions
from tfrkit.images.mask import MaskOptions
from tfrkit.images.options import DecodeOptions

TEXT = inspect.cleandoc(tfrkit.Dataset.decode.__doc__ or "")


def save(mode: str, format: str) -> bytes:
    file = io.BytesIO()
    Image.new(mode, (64, 48), 3).save(file, format)
    return file.getvalue()


@pytest.fixture
def ds(tmp_path: Path) -> tfrkit.Dataset:
    pixels = np.arange(28 * 28, dtype=np.uint16).astype(np.uint8)
    row = {"image": save("RGB", "JPEG"), "mask": save("L", "PNG"), "pixels": pixels.tobytes(), "name": b"first"}
    with tfrkit.Writer(tmp_path / "x.tfrecord") as writer:
        writer.write(row)
    return tfrkit.open(tmp_path / "x.tfrecord")


def test_every_option_is_described() -> None:
    for kind in (DecodeOptions, RawOptions):
        for field in fields(kind):
            assert f"\n    {field.name}: " in TEXT, field.name
    masks = TEXT.split("Options of a mask")[1].split("\n\n")[0]
    for field in fields(MaskOptions):
        assert field.name in masks


def test_every_option_has_an_example() -> None:
    examples = TEXT.split("Example:")[1]
    for kind in (DecodeOptions, RawOptions, MaskOptions):
        for field in fields(kind):
            assert f'"{field.name}": ' in examples, field.name


def test_examples_run(ds: tfrkit.Dataset) -> None:
    test = doctest.DocTestParser().get_doctest(TEXT, {"ds": ds}, "decode", None, None)
    out: list[str] = []
    done = doctest.DocTestRunner(verbose=False).run(test, out=out.append)
    assert done.attempted == len(test.examples) > 9
    assert done.failed == 0, "".join(out)
