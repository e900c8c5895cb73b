"""The tasks of the verbs, the same on every side, and the comparison of results."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from work import Answer, Digest

GROUP, AVERAGED = "int_0", "float_0"
QUANTILES = {"p1": 0.01, "p5": 0.05, "p25": 0.25, "p50": 0.5, "p75": 0.75, "p95": 0.95, "p99": 0.99}
NUM_BINS = 20  # of a histogram; fewer where there are fewer integers between the least and the largest
NUM_TOP = 10
MAX_COUNTED = 4096  # different values up to which tfrkit's figures are exact
NEAR = 1.5  # how far apart numbers may be that are compared as close
DISTINCT_ERROR = 0.05  # three standard errors of an estimate from 4096 hashes
SHARE_ERROR = 0.01  # of a quantile, as a share of the range, and of a bin, as a share of the values
MEMORY = "512MB"
SHUFFLED = 2  # times the file of images: 4 GB


def print_query(table: str) -> str:
    """Return the query over a table."""
    return f"select {GROUP}, count(*) n, avg({AVERAGED}) mean from '{table}' group by 1 order by 1"


def digest_groups(rows: Iterable[tuple[Any, Any, Any]]) -> Answer:
    """Digest groups with their counts, exactly, and averages, closely."""
    keys, counts, means = zip(*rows, strict=True)
    digest = Digest()
    digest.add("groups", np.array(keys, np.int64))
    digest.add("counts", np.array(counts, np.int64))
    # Sides sum in different orders; what counts as close is 1.5, so a million is one part in a million.
    digest.add_near("averages", np.array(means, float) * 1e6)
    return digest.result()


class Figures(NamedTuple):
    """What is known of a column: of its numbers, or of the sizes of its texts."""

    low: float
    high: float
    mean: float
    deviation: float
    zeros: int
    quantiles: list[float]
    bins: list[int]
    distinct: int
    top: list[tuple[Any, int]]  # the most frequent values; of equally frequent ones the smaller first


def digest_figures(columns: Mapping[str, Figures], rows: int) -> Answer:
    """Digest all figures: exactly what tfrkit promises to be exact, the rest closely."""
    digest = Digest()
    for name, found in columns.items():
        digest.add(f"range of {name}", np.array([found.low, found.high, found.zeros], np.float64))
        scale = NEAR / 1e-6 / max(1.0, abs(found.high))
        digest.add_near(f"mean and deviation of {name}", np.array([found.mean, found.deviation]) * scale)
        width = max(1e-9, found.high - found.low)
        digest.add_near(f"quantiles of {name}", np.array(found.quantiles, float) / width * NEAR / SHARE_ERROR)
        digest.add_near(f"histogram of {name}", np.array(found.bins, float) / rows * NEAR / SHARE_ERROR)
        if found.distinct <= MAX_COUNTED:
            digest.add(f"different values of {name}", np.array([found.distinct]))
            digest.add(f"frequent values of {name}", repr(found.top).encode())
        else:
            digest.add_near(f"different values of {name}", np.log([found.distinct]) * NEAR / DISTINCT_ERROR)
    return digest.result()


def link_sources(root: Path) -> list[Path]:
    """Return two names of the file of images, as two files of a dataset that is twice as large."""
    folder = root / "shuffle-sources"
    folder.mkdir(exist_ok=True)
    links = [folder / f"part-{number}.tfrecord" for number in range(SHUFFLED)]
    for link in links:
        if not link.exists():
            link.hardlink_to((root / "images.tfrecord").resolve())
    return links
