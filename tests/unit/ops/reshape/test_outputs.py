"""The shards of an output while they are being written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfrkit.errors import StorageError
from tfrkit.ops.reshape.outputs import Outputs, OutShard
from tfrkit.outputs.shard import OutputThreads
from tfrkit.testing.reference import write_frames


def test_error_names_the_final_path_of_a_shard(tmp_path: Path) -> None:
    outputs = Outputs([OutShard("x")], OutputThreads(1), folder=str(tmp_path / ".tmp"), final="out/{}".format)
    with outputs, pytest.raises(StorageError, match=r"cannot write, no such file or directory.* - at out/x$"):
        outputs.put(0, write_frames([b"x"]))
        outputs.finish()
