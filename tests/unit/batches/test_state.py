"""States: the fingerprint of a dataset on a disk and in a store."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import tfrkit as tfr
from tfrkit.errors import TfrkitError
from tfrkit.testing.fake_store import FakeStore, use_fake_store


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tfr.build(({"x": number} for number in range(40)), tmp_path / "d", shards=4)
    return tmp_path / "d"


@pytest.fixture
def store(folder: Path) -> Iterator[FakeStore]:
    with use_fake_store() as made:
        made.add_folder(str(folder), "d/")
        yield made


def test_state_of_a_store_reads_no_shard(store: FakeStore) -> None:
    batches = tfr.open("s3://b/d/").shuffle(1).batch(8)
    next(iter(batches))
    store.log.clear()
    state = batches.save(batches.load({**iter(batches).state_dict(), "row": 16}))
    assert state["dataset"].startswith("m") and state["row"] == 16
    assert store.log == []


def test_state_moves_between_a_disk_and_a_store(folder: Path, store: FakeStore) -> None:
    def read(address: object) -> tuple[list[list[int]], dict[str, object]]:
        running = iter(tfr.open(address).shuffle(1).batch(8))
        next(running)
        state = json.loads(json.dumps(running.state_dict()))
        return [batch["x"].tolist() for batch in running], state

    rest, local = read(folder)
    assert read("s3://b/d/")[0] == rest
    _, remote = read("s3://b/d/")
    for address in (folder, "s3://b/d/"):
        for state in (local, remote):
            running = iter(tfr.open(address).shuffle(1).batch(8))
            running.load_state_dict(state)
            assert [batch["x"].tolist() for batch in running] == rest


def test_state_of_other_records_is_refused_by_either_fingerprint(folder: Path, store: FakeStore) -> None:
    tfr.build(({"x": number + 1} for number in range(40)), folder.parent / "other", shards=4)
    state = iter(tfr.open("s3://b/d/").batch(8)).state_dict()
    with pytest.raises(TfrkitError, match="another dataset"):
        iter(tfr.open(folder.parent / "other").batch(8)).load_state_dict(state)
