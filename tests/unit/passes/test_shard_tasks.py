"""Verbs on an engine give the results of threads; here worker processes of this machine stand in for a cluster."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

import tfrkit as tfr
from tfrkit.engines.local import LocalEngine
from tfrkit.errors import CorruptRecordError, StorageError
from tfrkit.passes.shard_tasks import OnEngine, map_in_order
from tfrkit.testing.corruption import flip


@pytest.fixture(autouse=True)
def _cluster(use_processes):
    """Two processes in place of a cluster."""
    use_processes(2)


@pytest.fixture
def dataset(tmp_path):
    rows = [{"x": number, "y": number / 4, "name": f"n{number % 11}", "label": number % 3} for number in range(3000)]
    tfr.build(rows, tmp_path / "rows", shards=4, splits={"test": 0.25}, jobs=1)
    return tmp_path / "rows"


def damage(dataset: Path, number: int) -> Path:
    path = sorted(dataset.glob("*.tfrecord-*"))[number]
    data = bytearray(path.read_bytes())
    path.write_bytes(flip(bytes(data), len(data) // 2))
    return path


@dataclass(frozen=True)
class Answer:
    path: str
    seconds: float = 0.0
    error: str = ""

    @property
    def key(self):
        return self.path

    def run(self, tick):
        import time

        time.sleep(self.seconds)
        tick(1, 2, 0)
        if self.error:
            raise StorageError(self.error, shard=self.path)
        return self.path


def test_results_come_in_the_order_of_the_tasks():
    tasks = [Answer(str(number), 0.2 if number in (0, 5) else 0.0) for number in range(10)]
    counts = []
    assert list(map_in_order(LocalEngine(2), tasks, lambda *more: counts.append(more))) == list("0123456789")
    assert sum(one[0] for one in counts) == 10


def test_first_error_in_the_order_of_the_tasks_is_raised():
    tasks = [Answer("a"), Answer("b", 0.3, "slow"), Answer("c", 0.0, "quick")]
    results = map_in_order(LocalEngine(2), tasks, lambda *_: None)
    assert next(results) == "a"
    with pytest.raises(StorageError, match="slow - at b"):
        next(results)


def test_pipe_is_refused():
    with pytest.raises(StorageError, match="expected a file, got a pipe, which workers of a cluster cannot read"):
        list(OnEngine("ray").run([Answer("-")], lambda *_: None))


def test_count_equals_that_of_threads(dataset):
    assert tfr.tools.count(dataset, engine="ray") == tfr.tools.count(dataset)


def test_count_raises_the_error_of_the_first_damaged_file(dataset):
    for path in sorted(dataset.glob("*.tfrecord-*"))[2:4]:
        shutil.rmtree(dataset / "_index", ignore_errors=True)
        path.write_bytes(flip(path.read_bytes(), 9))
    with pytest.raises(CorruptRecordError) as here:
        tfr.tools.count(dataset)
    with pytest.raises(CorruptRecordError) as there:
        tfr.tools.count(dataset, engine="dask")
    assert str(there.value) == str(here.value)


@pytest.mark.parametrize("options", [{}, {"parse": False}, {"sha256": True}, {"deep": True}])
def test_verify_equals_that_of_threads(dataset, options):
    damage(dataset, 1)
    (dataset / "rows-train.tfrecord-00002-of-00004").write_bytes(b"not a TFRecord at all, but a text")
    here = tfr.tools.verify(dataset, **options).to_json()
    assert not here["ok"]
    assert tfr.tools.verify(dataset, engine="ray", **options).to_json() == here


def test_verify_of_sound_files_equals_that_of_threads(dataset):
    here = tfr.tools.verify(dataset).to_json()
    assert here["ok"]
    assert tfr.tools.verify(dataset, engine="ray").to_json() == here


@pytest.mark.parametrize("verb", ["count", "verify"])
def test_unknown_engine_is_refused(dataset, verb):
    with pytest.raises(ValueError, match="engine expected one of local, ray, dask, got 'spark'"):
        getattr(tfr.tools, verb)(dataset, engine="spark")
