"""Shards that are being written."""

from __future__ import annotations

from pathlib import Path

import pytest

from tfrkit.outputs.shard import OutputThreads, ShardOutput, take_worker_shard
from tfrkit.testing.reference import read_frames, write_frames


def test_shards_being_written_are_counted_until_they_are_finished(tmp_path: Path) -> None:
    threads = OutputThreads(1)
    shards = [ShardOutput(str(tmp_path / name), threads) for name in "ab"]
    assert threads.num_shards == 2  # each may keep half of the memory for small frames
    for shard in shards:
        shard.write(write_frames([b"x"]))
        shard.finish()
    assert threads.num_shards == 0
    threads.queue.drain()
    threads.close()
    assert [list(read_frames((tmp_path / name).read_bytes())) for name in "ab"] == [[b"x"], [b"x"]]


@pytest.mark.parametrize("keep", [False, True])
def test_shard_of_a_worker_is_moved_or_kept(tmp_path: Path, keep: bool) -> None:
    threads = OutputThreads(1)
    shard = ShardOutput(str(tmp_path / "worker"), threads)
    shard.write(write_frames([b"x"]))
    shard.finish()
    threads.queue.drain()
    threads.close()
    take_worker_shard(str(tmp_path / "worker"), str(tmp_path / "out" / "x"), keep=keep)
    assert (tmp_path / "worker").exists() == (tmp_path / "_index" / "worker.tfidx").exists() == keep
    assert (tmp_path / "out" / "x").exists() and (tmp_path / "out" / "_index" / "x.tfidx").exists()
