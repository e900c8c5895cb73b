"""A folder in which processes meet, on a disk; tests/remote has it in stores."""

from __future__ import annotations

import threading

import pytest

from tfrkit.errors import StorageError
from tfrkit.storage.shared_folder import SharedFolder


def test_files_are_listed_read_and_replaced(tmp_path):
    folder = SharedFolder(str(tmp_path / "not" / "there"))
    assert folder.list() == []
    folder.write("a", b"1")
    folder.write("a", b"2")
    assert folder.list() == ["a"]
    assert folder.read("a") == b"2"


def test_inner_folder_is_made_twice_and_removed(tmp_path):
    folder = SharedFolder(str(tmp_path))
    path = folder.make("work")
    assert folder.make("work") == path == str(tmp_path / "work")
    (tmp_path / "work" / "x").write_bytes(b"")
    folder.remove("work")
    assert folder.list() == []


def test_file_in_place_of_the_folder_is_named(tmp_path):
    (tmp_path / "x").write_bytes(b"")
    with pytest.raises(StorageError, match="cannot write, .* - at .*x"):
        SharedFolder(str(tmp_path / "x")).make("work")


def test_lock_excludes_another_thread(tmp_path):
    folder = SharedFolder(str(tmp_path))
    order = []

    def work():
        with SharedFolder(str(tmp_path)).locked("lock"):
            order.append("second")

    with folder.locked("lock"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "second"]
