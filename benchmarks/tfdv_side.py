"""TensorFlow Data Validation, whose statistics are what people use for TFRecord files."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import data
from tool_questions import STAT_FEATURES, digest_moments
from work import Answer, Work


def make_works(peer: str, root: Path, *, threads: int) -> dict[str, Work]:
    """Return what TFDV does here, by the name of the work."""
    path, count = root / "tabular.tfrecord", data.sizes_of(root).tabular
    way = "generate_statistics_from_tfrecord"
    return {"stats_tabular": Work({way: lambda: bool(run(path)) and count}, partial(digest, path))}


def run(path: Path) -> Any:
    """Take all statistics of all features, as its documentation does."""
    import tensorflow_data_validation as tfdv

    return tfdv.generate_statistics_from_tfrecord(data_location=str(path))


def digest(path: Path) -> Answer:
    """Digest the figures that are compared."""
    figures = {}
    for feature in run(path).datasets[0].features:
        name = feature.path.step[0]
        if name in STAT_FEATURES:
            numbers = feature.num_stats
            figures[name] = (numbers.min, numbers.max, numbers.mean)
    return digest_moments({name: figures[name] for name in STAT_FEATURES})
