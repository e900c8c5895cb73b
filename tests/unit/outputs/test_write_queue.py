from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tfrkit.errors import StorageError
from tfrkit.outputs.write_queue import NewFile, OutputFile, WriteQueue


@pytest.fixture
def queue() -> Iterator[WriteQueue]:
    made = WriteQueue(1000)
    yield made
    made.close()


def open_file(path: Path) -> OutputFile:
    return OutputFile(os.open(path, os.O_WRONLY | os.O_CREAT, 0o666), str(path))


def test_pieces_of_several_files_keep_their_order(queue: WriteQueue, tmp_path: Path) -> None:
    one, two = open_file(tmp_path / "one"), open_file(tmp_path / "two")
    for number in range(300):
        queue.put(one, [b"%d," % number, memoryview(b""), memoryview(b";")])
        queue.put(two, [bytes([number % 256]) * 7])
    queue.drain()
    content = (tmp_path / "one").read_bytes()
    assert content == b"".join(b"%d,;" % number for number in range(300))
    assert one.nbytes == len(content)
    assert (tmp_path / "two").stat().st_size == 2100


def test_more_pieces_than_the_system_takes_at_once_are_written(queue: WriteQueue, tmp_path: Path) -> None:
    file = open_file(tmp_path / "x")
    queue.put(file, [b"%04d" % number for number in range(3000)])
    queue.drain()
    assert (tmp_path / "x").read_bytes() == b"".join(b"%04d" % number for number in range(3000))


def test_callback_runs_after_its_piece(queue: WriteQueue, tmp_path: Path) -> None:
    seen: list[int] = []
    file = open_file(tmp_path / "x")
    queue.put(file, [b"abc"], then=lambda: seen.append((tmp_path / "x").stat().st_size))
    queue.drain()
    assert seen == [3]


def test_failed_write_raises_at_the_next_call(queue: WriteQueue) -> None:
    file = OutputFile(os.open("/dev/full", os.O_WRONLY), "full.tfrecord")
    queue.put(file, [b"x" * 10])
    with pytest.raises(StorageError, match="cannot write, no space left on device, no partial file was left - at full"):
        queue.drain()
    with pytest.raises(StorageError, match="no space left"):
        queue.put(file, [b"x"])


def test_failed_callback_raises(queue: WriteQueue, tmp_path: Path) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    seen = threading.excepthook
    threading.excepthook = lambda _: None
    try:
        queue.put(open_file(tmp_path / "x"), [b"x"], then=fail)
        with pytest.raises(RuntimeError, match="the thread that writes has ended"):
            queue.drain()
    finally:
        threading.excepthook = seen


def test_new_file_is_not_executable(tmp_path: Path) -> None:
    file = NewFile(str(tmp_path / "x"))
    file.open()
    file.close()
    assert (tmp_path / "x").stat().st_mode & 0o111 == 0
