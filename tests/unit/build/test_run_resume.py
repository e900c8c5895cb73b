"""Builds that were stopped, and the next run of the same call."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import tfrkit as tfr
from tfrkit import sources
from tfrkit.build import finish, task
from tfrkit.errors import StorageError

LABEL = r"^(?P<class>[a-z]+)"
NAMES = [f"{name}{number}.png" for name in "ab" for number in range(6)]


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch):
    """fsync is skipped: no power loss is tested, and hundreds of builds would take minutes."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith("report.json")
    }


def stop_after(monkeypatch, num_shards: int) -> None:
    """Let the build fail once it finished some shards."""
    run = task.ShardTask.run
    left = [num_shards]

    def fail(self, tick):
        if not left[0]:
            raise StorageError("cannot write, no space left on device", shard=self.path)
        left[0] -= 1
        return run(self, tick)

    monkeypatch.setattr(task.ShardTask, "run", fail)


def stop_build(make_images, tmp_path, monkeypatch, num_shards=2, **options):
    root = make_images(NAMES)
    with monkeypatch.context() as patch:
        stop_after(patch, num_shards)
        with pytest.raises(StorageError, match="no space left on device"):
            tfr.build(sources.file_names(root, LABEL), tmp_path / "out", shards=4, jobs=1, **options)
    return root


def test_full_disk_leaves_finished_shards_and_nothing_half(make_images, tmp_path, monkeypatch):
    root = stop_build(make_images, tmp_path, monkeypatch)
    assert [name for name in os.listdir(tmp_path / "out") if name != "_build"] == []
    report = tfr.build(sources.file_names(root, LABEL), tmp_path / "out", shards=4, jobs=1)
    assert report.resumed == 2
    tfr.build(sources.file_names(root, LABEL), tmp_path / "fresh/out", shards=4, jobs=1)
    assert files_of(tmp_path / "out") == files_of(tmp_path / "fresh/out")


def test_finished_shard_that_was_damaged_is_written_again(make_images, tmp_path, monkeypatch):
    root = stop_build(make_images, tmp_path, monkeypatch)
    shard = next(path for path in (tmp_path / "out/_build").rglob("out-train*-of-00004"))
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    report = tfr.build(sources.file_names(root, LABEL), tmp_path / "out", shards=4, jobs=1)
    assert report.resumed == 1
    assert tfr.verify(tmp_path / "out").ok


def test_unfinished_build_with_other_options_says_what_changed(make_images, tmp_path, monkeypatch):
    root = stop_build(make_images, tmp_path, monkeypatch)
    with pytest.raises(
        StorageError, match="an unfinished build exists, started with other inputs or options"
    ) as caught:
        tfr.build(sources.file_names(root, LABEL), tmp_path / "out", shards=4, seed=9, jobs=1)
    assert "seed was 0, is 9" in str(caught.value)
    report = tfr.build(sources.file_names(root, LABEL), tmp_path / "out", shards=4, seed=9, jobs=1, force=True)
    assert (report.resumed, report.written) == (0, 12)


def test_unfinished_build_with_changed_inputs_names_them(make_images, tmp_path, monkeypatch):
    root = stop_build(make_images, tmp_path, monkeypatch)
    os.utime(root / "a0.png", ns=(5, 5))
    with pytest.raises(StorageError, match="1 input changed: a0.png"):
        tfr.build(sources.file_names(root, LABEL), tmp_path / "out", shards=4, jobs=1)


def test_iterable_is_spooled_again_and_resumes(tmp_path, monkeypatch):
    def rows():
        return ({"x": number} for number in range(40))

    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(StorageError, match="no space left"):
            tfr.build(rows(), tmp_path / "out", shards=4, jobs=1)
    report = tfr.build(rows(), tmp_path / "out", shards=4, jobs=1)
    assert report.resumed == 1
    assert sorted(row["x"] for row in tfr.open(tmp_path / "out")) == list(range(40))


def test_number_of_jobs_may_change_between_runs(make_images, tmp_path, monkeypatch):
    root = stop_build(make_images, tmp_path, monkeypatch)
    report = tfr.build(sources.file_names(root, LABEL), tmp_path / "out", shards=4, jobs=2)
    assert (report.resumed, report.written) == (2, 12)


def test_array_file_changed_between_runs_is_detected(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", np.arange(40))
    with monkeypatch.context() as patch:
        stop_after(patch, 1)
        with pytest.raises(StorageError, match="no space left"):
            tfr.build(sources.arrays(tmp_path / "x.npy"), tmp_path / "out", shards=4, jobs=1)
    np.save(tmp_path / "x.npy", np.arange(40) + 1)
    with pytest.raises(StorageError, match="the inputs differ, or go to other shards"):
        tfr.build(sources.arrays(tmp_path / "x.npy"), tmp_path / "out", shards=4, jobs=1)


def test_shards_already_in_place_are_not_written_again(make_images, tmp_path, monkeypatch):
    root = make_images(NAMES)
    move = finish._move
    moved = []

    def stop(source, destination):
        if len(moved) == 3:
            raise StorageError("cannot write, no space left on device")
        moved.append(destination)
        move(source, destination)

    with monkeypatch.context() as patch:
        patch.setattr(finish, "_move", stop)
        with pytest.raises(StorageError, match="no space left on device"):
            tfr.build(sources.file_names(root, LABEL), tmp_path / "out", shards=4, jobs=1)
    assert any("_index" not in path for path in moved)
    report = tfr.build(sources.file_names(root, LABEL), tmp_path / "out", shards=4, jobs=1)
    assert report.resumed == 4


def test_forged_list_of_replaced_files_removes_nothing_outside_of_the_output(tmp_path):
    out, victim = tmp_path / "out", tmp_path / "victim"
    (out / "_index").mkdir(parents=True)
    (out / "_build").mkdir()
    inside = [out / "old", out / "_index" / "old.tfidx"]
    for path in (victim, *inside):
        path.write_text("x")
    (tmp_path / "link").symlink_to(out)
    paths = [str(victim), str(out / ".." / "victim"), str(tmp_path / "link" / "old"), str(inside[1]), 7, "a\0b"]
    listing = out / "_build" / "replaced.json"
    listing.write_text(json.dumps(paths))
    assert finish._read_replaced(str(listing), str(out)) == [paths[2], paths[3]]
    for text in ("{", "[" * 100_000, '"old"'):
        listing.write_text(text)
        assert finish._read_replaced(str(listing), str(out)) == []
    assert victim.exists()
