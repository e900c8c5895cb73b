from __future__ import annotations

from pathlib import Path

import pytest

from tfrkit.storage.git_lfs import describe_pointer, describe_pointer_file

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"5" * 64 + b"\nsize 3493730\n"
NAMED = "a Git LFS pointer to 3,493,730 bytes that were not downloaded"


def test_pointer_is_named_with_the_size_of_its_file() -> None:
    assert describe_pointer(POINTER) == NAMED


@pytest.mark.parametrize("data", [b"", b"version https://git-lfs", b"a,b\n1,2\n", b" " + POINTER])
def test_other_bytes_are_no_pointer(data: bytes) -> None:
    assert describe_pointer(data) is None


def test_pointer_file_is_named_and_a_large_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "small").write_bytes(POINTER)
    (tmp_path / "large").write_bytes(POINTER + bytes(2000))
    assert describe_pointer_file(str(tmp_path / "small")) == NAMED
    assert describe_pointer_file(str(tmp_path / "large")) is None
    assert describe_pointer_file(str(tmp_path / "nowhere")) is None
    assert describe_pointer_file(str(tmp_path)) is None
