"""Batches by a token budget: every row once per epoch, on any ranks and workers, and resuming after any batch."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit as tfr
from tfrkit.errors import SchemaError, ShapeError
from tfrkit.feeds.loader import share_loop

NUM_ROWS = 300
BUDGET = 128


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> tfr.Dataset:
    folder = tmp_path_factory.mktemp("tokens")
    random = np.random.default_rng(1)
    for shard in range(3):
        with tfr.Writer(folder / f"t-{shard:05}-of-00003") as writer:
            for number in range(shard, NUM_ROWS, 3):
                writer.write({"id": number, "tokens": np.arange(int(random.integers(0, 50)))})
    return tfr.open(folder)


def ids(batches: Any) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


def tokens(dataset: tfr.Dataset, **options: Any) -> Any:
    return dataset.batch(**{"max_tokens": BUDGET, "bucket": "tokens", "pad": -1, **options})


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("shuffles", [False, True])
def test_batches_keep_the_budget_and_hold_every_row_once(dataset: tfr.Dataset, threads: int, shuffles: bool) -> None:
    batches = tokens(dataset.shuffle(seed=4) if shuffles else dataset, threads=threads)
    epochs = [list(batches) for _ in range(2)]
    assert ids(epochs[0]) != ids(epochs[1])
    for epoch in epochs:
        assert sorted(sum(ids(epoch), [])) == list(range(NUM_ROWS))
        assert all(batch["tokens"].size <= BUDGET for batch in epoch)
        assert sum(batch["tokens/length"].sum() for batch in epoch) > 0.8 * sum(b["tokens"].size for b in epoch)
    batches.set_epoch(0)
    assert ids(batches) == ids(epochs[0])


def test_size_is_the_most_rows(dataset: tfr.Dataset) -> None:
    sizes = [len(batch) for batch in ids(tokens(dataset.shuffle(seed=4), size=3))]
    assert max(sizes) == 3
    assert sum(sizes) == NUM_ROWS


def test_resume_after_every_batch_equals_no_stop(dataset: tfr.Dataset) -> None:
    shuffled = dataset.shuffle(seed=4)
    whole, following = ids(epochs := tokens(shuffled)), ids(epochs)
    first = iter(tokens(shuffled))
    for step in range(len(whole) + 1):
        state = json.loads(json.dumps(first.state_dict()))
        batches = tokens(shuffled)
        second = iter(batches)
        second.load_state_dict(state)
        assert ids(second) == whole[step:]
        assert ids(batches) == following
        if step < len(whole):
            next(first)


@pytest.mark.parametrize(("ranks", "num_workers"), [(1, 2), (2, 1), (3, 2), (2, 5)])
def test_ranks_and_workers_share_the_batches(dataset: tfr.Dataset, ranks: int, num_workers: int) -> None:
    loop = tokens(dataset.shuffle(seed=4))
    for epoch in range(2):
        alone = ids(loop)
        dealt: dict[int, list[int]] = {}
        for rank in range(ranks):
            shared = share_loop(loop, rank=rank, world_size=ranks, even="pad", find_rank=lambda: (0, 1))
            for worker in range(num_workers):
                run = shared.run(epoch=epoch, worker=worker, num_workers=num_workers, threads=1)
                for step, (batch, _) in enumerate(run):
                    assert batch["tokens"].size <= BUDGET
                    dealt[(worker + step * num_workers) * ranks + rank] = batch["id"].tolist()
        assert sorted(dealt) == list(range(-(-len(alone) // ranks) * ranks))
        joined = [dealt[number] for number in sorted(dealt)]
        assert joined[: len(alone)] == alone
        assert joined[len(alone) :] == alone[: len(joined) - len(alone)]


def test_loop_with_a_budget_can_be_sent_to_another_process(dataset: tfr.Dataset) -> None:
    loop = tokens(dataset.shuffle(seed=4))
    assert ids(pickle.loads(pickle.dumps(loop))) == ids(loop)


def test_length_is_known_where_rows_are_not_shuffled(dataset: tfr.Dataset) -> None:
    batches = tokens(dataset)
    assert len(batches) == len(ids(batches)) == len(ids(batches))
    with pytest.raises(TypeError, match="max_tokens over shuffled rows have no length"):
        len(tokens(dataset.shuffle(seed=4)))


def test_row_beyond_the_budget_is_named(dataset: tfr.Dataset) -> None:
    message = r"'tokens' expected at most max_tokens = 40 values in a row, got 4\d - at .*t-0000\d-of-00003, record \d+"
    with pytest.raises(ShapeError, match=message):
        tokens(dataset, max_tokens=40)
    with pytest.raises(ShapeError, match=message):
        tokens(dataset.shuffle(seed=2), max_tokens=40)
    short = dataset.filter(lambda row: len(row["tokens"]) <= 40)
    assert sum(map(len, ids(tokens(short, max_tokens=40)))) == len(short)


def test_feature_padded_to_a_length_counts_as_that(dataset: tfr.Dataset) -> None:
    batches = list(tokens(dataset, pad={"tokens": (0, 16)}, truncate=True))
    assert {batch["tokens"].shape[1] for batch in batches} == {16}
    assert max(batch["tokens"].shape[0] for batch in batches) == BUDGET // 16
    assert sorted(sum(ids(batches), [])) == list(range(NUM_ROWS))


@pytest.mark.parametrize("bucket", ["frame", "feature_lists.frame"])
def test_frames_of_sequences_are_counted(tmp_path: Path, bucket: str) -> None:
    schema = tfr.Schema({"id": "int64"}, feature_lists={"frame": ("float", (2,))})
    with tfr.Writer(tmp_path / "s.tfrecord", schema=schema) as writer:
        for number in range(30):
            lists = {"frame": [np.zeros(2, np.float32)] * (number % 7)}
            writer.write({"context": {"id": number}, "feature_lists": lists})
    batches = list(tfr.open(tmp_path / "s.tfrecord").batch(max_tokens=20, bucket=bucket, pad=0))
    assert all(np.prod(batch["feature_lists"]["frame"].shape[:2]) <= 20 for batch in batches)
    assert sorted(sum((batch["context"]["id"].tolist() for batch in batches), [])) == list(range(30))


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"max_tokens": 0}, ValueError, "max_tokens expected at least 1, got 0"),
        ({"bucket": None}, ValueError, "max_tokens counts the values of a feature, and bucket names none\n"),
        ({"drop_last": True}, ValueError, "drop_last needs a number of rows"),
        ({"per_rank": False}, ValueError, "max_tokens is per rank"),
        ({"max_tokens": None}, TypeError, "batch expected a number of rows, or max_tokens, got neither"),
        ({"bucket": "toks"}, tfr.TfrkitError, "toks"),
    ],
)
def test_what_does_not_go_together_raises(
    dataset: tfr.Dataset, options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        tokens(dataset, **options)


def test_dataset_without_end_raises(dataset: tfr.Dataset) -> None:
    with pytest.raises(ValueError, match="max_tokens expected a dataset with an end"):
        tokens(dataset.repeat())


def test_state_of_another_budget_or_inside_a_batch_raises(dataset: tfr.Dataset) -> None:
    iterator = iter(tokens(dataset))
    next(iterator)
    state = iterator.state_dict()
    with pytest.raises(tfr.TfrkitError, match="the state is from another order"):
        iter(tokens(dataset, max_tokens=100)).load_state_dict(state)
    with pytest.raises(ValueError, match="is inside a batch of epoch 0"):
        iterator.load_state_dict({**state, "row": state["row"] + 1})


@pytest.mark.parametrize("options", [{"max_tokens": 50}, {"size": 2}])
def test_lengths_of_records_that_do_not_decode_raise(tmp_path: Path, options: dict[str, int]) -> None:
    with tfr.Writer(tmp_path / "torn.tfrecord") as writer:
        writer.write({"t": np.arange(3)})
        writer.write_record(b"\xff\xff not an Example")
        writer.write({"t": np.arange(4)})
    torn = tfr.open(tmp_path / "torn.tfrecord", on_error="skip")
    with pytest.raises(SchemaError, match="'t' was read from 2 of 3 records, some are damaged"):
        torn.batch(bucket="t", **options)
