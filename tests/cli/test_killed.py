"""Killed commands: what they leave, and how the next run cleans up."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tfrkit
from tfrkit.testing.commands import run_command

COMMAND = [sys.executable, "-c", "from tfrkit_start import main; main()"]
NUM_RECORDS = 1500

WRITERS = {
    "shuffle": ["shuffle", "in.tfrecord", "-o", "out", "--shards", "3", "--seed", "1", "--compression", "gzip"],
    "shuffle to a file": ["shuffle", "in.tfrecord", "-o", "out.tfrecord", "--seed", "1", "--compression", "gzip"],
    "convert": ["convert", "in.tfrecord", "-o", "out.tfrecord.gz"],
    "convert to a folder": ["convert", "in.tfrecord", "-o", "out/", "--compression", "gzip"],
    "split": ["split", "in.tfrecord", "-o", "out/", "--split", "a=.5,b=.5", "--compression", "gzip"],
    "merge": ["merge", "in.tfrecord", "-o", "out.tfrecord.gz", "--compression", "gzip"],
    "reshard": ["reshard", "in.tfrecord", "-o", "out/", "--shards", "4", "--compression", "gzip"],
    "sample": ["sample", "in.tfrecord", "-n", "1400", "--seed", "1", "-o", "out.tfrecord", "--compression", "gzip"],
    "repair": ["repair", "in.tfrecord", "-o", "out.tfrecord", "--compression", "gzip"],
    "export images": ["export", "images", "in.tfrecord", "-o", "out"],
    "export csv": ["export", "csv", "in.tfrecord", "-o", "out.csv"],
    "export jsonl": ["export", "jsonl", "in.tfrecord", "-o", "out.jsonl"],
    "export npz": ["export", "npz", "in.tfrecord", "-o", "out.npz"],
    "export webdataset": ["export", "webdataset", "in.tfrecord", "-o", "out/"],
    "sql to parquet": ["sql", "select * from 'in.tfrecord'", "-o", "out.parquet"],
    "sql to tfrecord": ["sql", "select * from 'in.tfrecord'", "-o", "out.tfrecord.gz"],
    "sql to csv": ["sql", "select * from 'in.tfrecord'", "-o", "out.csv"],
}


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Large enough to keep a command busy after its temporary file appears."""
    path = tmp_path_factory.mktemp("records") / "in.tfrecord"
    picture = bytes.fromhex("89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489")
    with tfrkit.Writer(path) as writer:
        for number in range(NUM_RECORDS):
            noise = hashlib.blake2b(str(number).encode()).digest() * 100
            writer.write({"image": picture + noise, "number": number, "text": noise.hex()[: number % 9000]})
    return path


@pytest.fixture
def folder(records: Path, tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    shutil.copy(records, tmp_path / "work" / "in.tfrecord")
    return tmp_path / "work"


def find_hidden(folder: Path) -> list[str]:
    """Hidden files, except the lock file that stays in an index folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob(".*") if path.name != ".lock")


def read_all(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def start(arguments: list[str], folder: Path) -> subprocess.Popen[bytes]:
    env = {**os.environ, "TMPDIR": str(folder.parent), "XDG_CACHE_HOME": str(folder.parent / "cache")}
    return subprocess.Popen(
        [*COMMAND, *arguments], cwd=folder, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )


def run_here(arguments: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    done = run_command(arguments)
    assert done.exit_code == 0, done.output


def has_begun(folder: Path) -> bool:
    """Whether a nonempty temporary file exists."""
    for path in folder.glob(".*.tmp"):
        try:
            if any(path.iterdir()) if path.is_dir() else path.stat().st_size:
                return True
        except OSError:
            pass
    return False


def stop_in_the_middle(arguments: list[str], folder: Path, number: int) -> tuple[int, bytes]:
    """Send a signal while a temporary file is being written; return exit status and stderr."""
    for _ in range(10):
        command = start(arguments, folder)
        deadline = time.monotonic() + 60
        while not has_begun(folder) and command.poll() is None and time.monotonic() < deadline:
            pass
        command.send_signal(number)
        _, err = command.communicate(timeout=120)
        if command.returncode != 0:
            return command.returncode, err
        # It finished before the signal.
        for path in folder.iterdir():
            if path.name != "in.tfrecord":
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    raise AssertionError("the command ends before it can be stopped")


@pytest.mark.parametrize("verb", WRITERS)
def test_command_that_is_stopped_leaves_nothing_for_long(
    verb: str, folder: Path, records: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    arguments = WRITERS[verb]
    # SIGTERM cleans up at once, ...
    assert stop_in_the_middle(arguments, folder, signal.SIGTERM) == (143, b"")
    assert sorted(path.name for path in folder.iterdir()) == ["in.tfrecord"]
    assert find_hidden(tmp_path) == []
    # ... SIGKILL by the next run, ...
    code, _ = stop_in_the_middle(arguments, folder, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert find_hidden(folder) != []
    assert [path.name for path in folder.iterdir() if not path.name.startswith(".")] == ["in.tfrecord"]
    run_here(arguments, folder, monkeypatch)
    assert find_hidden(folder) == []
    # ... whose output equals that of an undisturbed run.
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    shutil.copy(records, undisturbed / "in.tfrecord")
    run_here(arguments, undisturbed, monkeypatch)
    assert read_all(folder) == read_all(undisturbed)


def kill_writer(path: Path) -> None:
    """Kill a process while it writes a file."""
    program = f"""
import os, signal, tfrkit
writer = tfrkit.Writer({str(path)!r})
for number in range(100):
    writer.write({{"x": bytes(10_000)}})
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", program], check=False, timeout=60).returncode == -signal.SIGKILL


@pytest.mark.parametrize(
    ("arguments", "target"),
    [
        (["index", "in.tfrecord"], "_index/in.tfrecord.tfidx"),
        (["index", "in.tfrecord", "--dali"], "in.tfrecord.idx"),
        (["stats", "in.tfrecord", "--html", "out.html"], "out.html"),
        (["convert", "in.tfrecord", "-o", "other.tfrecord"], "out.tfrecord"),  # another output in the same folder
    ],
)
def test_what_a_killed_writer_left_goes_with_the_next_command(
    arguments: list[str], target: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / target).parent.mkdir(exist_ok=True)
    kill_writer(folder / target)
    assert find_hidden(folder) != []
    run_here(arguments, folder, monkeypatch)
    assert find_hidden(folder) == []


def test_commands_that_write_the_same_output_at_once_leave_each_other_alone(folder: Path) -> None:
    arguments = [*WRITERS["convert"], "--force"]
    commands = [start(arguments, folder) for _ in range(4)]
    assert [(command.communicate(timeout=120)[1], command.returncode) for command in commands] == [(b"", 0)] * 4
    assert find_hidden(folder) == []
    written = tfrkit.open(folder / "out.tfrecord.gz").records()
    assert list(written) == list(tfrkit.open(folder / "in.tfrecord").records())


def test_terminated_reader_exits_143_quietly(tmp_path: Path) -> None:
    # Standard input that never ends keeps the command busy.
    command = subprocess.Popen(
        [*COMMAND, "count", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    )
    deadline = time.monotonic() + 30
    while b"_core" not in Path(f"/proc/{command.pid}/maps").read_bytes() and time.monotonic() < deadline:
        pass
    command.send_signal(signal.SIGTERM)
    out, err = command.communicate(timeout=60)
    assert (command.returncode, out, err) == (143, b"", b"")
