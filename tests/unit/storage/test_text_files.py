"""Small text and JSON files."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from tfrkit.errors import StorageError
from tfrkit.storage.lookup import UnusableFileError
from tfrkit.storage.text_files import read_json, read_text


def fail(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(path: str, *args: Any) -> None:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr("builtins.open", refuse)


def test_missing_file_is_none(tmp_path: Path) -> None:
    assert read_text(str(tmp_path / "x")) is None
    assert read_json(str(tmp_path / "x" / "y")) is None


@pytest.mark.parametrize("number", [errno.EIO, errno.EMFILE, errno.ENOMEM])
def test_failing_disk_is_no_unusable_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    fail(monkeypatch, number)
    with pytest.raises(StorageError, match=f"^cannot read, {os.strerror(number).lower()} - at .*x$") as caught:
        read_text(str(tmp_path / "x"))
    assert not isinstance(caught.value, UnusableFileError)


@pytest.mark.parametrize("number", [errno.EACCES, errno.EISDIR])
def test_file_that_may_not_be_read_is_unusable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    fail(monkeypatch, number)
    with pytest.raises(UnusableFileError, match="^cannot open, "):
        read_text(str(tmp_path / "x"))


@pytest.mark.parametrize("content", [b"\xff", b"{", b"[" * 100_000])
def test_wrong_content_is_unusable(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(UnusableFileError):
        read_json(str(tmp_path / "x"))
