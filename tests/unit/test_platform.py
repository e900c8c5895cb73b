"""Locks and reads at a position, also as on a system without fcntl and pread."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from tfrkit import _platform


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "file").write_bytes(b"0123456789")
    return tmp_path / "file"


def open_twice(path: Path) -> tuple[int, int]:
    return os.open(path, os.O_RDWR | _platform.O_CLOEXEC), os.open(path, os.O_RDWR | _platform.O_CLOEXEC)


def test_second_lock_is_refused_until_the_first_file_is_closed(path: Path) -> None:
    first, second = open_twice(path)
    _platform.lock_file(first, wait=False)
    with pytest.raises(BlockingIOError, match="temporarily unavailable"):
        _platform.lock_file(second, wait=False)
    os.close(first)
    _platform.lock_file(second, wait=False)
    os.close(second)


def test_locks_of_windows_are_on_a_byte_after_the_file_and_keep_the_position(path: Path, monkeypatch) -> None:
    taken: list[tuple[int, int, int]] = []

    def locking(descriptor: int, mode: int, nbytes: int) -> None:
        if taken:
            raise PermissionError(13, "denied")
        taken.append((os.lseek(descriptor, 0, os.SEEK_CUR), mode, nbytes))

    monkeypatch.setattr(_platform, "fcntl", None)
    monkeypatch.setattr(_platform, "msvcrt", SimpleNamespace(locking=locking, LK_LOCK=1, LK_NBLCK=2))
    first, second = open_twice(path)
    os.lseek(first, 3, os.SEEK_SET)
    _platform.lock_file(first, wait=False)
    assert taken == [((1 << 31) - 2, 2, 1)]
    assert os.lseek(first, 0, os.SEEK_CUR) == 3
    with pytest.raises(BlockingIOError, match="denied"):
        _platform.lock_process(second, shared=False)
    os.close(first)
    os.close(second)


@pytest.mark.parametrize("has_pread", [True, False])
def test_read_at_keeps_the_position(path: Path, has_pread: bool, monkeypatch) -> None:
    if not has_pread:
        monkeypatch.delattr(os, "pread")
    descriptor = os.open(path, os.O_RDONLY)
    os.lseek(descriptor, 2, os.SEEK_SET)
    assert _platform.read_at(descriptor, 3, 5) == b"567"
    assert _platform.read_at(descriptor, 99, 8) == b"89"
    assert _platform.read_at(descriptor, 99, 10) == b""
    assert os.read(descriptor, 2) == b"23"
    os.close(descriptor)
