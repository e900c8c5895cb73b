from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import tfrkit
from tfrkit.ops.edit.change import ShardWork, restore_change


def test_size_after_a_change_is_that_of_the_file_and_of_what_is_added(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(bytes(30))
    assert ShardWork("x", None, str(path), "none", 0).nbytes == 30
    assert ShardWork("x", None, str(path), "none", 0, expected_nbytes=12).nbytes == 42
    assert ShardWork("x", None, None, "none", 0, expected_nbytes=12).nbytes == 12


def test_restore_removes_what_a_process_left_that_was_killed_after_its_change(tmp_path: Path) -> None:
    tfrkit.build([{"n": 1}], tmp_path / "d")
    folder = tmp_path / "d"
    before = {path.name for path in folder.iterdir()}
    program = f"""
import os
from tfrkit.storage.temporaries import TemporaryFolder
made = TemporaryFolder({str(folder / "change")!r})
os.mkdir(os.path.join(made.path, "done"))
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == 9
    assert len({path.name for path in folder.iterdir()} - before) == 2
    assert not restore_change(folder)
    assert {path.name for path in folder.iterdir()} == before
