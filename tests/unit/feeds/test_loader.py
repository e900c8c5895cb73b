"""The shared part of all loaders, without a framework: ranks, batch sizes, and the position of a pass."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import tfrkit as tfr
from tfrkit.batches.loop import BatchLoop
from tfrkit.batches.state import Position
from tfrkit.codec.decode import Batch
from tfrkit.errors import RankBatchWarning
from tfrkit.feeds import torch as torch_feed
from tfrkit.feeds.loader import Loader, share_loop

NUM_ROWS = 53


class PlainLoader(Loader):
    """A loader without a framework: plain batches."""

    def _start(self, start: Position) -> Iterator[tuple[Batch, int]]:
        return self._loop.run(epoch=start.epoch, row=start.row)


@pytest.fixture
def dataset(tmp_path: Path) -> tfr.Dataset:
    path = str(tmp_path / "a.tfrecord")
    with tfr.Writer(path) as writer:
        for number in range(NUM_ROWS):
            writer.write({"id": number})
    return tfr.open(path).shuffle(seed=3)


def share(loop: BatchLoop, rank: int, world_size: int, **options: Any) -> PlainLoader:
    shared = share_loop(loop, rank=rank, world_size=world_size, even="pad", find_rank=lambda: (0, 1), **options)
    return PlainLoader(shared)


def ids(batches: Any) -> list[list[int]]:
    return [batch["id"].tolist() for batch in batches]


@pytest.mark.parametrize("world_size", [1, 2, 3, 8])
def test_per_rank_gives_every_rank_a_batch_of_that_size(dataset: tfr.Dataset, world_size: int) -> None:
    loaders = [share(dataset.batch(4, per_rank=True), rank, world_size) for rank in range(world_size)]
    num_batches = -(-NUM_ROWS // (4 * world_size))
    assert [len(loader) for loader in loaders] == [num_batches] * world_size
    read = [ids(loader) for loader in loaders]
    assert {len(batch) for batches in read for batch in batches[:-1]} == {4}
    together = [number for parts in zip(*read, strict=True) for part in parts for number in part]
    assert together[:NUM_ROWS] == [row["id"] for row in dataset]
    assert together[NUM_ROWS:] == together[: len(together) - NUM_ROWS]  # evens the last batch out


@pytest.mark.parametrize(("before", "after"), [(2, 2), (2, 3), (3, 1), (1, 4)])
def test_per_rank_state_resumes_with_any_number_of_ranks(dataset: tfr.Dataset, before: int, after: int) -> None:
    loaders = [share(dataset.batch(4, per_rank=True), rank, before) for rank in range(before)]
    passes = [iter(loader) for loader in loaders]
    given = [number for _ in range(3) for batches in passes for number in next(batches)["id"].tolist()]
    state = json.loads(json.dumps(loaders[0].state_dict()))
    assert state["row"] == 3 * 4 * before
    rest = [share(dataset.batch(4, per_rank=True), rank, after) for rank in range(after)]
    for loader in rest:
        loader.load_state_dict(state)
    given += [number for parts in zip(*map(ids, rest), strict=True) for part in parts for number in part]
    assert given[:NUM_ROWS] == [row["id"] for row in dataset]


def test_shared_batch_of_unsaid_kind_warns_once_with_both_numbers(dataset: tfr.Dataset) -> None:
    with pytest.warns(RankBatchWarning) as caught:
        loaders = [share(dataset.batch(64), rank, 8) for rank in range(8)]
    assert [str(warning.message) for warning in caught] == [
        "batch(64) over 8 ranks is 8 rows on each rank, 64 on all together\n"
        "  for 64 on each: batch(64, per_rank=True)    to keep this: per_rank=False"
    ]
    assert caught[0].filename == __file__
    assert [len(next(iter(loader))["id"]) for loader in loaders] == [7] * 8


def test_shared_batch_with_explicit_kind_or_one_rank_is_silent(dataset: tfr.Dataset) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        share(dataset.batch(64), 0, 1)
        share(dataset.batch(64, per_rank=False), 0, 8)
        share(dataset.batch(64, per_rank=True), 0, 8)
        share(dataset.batch(64), 0, 8, shows_whole=True)


def test_repr_names_size_rank_and_epoch(dataset: tfr.Dataset) -> None:
    assert repr(dataset.batch(4)) == "Batches(4 rows, epoch 0: id)"
    assert repr(dataset.batch(4, per_rank=True)) == "Batches(4 rows on each rank, epoch 0: id)"
    loader = share(dataset.batch(64, per_rank=False), 1, 8)
    list(loader)
    assert repr(loader) == "PlainLoader(8 of 64 rows, rank 1 of 8, epoch 1)"
    assert repr(share(dataset.batch(4, per_rank=True), 1, 8)) == "PlainLoader(4 of 32 rows, rank 1 of 8, epoch 0)"
    tokens = dataset.batch(9, max_tokens=20, bucket="id")
    assert repr(share(tokens, 0, 2)) == "PlainLoader(up to 20 tokens and 9 rows, rank 0 of 2, epoch 0)"


def test_size_that_does_not_divide_names_per_rank(dataset: tfr.Dataset) -> None:
    with pytest.raises(ValueError, match="10 rows cannot be divided between 4 ranks\n.* for 10 rows on each: per_r"):
        share(dataset.batch(10, per_rank=False), 0, 4)
    assert len(share(dataset.batch(10, per_rank=True), 0, 4)) == 2


def test_per_rank_that_is_no_bool_raises(dataset: tfr.Dataset) -> None:
    with pytest.raises(TypeError, match="per_rank expected True or False, got 8"):
        dataset.batch(4, per_rank=8)  # type: ignore[arg-type]


# ---- PyTorch, by a stand-in ------------------------------------------------------------------------------------------


def fake_torch(group: tuple[int, int] | None) -> Any:
    return SimpleNamespace(
        distributed=SimpleNamespace(
            is_available=lambda: True,
            is_initialized=lambda: group is not None,
            get_rank=lambda: group and group[0],
            get_world_size=lambda: group and group[1],
        )
    )


@pytest.mark.parametrize(
    ("group", "environment", "expected"),
    [
        (None, {}, (0, 1)),
        (None, {"RANK": "3", "WORLD_SIZE": "8"}, (3, 8)),
        ((1, 2), {"RANK": "3", "WORLD_SIZE": "8"}, (1, 2)),
        (None, {"WORLD_SIZE": "1"}, (0, 1)),
        (None, {"RANK": "", "WORLD_SIZE": ""}, (0, 1)),
    ],
)
def test_rank_is_that_of_the_process_group_or_the_environment(
    group: tuple[int, int] | None,
    environment: dict[str, str],
    expected: tuple[int, int],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch_feed, "load_torch", lambda: fake_torch(group))
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert torch_feed.find_rank() == expected


@pytest.mark.parametrize(("given", "absent"), [("WORLD_SIZE", "RANK"), ("RANK", "WORLD_SIZE")])
def test_half_of_the_environment_is_refused(given: str, absent: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_feed, "load_torch", lambda: fake_torch(None))
    monkeypatch.delenv(absent, raising=False)
    monkeypatch.setenv(given, "2")
    with pytest.raises(ValueError, match=f"RANK and WORLD_SIZE .*both or neither, got {given}=2 without {absent}\n"):
        torch_feed.find_rank()


def test_rank_of_the_environment_that_is_no_number_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch_feed, "load_torch", lambda: fake_torch(None))
    monkeypatch.setenv("RANK", "one")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(ValueError, match="RANK and WORLD_SIZE of the environment expected whole numbers, got 'one'"):
        torch_feed.find_rank()


def test_loader_in_a_loader_is_refused_in_one_sentence() -> None:
    loader = object.__new__(torch_feed.TorchLoader)
    with pytest.raises(TypeError, match=r"this is a loader already: iterate over it.*\n.*to_torch_dataset\(\)"):
        loader[0]
