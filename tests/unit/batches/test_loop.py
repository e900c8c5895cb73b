from __future__ import annotations

import gc
import json
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit
from tfrkit.batches.fetch import Fetched
from tfrkit.batches.loop import Batching, BatchLoop
from tfrkit.errors import CorruptRecordError, TfrkitError
from tfrkit.testing.corruption import flip

NUM_ROWS = 103


@pytest.fixture(params=["one", "many", "gzip"])
def ds(request: pytest.FixtureRequest, tmp_path: Path) -> tfrkit.Dataset:
    counts = [NUM_ROWS] if request.param != "many" else [40, 0, 1, 50, 12]
    compression = "gzip" if request.param == "gzip" else "none"
    number = 0
    for shard, count in enumerate(counts):
        with tfrkit.Writer(tmp_path / f"s-{shard:05}-of-{len(counts):05}", compression=compression) as writer:
            for _ in range(count):
                writer.write({"id": number, "tokens": np.arange(number % 5), "name": f"n{number}"})
                number += 1
    return tfrkit.open(tmp_path)


def ids(batches: Any) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_shuffled_batches_are_those_of_the_order(ds: tfrkit.Dataset, threads: int) -> None:
    batches = ds.shuffle(seed=7).batch(10, threads=threads)
    given = ids(batches)
    assert [len(batch) for batch in given] == [10] * 10 + [3]
    assert sorted(sum(given, [])) == list(range(NUM_ROWS))
    assert sum(given, []) == [row["id"] for row in ds.shuffle(seed=7)]
    assert given == ids(ds.shuffle(seed=7).batch(10, threads=1))
    assert len(batches) == 11


def test_every_pass_is_the_next_epoch(ds: tfrkit.Dataset) -> None:
    batches = ds.shuffle(seed=7).batch(10)
    first, second = ids(batches), ids(batches)
    assert first != second
    assert sorted(sum(second, [])) == list(range(NUM_ROWS))
    batches.set_epoch(0)
    assert ids(batches) == first
    assert ids(ds.shuffle(seed=7, epoch=1).batch(10)) == second


ORDERS = {
    "file order": lambda ds: ds,
    "shuffled": lambda ds: ds.shuffle(seed=3),
    "window": lambda ds: ds.shuffle(seed=3, window=32, block=4),
    "a part": lambda ds: ds.split({"a": 0.7, "b": 0.3})[0].shuffle(seed=1),
    "repeated": lambda ds: ds.shuffle(seed=1).repeat(3),
    "taken": lambda ds: ds.skip(5).take(50),
}


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", ORDERS)
def test_resuming_at_every_step_equals_no_stop(ds: tfrkit.Dataset, name: str, threads: int) -> None:
    def make() -> Any:
        return ORDERS[name](ds).batch(16, threads=threads)

    wanted = ids(make())
    iterator = iter(make())
    for step in range(len(wanted)):
        state = json.loads(json.dumps(iterator.state_dict()))
        assert len(json.dumps(state)) < 1024
        resumed = iter(make())
        resumed.load_state_dict(state)
        assert ids(resumed) == wanted[step:]
        assert next(iterator)["id"].tolist() == wanted[step]
    resumed = iter(make())
    resumed.load_state_dict(iterator.state_dict())
    assert ids(resumed) == []


def test_epoch_number_continues_after_a_resumed_one(ds: tfrkit.Dataset) -> None:
    batches = ds.shuffle(seed=3).batch(16)
    epochs = [ids(batches) for _ in range(3)]
    batches.set_epoch(1)
    iterator = iter(batches)
    next(iterator)
    again = ds.shuffle(seed=3).batch(16)
    resumed = iter(again)
    resumed.load_state_dict(iterator.state_dict())
    assert ids(resumed) == epochs[1][1:]
    assert ids(again) == epochs[2]


def test_state_of_another_batch_size_resumes_at_the_row(ds: tfrkit.Dataset) -> None:
    iterator = iter(ds.shuffle(seed=3).batch(16))
    next(iterator)
    resumed = iter(ds.shuffle(seed=3).batch(5))
    resumed.load_state_dict(iterator.state_dict())
    assert sum(ids(resumed), []) == [row["id"] for row in ds.shuffle(seed=3)][16:]


def test_state_of_another_dataset_or_order_is_refused(ds: tfrkit.Dataset, tmp_path: Path) -> None:
    state = iter(ds.shuffle(seed=3).batch(16)).state_dict()
    with pytest.raises(TfrkitError, match="the state is from another order, .* stored, .* requested"):
        iter(ds.shuffle(seed=4).batch(16)).load_state_dict(state)
    other = tmp_path / "other.tfrecord"
    with tfrkit.Writer(other) as writer:
        for number in range(NUM_ROWS):
            writer.write({"id": number})
    with pytest.raises(TfrkitError, match="the state is from another dataset, .* stored, .* opened"):
        iter(tfrkit.open(other).shuffle(seed=3).batch(16)).load_state_dict(state)
    for wrong in ({}, {"version": 1}, "x"):
        with pytest.raises(ValueError, match=r"expected a state from state_dict\(\), got"):
            iter(ds.batch(16)).load_state_dict(wrong)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="state key 'row' expected 0 to 103, got 104"):
        iter(ds.shuffle(seed=3).batch(16)).load_state_dict({**state, "row": 104})


@pytest.mark.parametrize("key", ["dataset", "order", "epoch", "row"])
def test_state_without_a_key_names_it(ds: tfrkit.Dataset, key: str) -> None:
    iterator = iter(ds.batch(16))
    state = iterator.state_dict()
    del state[key]
    with pytest.raises(ValueError, match=f"state expected the key '{key}', got 'tfrkit_state'"):
        iterator.load_state_dict(state)


@pytest.mark.parametrize(
    ("key", "value", "kind", "message"),
    [
        ("epoch", 2**70, ValueError, "state key 'epoch' expected 0 to 9007199254740991, got 1180591620717411303424"),
        ("epoch", -1, ValueError, "state key 'epoch' expected 0 to 9007199254740991, got -1"),
        ("epoch", True, TypeError, "state key 'epoch' expected a whole number, got True"),
        ("epoch", 1.0, TypeError, "state key 'epoch' expected a whole number, got 1.0"),
        ("row", True, TypeError, "state key 'row' expected a whole number, got True"),
        ("row", "3", TypeError, "state key 'row' expected a whole number, got '3'"),
        ("row", -1, ValueError, "state key 'row' expected 0 to 103, got -1"),
        ("dataset", None, TypeError, "state key 'dataset' expected a text, got None"),
        ("order", 7, TypeError, "state key 'order' expected a text, got 7"),
    ],
)
def test_state_with_a_value_that_cannot_be_names_key_and_range(
    ds: tfrkit.Dataset, key: str, value: object, kind: type[Exception], message: str
) -> None:
    iterator = iter(ds.batch(16))
    with pytest.raises(kind, match=message):
        iterator.load_state_dict({**iterator.state_dict(), key: value})


def test_epoch_that_cannot_be_is_refused(ds: tfrkit.Dataset) -> None:
    batches = ds.batch(16)
    with pytest.raises(ValueError, match="epoch expected 0 to 9007199254740991, got 1180591620717411303424"):
        batches.set_epoch(2**70)
    with pytest.raises(TypeError, match="epoch expected a whole number, got True"):
        batches.set_epoch(True)


@pytest.mark.parametrize("even", ["drop", "pad"])
@pytest.mark.parametrize("world", [1, 2, 4])
def test_ranks_and_workers_share_every_global_batch(ds: tfrkit.Dataset, world: int, even: Any) -> None:
    loop = ds.shuffle(seed=3).batch(8)
    wanted = ids(ds.shuffle(seed=3).batch(8))
    for num_workers in (1, 2, 3, 20):
        ranks = []
        for rank in range(world):
            share = loop.share(rank=rank, world_size=world, even=even)
            given: list[list[int]] = [[] for _ in range(len(share))]
            for worker in range(num_workers):
                numbers = range(worker, len(share), num_workers)
                runs = share.run(epoch=0, worker=worker, num_workers=num_workers, threads=1)
                for number, (batch, _) in zip(numbers, runs, strict=True):
                    given[number] = batch["id"].tolist()
            ranks.append(given)
        together = [sum(parts, []) for parts in zip(*ranks, strict=True)]
        assert together[:12] == wanted[:12]
        left = len(wanted[12]) // world * world
        assert (together[12][: len(wanted[12])] if even == "pad" else together[12]) == wanted[12][
            : None if even == "pad" else left
        ]


def test_any_batch_can_be_made_at_once(ds: tfrkit.Dataset) -> None:
    loop = ds.shuffle(seed=3).batch(8)
    wanted = ids(loop)
    assert [loop.make_batch(number)["id"].tolist() for number in (12, 0, 5)] == [wanted[12], wanted[0], wanted[5]]
    assert loop.make_batch(0, epoch=1)["id"].tolist() == ids(loop)[0]


def test_loop_can_be_sent_to_another_process(ds: tfrkit.Dataset) -> None:
    loop = ds.shuffle(seed=3).map(double).batch(8)
    other = pickle.loads(pickle.dumps(loop))
    assert ids(other) == ids(loop)


def double(row: dict[str, Any]) -> dict[str, Any]:
    return {"id": row["id"] * 2}


@pytest.mark.parametrize("options", [{"threads": 1}, {"threads": 3}])
def test_damage_raises_with_its_place_or_leaves_the_row_out(tmp_path: Path, options: dict[str, Any]) -> None:
    path = tmp_path / "d.tfrecord"
    with tfrkit.Writer(path) as writer:
        for number in range(50):
            writer.write({"id": number})
    size = path.stat().st_size // 50
    path.write_bytes(flip(path.read_bytes(), 20 * size + 16, 3))
    with pytest.raises(CorruptRecordError, match=f"d.tfrecord, record 20, byte {20 * size}"):
        list(tfrkit.open(path).shuffle(seed=1).batch(8, **options))
    ds = tfrkit.open(path, on_error="skip")
    given = sum(ids(ds.shuffle(seed=1).batch(8, **options)), [])
    assert sorted(given) == [number for number in range(50) if number != 20]
    assert [finding.record for finding in ds.errors] == [20]


@pytest.mark.parametrize("stages", [[], [double]], ids=["plain", "mapped"])
@pytest.mark.parametrize("stop_after", [1, 2, 3])
def test_resuming_after_damage_with_another_batch_size_repeats_and_drops_nothing(
    tmp_path: Path, stages: list[Any], stop_after: int
) -> None:
    path = tmp_path / "d.tfrecord"
    with tfrkit.Writer(path) as writer:
        for number in range(50):
            writer.write({"id": number})
    size = path.stat().st_size // 50
    path.write_bytes(flip(path.read_bytes(), 20 * size + 16, 3))
    ds = tfrkit.open(path, on_error="skip")
    for stage in stages:
        ds = ds.map(stage)
    whole = sum(ids(ds.batch(16)), [])
    iterator = iter(ds.batch(16))
    given = sum((next(iterator)["id"].tolist() for _ in range(stop_after)), [])
    for other_size in (1, 5, 16, 33, 64):
        resumed = iter(ds.batch(other_size))
        resumed.load_state_dict(iterator.state_dict())
        assert given + sum(ids(resumed), []) == whole
    iterator.close()


def test_consumer_that_stops_leaves_no_thread(ds: tfrkit.Dataset, new_threads: Callable[[], list[str]]) -> None:
    iterator = iter(ds.shuffle(seed=1).batch(2, threads=3))
    next(iterator)
    iterator.close()
    assert new_threads() == []
    iterator = iter(ds.shuffle(seed=1).batch(2, threads=3))
    next(iterator)
    del iterator
    gc.collect()
    assert new_threads() == []

    def fail() -> None:
        for _ in ds.shuffle(seed=1).batch(2, threads=3):
            raise RuntimeError("the consumer failed")

    with pytest.raises(RuntimeError, match="the consumer failed"):
        fail()
    gc.collect()
    assert new_threads() == []


def test_prefetch_stays_within_its_bound(ds: tfrkit.Dataset) -> None:
    made = 0
    lock = threading.Lock()

    def blow_up(fetched: Fetched, fetcher: Any) -> Fetched:
        nonlocal made
        with lock:
            made += 1
        return Fetched({"big": np.zeros(1 << 20, np.uint8)}, fetched.numbers)

    batching = Batching(1, threads=2, ahead_nbytes=3 << 20)
    loop = BatchLoop(ds._set, batching, order=ds.shuffle(seed=1)._recipe.order, stages=[blow_up])
    most = 0
    for given, _ in enumerate(loop):
        most = max(most, made - given)
    assert made == NUM_ROWS
    # Small records are processed several batches at a time, and results may be larger than the records.
    assert most <= 3 * 16 + 16


def test_error_in_a_step_comes_in_its_turn(ds: tfrkit.Dataset) -> None:
    def fail_late(row: dict[str, Any]) -> dict[str, Any]:
        if row["id"] == 50:
            raise RuntimeError("no fifties")
        return row

    given: list[int] = []

    def consume() -> None:
        for batch in ds.map(fail_late).batch(10, threads=3):
            given.extend(batch["id"].tolist())

    with pytest.raises(RuntimeError, match="no fifties"):
        consume()
    assert given == list(range(50))
