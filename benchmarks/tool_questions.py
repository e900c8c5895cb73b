"""What is asked of the verbs, the same on every side, and how answers are compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from work import Answer, Digest

GROUP, AVERAGED = "int_0", "float_0"
STAT_FEATURES = ("float_0", "float_9", "int_0", "int_5", "int_9")  # whose figures are compared; all are computed
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


def digest_moments(figures: Mapping[str, tuple[float, float, float]]) -> Answer:
    """Digest minimum and maximum, exactly, and mean, closely."""
    digest = Digest()
    for name, (low, high, mean) in figures.items():
        digest.add(f"range of {name}", np.array([low, high], np.float64))
        digest.add_near(f"mean of {name}", np.array([mean]) / max(1.0, abs(high)) * 1e6)
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
