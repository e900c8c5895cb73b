"""Files of every format number that a release wrote: read for ever. Newer ones are refused by their number.

version_1 and version_2 were made by the programs next to them and never change.
"""

from __future__ import annotations

import json
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

import tfrkit as tfr
from tfrkit._limits import LIMITS
from tfrkit.build.journal import Journal, read_marker
from tfrkit.container import index as indexes
from tfrkit.container.shard_list import ListedShards
from tfrkit.container.shard_table import ShardTable, identify_manifest
from tfrkit.errors import ContainerError, SchemaError, SidecarWarning, StaleIndexError, UnfinishedChangeError
from tfrkit.features import schema_json
from tfrkit.sidecars.manifest import read_manifest
from tfrkit.storage.local import LocalReader
from tfrkit.storage.transaction import require_no_change, restore
from tfrkit.testing.fake_store import FakeStore, use_fake_store
from tfrkit.view.keep import Tags

OLD = Path(__file__).parent / "old" / "version_1"
OLD_2 = Path(__file__).parent / "old" / "version_2"
NUM_PAGED = 2100
NAMES = {b"row %d" % number for number in range(20)}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A copy, so that nothing is written into the kept one."""
    return Path(shutil.copytree(OLD, tmp_path / "old"))


@pytest.fixture
def old_2(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OLD_2, tmp_path / "old_2"))


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeStore]:
    """All of version_2 in a store; a table is wanted for a manifest of any size, an index is read by its pages."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(LIMITS, "table_text_nbytes", 0)
    monkeypatch.setattr(LIMITS, "index_start_nbytes", 4096)
    with use_fake_store() as made:
        made.add_folder(str(OLD_2))
        made.add_folder(str(OLD_2 / "store"))
        yield made


def test_dataset_of_version_1_is_read_with_its_manifest(old: Path) -> None:
    manifest = read_manifest(str(old / "dataset" / "tfrkit.json"))
    assert manifest is not None and len(manifest.entries) == 3 and manifest.schema is not None
    with tfr.open(old / "dataset") as ds:
        assert {row["name"] for row in ds} == NAMES
        assert (len(ds["train"]), len(ds["test"])) == (15, 5)


@pytest.mark.parametrize("name", ["dataset/dataset-train.tfrecord-00000-of-00002", "packed.tfrecord.gz"])
def test_index_of_version_1_is_read(name: str, old: Path) -> None:
    path = str(old / name)
    found = indexes.read_index(indexes.index_path(path), shard=LocalReader(path))
    with tfr.open(path) as ds:
        assert found.num_records == len(ds)
        assert ds[found.num_records - 1]["name"] in NAMES


def test_state_of_version_1_is_resumed(old: Path) -> None:
    state = json.loads((old / "state.json").read_text())
    with tfr.open(old / "dataset") as ds:
        train = ds["train"].shuffle(seed=3).batch(4)
        whole = [list(batch["name"]) for batch in train]
        batches = iter(train)
        batches.load_state_dict(state)
        assert [list(batch["name"]) for batch in batches] == whole[1:]


def test_journal_of_version_1_is_read(old: Path) -> None:
    journal = Journal(str(old / "journal"))
    assert journal.load_plan() == {"hash": "0123456789abcdef", "shards": 1}
    assert journal.load_inputs() == {"a.png": (3, 9), "b.png": (4, 10)}
    done = read_marker(str(old / "journal" / "train-00000-of-00001.tfrecord"))
    assert done is not None and done.num_records == 2 and done.bad[0][0] == "c.png"


def test_manifest_of_a_newer_version_is_refused_by_its_number(old: Path) -> None:
    path = old / "dataset" / "tfrkit.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "version": 2}))
    with pytest.raises(ContainerError, match=r"manifest is of version 2, this tfrkit reads version 1[^\d]"):
        read_manifest(str(path))


def test_index_of_a_newer_version_is_refused_by_its_number(old: Path) -> None:
    path = str(old / "packed.tfrecord.gz")
    place = Path(indexes.index_path(path))
    data = place.read_bytes()
    place.write_bytes(data[:8] + struct.pack("<I", 99) + data[12:])
    with pytest.raises(StaleIndexError, match="index is of version 99, expected "):
        indexes.read_index(str(place), shard=LocalReader(path))


def test_state_of_a_newer_version_is_refused_by_its_number(old: Path) -> None:
    state = {**json.loads((old / "state.json").read_text()), "tfrkit_state": 2}
    with tfr.open(old / "dataset") as ds:
        batches = iter(ds["train"].shuffle(seed=3).batch(4))
        with pytest.raises(ValueError, match="state is of version 2, this tfrkit reads version 1"):
            batches.load_state_dict(state)


def test_index_of_version_2_is_read(old_2: Path) -> None:
    for name, num_records in (("paged.tfrecord", NUM_PAGED), ("packed.tfrecord.gz", 20)):
        path = str(old_2 / name)
        assert indexes.read_index(indexes.index_path(path), shard=LocalReader(path)).num_records == num_records
        with tfr.open(path) as ds:
            assert len(ds) == num_records and ds[num_records - 1] == list(ds)[-1]


def test_index_of_version_2_is_read_by_its_pages_in_a_store(store: FakeStore) -> None:
    with tfr.open("s3://bucket/paged.tfrecord") as ds:
        assert [ds[number]["id"] for number in (NUM_PAGED - 1, 0, 2048)] == [NUM_PAGED - 1, 0, 2048]
    pages = [row[2:] for row in store.log if row[1].endswith(".tfidx")]
    assert (0, 4096) in pages and len(pages) > 1


def test_table_of_shards_of_version_1_is_read(store: FakeStore) -> None:
    text = store.objects["data/tfrkit.json"]
    table = ShardTable(store.objects["data/_index/shards.bin"], identify_manifest(text))
    assert (len(table), [table.split(number) for number in range(3)]) == (3, ["test", "train", "train"])
    with tfr.open("s3://bucket/data") as ds:
        assert isinstance(ds._set.shards, ListedShards)
        assert {row["name"] for row in ds} == NAMES


def test_table_of_shards_of_a_newer_version_is_refused_by_its_number(store: FakeStore) -> None:
    data = store.objects["data/_index/shards.bin"]
    store.objects["data/_index/shards.bin"] = data[:8] + struct.pack("<I", 2) + data[12:]
    with (
        pytest.warns(SidecarWarning, match="it is of version 2, this tfrkit reads version 1; tfrkit.json is read"),
        tfr.open("s3://bucket/data") as ds,
    ):
        assert {row["name"] for row in ds} == NAMES


def test_schema_of_version_1_is_read_and_a_newer_one_refused(old_2: Path) -> None:
    content = json.loads((old_2 / "schema.json").read_text())
    assert schema_json.from_json(content).names == ("label", "name", "x")
    with pytest.raises(SchemaError, match="expected version 1, got 2"):
        schema_json.from_json({**content, "version": 2})


def test_tags_are_read(old_2: Path) -> None:
    tags = Tags(str(old_2))
    assert (tags.find(0, "hard").tolist(), tags.of(1, 7)) == ([1, 5], ["blurred"])


def test_interrupted_change_is_put_back(old_2: Path) -> None:
    folder = old_2 / "changed"
    with pytest.raises(UnfinishedChangeError, match="was interrupted"):
        require_no_change(str(folder))
    assert restore(str(folder))
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"a": "old a"}
