"""tensorflow-data-validation, which takes statistics of whole files with Apache Beam."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import data
import numpy as np
from work import Work


def make_works(root: Path, *, threads: int) -> dict[str, Work]:
    """Return what it does here, by the name of the work."""
    count = data.sizes_of(root).tabular
    describe = partial(run_validation, str(root / "tabular.tfrecord"))
    return {
        "stats_tabular": Work(
            {"generate_statistics_from_tfrecord": lambda: int(describe().num_examples)}, partial(check, describe, count)
        )
    }


def run_validation(path: str) -> Any:
    """Take its statistics of all features, as its guide does."""
    import tensorflow_data_validation

    return tensorflow_data_validation.generate_statistics_from_tfrecord(data_location=path).datasets[0]


def check(describe: Any, count: int) -> None:
    """Compare what every side computes with the values themselves; it has no distinct counts of numbers to digest."""
    found = describe()
    columns = data.tabular_columns(count)
    if found.num_examples != count or len(found.features) != len(columns):
        raise ValueError(f"expected {count} records of {len(columns)} features, got {found.num_examples}")
    for feature in found.features:
        values = columns[feature.path.step[0]]
        if isinstance(values, list):
            continue
        figures = feature.num_stats
        exact = values.astype(np.float64)
        if (figures.min, figures.max, figures.num_zeros) != (exact.min(), exact.max(), np.count_nonzero(exact == 0)):
            raise ValueError(f"another range or number of zeros - in {feature.path.step[0]}")
        np.testing.assert_allclose([figures.mean, figures.std_dev], [exact.mean(), exact.std()], rtol=1e-5, atol=1e-6)
