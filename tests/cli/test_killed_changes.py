"""Killed in-place changes: the dataset is the old or the new one, never a mixture."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tfrkit
from tfrkit._limits import LIMITS
from tfrkit.testing.commands import run_command

pytest.importorskip("duckdb")

COMMAND = [sys.executable, "-c", "from tfrkit_start import main; main()"]
VERBS = {
    "edit": ["edit", "d", "--where", "label = 3", "--set", "label = label + 1", "--in-place"],
    "drop": ["edit", "d", "--where", "label = 3", "--drop", "--in-place"],
    "append": ["append", "d", "new.tfrecord", "--split", "train", "--in-place"],
    "dedupe": ["dedupe", "d", "--by", "label", "--by", "name", "--in-place"],
}


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    rows = [{"label": number % 10, "name": f"n{number % 900}", "x": bytes(1000)} for number in range(2000)]
    shards = {"train": 6, "test": 2}
    tfrkit.build(rows, folder / "d", splits={"test": 200}, seed=0, shards=shards, compression="gzip")
    with tfrkit.Writer(folder / "new.tfrecord") as writer:
        for row in rows[:300]:
            writer.write(row)
    return folder


def read_all(folder: Path) -> dict[str, bytes]:
    """All files, including hidden ones, except the lock file in an index folder."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def start(arguments: list[str], folder: Path) -> subprocess.Popen[bytes]:
    env = {**os.environ, "TMPDIR": str(folder.parent), "XDG_CACHE_HOME": str(folder.parent / "cache")}
    return subprocess.Popen([*COMMAND, *arguments], cwd=folder, env=env, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("verb", VERBS)
def test_dataset_is_old_or_new_whenever_a_change_is_killed(
    verb: str, dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All runs of this process are in a folder called d, which it would look through only now and then.
    monkeypatch.setattr(LIMITS, "sweep_share", 1e9)
    old = read_all(dataset)
    whole = tmp_path / "whole"
    shutil.copytree(dataset, whole)
    monkeypatch.chdir(whole)
    begun = time.monotonic()
    command = start(VERBS[verb], whole)
    assert command.wait(timeout=120) == 0
    seconds = time.monotonic() - begun
    new = read_all(whole)
    assert new != old
    seed = random.randrange(1 << 30)
    print("seed", seed)
    times = random.Random(seed)
    for number in range(5):
        folder = tmp_path / str(number)
        shutil.copytree(dataset, folder)
        monkeypatch.chdir(folder)
        command = start(VERBS[verb], folder)
        # Start-up takes most of the time; the change happens at the end.
        time.sleep(seconds * times.uniform(0.5, 1.1))
        command.send_signal(signal.SIGKILL)
        command.wait(timeout=120)
        done = run_command(["edit", "d", "--restore"])
        assert done.exit_code == 0, done.output
        visible = {name: data for name, data in read_all(folder).items() if "/." not in name}
        assert visible in (old, new), (seed, number)
        # The next run redoes the change and removes leftovers.
        if visible == old:
            assert run_command(VERBS[verb]).exit_code == 0
            assert read_all(folder) == new, (seed, number)
