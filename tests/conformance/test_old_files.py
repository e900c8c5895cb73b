"""Files of every format number that a release wrote: read for ever. Newer ones are refused by their number.

version_1 was made by old/make_version_1.py and never changes.
"""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import pytest

import tfrkit as tfr
from tfrkit.build.journal import Journal, read_marker
from tfrkit.container import index as indexes
from tfrkit.errors import ContainerError, StaleIndexError
from tfrkit.sidecars.manifest import read_manifest
from tfrkit.storage.local import LocalReader

OLD = Path(__file__).parent / "old" / "version_1"
NAMES = {b"row %d" % number for number in range(20)}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A copy, so that nothing is written into the kept one."""
    return Path(shutil.copytree(OLD, tmp_path / "old"))


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
