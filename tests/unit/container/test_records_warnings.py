"""Warnings without an error are given once: skipped records, empty shards."""

from __future__ import annotations

import gc
import gzip
import pickle
import warnings
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tfrkit as tfr
from tfrkit.container.records import Policy
from tfrkit.errors import EmptyShardWarning, SkippedRecordsWarning, TfrkitWarning
from tfrkit.sidecars.read import Sidecars
from tfrkit.testing.corruption import flip

NUM_ROWS = 40


@pytest.fixture
def torn(tmp_path: Path) -> str:
    """Records 7 and 20 are damaged."""
    path = tmp_path / "torn.tfrecord"
    with tfr.Writer(path) as writer:
        for number in range(NUM_ROWS):
            writer.write({"id": number})
    size = path.stat().st_size // NUM_ROWS
    path.write_bytes(flip(flip(path.read_bytes(), 7 * size + 16, 3), 20 * size + 16, 3))
    return str(path)


def warnings_of(use: Callable[[], Any]) -> list[warnings.WarningMessage]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        use()
    return [warning for warning in caught if issubclass(warning.category, TfrkitWarning)]


PASSES: dict[str, Callable[[tfr.Dataset], Any]] = {
    "rows": list,
    "shuffled rows": lambda ds: list(ds.shuffle(seed=1)),
    "slice": lambda ds: ds[:],
    "batches": lambda ds: list(ds.batch(8)),
    "batches of steps": lambda ds: list(ds.map(dict).batch(8, threads=2)),
    "shuffled batches": lambda ds: list(ds.shuffle(seed=1).batch(8, threads=2)),
    "records": lambda ds: list(ds.records()),
    "views": lambda ds: [bytes(view) for view in ds.records().views()],
    "records of a part": lambda ds: list(ds.take(NUM_ROWS).records()),
}


@pytest.mark.parametrize("name", PASSES)
def test_skipped_records_are_warned_of_once_with_count_and_place(torn: str, name: str) -> None:
    dataset = tfr.open(torn, on_error="skip")
    caught = warnings_of(lambda: PASSES[name](dataset))
    assert [warning.category for warning in caught] == [SkippedRecordsWarning]
    message = str(caught[0].message)
    assert message.startswith("skipped 2 damaged places, the first: payload checksum mismatch")
    assert f"- at {torn}, record 7, byte " in message
    assert message.endswith("\n  list all damage: ds.errors")
    assert caught[0].filename == __file__
    assert len(dataset.errors) == 2
    assert warnings_of(lambda: PASSES[name](dataset)) == []  # the same damage is not reported again


def test_one_place_is_named_alone(tmp_path: Path) -> None:
    path = tmp_path / "one.tfrecord"
    with tfr.Writer(path) as writer:
        for number in range(4):
            writer.write({"id": number})
        writer.write_record(b"\xff\xff not an Example")
    [warning] = warnings_of(lambda: list(tfr.open(path, on_error="skip")))
    assert str(warning.message).startswith("skipped 1 damaged place: ")


def test_pass_that_is_broken_off_or_finds_nothing_is_silent(torn: str, tmp_path: Path) -> None:
    def break_off() -> None:
        next(iter(tfr.open(torn, on_error="skip").batch(4)))

    assert warnings_of(break_off) == []
    with tfr.Writer(tmp_path / "sound.tfrecord") as writer:
        writer.write({"id": 1})
    assert warnings_of(lambda: list(tfr.open(tmp_path / "sound.tfrecord", on_error="skip"))) == []


def test_damage_of_other_processes_is_listed_and_warned_of_once(torn: str) -> None:
    here, there = tfr.open(torn, on_error="skip"), tfr.open(torn, on_error="skip")
    list(there.records().views())
    found = pickle.loads(pickle.dumps(there.errors))
    policy: Policy = here._set.policy
    policy.add(found)
    policy.add(found)
    assert [finding.record for finding in here.errors] == [7, 20]
    assert len(warnings_of(policy.warn_of_skipped)) == 1
    assert warnings_of(policy.warn_of_skipped) == []


# ---- empty shards ----------------------------------------------------------------------------------------------------


def write_set(folder: Path, *contents: bytes) -> Path:
    folder.mkdir()
    for number, content in enumerate(contents):
        (folder / f"x-{number:05}-of-{len(contents):05}").write_bytes(content)
    return folder


def frames(tmp_path: Path) -> bytes:
    with tfr.Writer(tmp_path / "one.tfrecord") as writer:
        writer.write({"id": 1})
    return (tmp_path / "one.tfrecord").read_bytes()


def test_empty_shards_of_a_set_are_warned_of_once(tmp_path: Path) -> None:
    sound = frames(tmp_path)
    folder = write_set(tmp_path / "set", sound, b"", gzip.compress(sound), gzip.compress(b""))
    [warning] = warnings_of(lambda: tfr.open(folder))
    assert warning.category is EmptyShardWarning
    assert str(warning.message).startswith(f"2 of 4 shards are empty - at {folder}/x-00001-of-00004 and 1 more\n")
    assert [Path(name).name for name in warning.message.shards] == ["x-00001-of-00004", "x-00003-of-00004"]
    assert warning.filename == __file__


def test_one_empty_file_or_one_that_a_manifest_lists_as_empty_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty.tfrecord").write_bytes(b"")
    assert warnings_of(lambda: tfr.open(tmp_path / "empty.tfrecord")) == []
    folder = write_set(tmp_path / "set", frames(tmp_path), b"")
    monkeypatch.setattr(Sidecars, "counts", [1, 0])
    assert warnings_of(lambda: tfr.open(folder)) == []
    monkeypatch.setattr(Sidecars, "counts", [1, 5])
    assert len(warnings_of(lambda: tfr.open(folder))) == 1


# ---- files -----------------------------------------------------------------------------------------------------------


def test_dropped_dataset_closes_its_files_without_the_collector(torn: str) -> None:
    dataset = tfr.open(torn, on_error="skip")
    next(iter(dataset.batch(2)))
    held = weakref.ref(dataset._set)
    gc.disable()
    try:
        del dataset
        assert held() is None
    finally:
        gc.enable()
