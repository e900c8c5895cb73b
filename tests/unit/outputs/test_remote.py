from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import tfrkit as tfr
from tfrkit.errors import StorageError
from tfrkit.ops.reshape.convert import convert
from tfrkit.ops.reshape.merge import merge
from tfrkit.ops.reshape.reshard import reshard
from tfrkit.sidecars.manifest import add_versions
from tfrkit.storage.upload import LEASE
from tfrkit.testing.fake_store import FakeStore, use_fake_store


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeStore]:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    with use_fake_store() as store:
        yield store
    assert os.listdir(scratch) == []


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source.tfrecord"
    with tfr.Writer(path) as writer:
        for number in range(100):
            writer.write({"id": number})
    return path


def read_folder(folder: Path) -> dict[str, bytes]:
    found = {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {name: data for name, data in found.items() if not name.endswith(".lock")}


def writes(store: FakeStore) -> list[str]:
    return [key for verb, key, *_ in store.log if verb == "put" and not key.endswith(LEASE)]


def test_files_are_those_of_a_local_folder_and_the_manifest_is_last(
    store: FakeStore, source: Path, tmp_path: Path
) -> None:
    reshard(source, tmp_path / "out", shards=3)
    made = reshard(source, "s3://bucket/deep/out", shards=3)
    whole = read_folder(tmp_path / "out")
    etags = {name: store.version_of(f"deep/out/{name}") for name in whole}
    whole["tfrkit.json"] = add_versions(whole["tfrkit.json"], "s3://bucket/deep/out", etags)
    assert store.objects == {f"deep/out/{name}": data for name, data in whole.items()}
    assert writes(store)[-1] == "deep/out/tfrkit.json"
    assert [file.path for file in made.files] == [
        f"s3://bucket/deep/out/out.tfrecord-0000{number}-of-00003" for number in range(3)
    ]


def test_one_object_is_written_after_its_sidecars(store: FakeStore, source: Path, tmp_path: Path) -> None:
    merge(source, tmp_path / "out" / "x.tfrecord.gz")
    merge(source, "s3://bucket/x.tfrecord.gz")
    whole = read_folder(tmp_path / "out")
    manifest = "_index/x.tfrecord.gz.tfrkit.json"
    etags = {"x.tfrecord.gz": store.version_of("x.tfrecord.gz")}
    whole[manifest] = add_versions(whole[manifest], "s3://bucket", etags)
    assert store.objects == whole
    # The manifest is there before the object, and once more with its version.
    assert manifest in writes(store)[:-2]
    assert writes(store)[-2:] == ["x.tfrecord.gz", manifest]


def test_shard_leaves_the_disk_as_soon_as_it_is_uploaded(
    store: FakeStore, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put, most = FakeStore.put, 0

    def count(self: FakeStore, key: str, *rest: object) -> object:
        nonlocal most
        shards = [
            path for path in (tmp_path / "scratch").rglob("*tfrecord*") if path.is_file() and "_index" not in str(path)
        ]
        most = max(most, len(shards))
        return put(self, key, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(FakeStore, "put", count)
    reshard(source, "s3://bucket/out", shards=10)
    assert len([key for key in store.objects if "_index" not in key]) == 11
    # One is uploaded while the next ones are written from memory; 10 would mean that all were kept.
    assert most <= 5


@pytest.mark.parametrize("output", ["s3://bucket/out", "s3://bucket/out/x.tfrecord"])
def test_existing_output_is_refused_without_force(store: FakeStore, source: Path, output: str) -> None:
    convert(source, output)
    before = dict(store.objects)
    with pytest.raises(StorageError, match="the output is there already"):
        convert(source, output)
    assert store.objects == before


def test_replaced_output_has_no_file_of_the_old_one(store: FakeStore, source: Path) -> None:
    reshard(source, "s3://bucket/out", shards=5)
    reshard(source, "s3://bucket/out", shards=2, force=True)
    assert sorted(key for key in store.objects if "_index" not in key) == [
        "out/out.tfrecord-00000-of-00002",
        "out/out.tfrecord-00001-of-00002",
        "out/tfrkit.json",
    ]
    # The manifest goes first and comes last: in between the folder is no dataset.
    verbs = [(verb, key) for verb, key, *_ in store.log if key == "out/tfrkit.json" and verb in ("put", "delete")]
    assert verbs == [("put", "out/tfrkit.json"), ("delete", "out/tfrkit.json"), ("put", "out/tfrkit.json")]


def test_failure_removes_what_was_uploaded_and_keeps_an_old_output(
    store: FakeStore, source: Path, tmp_path: Path
) -> None:
    data = bytearray(source.read_bytes())
    data[-10] ^= 1
    (tmp_path / "bad.tfrecord").write_bytes(data)
    with pytest.raises(tfr.errors.CorruptRecordError):
        reshard(tmp_path / "bad.tfrecord", "s3://bucket/out", shards=5)
    assert store.objects == {}
    reshard(source, "s3://bucket/out", shards=5)
    before = dict(store.objects)
    with pytest.raises(tfr.errors.CorruptRecordError):
        reshard(tmp_path / "bad.tfrecord", "s3://bucket/out", shards=3, force=True)
    assert store.objects == before


def test_manifest_of_another_process_is_never_replaced(
    store: FakeStore, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = FakeStore.put

    def race(self: FakeStore, key: str, data: bytes, replaces: object) -> object:
        if key == "out/tfrkit.json":
            self.objects[key] = b"of another process"
        return put(self, key, data, replaces)  # type: ignore[arg-type]

    monkeypatch.setattr(FakeStore, "put", race)
    with pytest.raises(StorageError, match="another process wrote its manifest first"):
        reshard(source, "s3://bucket/out", shards=2)
    assert store.objects["out/tfrkit.json"] == b"of another process"


def test_shard_replaced_by_another_process_is_noticed(
    store: FakeStore, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = FakeStore.put

    def race(self: FakeStore, key: str, data: bytes, replaces: object) -> object:
        if "00001-of" in key:
            self.objects["out/out.tfrecord-00000-of-00002"] = b"of another process"
        return put(self, key, data, replaces)  # type: ignore[arg-type]

    monkeypatch.setattr(FakeStore, "put", race)
    with pytest.raises(StorageError, match="another process replaced a shard while this one wrote"):
        reshard(source, "s3://bucket/out", shards=2)
    assert "out/tfrkit.json" not in store.objects


@pytest.mark.usefixtures("store")
def test_output_that_is_a_source_is_refused(source: Path) -> None:
    merge(source, "s3://bucket/x.tfrecord")
    with pytest.raises(StorageError, match="the output is one of the files to read"):
        merge("s3://bucket/x.tfrecord", "s3://bucket/x.tfrecord", force=True)
    reshard(source, "s3://bucket/out", shards=2)
    with pytest.raises(StorageError, match="the output is a folder to read from"):
        reshard("s3://bucket/out", "s3://bucket/out", shards=3, force=True)


def test_other_shard_in_the_folder_is_refused(store: FakeStore, source: Path) -> None:
    store.objects["out/other.tfrecord"] = b""
    with pytest.raises(StorageError, match="the folder has another shard"):
        reshard(source, "s3://bucket/out", shards=2, force=True)


def test_writer_writes_an_object_and_its_index(store: FakeStore, tmp_path: Path) -> None:
    for path in (str(tmp_path / "out" / "x.tfrecord"), "s3://bucket/out/x.tfrecord"):
        if not path.startswith("s3:"):
            (tmp_path / "out").mkdir()
        with tfr.Writer(path, index=True) as writer:
            writer.write({"id": 7})
    assert store.objects == {f"out/{name}": data for name, data in read_folder(tmp_path / "out").items()}
    assert tfr.open("s3://bucket/out/x.tfrecord")[0]["id"] == 7


def test_writer_that_fails_stores_nothing(store: FakeStore) -> None:
    with pytest.raises(ZeroDivisionError), tfr.Writer("s3://bucket/x.tfrecord") as writer:
        writer.write({"id": 7})
        _ = 1 / 0
    assert store.objects == {}


def test_new_object_removes_the_sidecars_of_the_old_one(store: FakeStore) -> None:
    store.objects = {"_index/x.tfrecord.tfidx": b"old", "_index/x.tfrecord.tfrkit.json": b"{}", "_index/y.tfidx": b"y"}
    with tfr.Writer("s3://bucket/x.tfrecord") as writer:
        writer.write({"id": 7})
    assert sorted(store.objects) == ["_index/y.tfidx", "x.tfrecord"]


def test_manifest_lists_the_shards_that_are_there(store: FakeStore, source: Path) -> None:
    reshard(source, "s3://bucket/out", shards=4)
    rows = json.loads(store.objects["out/tfrkit.json"])["shards"]
    assert [len(store.objects[f"out/{row['name']}"]) for row in rows] == [row["nbytes"] for row in rows]
