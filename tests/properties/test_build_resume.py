"""Resume at every step equals no stop: builds killed at every change on disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

import tfrkit as tfr
from tfrkit import sources
from tfrkit._limits import LIMITS
from tfrkit.build import schedule

LABEL = r"^(?P<class>[a-z]+)"
NAMES = [f"{name}{number}.png" for name in "ab" for number in range(6)]
# All calls by which a build changes the disk; killing between any two of them covers every state.
STEPS = ("replace", "fsync", "unlink", "rmdir")
KILLED = 9


@pytest.fixture(autouse=True)
def _fast_disk(monkeypatch):
    """fsync is skipped: no power loss is tested, and hundreds of builds would take minutes."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    for number, name in enumerate(NAMES):
        Image.new("RGB", (8, 6), (number * 7, number * 20, 100)).save(folder / name)
    return folder


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith("report.json")
    }


def run_and_kill(build: Callable[[], object], step: int) -> bool:
    """Run in another process and kill it at step `step`; False if it finished before."""
    child = os.fork()
    if child == 0:
        count = 0

        def wrap(function):
            def call(*args, **options):
                nonlocal count
                count += 1
                if count == step:
                    os._exit(KILLED)
                return function(*args, **options)

            return call

        code = 1
        try:
            for name in STEPS:
                setattr(os, name, wrap(getattr(os, name)))
            build()
            code = 0
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert code in (0, KILLED)
    return code == KILLED


CASES = {
    "folder": ("out", {"splits": {"test": 4}, "shards": 2}, 1),
    "single file in parts": ("out.tfrecord", {}, 1),
    "gzip": ("out", {"compression": "gzip", "shards": 2}, 5),
}


@pytest.mark.parametrize("case", CASES)
def test_killed_at_any_step_the_next_run_gives_the_same_bytes(root, tmp_path, case):
    name, options, stride = CASES[case]
    # In parts even with one job, so that joining them is interrupted, too.
    in_parts = case == "single file in parts"

    def build(place: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            if in_parts:
                patch.setattr(schedule, "cut_shards", lambda weights, jobs: [3] * len(weights))
            tfr.build(sources.file_names(root, LABEL), tmp_path / place / name, jobs=1, **options)

    (tmp_path / "whole").mkdir()
    build("whole")
    expected = files_of(tmp_path / "whole")
    step = 1
    while True:
        place = f"step{step}"
        (tmp_path / place).mkdir()
        was_killed = run_and_kill(lambda place=place: build(place), step)
        build(place)
        assert files_of(tmp_path / place) == expected, f"killed at step {step}"
        if not was_killed:
            break
        step += stride
    assert step > 15


@pytest.mark.parametrize("options", [{"splits": {"test": 4}, "shards": 2}, {}], ids=["folder", "parts"])
def test_table_killed_at_any_step_the_next_run_gives_the_same_bytes(tmp_path, options):
    table = tmp_path / "t.csv"
    table.write_text("a,b\n" + "".join(f"{row},text {row}\n" for row in range(100)))

    def build(place: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            if not options:
                patch.setattr(LIMITS, "part_nbytes", 1000)
            # One job, because a process is forked here; the resumed build uses threads.
            jobs = 1 if place.startswith("step") else 3
            tfr.build(sources.table(table), tmp_path / place / "out", jobs=jobs, **options)

    build("whole")
    expected = files_of(tmp_path / "whole")
    step = 1
    while True:
        place = f"step{step}"
        was_killed = run_and_kill(lambda place=place: build(place), step)
        build(place)
        assert files_of(tmp_path / place) == expected, f"killed at step {step}"
        if not was_killed:
            break
        step += 3
    assert step > 15


def test_killed_while_it_replaces_a_dataset_the_next_run_finishes(root, tmp_path):

    def build(place: str, **options) -> None:
        tfr.build(sources.file_names(root, LABEL), tmp_path / place / "out", jobs=1, **options)

    build("whole", shards=2)
    expected = files_of(tmp_path / "whole")
    step = 1
    while True:
        place = f"step{step}"
        build(place, shards=5, splits={"test": 3})
        was_killed = run_and_kill(lambda place=place: build(place, shards=2, force=True), step)
        build(place, shards=2, force=True)
        assert files_of(tmp_path / place) == expected, f"killed at step {step}"
        if not was_killed:
            break
        step += 2
    assert step > 15


def test_parts_killed_at_any_step_come_again_and_give_the_same_bytes(root, tmp_path):
    def build(place: str, part: str | None = None) -> None:
        source = sources.file_names(root, LABEL)
        tfr.build(source, tmp_path / place / "out", jobs=1, shards=2, splits={"test": 4}, part=part)

    def build_parts(place: str) -> None:
        build(place, "0/2")
        build(place, "1/2")

    build("whole")
    expected = files_of(tmp_path / "whole")
    step = 1
    while True:
        place = f"step{step}"
        was_killed = run_and_kill(lambda place=place: build_parts(place), step)
        build_parts(place)
        assert files_of(tmp_path / place) == expected, f"killed at step {step}"
        if not was_killed:
            break
        step += 2
    assert step > 15
