"""storage.digest: the checksum of a whole file."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from tfrkit._limits import LIMITS
from tfrkit.errors import StorageError
from tfrkit.storage.digest import hash_file


def test_hash_of_an_empty_file_is_that_of_nothing(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"")
    assert hash_file(str(tmp_path / "x")) == hashlib.sha256(b"").hexdigest()


def test_hash_of_a_file_of_several_pieces_is_that_of_the_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "digest_nbytes", 1000)
    data = os.urandom(3007)
    (tmp_path / "x").write_bytes(data)
    assert hash_file(str(tmp_path / "x")) == hashlib.sha256(data).hexdigest()


def test_missing_file_raises(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"cannot open, no such file or directory - at .*x"):
        hash_file(str(tmp_path / "x"))
