"""Remote folders with a manifest, and every read verb from a store as from disk."""

from __future__ import annotations

import json
import os
import pickle
from collections.abc import Iterator
from pathlib import Path

import pytest

import tfrkit
from tfrkit._limits import LIMITS
from tfrkit.container.listed import list_by_manifest
from tfrkit.errors import CorruptRecordError, StorageError
from tfrkit.storage.pace import COUNTS
from tfrkit.testing.commands import run_command
from tfrkit.testing.fake_store import FakeStore, use_fake_store

ROWS = [{"number": number, "data": os.urandom(100)} for number in range(500)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("remote")
    tfrkit.build(ROWS, made / "plain", shards=4)
    tfrkit.build(ROWS, made / "packed", shards=3, compression="gzip")
    with tfrkit.Writer(made / "alone.tfrecord") as writer:
        for row in ROWS:
            writer.write(row)
    damaged = bytearray((made / "alone.tfrecord").read_bytes())
    damaged[5000] ^= 1
    (made / "damaged.tfrecord").write_bytes(damaged)
    (made / "cut.tfrecord").write_bytes((made / "alone.tfrecord").read_bytes()[:-7])
    return made


@pytest.fixture
def store(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeStore]:
    monkeypatch.setattr(LIMITS, "retry_seconds", 0.0)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with use_fake_store() as made:
        made.add_folder(str(folder))
        yield made


NAMES = ["plain", "packed", "alone.tfrecord", "damaged.tfrecord", "cut.tfrecord"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "command",
    [
        "info --json", "count --json", "head --json", "tail --json", "cat --json", "verify --json", "stats --json",
        "schema", "verify --deep --json",
    ],
)  # fmt: skip
def test_verb_gives_the_same_from_a_store_as_from_disk(store: FakeStore, folder: Path, name: str, command: str) -> None:
    verb, *options = command.split()
    answers = []
    for root in (str(folder), "s3://bucket"):
        ran = run_command([verb, f"{root}/{name}", *options])
        answers.append([str(part).replace(root, "ROOT") for part in (ran.exit_code, ran.stdout, ran.stderr)])
    assert answers[0] == answers[1]


@pytest.mark.parametrize("name", ["plain", "packed", "alone.tfrecord"])
def test_dataset_gives_the_same_rows_in_every_order(store: FakeStore, folder: Path, name: str) -> None:
    here, there = tfrkit.open(folder / name), tfrkit.open(f"s3://bucket/{name}")
    assert len(there) == 500
    assert list(there.records()) == list(here.records())
    assert there[-1] == here[-1] and there[7:9] == here[7:9]
    for ours, theirs in ((there, here), (there.shuffle(seed=3), here.shuffle(seed=3)), (there.skip(10), here.skip(10))):
        assert [batch["number"].tolist() for batch in ours.batch(64)] == [
            batch["number"].tolist() for batch in theirs.batch(64)
        ]


def test_shards_have_the_order_of_a_local_folder(tmp_path: Path) -> None:
    tfrkit.build(ROWS, tmp_path / "data", splits={"test": 0.2}, shards=2, jobs=1)
    with use_fake_store() as made:
        made.add_folder(str(tmp_path))
        there = tfrkit.open("s3://bucket/data")
        here = tfrkit.open(tmp_path / "data")
        assert [os.path.basename(path) for path in there.files] == [os.path.basename(path) for path in here.files]
        assert [row["number"] for row in there] == [row["number"] for row in here]


@pytest.mark.parametrize("name", ["plain", "packed"])
def test_open_of_a_folder_with_a_manifest_is_one_request(store: FakeStore, name: str) -> None:
    ds = tfrkit.open(f"s3://bucket/{name}/")
    assert len(ds) == 500
    assert [row[:2] for row in store.log] == [("get", f"{name}/tfrkit.json")]


@pytest.fixture
def built(store: FakeStore) -> str:
    """A dataset whose manifest has versions."""
    tfrkit.build(ROWS, "s3://bucket/built", shards=4, jobs=1)
    store.log.clear()
    return "s3://bucket/built/"


def keys_of(store: FakeStore) -> list[str]:
    return sorted(key for key in store.objects if key.startswith("built/built-"))


def test_versions_in_the_manifest_save_the_request_that_checks_each_shard(store: FakeStore, built: str) -> None:
    assert [row["number"] for row in tfrkit.open(built)] == list(range(500))
    assert len([row for row in store.log if row[0] == "get"]) == 1 + 4


def test_shard_replaced_by_another_dataset_after_open_is_an_error(store: FakeStore, built: str) -> None:
    ds = tfrkit.open(built)
    data = pickle.dumps(ds)
    other = [{**row, "number": -row["number"]} for row in ROWS]
    tfrkit.build(other, "s3://bucket/built", shards=4, jobs=1, force=True)
    with pytest.raises(StorageError, match="the object was replaced since it was opened"):
        list(ds)
    with pytest.raises(StorageError, match="the object was replaced since it was opened"):
        list(pickle.loads(data))


def test_shard_replaced_while_it_is_read_is_an_error_though_the_manifest_is_the_same(
    store: FakeStore, built: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LIMITS, "first_block_nbytes", 4096)
    monkeypatch.setattr(LIMITS, "block_nbytes", 4096)
    key = keys_of(store)[0]
    rows = iter(tfrkit.open(built))
    next(rows)
    store.objects[key] = store.objects[key][:-1] + b"x"
    with pytest.raises(StorageError, match="the object was replaced since it was opened"):
        list(rows)


def test_dataset_copied_to_its_place_again_is_read_though_its_versions_differ(
    store: FakeStore, built: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeStore, "version_of", lambda self, key: f'"{len(self.objects[key])}"')
    ds = tfrkit.open(built)
    assert [row["number"] for row in pickle.loads(pickle.dumps(ds))] == list(range(500))
    assert [row["number"] for row in ds] == list(range(500))


def test_dataset_copied_elsewhere_is_read_without_the_versions_of_its_manifest(store: FakeStore, built: str) -> None:
    for key in list(store.objects):
        if key.startswith("built/"):
            store.objects[f"copy/{key}"] = store.objects[key] if "json" in key else bytes(store.objects[key])
    assert [row["number"] for row in tfrkit.open("s3://bucket/copy/built/")] == list(range(500))
    assert not any(row[1] == "built/tfrkit.json" for row in store.log)


def test_pickled_dataset_makes_no_request(store: FakeStore) -> None:
    ds = tfrkit.open("s3://bucket/plain/")
    rows = [row["number"] for row in ds]
    data = pickle.dumps(ds)
    store.log.clear()
    again = pickle.loads(data)
    assert len(again) == 500 and store.log == []
    assert [row["number"] for row in again] == rows


def test_folder_without_a_manifest_is_listed(store: FakeStore) -> None:
    del store.objects["plain/tfrkit.json"]
    assert len(tfrkit.open("s3://bucket/plain/")) == 500
    assert [row[1] for row in store.log if row[0] == "list"] == ["plain/"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"shards": 1}', '{"shards": [{"name": "../x", "nbytes": 1}]}'])
def test_unusable_manifest_is_no_list(store: FakeStore, text: str) -> None:
    store.objects["plain/tfrkit.json"] = text.encode()
    assert list_by_manifest("s3://bucket/plain/") is None


def test_shard_of_another_size_than_in_the_manifest_is_an_error(store: FakeStore) -> None:
    content = json.loads(store.objects["plain/tfrkit.json"])
    content["shards"][2]["nbytes"] += 1
    store.objects["plain/tfrkit.json"] = json.dumps(content).encode()
    ds = tfrkit.open("s3://bucket/plain/")
    with pytest.raises(StorageError, match="another size than listed"):
        list(ds)


def test_object_replaced_while_it_is_read_is_an_error(store: FakeStore) -> None:
    ds = tfrkit.open("s3://bucket/alone.tfrecord")
    assert ds[0]["number"] == 0
    store.objects["alone.tfrecord"] = store.objects["damaged.tfrecord"]
    with pytest.raises(StorageError, match="the object was replaced since it was opened, version .* - at s3://bucket/"):
        list(ds)


def test_forked_process_reads_the_right_rows(store: FakeStore) -> None:
    ds = tfrkit.open("s3://bucket/plain/")
    rows = [row["number"] for row in ds]
    receiver, sender = os.pipe()
    pid = os.fork()
    if pid == 0:
        same = [batch["number"].tolist() for batch in ds.batch(500)] == [rows]
        os.write(sender, b"1" if same else b"0")
        os._exit(0)
    os.waitpid(pid, 0)
    assert os.read(receiver, 1) == b"1"
    os.close(receiver)
    os.close(sender)


@pytest.mark.parametrize("name", ["plain", "packed", "alone.tfrecord"])
@pytest.mark.parametrize("how", ["records", "batches", "threads", "shuffled", "picks", "verify", "stats"])
def test_byte_that_is_wrong_once_changes_nothing_and_is_counted(
    store: FakeStore, folder: Path, name: str, how: str
) -> None:
    def ask(address: str) -> object:
        if how in ("verify", "stats"):
            ran = run_command([how, address, "--json"])
            return ran.exit_code, ran.stdout.replace(address, "")
        ds = tfrkit.open(address)
        if how == "records":
            return [*iter(ds.records())]  # a list asks for the number of records, which takes lengths only
        if how == "picks":
            return [ds[number] for number in (3, 499, 250, 77)]
        if how == "shuffled":
            ds = ds.shuffle(seed=1)
        batches = ds.batch(64, threads=3 if how == "threads" else 1)
        return [batch["number"].tolist() for batch in batches]

    seen: set[str] = set()

    def answer(key: str, number: int, data: bytes) -> bytes:
        if ("tfrecord-" not in key and "alone" not in key) or "_index" in key or len(data) in (0, 4096) or key in seen:
            return data
        seen.add(key)
        at = len(data) // 2
        return data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :]

    expected = ask(str(folder / name))
    before = COUNTS.fetched_again
    store.answer = answer
    assert ask(f"s3://bucket/{name}") == expected
    assert seen
    # Payloads are not read by a scan for the frames, which a shuffle of a file without an index starts with.
    if how != "picks" and (how, name) != ("shuffled", "alone.tfrecord"):
        assert COUNTS.fetched_again > before


def test_byte_that_stays_wrong_is_damage(store: FakeStore) -> None:
    ds = tfrkit.open("s3://bucket/damaged.tfrecord")
    with pytest.raises(CorruptRecordError, match="payload checksum mismatch"):
        list(ds.records())
    with pytest.raises(CorruptRecordError, match="payload checksum mismatch"):
        for number in range(100):
            ds[number]


def test_records_of_a_batch_are_requested_together(store: FakeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("gap_nbytes", "wide_gap_nbytes"):
        monkeypatch.setattr(LIMITS, limit, 0)
    ds = tfrkit.open("s3://bucket/plain/")
    rows = ds.shuffle(seed=1).take(20)
    _ = rows[0], ds.schema
    store.log.clear()
    [batch] = rows.batch(20)
    data = [row for row in store.log if row[1].startswith("plain/plain-train") and row[3] - row[2] < 1000]
    assert len(batch["number"]) == 20 and len(data) == 20


def test_verify_requests_each_byte_once_apart_from_short_samples(
    store: FakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("block_nbytes", "first_block_nbytes"):
        monkeypatch.setattr(LIMITS, name, 4096)
    before = COUNTS.nbytes
    assert run_command(["verify", "s3://bucket/plain"]).exit_code == 0
    sizes = [len(data) for key, data in store.objects.items() if key.startswith("plain/plain-")]
    # Six short looks at each shard: its first records, its first bytes, its index.
    assert COUNTS.nbytes - before < sum(sizes) + len(sizes) * 7 * 4096
