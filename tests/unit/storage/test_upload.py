from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator

import pytest

from tfrkit._limits import LIMITS
from tfrkit.errors import StorageError
from tfrkit.storage.bucket import bucket_of
from tfrkit.storage.objects import StoredVersion, StoreFault
from tfrkit.storage.resolve import open_writer
from tfrkit.storage.upload import LEASE, Lease, _read_boot, delete_objects, write_object
from tfrkit.testing.fake_store import FakeStore, use_fake_store
from tfrkit.testing.storage_suite import StorageTests


@pytest.fixture
def store() -> Iterator[FakeStore]:
    with use_fake_store() as store:
        yield store


def take(folder: str = "out/") -> Lease:
    found = bucket_of("s3://bucket/")
    assert found is not None
    return Lease(found[0], folder)


class TestRemoteStorage(StorageTests):
    @pytest.fixture(autouse=True)
    def _use_store(self, store: FakeStore) -> None:
        self.objects = store.objects

    def store(self, name: str, data: bytes) -> None:
        self.objects[name] = data

    def fetch(self, name: str) -> bytes | None:
        return self.objects.get(name)

    def open_reader(self, name: str):  # type: ignore[no-untyped-def]
        from tfrkit.storage.resolve import open_reader

        return open_reader(f"s3://bucket/{name}")

    def open_writer(self, name: str):  # type: ignore[no-untyped-def]
        return open_writer(f"s3://bucket/{name}")

    def leftovers(self) -> list[str]:
        return sorted(self.objects)


@pytest.mark.usefixtures("store")
def test_writer_of_a_folder_is_refused() -> None:
    with pytest.raises(StorageError, match="expected the name of an object to write, got a folder"):
        open_writer("s3://bucket/folder/")


def test_deleted_objects_are_those_that_exist(store: FakeStore) -> None:
    store.objects = {"a/x": b"", "a/y": b"", "b/x": b""}
    delete_objects(["s3://bucket/a/x", "s3://bucket/a/none", "s3://bucket/b/none"])
    assert sorted(store.objects) == ["a/y", "b/x"]
    assert [entry for entry in store.log if entry[0] == "delete"] == [("delete", "a/x", 0, 0)]


def test_small_object_is_replaced(store: FakeStore) -> None:
    write_object("s3://bucket/a", b"1")
    write_object("s3://bucket/a", b"2")
    assert store.objects == {"a": b"2"}


# --- leases


def test_lease_is_an_object_until_it_ends(store: FakeStore) -> None:
    with take():
        text = json.loads(store.objects[f"out/{LEASE}"])
        assert (text["pid"], text["host"]) == (os.getpid(), socket.gethostname())
    assert store.objects == {}


def test_second_lease_names_the_process_that_has_the_first(store: FakeStore) -> None:
    with take(), pytest.raises(StorageError, match=f"another process writes this folder, process {os.getpid()} of"):
        take()
    with take():
        pass
    with take("other/"):
        pass
    assert store.objects == {}


@pytest.mark.parametrize(
    ("change", "is_taken"),
    [
        ({}, False),
        ({"pid": 2**22 + 1}, True),
        ({"pid": 2**22 + 1, "host": "elsewhere"}, False),
        ({"pid": 2**22 + 1, "boot": "an earlier one"}, False),
        ({"renewed": 1.0}, True),
        ({"host": "elsewhere", "renewed": 1.0}, True),
    ],
)
def test_lease_of_a_dead_process_is_taken_over(store: FakeStore, change: dict[str, object], is_taken: bool) -> None:
    with take():
        text = json.loads(store.objects[f"out/{LEASE}"])
    if not _read_boot():
        pytest.skip("this system does not say when it was started")
    store.objects[f"out/{LEASE}"] = json.dumps(text | change).encode()
    if is_taken:
        with take():
            pass
        assert store.objects == {}
    else:
        with pytest.raises(StorageError, match="another process writes this folder"):
            take()


def test_store_that_ignores_conditions_is_refused(store: FakeStore) -> None:
    store.has_conditions = False
    with pytest.raises(StorageError, match=r"this store ignores conditions of requests \(If-None-Match\)"):
        take()
    assert store.objects == {}


def test_lease_is_renewed_and_its_loss_is_noticed(store: FakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "lease_seconds", 0.04)
    with take() as lease:
        first = store.objects[f"out/{LEASE}"]
        wait_until(lambda: store.objects[f"out/{LEASE}"] != first)
        lease.require()
        store.objects[f"out/{LEASE}"] = b"of another process"
        wait_until(lambda: lease._is_lost)
        with pytest.raises(StorageError, match="another process took over the writing of this folder"):
            lease.require()
    assert store.objects == {f"out/{LEASE}": b"of another process"}


def test_answer_lost_after_the_object_was_created_is_a_success(
    store: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = FakeStore.put
    num_lost = 0

    def lose_first(self: FakeStore, key: str, data: bytes, replaces: object) -> StoredVersion:
        nonlocal num_lost
        version = put(self, key, data, replaces)  # type: ignore[arg-type]
        num_lost += 1
        if num_lost == 1:
            raise StoreFault("broken", "the connection broke")
        return version

    monkeypatch.setattr(FakeStore, "put", lose_first)
    found = bucket_of("s3://bucket/")
    assert found is not None
    assert found[0].put("x", b"mine", replaces="nothing") == StoredVersion(store.version_of("x"))
    assert found[0].put("x", b"other", replaces="nothing") is None


def wait_until(is_done: object) -> None:
    import time

    end = time.monotonic() + 30
    while not is_done():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.005)
