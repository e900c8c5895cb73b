"""Grain: our datasets as a source of its loaders."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

grain = pytest.importorskip("grain")

import tfrkit as tfr  # noqa: E402

NUM_ROWS = 30


def write(path: Path, num_rows: int = NUM_ROWS) -> str:
    with tfr.Writer(str(path)) as writer:
        for number in range(num_rows):
            writer.write({"id": number, "xyz": np.arange(3) + number, "name": b"n%d" % number})
    return str(path)


@pytest.fixture
def dataset(tmp_path: Path) -> tfr.Dataset:
    return tfr.open(write(tmp_path / "a.tfrecord"))


def ids_of(batches: Any) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


def new_loader(source: Any, workers: int) -> Any:
    sampler = grain.samplers.IndexSampler(
        num_records=len(source),
        shard_options=grain.sharding.NoSharding(),
        shuffle=True,
        num_epochs=1,
        seed=0,
    )
    batch = grain.transforms.Batch(8)
    return grain.DataLoader(data_source=source, sampler=sampler, operations=[batch], worker_count=workers)


def resume_loader(path: str, workers: int) -> list[Any]:
    """Stop an epoch after each step: batches before, and those of a new loader with the saved state."""
    results = []
    for step in (0, 1, 3):
        batches = iter(new_loader(tfr.open(path).to_grain(), workers))
        before = [next(batches)["id"].tolist() for _ in range(step)]
        state = batches.get_state()
        resumed = iter(new_loader(tfr.open(path).to_grain(), workers))
        resumed.set_state(state)
        results.append([before, ids_of(resumed)])
    return results


def test_source_is_one_of_grains_and_pickles(dataset: tfr.Dataset) -> None:
    source = dataset.to_grain()
    assert isinstance(source, grain.sources.RandomAccessDataSource)
    assert len(source) == NUM_ROWS
    row = pickle.loads(pickle.dumps(source))[7]
    assert (row["id"], row["name"], row["xyz"].tolist()) == (7, b"n7", [7, 8, 9])


def test_repr_names_the_data_and_the_order_not_the_place(dataset: tfr.Dataset, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    moved = tfr.open(write(tmp_path / "elsewhere" / "b.tfrecord"))
    other = tfr.open(write(tmp_path / "c.tfrecord", NUM_ROWS + 1))
    assert repr(dataset.to_grain()) == repr(moved.to_grain())
    assert repr(dataset.to_grain()) != repr(other.to_grain())
    assert repr(dataset.to_grain()) != repr(dataset.shuffle(seed=1).to_grain())


def test_map_dataset_shuffles_and_batches(dataset: tfr.Dataset) -> None:
    pipeline = grain.MapDataset.source(dataset.to_grain()).shuffle(seed=3).map(lambda row: row["id"]).batch(8)
    numbers = [number for index in range(len(pipeline)) for number in pipeline[index].tolist()]
    assert numbers != sorted(numbers)
    assert sorted(numbers) == list(range(NUM_ROWS))


def test_split_keeps_its_rows_under_grain(dataset: tfr.Dataset) -> None:
    train, test = dataset.split({"train": 0.8, "test": 0.2}, seed=0)
    ids = [source[index]["id"] for source in (train.to_grain(), test.to_grain()) for index in range(len(source))]
    assert sorted(ids) == list(range(NUM_ROWS))


def test_iterator_with_threads_resumes_where_it_stopped(dataset: tfr.Dataset) -> None:
    pipeline = grain.MapDataset.source(dataset.to_grain()).shuffle(seed=3).batch(8).to_iter_dataset()
    whole = ids_of(iter(pipeline))
    batches = iter(pipeline)
    before = [next(batches)["id"].tolist() for _ in range(2)]
    resumed = iter(pipeline)
    resumed.set_state(batches.get_state())
    assert before + ids_of(resumed) == whole


def check_resumed(results: list[Any]) -> None:
    whole = results[0][1]
    assert sorted(number for batch in whole for number in batch) == list(range(NUM_ROWS))
    for before, after in results:
        assert before + after == whole


def test_loader_resumes_where_it_stopped(dataset: tfr.Dataset) -> None:
    check_resumed(resume_loader(dataset.files[0], workers=0))


def test_checkpoint_of_another_dataset_raises(dataset: tfr.Dataset, tmp_path: Path) -> None:
    other = tfr.open(write(tmp_path / "b.tfrecord")).shuffle(seed=1)
    state = iter(new_loader(other.to_grain(), 0)).get_state()
    with pytest.raises(ValueError, match="tfrkit.GrainSource"):
        iter(new_loader(dataset.to_grain(), 0)).set_state(state)


def test_loader_with_a_worker_process_resumes_where_it_stopped(dataset: tfr.Dataset) -> None:
    """In its own process: Grain reads flags, which pytest has not parsed, and starts more processes."""
    command = [sys.executable, __file__, dataset.files[0]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr[-4000:]
    check_resumed(json.loads(done.stdout.splitlines()[-1]))


if __name__ == "__main__":
    from absl import flags

    flags.FLAGS(["test_grain"])
    print(json.dumps(resume_loader(sys.argv[1], workers=1)), flush=True)
