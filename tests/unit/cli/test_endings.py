"""Ctrl-C between any two steps of a writer leaves nothing of it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.main import run_guarded
from tfrkit.errors import StorageError
from tfrkit.storage import local, temporaries
from tfrkit.storage.local import LocalWriter
from tfrkit.storage.temporaries import TemporaryFolder

WATCHED = {local.__file__, temporaries.__file__}


class Interrupt:
    """Raises `KeyboardInterrupt` before the `at`-th line of modules that make temporaries, as Python's handler may."""

    def __init__(self, at: int) -> None:
        self.left = at

    def trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename not in WATCHED:
            return None
        if event == "line":
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self.trace


def write_file(folder: str) -> None:
    with LocalWriter(os.path.join(folder, "new", "out"), make_folders=True) as writer:
        writer.write(b"data")
        writer.commit()


def discard_file(folder: str) -> None:
    with LocalWriter(os.path.join(folder, "new", "out"), make_folders=True) as writer:
        writer.write(b"data")


def write_folder(folder: str) -> None:
    made = TemporaryFolder(os.path.join(folder, "new", "out"), make_folders=True)
    try:
        Path(made.path, "file").write_bytes(b"data")
        made.place(os.path.join(folder, "new", "out"))
    finally:
        made.remove()


def discard_folder(folder: str) -> None:
    with TemporaryFolder(os.path.join(folder, "new", "out"), make_folders=True) as path:
        Path(path, "file").write_bytes(b"data")


@pytest.mark.parametrize("write", [write_file, discard_file, write_folder, discard_folder])
def test_interrupt_at_any_line_leaves_no_temporary(tmp_path: Path, write: Callable[[str], None]) -> None:
    temporaries._name_start()  # reads a file, once
    at, before = 0, sys.gettrace()
    while True:
        at += 1
        folder = tmp_path / str(at)
        folder.mkdir()
        interrupt = Interrupt(at)

        def run() -> int:
            sys.settrace(interrupt.trace)  # noqa: B023  (called at once)
            try:
                write(str(folder))  # noqa: B023
            finally:
                sys.settrace(before)
            return ExitCode.DONE

        code = run_guarded(run, {})
        left = [path.name for path in folder.rglob("*") if path.name.startswith(".")]
        assert left == [], f"interrupted before line {at}"
        if interrupt.left > 0:
            assert code == ExitCode.DONE
            break
        assert code == ExitCode.INTERRUPTED
    assert at > 20
    assert temporaries._held == {}


@pytest.mark.parametrize(("number", "name"), [(signal.SIGTERM, "Terminated"), (signal.SIGINT, "KeyboardInterrupt")])
def test_signal_in_a_destructor_is_not_lost(number: int, name: str) -> None:
    program = f"""
import signal, time
from tfrkit.cli.endings import Terminated, raise_when_asked_to_end
class Dying:
    def __del__(self):
        signal.raise_signal({int(number)})
raise_when_asked_to_end()
try:
    Dying()
    time.sleep(60)
except (KeyboardInterrupt, Terminated) as end:
    print(type(end).__name__)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.stderr) == (f"{name}\n", "")


def test_other_errors_in_a_destructor_are_printed() -> None:
    program = """
from tfrkit.cli.endings import raise_when_asked_to_end
class Dying:
    def __del__(self):
        raise ValueError("dying")
raise_when_asked_to_end()
Dying()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert "ValueError: dying" in done.stderr


def test_interrupt_while_rmtree_closes_a_folder_ends_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    close = os.close

    def close_and_interrupt(descriptor: int) -> None:
        monkeypatch.setattr(os, "close", close)
        close(descriptor)
        raise KeyboardInterrupt

    def run() -> int:
        (tmp_path / "folder").mkdir()
        monkeypatch.setattr(os, "close", close_and_interrupt)
        try:
            shutil.rmtree(tmp_path / "folder")
        except OSError as error:  # of Python 3.11
            raise StorageError("cannot write") from error
        return ExitCode.DONE

    assert run_guarded(run, {}) == ExitCode.INTERRUPTED
    assert capsys.readouterr().err == ""
