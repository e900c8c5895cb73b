"""How a notebook shows a dataset."""

from __future__ import annotations

import base64
import io
import re
from pathlib import Path

import numpy as np
from PIL import Image

import tfrkit
from tfrkit.testing.corruption import flip


def png(level: int) -> bytes:
    file = io.BytesIO()
    Image.fromarray(np.full((300, 200, 3), level, np.uint8)).save(file, "PNG")
    return file.getvalue()


def write(path: Path, *images: bytes, name: str = "label", text: str = "x") -> tfrkit.Dataset:
    with tfrkit.Writer(path) as writer:
        for image in images:
            writer.write({"image": image, name: text})
    return tfrkit.open(path)


def test_features_and_a_few_small_pictures_are_shown(tmp_path: Path) -> None:
    page = write(tmp_path / "a.tfrecord", *(png(20 * n) for n in range(9)))._repr_html_()
    assert "<td>image</td>" in page and "<td>label</td>" in page
    shown = re.findall(r"base64,([^\"]+)", page)
    assert len(shown) == 4
    assert Image.open(io.BytesIO(base64.b64decode(shown[1]))).size == (64, 96)


def test_what_a_record_holds_is_escaped(tmp_path: Path) -> None:
    hostile = "<script>alert(1)</script>"
    ds = write(tmp_path / "a.tfrecord", png(1), png(2), text=hostile)
    assert "<script>" not in ds._repr_html_()
    named = write(tmp_path / "b.tfrecord", png(1), png(2), name=hostile)
    assert "<script>" not in named._repr_html_() and "&lt;script&gt;" in named._repr_html_()


def test_damage_is_shown_and_not_raised(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    page = write(path, png(1), png(2)[:60], png(3))._repr_html_()
    assert page.count("<img") == 2 and "<span>" in page
    data = path.read_bytes()
    path.write_bytes(flip(data, len(data) - 8))
    page = tfrkit.open(path)._repr_html_()
    assert "checksum mismatch" in page


def test_dataset_without_pictures_is_a_table(tmp_path: Path) -> None:
    tfrkit.build([{"x": 1, "y": [1.5, 2.5]}], tmp_path / "out")
    page = tfrkit.open(tmp_path / "out").map(dict)._repr_html_()
    assert "<td>x</td><td>int64</td>" in page and "<img" not in page


def test_repr_of_a_built_folder_names_rows_splits_and_features(tmp_path: Path) -> None:
    tfrkit.build([{"x": i, "y": 1} for i in range(10)], tmp_path / "out", splits={"test": 2})
    assert repr(tfrkit.open(tmp_path / "out")).endswith("; 10 rows; splits train 8, test 2; features x, y)")
