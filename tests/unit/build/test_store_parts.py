from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import tfrkit as tfr
from tfrkit.build import store_parts
from tfrkit.errors import StorageError
from tfrkit.storage.objects import StoreFault
from tfrkit.testing.fake_store import FakeStore, use_fake_store

ROWS = [{"x": number, "text": "ab" * (number % 5)} for number in range(60)]
OUT = "s3://bucket/out"


@pytest.fixture
def store() -> Iterator[FakeStore]:
    with use_fake_store() as store:
        yield store


def build(part: str | None = None, **options: Any) -> tfr.Report:
    return tfr.build(ROWS, OUT, part=part, jobs=1, **{"splits": {"test": 0.2}, "shards": 3, **options})


def objects_of(store: FakeStore) -> dict[str, bytes]:
    return {key: data for key, data in store.objects.items() if key != "out/report.json"}


@pytest.fixture(scope="module")
def expected() -> dict[str, bytes]:
    with use_fake_store() as store:
        build()
        return objects_of(store)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 1, 0, 2), (2, 2, 3, 0, 0, 1)])
def test_parts_in_any_order_give_the_objects_of_one_build(
    store: FakeStore, expected: dict[str, bytes], order: tuple[int, ...]
) -> None:
    reports = [build(f"{index}/4") for index in order]
    assert objects_of(store) == expected
    assert reports[0].missing_shards
    assert not reports[-1].missing_shards
    assert build("1/4").already_there
    assert build().already_there


def test_parts_at_the_same_time_give_the_objects_of_one_build(store: FakeStore, expected: dict[str, bytes]) -> None:
    threads = [threading.Thread(target=build, args=(f"{index % 3}/3",)) for index in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert objects_of(store) == expected


def test_part_that_begins_while_others_finish_reports_the_dataset(
    store: FakeStore, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure = store_parts._ensure_begun

    def finish_before(*given: Any) -> Any:
        monkeypatch.setattr(store_parts, "_ensure_begun", ensure)
        build("0/2")
        build("1/2")
        return ensure(*given)

    monkeypatch.setattr(store_parts, "_ensure_begun", finish_before)
    assert build("1/2").already_there
    assert objects_of(store) == expected


def test_parts_that_fail_at_any_request_are_run_again(
    store: FakeStore, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    put, order = FakeStore.put, random.Random(7)
    for number in range(0, 40, 3):
        store.objects.clear()
        num_puts = 0

        def fail(self: FakeStore, key: str, data: bytes, replaces: Any, limit: int = number) -> Any:
            nonlocal num_puts
            num_puts += 1
            if num_puts > limit:
                raise StoreFault("refused", "no more")
            return put(self, key, data, replaces)

        with monkeypatch.context() as patch:
            patch.setattr(FakeStore, "put", fail)
            for index in range(3):
                try:
                    build(f"{index}/3")
                except StorageError:
                    break
        assert "out/tfrkit.json" not in store.objects or num_puts <= number
        for index in order.sample(range(3), 3):
            build(f"{index}/3")
        assert objects_of(store) == expected, number


def test_part_that_runs_again_stores_none_of_its_shards_again(store: FakeStore) -> None:
    build("0/2")
    store.log.clear()
    report = build("0/2")
    assert report.splits["train"]["shards"] == 2
    assert not [key for verb, key, *_ in store.log if verb == "put" and ".tfrecord" in key]


def test_finish_names_what_is_missing(store: FakeStore) -> None:
    build("0/2")
    with pytest.raises(StorageError, match="the build cannot be finished, 3 shards are missing, the first one out-"):
        build("finish")
    build("1/2")
    assert build("finish").already_there


def test_parts_of_another_plan_are_refused(store: FakeStore) -> None:
    build("0/2")
    with pytest.raises(StorageError, match="an unfinished build exists, started with other inputs or options"):
        build("1/2", seed=5)
    build("0/2", seed=5, force=True)
    assert not build("1/2", seed=5).missing_shards


def test_dataset_in_a_store_is_not_replaced_by_parts(store: FakeStore) -> None:
    build()
    before = dict(store.objects)
    with pytest.raises(StorageError, match="a build by several machines cannot replace what is in a store"):
        build("0/2", seed=5, force=True)
    assert store.objects == before


def test_store_that_ignores_conditions_is_refused_before_the_first_shard(store: FakeStore) -> None:
    store.has_conditions = False
    with pytest.raises(StorageError, match="ignores conditions of requests"):
        build("0/2")
    assert not any(".tfrecord" in key for key in store.objects)


@pytest.mark.parametrize("name", ["features.json", "dataset_info.json"])
def test_part_refuses_a_folder_with_the_sidecars_of_another_dataset(store: FakeStore, name: str) -> None:
    store.put(f"out/{name}", b"{}", "anything")
    with pytest.raises(StorageError, match="out"):
        build("0/2")
