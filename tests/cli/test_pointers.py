"""Git LFS pointers and dangling links are reported as such."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from PIL import Image

import tfrkit
from tfrkit.errors import NotATFRecordError

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"5" * 64 + b"\nsize 12345\n"
NAMED = "a Git LFS pointer to 12,345 bytes that were not downloaded"
PULL = "git lfs pull"


@pytest.mark.parametrize("name", ["data.tfrecord", "x-00000-of-00001", "notes.tfrecord.old"])
@pytest.mark.parametrize("command", ["info", "count", "head"])
def test_pointer_in_place_of_a_shard_is_named(tfr, tmp_path: Path, command: str, name: str) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / name).write_bytes(POINTER)
    for path in ("d", f"d/{name}"):
        ran = tfr(command, path, code=3)
        assert f"expected a TFRecord, got {NAMED} - at d/{name}" in ran.err
        assert PULL in ran.err


def test_folder_of_pointers_with_other_names_says_so(tfr, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "train.bin").write_bytes(POINTER)
    ran = tfr("info", "d", code=3)
    assert f"found no TFRecord in this folder, train.bin is {NAMED} - at d" in ran.err
    assert PULL in ran.err


def test_verify_lists_a_pointer_with_its_remedy(tfr, tmp_path: Path) -> None:
    (tmp_path / "data.tfrecord").write_bytes(POINTER)
    [line] = tfr("verify", "data.tfrecord", code=1).lines
    assert line == f"data.tfrecord, record 0, byte 0: expected a TFRecord, got {NAMED}; fetch the data: {PULL}"


def test_open_names_a_pointer(tmp_path: Path) -> None:
    (tmp_path / "data.tfrecord").write_bytes(POINTER)
    with pytest.raises(NotATFRecordError, match=NAMED):
        tfrkit.open(tmp_path / "data.tfrecord")


@pytest.mark.parametrize(
    ("source", "name"),
    [("table", "t.csv"), ("table", "t.parquet"), ("arrays", "a.npz"), ("coco", "c.json"), ("webdataset", "w.tar")],
)
def test_build_from_a_pointer_is_refused(tfr, tmp_path: Path, source: str, name: str) -> None:
    (tmp_path / name).write_bytes(POINTER)
    ran = tfr("build", source, name, "-o", "out.tfrecord", code=3)
    assert f"expected data, got {NAMED} - at {name}" in ran.err
    assert PULL in ran.err
    assert not (tmp_path / "out.tfrecord").exists()


def make_classes(folder: Path) -> None:
    for name in ("a", "b"):
        (folder / name).mkdir(parents=True)
        file = io.BytesIO()
        Image.new("RGB", (8, 8)).save(file, "PNG")
        (folder / name / "0.png").write_bytes(file.getvalue())


def test_pointer_among_images_is_named(tfr, tmp_path: Path) -> None:
    make_classes(tmp_path / "photos")
    (tmp_path / "photos" / "a" / "1.jpg").write_bytes(POINTER)
    ran = tfr("build", "class-folders", "photos", "-o", "out", code=3)
    assert "1 of 3 inputs is bad" in ran.err
    assert f"a/1.jpg: expected data, got {NAMED}; fetch the data: {PULL}" in ran.err


@pytest.mark.parametrize("place", ["a/gone.png", "gone.png", "gone"])
def test_link_that_leads_nowhere_is_named(tfr, tmp_path: Path, place: str) -> None:
    make_classes(tmp_path / "photos")
    (tmp_path / "photos" / place).symlink_to("/nowhere/x.png")
    ran = tfr("build", "class-folders", "photos", "-o", "out", code=3)
    assert "1 of 3 inputs is bad" in ran.err
    assert f"{place}: dangling link, to '/nowhere/x.png'" in ran.err
    assert "class folder" not in ran.err
