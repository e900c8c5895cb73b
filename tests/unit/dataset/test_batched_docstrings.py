"""The examples of `batch` and its feeds run as they are printed."""

from __future__ import annotations

import doctest
import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit as tfr
from tfrkit.dataset.batched import Batches

EXAMPLES: dict[str, tuple[Any, str | None]] = {
    "batch": (tfr.Dataset.batch, None),
    "Batches": (Batches, None),
    "to_torch": (Batches.to_torch, "torch"),
    "to_torch_dataset": (Batches.to_torch_dataset, "torch"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs(name: str, tmp_path: Path) -> None:
    member, package = EXAMPLES[name]
    names: dict[str, Any] = {"train": lambda *_: None}
    if package is not None:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
        names[package] = importlib.import_module(package)
    with tfr.Writer(tmp_path / "a.tfrecord") as writer:
        for number in range(20):
            writer.write({"image": number, "label": number, "tokens": np.arange(number * 10)})
    names["ds"] = tfr.open(tmp_path / "a.tfrecord")
    examples = doctest.DocTestParser().get_examples(member.__doc__)
    assert examples
    for example in examples:
        exec(compile(example.source, name, "exec"), names)
