"""Folders of small images."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from PIL import Image

MakeImages = Callable[..., Path]


@pytest.fixture
def make_images(tmp_path: Path) -> MakeImages:
    """Makes image files below a folder; each has a different colour."""

    def make(names: Iterable[str], folder: str = "in", size: tuple[int, int] = (8, 6)) -> Path:
        root = tmp_path / folder
        root.mkdir(exist_ok=True)
        for number, name in enumerate(names):
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            Image.new("RGB", size, (number * 7 % 256, number * 31 % 256, 100)).save(path)
        return root

    return make
