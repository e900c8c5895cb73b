from __future__ import annotations

import os

import pytest

from tfrkit.errors import SourceError
from tfrkit.sources.walk import find_images, read_file, require_folder


def touch(root, *names):
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * len(name))


def keys(root):
    return [file.key for file in find_images(str(root)).files]


def test_images_are_found_in_every_folder_sorted_by_path(tmp_path):
    touch(tmp_path, "b.jpg", "a/z.PNG", "a.jpeg", "a/b/c.webp")
    assert keys(tmp_path) == ["a.jpeg", "a/b/c.webp", "a/z.PNG", "b.jpg"]


def test_other_files_are_counted_by_suffix(tmp_path):
    touch(tmp_path, "a.jpg", "n.txt", "m.txt", "x.json")
    found = find_images(str(tmp_path))
    assert [file.key for file in found.files] == ["a.jpg"]
    assert found.ignored == {".txt": 2, ".json": 1}


def test_litter_of_file_managers_and_hidden_files_are_left_out(tmp_path):
    touch(tmp_path, "a.jpg", "Thumbs.db", ".DS_Store", "__MACOSX/b.jpg", ".hidden/c.jpg", ".d.jpg")
    assert keys(tmp_path) == ["a.jpg"]


def test_file_without_suffix_may_be_an_image(tmp_path):
    touch(tmp_path, "picture")
    assert keys(tmp_path) == ["picture"]


def test_sizes_and_times_are_those_of_the_files(tmp_path):
    touch(tmp_path, "abc.jpg")
    (file,) = find_images(str(tmp_path)).files
    assert (file.nbytes, file.stamp) == (7, os.stat(tmp_path / "abc.jpg").st_mtime_ns)


def test_link_back_to_a_folder_above_is_not_followed_and_is_noted(tmp_path):
    touch(tmp_path, "a/b/x.jpg")
    (tmp_path / "a/b/loop").symlink_to(tmp_path / "a")
    found = find_images(str(tmp_path))
    assert [file.key for file in found.files] == ["a/b/x.jpg"]
    assert found.notes == ["a/b/loop links back to a folder above it and was not followed"]


def test_link_to_another_folder_is_followed(tmp_path):
    touch(tmp_path, "real/x.jpg")
    (tmp_path / "in").mkdir()
    (tmp_path / "in/link").symlink_to(tmp_path / "real")
    assert keys(tmp_path / "in") == ["link/x.jpg"]


def test_link_to_nowhere_is_kept_for_the_reader_to_name(tmp_path):
    (tmp_path / "x.jpg").symlink_to(tmp_path / "nothing")
    assert keys(tmp_path) == ["x.jpg"]


def test_link_to_itself_is_kept_for_the_reader_to_name(tmp_path):
    (tmp_path / "x.jpg").symlink_to("x.jpg")
    (tmp_path / "loop").symlink_to("loop")
    assert [file.key for file in find_images(str(tmp_path)).files] == ["loop", "x.jpg"]
    with pytest.raises(SourceError, match="expected a folder of images, got a dangling link - at "):
        require_folder(str(tmp_path / "loop"), "images")


def test_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "x.jpg")
    found = find_images(str(tmp_path))
    assert (len(found.files), dict(found.ignored)) == (0, {"pipe or device": 1})


def test_missing_folder_names_the_nearest(tmp_path):
    (tmp_path / "images").mkdir()
    with pytest.raises(
        SourceError, match=r"no such folder, expected one of images - at .*imgaes\n  did you mean .*images"
    ):
        require_folder(str(tmp_path / "imgaes"), "images")


def test_file_in_the_place_of_a_folder_raises(tmp_path):
    touch(tmp_path, "a.jpg")
    with pytest.raises(SourceError, match="expected a folder of images, got a file"):
        require_folder(str(tmp_path / "a.jpg"), "images")


def test_file_is_read_whole(tmp_path):
    touch(tmp_path, "a/b.jpg")
    assert read_file(str(tmp_path), "a/b.jpg") == b"x" * 7
