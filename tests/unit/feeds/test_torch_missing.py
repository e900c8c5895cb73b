"""A missing framework raises one line with the install command."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrkit as tfr
from tfrkit.feeds import jax as jax_feed
from tfrkit.feeds import tensorflow as tensorflow_feed
from tfrkit.feeds import torch_tensors

FEEDS: dict[str, tuple[str, str, Callable[[tfr.Dataset], Any]]] = {
    "torch loader": ("torch", "torch", lambda ds: ds.batch(2).to_torch()),
    "torch batches": ("torch", "torch", lambda ds: ds.batch(2).to_torch_dataset()),
    "torch rows": ("torch", "torch", lambda ds: ds.to_torch()),
    "jax": ("jax", "jax", lambda ds: ds.batch(2).to_jax()),
    "tf batches": ("tensorflow", "tf", lambda ds: ds.batch(2).to_tf()),
    "tf rows": ("tensorflow", "tf", lambda ds: ds.to_tf()),
    "grain": ("grain", "grain", lambda ds: ds.to_grain()),
}


@pytest.fixture
def dataset(tmp_path: Path) -> tfr.Dataset:
    path = str(tmp_path / "a.tfrecord")
    with tfr.Writer(path) as writer:
        for number in range(3):
            writer.write({"x": number})
    return tfr.open(path)


@pytest.mark.parametrize("feed", FEEDS)
def test_feed_without_its_framework_names_the_command(
    feed: str, dataset: tfr.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    package, extra, use = FEEDS[feed]
    for load in (torch_tensors.load_torch, jax_feed._load_jax, tensorflow_feed._load_tensorflow):
        load.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)  # what Python does for a package that is not there
    with pytest.raises(
        ImportError, match=rf"{package} is not installed\n  install it: pip install 'tfrkit\[{extra}\]'"
    ):
        use(dataset)
