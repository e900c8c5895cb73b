"""Tables of many shards: the same facts as the manifest, and nothing from a table that is not whole."""

from __future__ import annotations

import json
import os
import pickle
import random
import struct
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import tfrkit
from tfrkit import _native, tools
from tfrkit._limits import LIMITS
from tfrkit.container.shard_list import ListedShards
from tfrkit.container.shard_table import (
    _HEADER,
    ShardTable,
    StaleTableError,
    UnusableTableError,
    fingerprint_entries,
    identify_manifest,
    make_table,
    wants_table,
)
from tfrkit.errors import (
    IncompleteSetWarning,
    SidecarWarning,
    StaleIndexWarning,
    StorageError,
    UnlistedShardWarning,
)
from tfrkit.testing.fake_store import FakeStore, use_fake_store

HOW: Any = {"splits": {"train": 0.75, "test": 0.25}, "jobs": 1}
ROWS = [{"number": number, "text": f"row {number}"} for number in range(600)]


def make_manifest(names: list[str]) -> bytes:
    chance = random.Random(5)
    rows: list[dict[str, Any]] = []
    for number, name in enumerate(names):
        row = {"name": name, "split": chance.choice(["train", "test", None]), "records": number, "nbytes": number * 7}
        if number % 3:
            row["sha256"] = chance.randbytes(32).hex()
        if number % 4:
            row["etag"] = f'"{chance.randbytes(chance.randrange(1, 20)).hex()}-{number}"'
        rows.append(row)
    chance.shuffle(rows)
    return json.dumps({"format": "tfrkit.dataset", "version": 1, "name": "d", "shards": rows}).encode()


def numbered(stem: str, numbers: range, total: int) -> list[str]:
    return [f"{stem}-{number:06d}-of-{total:06d}" for number in numbers]


MIXED = [
    *numbered("a.tfrecord", range(150), 150),
    "alone.tfrecord",
    *numbered("b", range(3, 9), 20),
    "ä-00001-of-00003",
]


@pytest.mark.parametrize("names", [["x"], MIXED, numbered("d-train.tfrecord", range(200_000, 200_300), 250_000)])
def test_table_has_the_rows_of_its_manifest(names: list[str]) -> None:
    text = make_manifest(names)
    data = make_table(text)
    assert data is not None
    table = pickle.loads(pickle.dumps(ShardTable(data, identify_manifest(text))))
    content = json.loads(text)
    rows = sorted(content.pop("shards"), key=lambda row: row["name"])
    facts = [(row["nbytes"], row.get("sha256")) for row in rows]
    assert table.head == content and table.fingerprint == fingerprint_entries(facts)
    assert table.names() == [row["name"] for row in rows]
    assert table.records.tolist() == [row["records"] for row in rows]
    assert table.nbytes.tolist() == [row["nbytes"] for row in rows]
    for number, row in enumerate(rows):
        assert table.name(number) == row["name"] and table.find(row["name"]) == number
        assert (table.split(number), table.sha256(number)) == (row["split"], row.get("sha256"))
        assert table.etag(number) == row.get("etag")
    assert table.find("a.tfrecord-000150-of-000150") is None and table.find("") is None and table.find("zz") is None


def test_table_that_is_not_whole_is_refused() -> None:
    text = make_manifest(MIXED[140:])
    data = make_table(text)
    assert data is not None
    known = identify_manifest(text)
    for at in range(len(data)):
        wrong = bytearray(data)
        wrong[at] ^= 1 << at % 8
        with pytest.raises(UnusableTableError):
            ShardTable(bytes(wrong), known)
    for nbytes in (0, 7, 8, 50, 79, 80, 100, len(data) - 1):
        with pytest.raises(UnusableTableError):
            ShardTable(data[:nbytes], known)
    with pytest.raises(UnusableTableError, match="bytes, expected"):
        ShardTable(data + b"\0", known)
    with pytest.raises(UnusableTableError, match="of version 2, this tfrkit reads version 1"):
        ShardTable(data[:8] + b"\2" + data[9:], known)
    with pytest.raises(StaleTableError):
        ShardTable(data, identify_manifest(text + b" "))


@pytest.mark.parametrize(
    "change", [{"records": -1}, {"records": None}, {"name": "a/b"}, {"more": 1}, {"sha256": "xyz"}]
)
def test_rows_that_a_table_cannot_hold_give_none(change: dict[str, Any]) -> None:
    content = json.loads(make_manifest(["x", "y"]))
    content["shards"][0].update(change)
    assert make_table(json.dumps(content).encode()) is None


def forge(change: dict[str, Any]) -> tuple[bytes, bytes]:
    """A manifest, and a table with another head and right checksums."""
    text = make_manifest(["x"])
    data = make_table(text)
    assert data is not None
    fields = list(_HEADER.unpack_from(data))
    head = json.loads(data[80 : 80 + fields[4]])
    forged = json.dumps({**head, **change}).encode()
    body = forged + bytes(-len(forged) % 8) + data[80 + -(-fields[4] // 8) * 8 :]
    fields[2], fields[4] = _native.crc32c(body), len(forged)
    header = _HEADER.pack(*fields)
    return text, header + struct.pack("<I", _native.crc32c(header)) + body


@pytest.mark.parametrize(
    "change",
    [{"names": [run]} for run in (
        ["..", 0, 0, "", 1], ["", 0, 0, "", 1], ["a/b", 0, 0, "", 1], ["a", 0, 10**9, "", 1], ["a", 0.5, 5, "", 1],
        ["a", 0, 5, "", 1.0], ["a", 0, True, "", 1], ["a", "0", 5, "", 1], ["a", 0, 5, 7, 1], ["a", 0, 5, "", 10**30],
    )] + [{"manifest": []}, {"manifest": None}, {"fingerprint": 7}, {"names": 7}, {"splits": None}],
)  # fmt: skip
def test_table_forged_with_its_checksums_is_refused(change: dict[str, Any]) -> None:
    text, data = forge({})
    assert ShardTable(data, identify_manifest(text)).names() == ["x"]
    text, data = forge(change)
    with pytest.raises(UnusableTableError):
        ShardTable(data, identify_manifest(text))


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeStore]:
    """A store with a dataset that has a table, s3://bucket/many/data, and one that has none, s3://bucket/few/data."""
    monkeypatch.setattr(LIMITS, "retry_seconds", 0.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with use_fake_store() as made:
        tfrkit.build(ROWS, "s3://bucket/few/data", shards=12, **HOW)
        monkeypatch.setattr(LIMITS, "table_text_nbytes", 0)
        tfrkit.build(ROWS, "s3://bucket/many/data", shards=12, **HOW)
        yield made


def read_all(name: str) -> list[Any]:
    ds = tfrkit.open(f"s3://bucket/{name}/data")
    found: list[Any] = [len(ds), [path.replace(name, "") for path in ds.files], ds.schema.names]
    found += [list(ds), [ds[number] for number in (0, 7, 599, -3)], len(ds["train"]), list(ds["test"])[:3]]
    found += [[batch["number"].tolist() for batch in ds.shuffle(seed=3).batch(50)]]
    copy = pickle.loads(pickle.dumps(ds))
    found += [list(copy["train[:10%]"]), ds.batch(10).state_dict() if hasattr(ds.batch(10), "state_dict") else None]
    return found


def test_dataset_with_a_table_reads_as_one_without(store: FakeStore) -> None:
    assert "many/data/_index/shards.bin" in store.objects and "few/data/_index/shards.bin" not in store.objects
    store.log.clear()
    ds = tfrkit.open("s3://bucket/many/data")
    assert len(ds) == 600
    assert [row[1] for row in store.log] == ["many/data/tfrkit.json", "many/data/_index/shards.bin"]
    assert isinstance(ds._set.shards, ListedShards)
    assert ds._set.fingerprint == tfrkit.open("s3://bucket/few/data")._set.fingerprint
    assert read_all("many") == read_all("few")
    assert tools.verify("s3://bucket/many/data").ok
    assert ds._set.sidecars.fits == [True] * len(ds.files) and ds._set.sidecars.schema is not None


def test_table_that_cannot_be_used_is_named_and_the_manifest_is_read(store: FakeStore) -> None:
    expected = read_all("few")
    data = store.objects["many/data/_index/shards.bin"]
    for wrong in (data[:100], b"x" * 200, data[:8] + b"\7" + data[9:], data[:-1] + bytes([data[-1] ^ 1])):
        store.objects["many/data/_index/shards.bin"] = wrong
        with pytest.warns(
            SidecarWarning, match=r"the table of shards is not used, .* s3://bucket/many/data/_index/shards\.bin"
        ):
            assert read_all("many") == expected
    del store.objects["many/data/_index/shards.bin"]
    assert read_all("many") == expected


def test_table_of_another_manifest_is_not_used(store: FakeStore) -> None:
    content = json.loads(store.objects["many/data/tfrkit.json"])
    content["shards"] = [row for row in content["shards"] if row["split"] == "train"]
    store.objects["many/data/tfrkit.json"] = json.dumps(content).encode()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", IncompleteSetWarning)
        ds = tfrkit.open("s3://bucket/many/data")
    assert len(ds) == 450 and not isinstance(ds._set.shards, ListedShards)


def test_replaced_shard_of_a_table_is_an_error_that_names_it(store: FakeStore) -> None:
    ds = tfrkit.open("s3://bucket/many/data")
    name = next(key for key in store.objects if "train.tfrecord-00002" in key and "_index" not in key and "many" in key)
    store.objects[name] = store.objects[name][:-1] + b"x"
    store.objects["many/data/tfrkit.json"] += b" "  # as another build would have written
    with pytest.raises(StorageError, match="the object was replaced"):
        list(ds)


def test_forced_build_replaces_the_table(store: FakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    tfrkit.build(ROWS[:100], "s3://bucket/many/data", shards=2, force=True, jobs=1)
    assert isinstance(tfrkit.open("s3://bucket/many/data")._set.shards, ListedShards)
    monkeypatch.setattr(LIMITS, "table_text_nbytes", 1 << 20)
    tfrkit.build(ROWS[:50], "s3://bucket/many/data", shards=2, force=True, jobs=1)
    assert "many/data/_index/shards.bin" not in store.objects
    assert len(tfrkit.open("s3://bucket/many/data")) == 50


@pytest.mark.parametrize(
    ("names", "has_gaps"),
    [
        (numbered("x", range(3), 3), False),
        (numbered("x", range(3), 3) + numbered("y", range(2), 2), False),
        (numbered("x", range(2), 3), True),
        (numbered("x", range(1, 3), 2), True),
        ([*numbered("x", range(3), 3), "y"], True),
    ],
)
def test_table_knows_whether_its_sets_are_whole(names: list[str], has_gaps: bool) -> None:
    text = make_manifest(names)
    assert ShardTable(make_table(text) or b"", identify_manifest(text)).has_gaps == has_gaps


# -- on a disk ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def local(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with two equal datasets, many/data with a table and few/data without."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tfrkit.build(ROWS, tmp_path / "few" / "data", shards=12, **HOW)
    monkeypatch.setattr(LIMITS, "table_text_nbytes", 0)
    tfrkit.build(ROWS, tmp_path / "many" / "data", shards=12, **HOW)
    return tmp_path


def ask_all(address: str | Path, monkeypatch: pytest.MonkeyPatch, *, has_table: bool) -> list[Any]:
    monkeypatch.setattr(LIMITS, "table_text_nbytes", 0 if has_table else 1 << 30)
    ds = tfrkit.open(address)
    assert isinstance(ds._set.shards, ListedShards) == has_table
    assert ds._set.fingerprint.startswith("m") == has_table
    found: list[Any] = [len(ds), [os.path.basename(path) for path in ds.files], ds.schema.names, list(ds)]
    found += [[ds[number] for number in (0, 7, -3)], ds._set.sidecars.splits, ds._set.sidecars.split_names]
    found += [[batch["number"].tolist() for batch in ds.shuffle(seed=3).batch(50)], ds._set.fingerprint_like("0")]
    found += [ds._set.sidecars.listed_fingerprint, ds._set.sidecars.counts, ds._set.sidecars.fits]
    copy = pickle.loads(pickle.dumps(ds))
    return [*found, len(copy), list(copy)]


@pytest.mark.parametrize("pattern", ["", "data-t*", "data-train*", "data-test*", "*-0000[1-5]-of-*"])
@pytest.mark.parametrize("has_file", [True, False])
def test_local_shards_of_a_table_read_as_those_without(
    local: Path, monkeypatch: pytest.MonkeyPatch, pattern: str, has_file: bool
) -> None:
    folder = local / "many" / "data"
    assert (folder / "_index" / "shards.bin").exists()
    assert not (local / "few" / "data" / "_index" / "shards.bin").exists()
    if not has_file:  # the table is then made of the manifest
        (folder / "_index" / "shards.bin").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IncompleteSetWarning)
        found = ask_all(folder / pattern, monkeypatch, has_table=True)
        assert found == ask_all(folder / pattern, monkeypatch, has_table=False)
        assert found == ask_all(local / "few" / "data" / pattern, monkeypatch, has_table=False)


def test_local_names_are_those_that_were_given(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(local / "many" / "data")
    for address in ("data-*", ".", "../data", "..//data/", f"{local}/many//data"):
        listed = tfrkit.open(address)
        assert isinstance(listed._set.shards, ListedShards)
        with monkeypatch.context() as patch:
            patch.setattr(LIMITS, "table_text_nbytes", 1 << 30)
            assert listed.files == tfrkit.open(address).files
        assert len(list(listed)) == 600


def test_local_shard_that_does_not_fit_its_manifest_is_reported(local: Path) -> None:
    folder = local / "many" / "data"
    path = sorted(folder.glob("data-train*"))[3]
    num_old = len(tfrkit.open(path))
    path.write_bytes(path.read_bytes() * 2)
    ds = tfrkit.open(folder)
    assert not isinstance(ds._set.shards, ListedShards)
    with pytest.warns(StaleIndexWarning):
        assert len(ds) == 600 + num_old
    assert any("as tfrkit.json says" in note for note in ds._set.sidecars.notes)


def test_local_shard_that_is_not_listed_or_is_missing_is_noticed(local: Path) -> None:
    folder = local / "many" / "data"
    shards = sorted(folder.glob("data-train*"))
    (folder / "more.tfrecord").write_bytes(shards[0].read_bytes())
    with pytest.warns(UnlistedShardWarning, match=r"more\.tfrecord"):
        assert not isinstance(tfrkit.open(folder)._set.shards, ListedShards)
    (folder / "more.tfrecord").unlink()
    shards[2].unlink()
    with pytest.warns(IncompleteSetWarning, match="00002"):
        ds = tfrkit.open(folder)
    assert isinstance(ds._set.shards, ListedShards)
    assert len(ds) == len(list(ds)) < 600


def test_local_manifest_that_was_replaced_is_read_again(local: Path) -> None:
    folder = local / "many" / "data"
    ds = tfrkit.open(folder)
    content = json.loads((folder / "tfrkit.json").read_text())
    (folder / "tfrkit.json").write_text(json.dumps({**content, "name": "other"}))
    assert ds._set.sidecars.name == "other"
    again = tfrkit.open(folder)
    assert (again._set.sidecars.name, len(again)) == ("other", 600)


def test_local_manifest_of_another_version_is_not_used(local: Path) -> None:
    folder = local / "many" / "data"
    content = json.loads((folder / "tfrkit.json").read_text())
    (folder / "tfrkit.json").write_text(json.dumps({**content, "version": 2}))
    ds = tfrkit.open(folder)
    assert len(ds) == 600
    [note] = ds._set.sidecars.notes
    assert "manifest is of version 2" in note


def test_change_in_place_removes_the_table(local: Path) -> None:
    folder = local / "many" / "data"
    tools.append(folder, local / "few" / "data", in_place=True, split="train")
    assert not (folder / "_index" / "shards.bin").exists()
    assert len(tfrkit.open(folder)) == 1200


def test_outputs_of_other_verbs_have_a_table(local: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = local / "out"
    tools.reshard(local / "few" / "data", out, shards=5)
    table = (out / "_index" / "shards.bin").read_bytes()
    assert len(tfrkit.open(out)) == 600
    tools.reshard(local / "few" / "data", out, shards=6, force=True)
    assert (out / "_index" / "shards.bin").read_bytes() != table
    assert isinstance(tfrkit.open(out)._set.shards, ListedShards)
    monkeypatch.setattr(LIMITS, "table_text_nbytes", 1 << 20)
    tools.reshard(local / "few" / "data", out, shards=6, force=True)
    assert not (out / "_index" / "shards.bin").exists()
    tfrkit.build(ROWS, local / "many" / "data", shards=2, force=True, **HOW)
    assert not (local / "many" / "data" / "_index" / "shards.bin").exists()


def test_local_shard_with_a_manifest_of_its_own_is_described_by_it(local: Path) -> None:
    folder = local / "many" / "data"
    first = sorted(folder.glob("data-*"))[0]
    tools.convert(first, local / "one" / first.name)
    (folder / "_index" / f"{first.name}.tfrkit.json").write_bytes(
        (local / "one" / "_index" / f"{first.name}.tfrkit.json").read_bytes()
    )
    ds = tfrkit.open(folder)
    assert not isinstance(ds._set.shards, ListedShards)
    assert ds._set.sidecars.source_kind == "convert"


def test_table_is_for_manifests_from_its_limit_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "table_text_nbytes", 10)
    assert [wants_table(bytes(nbytes)) for nbytes in (9, 10, 11)] == [False, True, True]
