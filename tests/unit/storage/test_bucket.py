"""Requests to a store: repeated, resumed, pinned, counted."""

from __future__ import annotations

import os

import pytest

from tfrkit.errors import RemoteAddressError, StorageError
from tfrkit.storage import bucket
from tfrkit.storage.addresses import Remote
from tfrkit.storage.bucket import Bucket, bucket_of, explain_fault
from tfrkit.storage.objects import StoreFault
from tfrkit.storage.pace import COUNTS
from tfrkit.storage.ranges import Range
from tfrkit.testing.fake_store import FakeStore

DATA = bytes(range(256)) * 40


def open_bucket(store: FakeStore) -> Bucket:
    store.objects["x"] = DATA
    found = bucket_of("s3://b/x")
    assert found is not None
    return found[0]


def read(of: Bucket, start: int, stop: int, version: str | None = None) -> bytes:
    return b"".join(of.read("x", Range(start, stop), version)[0])


@pytest.mark.parametrize("kind", ["busy", "broken"])
def test_passing_fault_is_tried_again_and_counted(store: FakeStore, kind) -> None:
    of = open_bucket(store)
    before = COUNTS.to_json()

    def answer(key: str, number: int, data: bytes) -> bytes:
        if number < 3:
            raise StoreFault(kind, "not now")
        return data

    store.answer = answer
    assert read(of, 10, 20) == DATA[10:20]
    after = COUNTS.to_json()
    assert after["retries"] - before["retries"] == 3
    assert after["busy"] - before["busy"] == (3 if kind == "busy" else 0)


def test_fault_that_stays_is_an_error_with_the_number_of_tries(store: FakeStore) -> None:
    of = open_bucket(store)

    def answer(key: str, number: int, data: bytes) -> bytes:
        raise StoreFault("broken", "the connection broke")

    store.answer = answer
    with pytest.raises(StorageError, match="cannot read, the connection broke, tried 10 times - at s3://b/x"):
        read(of, 0, 5)


def test_cut_body_is_continued_at_the_byte_reached(store: FakeStore) -> None:
    of = open_bucket(store)

    def answer(key: str, number: int, data: bytes) -> bytes:
        if number == 0:
            fault = StoreFault("broken", "the connection broke")
            fault.body = [memoryview(data[:100])]
            raise fault
        return data

    store.answer = answer
    assert read(of, 0, 1000, store.version_of("x")) == DATA[:1000]
    assert [row[2:] for row in store.log] == [(0, 1000), (100, 1000)]


def test_cut_body_of_an_unknown_version_starts_again(store: FakeStore) -> None:
    of = open_bucket(store)

    def answer(key: str, number: int, data: bytes) -> bytes:
        if number == 0:
            fault = StoreFault("broken", "the connection broke")
            fault.body = [memoryview(data[:100])]
            raise fault
        return data

    store.answer = answer
    assert read(of, 0, 1000) == DATA[:1000]
    assert [row[2:] for row in store.log] == [(0, 1000), (0, 1000)]


def test_replaced_object_is_named_with_both_versions(store: FakeStore) -> None:
    of = open_bucket(store)
    old = store.version_of("x")
    store.objects["x"] = DATA[::-1]
    with pytest.raises(StorageError, match=f"version {old} at first, {store.version_of('x')} now - at s3://b/x"):
        read(of, 0, 5, old)


def test_short_body_is_an_error(store: FakeStore) -> None:
    of = open_bucket(store)
    store.answer = lambda key, number, data: data[:-1]
    with pytest.raises(StorageError, match="expected 100 bytes, got 99"):
        read(of, 0, 100)


def test_missing_package_is_answered_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str, extra: str):
        raise ImportError(f"{name.partition('.')[0]} is not installed\n  install it: pip install 'tfrkit[{extra}]'")

    monkeypatch.setattr("tfrkit.storage.obstore_client.import_or_explain", refuse)
    with pytest.raises(RemoteAddressError, match=r"gs:// needs obstore, .*\n.*pip install 'tfrkit\[remote\]'"):
        bucket.find_bucket(Remote("gs", "gs://nothing", "x"))


def test_bucket_of_the_parent_is_an_error_in_a_forked_process(store: FakeStore) -> None:
    of = open_bucket(store)
    of.pid = os.getppid()
    with pytest.raises(StorageError, match="this process was forked while a remote file was read"):
        read(of, 0, 9)


def test_forked_process_has_buckets_of_its_own(store: FakeStore) -> None:
    of = open_bucket(store)
    parent, child = os.pipe()
    pid = os.fork()
    if pid == 0:
        found = bucket_of("s3://b/x")
        ok = found is not None and found[0] is not of and read(found[0], 0, 9) == DATA[:9]
        os.write(child, b"1" if ok else b"0")
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(parent, 1) == b"1"
    os.close(parent)
    os.close(child)


def test_hint_about_keys_is_for_denied_objects() -> None:
    assert "--anonymous" in str(explain_fault(StoreFault("denied", "no access"), "s3://b/x").hint)
    assert "use a signed address" in str(explain_fault(StoreFault("denied", "no access"), "https://host/x").hint)
    assert explain_fault(StoreFault("missing", "no such object"), "s3://b/x").hint is None
