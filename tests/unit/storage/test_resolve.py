from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

import tfrkit
from tfrkit.errors import StorageError
from tfrkit.storage.resolve import expand_address, expand_home, find_near_name, walk_folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder, which is not the working folder."""
    for name in ("home", "work"):
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "home"


def test_tilde_is_the_home_folder(home: Path) -> None:
    for path in ("~/a.tfrecord", b"~/a.tfrecord", Path("~/a.tfrecord")):
        assert expand_home(path) == str(home / "a.tfrecord")
    assert expand_home("~") == str(home)
    assert expand_home("x/~/a") == "x/~/a" and expand_home("~nobody-of-this-name/a") == "~nobody-of-this-name/a"


def test_file_that_is_called_so_is_itself(home: Path) -> None:
    os.mkdir("~")
    Path("~/a.tfrecord").touch()
    assert expand_address("~/a.tfrecord") == ["~/a.tfrecord"]


def test_tilde_works_from_writer_to_folder(home: Path) -> None:
    with tfrkit.Writer("~/a.tfrecord") as writer:
        writer.write({"x": 1})
    assert tfrkit.open("~/a.tfrecord")[0] == {"x": 1} and len(tfrkit.open(["~/*.tfrecord"])) == 1
    tfrkit.build([{"x": 1}], "~/out")
    tfrkit.build(tfrkit.sources.tfrecord("~/out"), "~/again.tfrecord")
    tfrkit.tools.merge("~/out", "~/merged.tfrecord")
    tfrkit.tools.export_csv("~/merged.tfrecord", "~/merged.csv")
    tfrkit.build(tfrkit.sources.table("~/merged.csv"), "~/table.tfrecord")
    assert list(tfrkit.sql("select count(*) n from '~/merged.tfrecord'").rows()) == [{"n": 1}]
    made = {"a.tfrecord", "out", "again.tfrecord", "merged.tfrecord", "merged.csv", "table.tfrecord"}
    assert made <= set(os.listdir(home)) and os.listdir() == []


@pytest.mark.parametrize(
    ("name", "there", "nearest"),
    [
        ("trian.tfrecord", ["z.tfrecord", "train.tfrecord"], "train.tfrecord"),
        ("train.tfrecords", ["train.tfrecord"], "train.tfrecord"),
        ("train.tfrecord", ["train.tfrecord.gz", "train.txt"], "train.tfrecord.gz"),
        ("TRAIN.tfrecord", ["train.tfrecord"], "train.tfrecord"),
        ("nope.tfrecord", ["z.tfrecord"], None),
        ("nonexist.tfrecord", ["s5.tfrecord"], None),
        ("test.tfrecord", ["train.tfrecord"], None),
        (".tfrecord", ["a.tfrecord"], None),
        ("x", [], None),
    ],
)
def test_only_a_near_name_is_suggested(name: str, there: list[str], nearest: str | None) -> None:
    assert find_near_name(name, there) == nearest


def test_missing_file_suggests_a_similar_name(home: Path) -> None:
    (home / "train.tfrecord").touch()
    with pytest.raises(StorageError, match=rf"no such file .*\n  did you mean {home}/train.tfrecord"):
        tfrkit.open("~/trian.tfrecord")
    with pytest.raises(StorageError, match=r"no such file or directory - at [^\n]*$"):
        tfrkit.open(home / "nope.tfrecord")


@pytest.mark.parametrize(("pattern", "folder"), [("*.nothing", "."), ("sub/*.nothing", "sub")])
def test_pattern_without_a_match_hints_at_its_folder(
    pattern: str, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageError, match="no file matches") as caught:
        expand_address(pattern)
    assert caught.value.hint == f"list what is there: ls {folder}"


def test_linked_folders_are_entered_once_and_after_all_others(tmp_path: Path) -> None:
    for name in ("data/run3/a.tfrecord", "elsewhere/b.tfrecord"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    (tmp_path / "data/latest").symlink_to("run3")
    (tmp_path / "data/train").symlink_to("../elsewhere")
    (tmp_path / "data/run3/up").symlink_to("..")
    assert walk_folder(str(tmp_path / "data")) == [
        str(tmp_path / "data/run3/a.tfrecord"),
        str(tmp_path / "data/train/b.tfrecord"),
    ]


def test_link_that_leads_nowhere_hides_no_other_file(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").touch()
    (tmp_path / "self").symlink_to("self")
    (tmp_path / "lost.tfrecord").symlink_to("gone")
    found = [os.path.basename(path) for path in walk_folder(str(tmp_path))]
    assert found == ["a.tfrecord", "lost.tfrecord", "self"]


def test_folder_that_cannot_be_read_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Root may read every folder, so the system's answer is replaced."""
    (tmp_path / "data/closed").mkdir(parents=True)
    (tmp_path / "data/a.tfrecord").touch()
    scandir = os.scandir

    def refuse(path: str) -> Any:
        if path.endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(StorageError, match="cannot read, permission denied - at .*data/closed"):
        walk_folder(str(tmp_path / "data"))
