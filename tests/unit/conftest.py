"""Folders of small images, and processes in place of a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from PIL import Image

from tfrkit.engines.local import LocalEngine
from tfrkit.passes import shard_tasks

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


class Processes(LocalEngine):
    """Worker processes of this machine that count as a cluster."""

    is_local = False


@pytest.fixture
def use_processes(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Lets this many processes stand in for the cluster of a verb; with one, tasks run in this process."""

    def use(number: int) -> None:
        opened = contextlib.nullcontext(Processes(number))
        monkeypatch.setattr(shard_tasks, "open_engine", lambda name, **_: opened)

    return use
