from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tfrkit import _native
from tfrkit.errors import StorageError
from tfrkit.storage.local import LocalWriter, NamedFile, open_to_read
from tfrkit.storage.sync import sync_folder, sync_tree


def fail_sync(monkeypatch: pytest.MonkeyPatch, number: int, *, only_folders: bool = False) -> None:
    sync = os.fsync

    def fail(descriptor: int) -> None:
        if only_folders and not os.path.isdir(f"/proc/self/fd/{descriptor}"):
            return sync(descriptor)
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fail)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_folder_that_the_disk_cannot_keep_raises(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    fail_sync(monkeypatch, number)
    with pytest.raises(StorageError, match=f"not confirm .*, {os.strerror(number).lower()} - at {tmp_path}"):
        sync_folder(str(tmp_path))


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.EBADF])
def test_file_system_without_such_a_sync_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    fail_sync(monkeypatch, number)
    sync_folder(str(tmp_path))


def test_writer_says_that_its_folder_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = LocalWriter(str(tmp_path / "x"))
    fail_sync(monkeypatch, errno.EIO, only_folders=True)
    with pytest.raises(StorageError, match="does not confirm the write, input/output error"):
        writer.commit()


@pytest.mark.parametrize("num_files", [3, 100])
def test_every_file_of_a_tree_is_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, num_files: int) -> None:
    (tmp_path / "a").mkdir()
    for number in range(num_files):
        (tmp_path / "a" / str(number)).write_bytes(b"x")
    synced: list[int] = []
    disks: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    monkeypatch.setattr(_native, "sync_disk", disks.append)
    sync_tree(str(tmp_path), "out")
    assert (len(synced), len(disks)) == ((num_files + 2, 0) if num_files < 16 else (0, 1))

    def refuse(descriptor: int) -> None:
        raise OSError(errno.ENOSYS, "no")

    monkeypatch.setattr(_native, "sync_disk", refuse)
    synced.clear()
    sync_tree(str(tmp_path), "out")
    assert len(synced) == num_files + 2
    fail_sync(monkeypatch, errno.EIO)
    with pytest.raises(StorageError, match=r"not confirm the write, input/output error - at out/a/\d"):
        sync_tree(str(tmp_path), "out")


def test_disk_failure_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(30):
        (tmp_path / str(number)).write_bytes(b"x")

    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(_native, "sync_disk", fail)
    with pytest.raises(StorageError, match="does not confirm the write, input/output error - at out"):
        sync_tree(str(tmp_path), "out")


def test_disk_is_synced_for_real(tmp_path: Path) -> None:
    descriptor = os.open(tmp_path, os.O_RDONLY)
    _native.sync_disk(descriptor)
    os.close(descriptor)
    with pytest.raises(OSError, match="Bad file descriptor"):
        _native.sync_disk(descriptor)


def test_errors_of_a_named_file_name_it(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"abc")
    for read in (lambda file: file.read(), lambda file: file.read(2), lambda file: list(file)):
        with open_to_read(str(tmp_path / "x")) as file:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, file.fileno())
            os.close(nowhere)
            with pytest.raises(OSError, match="Bad file descriptor: '.*x'"):
                read(file)
    written = NamedFile(os.open("/dev/full", os.O_WRONLY), "wb", shown="out.npz")
    with pytest.raises(StorageError, match=r"cannot write, no space left on device - at out\.npz"):
        written.write(b"x")
    written.close()
