"""Usage, errors, pipes, interrupts and start-up of every command."""

from __future__ import annotations

import gzip
import os
import pty
import re
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from PIL import Image

from tfrkit.cli.main import run_guarded
from tfrkit.testing.reference import write_frames

COMMANDS = ["info", "head", "count", "schema", "verify", "index"]
COMMAND = [sys.executable, "-c", "from tfrkit.cli.main import main; main()"]


def test_help_fits_one_screen_and_names_every_command(tfr) -> None:
    ran = tfr("--help")
    assert len(ran.lines) <= 48
    for name in [*COMMANDS, "build", "repair", "bench", "sheet"]:
        assert f"  {name} " in ran.out


@pytest.mark.parametrize("command", COMMANDS)
def test_command_help_has_an_example_and_the_format_option(tfr, command: str) -> None:
    out = tfr(command, "--help").out
    assert f"tfr {command} " in out.split("Usage", 1)[1].split("\n", 1)[1]
    assert "--format" in out
    assert "index" in out or command == "head"


def test_version(tfr) -> None:
    assert tfr("--version").out == f"tfrkit {version('tfrkit')}\n"


def test_completion_script_is_printed(tfr) -> None:
    out = tfr("completion", "bash").out
    assert "complete" in out
    assert "verify" in out


@pytest.mark.parametrize(
    "arguments", [[], ["frobnicate"], ["count"], ["count", "--frobnicate", "x"], ["count", "x", "--format", "xml"]]
)
def test_wrong_usage_exits_2_with_nothing_on_stdout_but_help(tfr, arguments: list[str]) -> None:
    ran = tfr(*arguments, code=2)
    assert "Usage: tfr" in ran.out + ran.err


@pytest.mark.parametrize("command", COMMANDS)
class TestBadPaths:
    def test_missing_file_exits_3(self, tfr, command: str) -> None:
        ran = tfr(command, "nowhere.tfrecord", code=3)
        assert ran.out == ""
        assert ran.err.startswith("tfr: cannot open, no such file or directory - at nowhere.tfrecord")

    def test_close_name_is_offered(self, tfr, sample: Path, command: str) -> None:
        assert "did you mean sample.tfrecord" in tfr(command, "smaple.tfrecord", code=3).err

    def test_glob_that_matches_nothing_exits_3(self, tfr, command: str) -> None:
        assert "no file matches - at train-*" in tfr(command, "train-*", code=3).err

    def test_folder_with_no_shards_exits_3(self, tfr, tmp_path: Path, command: str) -> None:
        (tmp_path / "folder").mkdir()
        ran = tfr(command, "folder", code=3)
        assert "folder" in ran.err

    def test_foreign_file_says_what_it_seems_to_be(self, tfr, tmp_path: Path, command: str) -> None:
        (tmp_path / "page.tfrecord").write_text("<!DOCTYPE html><html><body>404</body></html>")
        # `verify` reports a file that is not a TFRecord as a finding, so that the other files are still checked.
        ran = tfr(command, "page.tfrecord", code=1 if command == "verify" else 3)
        assert "HTML" in (ran.out if command == "verify" else ran.err)

    def test_eleven_bytes_exit_3(self, tfr, tmp_path: Path, command: str) -> None:
        (tmp_path / "short.tfrecord").write_bytes(b"\x03" + bytes(10))
        ran = tfr(command, "short.tfrecord", code=1 if command == "verify" else 3)
        assert "short.tfrecord" in ran.out + ran.err

    def test_unreadable_file_exits_3(self, tfr, sample: Path, command: str) -> None:
        if os.geteuid() == 0:
            pytest.skip("root reads everything")
        sample.chmod(0)
        assert "permission denied - at sample.tfrecord" in tfr(command, "sample.tfrecord", code=3).err

    def test_hostile_path_cannot_reach_the_terminal(self, tfr, command: str) -> None:
        err = tfr(command, "a\x1b[2Jb", code=3).err
        assert "\x1b" not in err
        assert "a\\x1b[2Jb" in err


def test_debug_shows_the_trace(tfr) -> None:
    ran = tfr("count", "nowhere", code=3, env={"TFR_DEBUG": "1"})
    assert "Traceback" in ran.err
    assert "tfr: cannot open" in ran.err


@pytest.mark.parametrize("arguments", [["head", "-n", "20000"], ["head", "-n", "20000", "--format", "jsonl"]])
def test_closed_pipe_ends_quietly(tmp_path: Path, arguments: list[str]) -> None:
    (tmp_path / "many.tfrecord").write_bytes(write_frames([b"some text" * 10] * 20000))
    command = subprocess.Popen(
        [*COMMAND, *arguments, "many.tfrecord"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert command.stdout is not None
    assert command.stderr is not None
    command.stdout.readline()
    command.stdout.close()
    assert command.wait(60) == 0
    assert command.stderr.read() == b""
    command.stderr.close()


def test_closed_pipe_of_a_short_answer_ends_quietly(tmp_path: Path, sample: Path) -> None:
    # The output fits the pipe buffer, so only the last flush fails.
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [*COMMAND, "count", str(sample)], stdout=write_end, stderr=subprocess.PIPE, check=False, timeout=60
    )
    os.close(write_end)
    assert (done.returncode, done.stderr) == (0, b"")


def run_with_stderr(arguments: list[str], folder: Path, how: str) -> subprocess.CompletedProcess[bytes]:
    """Run with stderr as a broken pipe, or closed."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    command = shlex.join([*COMMAND, *arguments])
    line = f"{command} 2>&-" if how == "closed" else f"{command} 2>/dev/full" if how == "full" else command
    try:
        return subprocess.run(
            ["bash", "-c", line], cwd=folder, stdout=subprocess.PIPE, stderr=write_end, check=False, timeout=60
        )
    finally:
        os.close(write_end)


@pytest.mark.parametrize("how", ["broken", "closed", "full"])
def test_closed_stderr_does_not_change_the_exit_code(tmp_path: Path, sample: Path, how: str) -> None:
    assert run_with_stderr(["count", "nowhere"], tmp_path, how).returncode == 3
    assert run_with_stderr(["count", "--nonsense"], tmp_path, how).returncode == 2
    counted = run_with_stderr(["count", str(sample)], tmp_path, how)
    assert (counted.returncode, b"10" in counted.stdout) == (0, True)


def test_broken_stderr_does_not_stop_the_work(tmp_path: Path) -> None:
    (tmp_path / "photos" / "a").mkdir(parents=True)
    for number in range(3):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(tmp_path / "photos" / "a" / f"{number}.png")
    arguments = ["build", "class-folders", "photos", "-o", "out", "--progress", "json"]
    assert run_with_stderr(arguments, tmp_path, "broken").returncode == 0
    assert (tmp_path / "out" / "tfrkit.json").exists()


def test_refused_thread_is_one_message(capsys: pytest.CaptureFixture[str]) -> None:
    def run() -> int:
        raise RuntimeError("can't start new thread")

    assert run_guarded(run, {}) == 3
    assert capsys.readouterr().err == (
        "tfr: the system does not allow another thread\n  raise the limit of processes: ulimit -u\n"
    )


def test_interrupt_exits_130_quietly(tmp_path: Path) -> None:
    # Endless stdin keeps the command busy; once a first chunk is taken, it is reading.
    command = subprocess.Popen(
        [*COMMAND, "count", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        # Background jobs of a shell start with SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert command.stdin is not None
    command.stdin.write(write_frames([b"x" * 1000] * 1000))
    command.stdin.flush()
    deadline = time.monotonic() + 30
    while b"tfrkit" not in Path(f"/proc/{command.pid}/maps").read_bytes() and time.monotonic() < deadline:
        time.sleep(0.05)
    command.send_signal(signal.SIGINT)
    out, err = command.communicate(timeout=60)
    assert (command.returncode, out, err) == (130, b"", b"")


def test_terminal_gets_a_table_that_fits_and_no_color_is_honoured(tmp_path: Path, sample: Path) -> None:
    plain = run_on_terminal(["info", str(sample)], {"NO_COLOR": "1", "COLUMNS": "80"})
    assert b"feature" in plain
    assert b"\x1b[3" not in plain
    table = re.sub(r"\x1b\[\d*m", "", plain.decode()).splitlines()[1:]
    assert max(map(len, table)) <= 80


def run_on_terminal(arguments: list[str], env: dict[str, str]) -> bytes:
    leader, follower = pty.openpty()
    command = subprocess.Popen([*COMMAND, *arguments], stdout=follower, env={**os.environ, "TERM": "xterm", **env})
    os.close(follower)
    out = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # Linux: the other end was closed
            break
        if not piece:
            break
        out += piece
    os.close(leader)
    assert command.wait(60) == 0
    return out


def test_gzip_bomb_ends_in_bounded_memory(tfr, tmp_path: Path) -> None:
    packer = gzip.GzipFile(tmp_path / "bomb.tfrecord.gz", "wb", compresslevel=1)
    for _ in range(64):
        packer.write(bytes(1 << 20))
    packer.close()
    assert "bomb.tfrecord.gz" in tfr("verify", "bomb.tfrecord.gz", code=1).out


@pytest.mark.resources
def test_count_starts_fast(tfr, sample: Path) -> None:
    """Best of several runs, in CPU time relative to an import of NumPy, which is half of the start-up."""

    def time_best(command: Callable[[], object]) -> float:
        seconds = []
        for _ in range(5):
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            command()
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        return min(seconds)

    count = time_best(lambda: tfr("count", "sample.tfrecord"))
    numpy = time_best(lambda: subprocess.run([sys.executable, "-c", "import numpy"], check=True))
    assert count < 4 * numpy


def test_interrupt_while_a_class_is_made_is_an_interrupt(capsys: pytest.CaptureFixture[str]) -> None:
    def run() -> int:
        raise RuntimeError("Error calling __set_name__ on 'Field' instance") from KeyboardInterrupt()

    assert run_guarded(run, {}) == 130
    assert capsys.readouterr().err == ""
