"""The options of `tfr sheet` and the switches of the viewer: one set of names, one result."""

from __future__ import annotations

import inspect
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tfrkit
from tfrkit.ops.sheet import sheet
from tfrkit.pictures.guesses import NAMES
from tfrkit.pictures.tiles import Sheet, SheetLayout
from tfrkit.view.guesses import Guesses
from tfrkit.view.opened import Opened

SIDE = 96
GIVEN: list[dict[str, str]] = [
    {},
    {"label": "kind"},
    {"label": "-", "mask": "-"},
    {"boxes": "-"},
    {"boxes": "other", "box_order": "xywh", "box_units": "pixels", "names": "kinds"},
    {"boxes": "other", "box_order": "cxcywh"},
    {"names": "-"},
    {"image": "second", "mask": "seg"},
    {"image": "raw", "shape": "20x30", "boxes": "-", "mask": "-"},
]


def encode(pixels: np.ndarray[Any, Any]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@pytest.fixture
def path(tmp_path: Path) -> str:
    random = np.random.default_rng(1)
    mask = np.zeros((40, 60), np.uint8)
    mask[10:20, 5:50] = 3
    boxes = np.array([[4, 6, 20, 12], [30, 3, 10, 30]], np.float32)
    path = str(tmp_path / "a.tfrecord")
    with tfrkit.Writer(path, floats="float32") as writer:
        writer.write(
            {
                "image/encoded": encode(random.integers(0, 255, (40, 60, 3), np.uint8)),
                "second": encode(np.full((40, 60, 3), (200, 50, 90), np.uint8)),
                "raw": random.integers(0, 200, 600, np.uint8).tobytes(),
                "seg": encode(mask),
                "label": 5,
                "kind": 7,
                **{f"image/object/bbox/{side}": [0.1 + 0.2 * n] for n, side in enumerate(("xmin", "ymin"))},
                **{f"image/object/bbox/{side}": [0.6 + 0.2 * n] for n, side in enumerate(("xmax", "ymax"))},
                "image/object/class/text": [b"thing"],
                "other": boxes.reshape(-1).tolist(),
                "kinds": [1, 2],
            }
        )
    return path


@pytest.mark.parametrize("given", GIVEN, ids=lambda given: ",".join(given) or "none")
def test_sheet_and_viewer_give_the_same_picture(path: str, tmp_path: Path, given: dict[str, Any]) -> None:
    sheet(path, tmp_path / "sheet.png", size=SIDE, **given)
    opened = Opened([path])
    try:
        guesses = Guesses.read(opened, given)
        reader = guesses.new_reader(SIDE)
        assert reader is not None
        drawn = Sheet(SheetLayout(1, 6, SIDE))
        drawn.put(0, reader.read(opened.read_row(0)), 0)
    finally:
        opened.close()
    # The title above the tile is that of the sheet.
    box = (0, SheetLayout(1, 6, SIDE).top, *drawn.image.size)
    with Image.open(tmp_path / "sheet.png") as image:
        assert image.crop(box).tobytes() == drawn.image.crop(box).tobytes()


def test_pictures_differ_between_choices(path: str, tmp_path: Path) -> None:
    shown = set()
    for number, given in enumerate(GIVEN):
        sheet(path, tmp_path / f"{number}.png", size=SIDE, **given)  # type: ignore[arg-type]
        shown.add((tmp_path / f"{number}.png").read_bytes())
    assert len(shown) == len(GIVEN)


def test_every_switch_is_an_option_of_the_sheet() -> None:
    from tfrkit.cli.sheet import run

    for function in (sheet, run):
        assert set(NAMES) <= set(inspect.signature(function).parameters)
    web = Path(__file__).parents[2] / "src" / "tfrkit" / "view" / "web" / "state.js"
    listed = web.read_text().partition("GUESSES = [")[2].partition("]")[0]
    assert {name.strip(' "') for name in listed.split(",")} == set(NAMES)
