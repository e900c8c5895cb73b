"""Small columns of a batch are one block of memory: arrays of their own all the same."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

import tfrkit as tfr

NUM_ROWS = 1000


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("packed") / "rows.tfrecord"
    with tfr.Writer(path) as writer:
        for n in range(NUM_ROWS):
            writer.write({"n": n, "half": n / 2, "name": b"%d" % n, "list": list(range(n % 3)), "square": n * n})
    return path


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("size", [1, 7, 300, NUM_ROWS])
def test_every_column_has_its_own_values(path: Path, size: int, threads: int) -> None:
    start = 0
    for batch in tfr.open(path).batch(size, threads=threads):
        numbers = np.arange(start, min(start + size, NUM_ROWS))
        assert batch["n"].tolist() == numbers.tolist()
        assert batch["half"].tolist() == (numbers / 2).tolist()
        assert batch["square"].tolist() == (numbers**2).tolist()
        assert batch["half"].dtype == np.float32
        assert [row.tolist() for row in batch["list"]] == [list(range(n % 3)) for n in numbers]
        assert list(batch["name"]) == [b"%d" % n for n in numbers]
        start += size
    assert start >= NUM_ROWS


def test_columns_may_be_written_and_kept_without_their_batch(path: Path) -> None:
    kept = []
    for batch in tfr.open(path).batch(100, threads=2):
        assert batch["n"].flags.writeable
        assert batch["n"].ctypes.data % 64 == batch["half"].ctypes.data % 64 == 0
        batch["half"][:] = -1
        batch["square"][:] = -1
        kept.append(batch["n"])
        del batch
    gc.collect()
    assert np.concatenate(kept).tolist() == list(range(NUM_ROWS))


def test_columns_of_large_batches_are_kept_alone(tmp_path: Path) -> None:
    path = tmp_path / "large.tfrecord"
    count = 100_000
    with tfr.Writer(path) as writer:
        writer.write_columns({"a": np.arange(count), "b": np.arange(count) * 2})
    (batch,) = tfr.open(path).batch(count)
    assert np.array_equal(batch["a"] * 2, batch["b"])
    assert batch["a"].base is not batch["b"].base
    small = next(iter(tfr.open(path).batch(10)))
    assert small["a"].base is small["b"].base
