from __future__ import annotations

import os

import pytest

from tfrkit.storage.folders import list_folder


def test_names_are_sorted_with_a_slash_after_folders(tmp_path):
    for name in ("b", "a.jpg", "a-", "ü"):
        (tmp_path / name).write_bytes(b"12345")
    (tmp_path / "a").mkdir()
    assert list_folder(str(tmp_path)).names == [b"a-", b"a.jpg", b"a/", b"b", "ü".encode()]


def test_sizes_and_times_are_those_of_stat(tmp_path):
    for size in (0, 7, 5000):
        (tmp_path / f"{size:04d}").write_bytes(b"x" * size)
    os.utime(tmp_path / "0007", ns=(1, 1_234_567_890_123_456_789))
    listed = list_folder(str(tmp_path))
    assert listed.nbytes.tolist() == [0, 7, 5000]
    assert listed.stamps.tolist() == [os.stat(tmp_path / os.fsdecode(name)).st_mtime_ns for name in listed.names]


def test_links_are_what_they_lead_to(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "real/file").write_bytes(b"abc")
    (tmp_path / "to-file").symlink_to(tmp_path / "real/file")
    (tmp_path / "to-folder").symlink_to(tmp_path / "real")
    (tmp_path / "to-nowhere").symlink_to(tmp_path / "nothing")
    listed = list_folder(str(tmp_path))
    assert listed.names == [b"real/", b"to-file", b"to-folder/", b"to-nowhere"]
    assert (listed.nbytes[1], listed.nbytes[3], listed.stamps[3]) == (3, 0, 0)


def test_name_that_is_no_utf8_comes_as_it_is(tmp_path):
    try:
        open(os.fsencode(tmp_path) + b"/a\xff", "wb").close()
    except OSError:
        pytest.skip("this file system wants UTF-8")
    assert list_folder(str(tmp_path)).names == [b"a\xff"]


def test_empty_folder_lists_nothing(tmp_path):
    assert list_folder(str(tmp_path)).names == []


def test_missing_folder_raises(tmp_path):
    with pytest.raises(FileNotFoundError, match="nothing"):
        list_folder(str(tmp_path / "nothing"))
