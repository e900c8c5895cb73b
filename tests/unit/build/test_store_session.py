from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import tfrkit as tfr
from tfrkit.build import store_session
from tfrkit.build.clean import clean_build
from tfrkit.build.frame_task import FrameTask
from tfrkit.build.task import ShardTask
from tfrkit.errors import StorageError
from tfrkit.outputs.target import Target
from tfrkit.storage.objects import StoreFault
from tfrkit.testing.fake_store import FakeStore, use_fake_store

ROWS = [{"x": number} for number in range(40)]
OUT = "s3://bucket/out"


@pytest.fixture
def store() -> Iterator[FakeStore]:
    with use_fake_store() as store:
        yield store


def build(**options: Any) -> tfr.Report:
    return tfr.build(ROWS, OUT, jobs=1, **{"shards": 4, **options})


def shards_of(store: FakeStore) -> list[str]:
    return sorted(key for key in store.objects if ".tfrecord-" in key and "_" not in key)


def fail_at(store: FakeStore, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """Refuse to store objects whose key has a part."""
    put = FakeStore.put

    def refuse(self: FakeStore, key: str, data: bytes, replaces: Any) -> Any:
        if part in key:
            raise StoreFault("refused", "the disk of the store is full")
        return put(self, key, data, replaces)

    monkeypatch.setattr(FakeStore, "put", refuse)


def test_manifest_is_stored_last_and_lists_versions(store: FakeStore) -> None:
    build()
    stored = [key for verb, key, *_ in store.log if verb == "put" and "_build" not in key]
    assert stored[-1] == "out/tfrkit.json"
    content = json.loads(store.objects["out/tfrkit.json"])
    assert content["stored_at"] == OUT
    assert [row["etag"] for row in content["shards"]] == [store.version_of(key) for key in shards_of(store)]
    assert not any("_build" in key for key in store.objects)


def test_failed_build_is_resumed_without_writing_its_shards_again(
    store: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fail_at(store, patch, "00002-of")
        with pytest.raises(StorageError, match="cannot write, the disk of the store is full"):
            build()
    assert len(shards_of(store)) == 2
    assert "out/tfrkit.json" not in store.objects
    store.log.clear()
    assert build().resumed == 2
    stored = [key for verb, key, *_ in store.log if verb == "put" and key in shards_of(store)]
    assert len(stored) == 2
    assert [row["x"] for row in tfr.open(OUT)] == list(range(40))


def test_shard_that_was_replaced_after_its_marker_is_written_again(
    store: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        fail_at(store, patch, "00002-of")
        with pytest.raises(StorageError, match="full"):
            build()
    key = shards_of(store)[0]
    whole = store.objects[key]
    store.objects[key] = bytes(len(whole))
    assert build().resumed == 1
    assert store.objects[key] == whole


def test_shard_that_another_process_replaces_during_the_build_prevents_the_manifest(
    store: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = FakeStore.put

    def replace(self: FakeStore, key: str, data: bytes, replaces: Any) -> Any:
        if key.endswith("report.json"):
            store.objects[shards_of(store)[0]] = b"other"
        return put(self, key, data, replaces)

    monkeypatch.setattr(FakeStore, "put", replace)
    with pytest.raises(StorageError, match="another process replaced a shard while this one wrote"):
        build()
    assert "out/tfrkit.json" not in store.objects


def test_replaced_dataset_stays_until_the_new_one_is_whole(store: FakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    build()
    before = dict(store.objects)
    with monkeypatch.context() as patch:
        patch.setattr(FrameTask, "run", lambda *_: 1 / 0)
        patch.setattr(ShardTask, "run", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            build(shards=2, force=True)
    assert {key: store.objects.get(key) for key in before} == before
    build(shards=2, force=True)
    assert len(shards_of(store)) == 2
    assert len(tfr.open(OUT)) == 40


def test_killed_replacement_is_resumed_and_the_old_files_go(store: FakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    build()
    with monkeypatch.context() as patch:
        fail_at(store, patch, "00001-of-00002")
        with pytest.raises(StorageError, match="full"):
            build(shards=2, force=True)
    assert "out/tfrkit.json" not in store.objects
    build(shards=2, force=True)
    assert len(shards_of(store)) == 2
    assert len(tfr.open(OUT)) == 40


def test_objects_that_no_build_made_are_not_replaced(store: FakeStore) -> None:
    store.objects["out/out-train.tfrecord-00000-of-00004"] = b"mine"
    with pytest.raises(StorageError, match="an object exists that this build did not make"):
        build()
    assert store.objects == {"out/out-train.tfrecord-00000-of-00004": b"mine"}


def test_store_that_ignores_conditions_is_refused(store: FakeStore) -> None:
    store.has_conditions = False
    with pytest.raises(StorageError, match="ignores conditions of requests"):
        build()
    assert store.objects == {}


def test_clean_keeps_a_finished_dataset(store: FakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_session, "abort_uploads", lambda folder: None)
    build()
    before = dict(store.objects)
    assert clean_build(Target(OUT)) == []
    assert store.objects == before
    with monkeypatch.context() as patch:
        patch.setattr(store_session, "finish_in_store", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            build(shards=2, force=True)
    clean_build(Target(OUT))
    assert store.objects == before
