"""The benchmark's data: what is in each file. Everything follows from a fixed seed, so that the sides need no copy of
the values to know what they should read.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

SEED = 20240501
VERSION = 3  # raise it when a generator changes, so that old cache folders are rebuilt

NUM_FLOATS = 10
NUM_INTS = 10
NUM_BYTES = 2
MAX_TOKENS = 512
VOCABULARY = 50_000
MAX_STEPS = 20


@dataclass(frozen=True)
class Sizes:
    """How many records each file holds."""

    small: int
    images: int
    tabular: int
    packed: int  # records of the gzip and zlib files, and of every file that is written in a timed run
    tokens: int
    sequences: int
    picks: int  # random accesses
    jpegs: int  # Examples of photos
    captchas: int  # PNG files
    photos: int  # JPEG files
    table: int  # rows of the CSV and the Parquet file

    @property
    def test_captchas(self) -> int:
        """How many captchas are kept for test."""
        return self.captchas // 10


FULL = Sizes(
    small=1_000_000,
    images=20_000,
    tabular=1_000_000,
    packed=200_000,
    tokens=200_000,
    sequences=50_000,
    picks=100_000,
    jpegs=5_000,
    captchas=5_000,
    photos=20_000,
    table=1_000_000,
)
QUICK = Sizes(
    small=20_000,
    images=100,
    tabular=10_000,
    packed=4_000,
    tokens=2_000,
    sequences=1_000,
    picks=1_000,
    jpegs=100,
    captchas=100,
    photos=200,
    table=4_000,
)


def sizes_of(root: Path) -> Sizes:
    """Return the sizes a cache folder was made with."""
    return Sizes(**json.loads((root / "data.json").read_text())["sizes"])


# -- what the records hold ---------------------------------------------------------------------------------------------


def tabular_columns(num_rows: int) -> dict[str, Any]:
    """Return 10 float, 10 int64 and 2 bytes columns of scalars.

    The ints span class ids, counters, time stamps and a few negatives, so that varints of every length occur.
    """
    rng = np.random.default_rng([SEED, 1])
    columns: dict[str, Any] = {}
    for index in range(NUM_FLOATS):
        columns[f"float_{index}"] = rng.standard_normal(num_rows).astype(np.float32)
    for index in range(NUM_INTS):
        low = -10 if index == NUM_INTS - 1 else 0
        columns[f"int_{index}"] = rng.integers(low, 10 ** (index + 1), num_rows, dtype=np.int64)
    for index in range(NUM_BYTES):
        numbers = rng.integers(0, 10**9, num_rows)
        columns[f"bytes_{index}"] = [b"user-%d" % number for number in numbers.tolist()]
    return columns


def tabular_rows(num_rows: int) -> list[dict[str, Any]]:
    """Return the same values as Python dicts, the way most scripts have them."""
    columns = tabular_columns(num_rows)
    values = [column if isinstance(column, list) else column.tolist() for column in columns.values()]
    names = list(columns)
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def small_payloads(num_records: int) -> Iterator[bytes]:
    """Yield records of 200 random bytes."""
    rng = np.random.default_rng([SEED, 2])
    for _ in range(num_records):
        yield rng.bytes(200)


def image_rows(num_rows: int) -> Iterator[dict[str, Any]]:
    """Yield rows of about 100 KB of incompressible bytes (as a JPEG is) and three ints."""
    rng = np.random.default_rng([SEED, 3])
    for index in range(num_rows):
        height, width = (int(side) for side in rng.integers(200, 800, 2))
        nbytes = int(rng.integers(90_000, 110_000))
        yield {"image": rng.bytes(nbytes), "height": height, "width": width, "label": index % 1000}


def token_rows(num_rows: int) -> Iterator[np.ndarray]:
    """Yield 1..512 token ids a row."""
    rng = np.random.default_rng([SEED, 4])
    for length in rng.integers(1, MAX_TOKENS + 1, num_rows).tolist():
        yield rng.integers(0, VOCABULARY, length, dtype=np.int64)


def sequence_rows(num_rows: int) -> Iterator[dict[str, Any]]:
    """Yield a context of three scalars and three lists of 1..20 steps (an int, four floats, a word)."""
    rng = np.random.default_rng([SEED, 5])
    for index in range(num_rows):
        steps = int(rng.integers(1, MAX_STEPS + 1))
        yield {
            "context": {"id": index, "score": float(np.float32(rng.random())), "name": b"session-%d" % index},
            "feature_lists": {
                "action": rng.integers(0, 100_000, steps).tolist(),
                "position": rng.standard_normal((steps, 4)).astype(np.float32),
                "word": [b"w%d" % word for word in rng.integers(0, 10_000, steps).tolist()],
            },
        }


def uniform_picks(num_picks: int, num_records: int) -> list[int]:
    """Return record numbers drawn uniformly, with repeats."""
    return np.random.default_rng([SEED, 6]).integers(0, num_records, num_picks).tolist()


def table_columns(num_rows: int) -> dict[str, np.ndarray]:
    """Return the columns of the table: numbers that are exact in float32 and short as text, and two kinds of words."""
    rng = np.random.default_rng([SEED, 10])
    columns: dict[str, np.ndarray] = {"id": np.arange(num_rows, dtype=np.int64)}
    columns["age"] = rng.integers(0, 100, num_rows, dtype=np.int64)
    columns["time"] = rng.integers(1_600_000_000, 1_700_000_000, num_rows, dtype=np.int64)
    for name, scale in (("price", 4), ("weight", 8), ("score", 64)):
        columns[name] = rng.integers(-10_000, 10_000, num_rows) / scale
    columns["city"] = np.array([f"city-{number}" for number in range(1000)])[rng.integers(0, 1000, num_rows)]
    columns["user"] = np.array([f"user-{number}" for number in rng.integers(0, 10**9, num_rows).tolist()])
    return columns


class RowFinder:
    """Tells which row of the tabular file a batch's rows are."""

    def __init__(self, num_rows: int) -> None:
        columns = tabular_columns(num_rows)
        keys = self._make_keys(columns)
        self._order = np.argsort(keys)
        self._keys = keys[self._order]

    def find(self, batch: dict[str, Any]) -> np.ndarray:
        """Return the row numbers."""
        return self._order[np.searchsorted(self._keys, self._make_keys(batch))]

    @staticmethod
    def _make_keys(columns: dict[str, Any]) -> np.ndarray:
        # Two floats of 32 random bits each: no two rows share both.
        first, second = (np.ascontiguousarray(columns[f"float_{index}"]).view(np.uint32) for index in range(2))
        return first.astype(np.uint64) << np.uint64(32) | second


# -- as TensorFlow's messages ------------------------------------------------------------------------------------------


def example_of(tf: Any, row: dict[str, Any]) -> bytes:
    """Serialize a row with ``tf.train.Example``."""
    features = {name: feature_of(tf, value) for name, value in row.items()}
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


def feature_of(tf: Any, value: Any) -> Any:
    """Put a scalar or an array into the list of its kind, as the TensorFlow tutorial does."""
    if isinstance(value, bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))
    if isinstance(value, float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
    if isinstance(value, int):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))
    if value.dtype == np.int64:
        return tf.train.Feature(int64_list=tf.train.Int64List(value=value))
    return tf.train.Feature(float_list=tf.train.FloatList(value=value))


def sequence_of(tf: Any, row: dict[str, Any]) -> bytes:
    """Serialize a row with ``tf.train.SequenceExample``."""
    lists = {
        name: tf.train.FeatureList(feature=[feature_of(tf, step) for step in steps])
        for name, steps in row["feature_lists"].items()
    }
    return tf.train.SequenceExample(
        context=tf.train.Features(feature={name: feature_of(tf, value) for name, value in row["context"].items()}),
        feature_lists=tf.train.FeatureLists(feature_list=lists),
    ).SerializeToString()
