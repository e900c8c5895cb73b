from __future__ import annotations

import gzip
import os
import threading
import zlib
from pathlib import Path

import pytest

import tfrkit
from tfrkit.errors import StorageError
from tfrkit.ops.reshape.merge import merge
from tfrkit.testing.reference import write_frames

ONE, TWO = [b"a", b"", b"ccc" * 1000], [b"\xff" * 5000, b"a"]


def read(path: Path | str) -> list[bytes]:
    return list(tfrkit.open(path).records())


def test_files_follow_one_another_in_the_order_given(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(write_frames(ONE))
    (tmp_path / "two").write_bytes(gzip.compress(write_frames(TWO)))
    (tmp_path / "empty").write_bytes(b"")
    made = merge([tmp_path / "two", tmp_path / "empty", tmp_path / "one"], tmp_path / "both.tfrecord")
    assert (tmp_path / "both.tfrecord").read_bytes() == write_frames(TWO + ONE)
    assert (made.records, made.compression) == (5, "none")


def test_several_members_become_one(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(gzip.compress(write_frames(ONE)) + gzip.compress(write_frames(TWO)))
    merge(tmp_path / "in", tmp_path / "out")
    inflate = zlib.decompressobj(31)
    assert inflate.decompress((tmp_path / "out").read_bytes()) == write_frames(ONE + TWO)
    assert inflate.eof


def test_pipe_is_read_as_it_comes(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    thread = threading.Thread(target=lambda: (tmp_path / "pipe").write_bytes(write_frames(TWO * 2000)))
    thread.start()
    merge(tmp_path / "pipe", tmp_path / "out.tfrecord")
    thread.join()
    assert read(tmp_path / "out.tfrecord") == TWO * 2000


def test_folder_as_output_is_refused(tmp_path: Path) -> None:
    (tmp_path / "one").write_bytes(write_frames(ONE))
    for out in (tmp_path, f"{tmp_path}/new/"):
        with pytest.raises(StorageError, match="expected a file to write, got a folder"):
            merge(tmp_path / "one", out)
