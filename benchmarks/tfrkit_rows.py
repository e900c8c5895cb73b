"""tfrkit's rows, one dict after the other: the loop that people write first."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import data
import numpy as np
from work import BATCH, DIGEST_PICKS, Answer, Digest, Work, digest_strings, drain

import tfrkit as tfr

PICKED_AT_ONCE = 64


def make_works(root: Path) -> dict[str, Work]:
    """Return what is done row by row, by the name of the work."""
    sizes = data.sizes_of(root)
    works = {}
    for name, count in (
        ("tabular", sizes.tabular),
        ("images", sizes.images),
        ("tokens", sizes.tokens),
        ("sequences", sizes.sequences),
    ):
        path = root / f"{name}.tfrecord"
        works[f"rows_{name}"] = Work({"for row in ds": partial(read_rows, path, count)}, partial(digest_rows, path))
    images = root / "images.tfrecord"
    works["random_lists"] = pick_lists(images, sizes.picks // 10, sizes.images)
    return works


def read_rows(path: Path, count: int) -> int:
    """Take every row. The schema is given, as TensorFlow is given its own."""
    if path not in _schemas:
        _schemas[path] = tfr.open(path).schema
    with tfr.open(path, schema=_schemas[path]) as ds:
        drain(ds)
    return count


_schemas: dict[Path, Any] = {}


def digest_rows(path: Path) -> Answer:
    """Digest every feature, as the columns of a batch are."""
    digest = Digest()
    with tfr.open(path) as ds:
        rows = iter(ds)
        while some := list(islice(rows, BATCH)):
            if some[0].keys() == {"context", "feature_lists"}:
                add_features(digest, "context/", [row["context"] for row in some])
                add_steps(digest, [row["feature_lists"] for row in some])
            else:
                add_features(digest, "", some)
    return digest.result()


def add_features(digest: Digest, prefix: str, rows: list[dict[str, Any]]) -> None:
    """Feed some rows of scalars, strings and arrays."""
    for name, first in rows[0].items():
        values = [row[name] for row in rows]
        if isinstance(first, bytes):
            digest.add_strings(prefix + name, values)
        elif isinstance(first, np.ndarray):
            digest.add_lengths(prefix + name, np.array([len(value) for value in values]))
            digest.add(prefix + name, np.concatenate(values))
        else:
            digest.add(prefix + name, np.array(values, np.int64 if isinstance(first, int) else np.float32))


def add_steps(digest: Digest, rows: list[dict[str, Any]]) -> None:
    """Feed the feature lists of some rows."""
    for name in rows[0]:
        column = f"feature_lists/{name}"
        digest.add_lengths(column, np.array([len(row[name]) for row in rows]))
        steps = [step for row in rows for step in row[name]]
        width = len(steps[0]) if isinstance(steps[0], np.ndarray) else 1
        digest.add_lengths(f"{column} step", np.full(len(steps), width))
        if isinstance(steps[0], bytes):
            digest.add_strings(f"{column} step", steps)
        else:
            digest.add(f"{column} step", np.array(steps))


def pick_lists(path: Path, num_picks: int, num_records: int) -> Work:
    """Return the work of fetching payloads in batches; frame offsets are known before the timing."""
    picks = data.uniform_picks(num_picks, num_records)
    records = tfr.open(path).records()

    def pick() -> Iterator[bytes]:
        for start in range(0, num_picks, PICKED_AT_ONCE):
            yield from records.pick(picks[start : start + PICKED_AT_ONCE])

    def fetch_all() -> int:
        drain(pick())
        return num_picks

    return Work(
        {f"ds.records().pick({PICKED_AT_ONCE})": fetch_all}, lambda: digest_strings(islice(pick(), DIGEST_PICKS))
    )
