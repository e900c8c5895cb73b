"""Folders of a run."""

from __future__ import annotations

import os
from pathlib import Path

from tfrkit.storage.work_folder import KeptFolder, WorkFolder


def test_folder_of_a_run_is_removed_with_its_files_and_a_kept_one_stays(tmp_path: Path) -> None:
    with WorkFolder(str(tmp_path)) as folder:
        assert os.path.dirname(folder.path) == str(tmp_path)
        (Path(folder.path) / "x").write_bytes(b"x")
    assert os.listdir(tmp_path) == []
    with KeptFolder(str(tmp_path)) as kept:
        assert kept.path == str(tmp_path)
    assert tmp_path.is_dir()
