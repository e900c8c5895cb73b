from __future__ import annotations

from pathlib import Path

from tfrkit.ops.edit.change import ShardWork


def test_size_after_a_change_is_that_of_the_file_and_of_what_is_added(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(30))
    assert ShardWork("x", None, str(path), "none", 0).nbytes == 30
    assert ShardWork("x", None, str(path), "none", 0, expected_nbytes=12).nbytes == 42
    assert ShardWork("x", None, None, "none", 0, expected_nbytes=12).nbytes == 12
