from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tfrkit as tfr
from tfrkit.build import parts
from tfrkit.build.journal import Journal
from tfrkit.build.parts import BuildPart
from tfrkit.errors import SourceError, StorageError

ROWS = [{"x": number, "text": "ab" * (number % 5)} for number in range(100)]
OPTIONS = {"splits": {"test": 0.2}, "shards": 4}


def build(out, part=None, **options):
    return tfr.build(ROWS, out, part=part, jobs=1, **{**OPTIONS, **options})


def files_of(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file() and path.name != "report.json"
    }


@pytest.fixture
def expected(tmp_path):
    build(tmp_path / "expected" / "rows")
    return files_of(tmp_path / "expected" / "rows")


@pytest.mark.parametrize("text", ["", "1", "4/4", "-1/4", "a/b", "1/4/2", "1.0/4", "Finish"])
def test_bad_part_is_refused(tmp_path, text):
    with pytest.raises(ValueError, match="part expected I/N with I from 0 to N-1, such as 0/4, or 'finish', got"):
        build(tmp_path / "rows", part=text)
    assert not (tmp_path / "rows").exists()


def test_part_with_a_cluster_is_refused(tmp_path):
    with pytest.raises(ValueError, match="part is only for engine 'local', got 'ray'"):
        build(tmp_path / "rows", part="0/2", engine="ray")


@pytest.mark.parametrize("count", [1, 3, 8, 20])
def test_every_shard_belongs_to_one_part(count):
    shards = tuple(range(8))
    chosen = [shard for index in range(count) for shard in BuildPart(index, count).choose(shards)]
    assert sorted(chosen) == list(shards)


def test_parts_in_any_order_give_the_bytes_of_one_build(tmp_path, expected):
    missing = []
    for index in (2, 0, 1):
        report = build(tmp_path / "rows", part=f"{index}/3")
        missing.append(report.missing_shards)
        assert (tmp_path / "rows" / "tfrkit.json").exists() == (index == 1)
    assert missing == [6, 3, 0]
    assert report.written == 100
    assert files_of(tmp_path / "rows") == expected


def test_report_of_a_part_counts_its_own_shards(tmp_path):
    report = build(tmp_path / "rows", part="1/4")
    assert (report.written, report.missing_shards, report.part) == (25, 6, "1/4")
    assert report.to_json()["missing_shards"] == 6
    assert "6 of 8 shards are missing, the part that makes the last one finishes" in report.notes


def test_part_that_comes_again_makes_nothing_twice(tmp_path, expected):
    first = build(tmp_path / "rows", part="0/2")
    (folder,) = (tmp_path / "rows" / "_build").glob("shards-*")
    before = {path.name: path.stat().st_mtime_ns for path in folder.glob("*.tfrecord-*")}
    again = build(tmp_path / "rows", part="0/2")
    assert {path.name: path.stat().st_mtime_ns for path in folder.glob("*.tfrecord-*")} == before
    assert again.written == first.written
    build(tmp_path / "rows", part="1/2")
    late = build(tmp_path / "rows", part="1/2")
    assert late.already_there
    assert files_of(tmp_path / "rows") == expected


def test_late_part_with_force_does_not_start_over(tmp_path, expected):
    for index in range(2):
        build(tmp_path / "rows", part=f"{index}/2", force=True)
    assert build(tmp_path / "rows", part="0/2", force=True).already_there
    assert files_of(tmp_path / "rows") == expected


def test_force_replaces_another_dataset(tmp_path, expected):
    build(tmp_path / "rows", seed=5)
    with pytest.raises(StorageError, match="a finished dataset exists"):
        build(tmp_path / "rows", part="0/2")
    for index in range(2):
        build(tmp_path / "rows", part=f"{index}/2", force=True)
    assert files_of(tmp_path / "rows") == expected


def test_finish_names_missing_shards_and_finishes_what_is_there(tmp_path, expected, monkeypatch):
    build(tmp_path / "rows", part="0/2")
    with pytest.raises(StorageError, match="4 shards are missing, the first one rows-train.tfrecord-00001-of-00004"):
        build(tmp_path / "rows", part="finish")
    with monkeypatch.context() as patch:
        patch.setattr(parts, "_finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            build(tmp_path / "rows", part="1/2")
    assert build(tmp_path / "rows", part="finish").written == 100
    assert files_of(tmp_path / "rows") == expected


def test_finish_without_a_build_is_refused(tmp_path):
    with pytest.raises(StorageError, match="the build cannot be finished, 8 shards are missing"):
        build(tmp_path / "rows", part="finish")


def test_part_with_other_options_is_refused(tmp_path):
    build(tmp_path / "rows", part="0/2")
    with pytest.raises(StorageError, match="an unfinished build exists, started with other inputs or options"):
        build(tmp_path / "rows", part="1/2", seed=1)


def test_bad_input_of_a_part_is_reported_by_that_part(tmp_path):
    (tmp_path / "images").mkdir()
    for number in range(4):
        (tmp_path / "images" / f"a{number}.png").write_bytes(b"no picture")
    source = tfr.sources.file_names(str(tmp_path / "images"), label="(?P<class>a)")
    with pytest.raises(SourceError, match="2 of 4 inputs are bad, nothing was written"):
        tfr.build(source, tmp_path / "rows", shards=2, part="0/2", jobs=1)


def start_holder(folder, by):
    code = (
        f"import sys; from tfrkit.build.journal import Journal\n"
        f"with Journal({str(folder)!r}).locked(by={by!r}): print('held', flush=True); sys.stdin.read()\n"
    )
    holder = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    return holder


def test_build_and_parts_exclude_each_other(tmp_path):
    for by, options in (("part", {}), ("build", {"part": "0/2"})):
        holder = start_holder(tmp_path / "rows" / "_build", by)
        with holder, pytest.raises(StorageError, match="another build into this folder is running"):
            build(tmp_path / "rows", **options)


def test_last_part_leaves_the_end_to_one_that_still_runs(tmp_path, expected):
    build(tmp_path / "rows", part="0/2")
    with start_holder(tmp_path / "rows" / "_build", "part"):
        report = build(tmp_path / "rows", part="1/2")
        assert report.notes[-1] == "other parts are running, the last one finishes"
        assert not (tmp_path / "rows" / "tfrkit.json").exists()
        with pytest.raises(StorageError, match="the build cannot be finished, parts are running"):
            build(tmp_path / "rows", part="finish")
    build(tmp_path / "rows", part="finish")
    assert files_of(tmp_path / "rows") == expected


def test_lock_of_a_killed_part_is_free(tmp_path):
    with start_holder(tmp_path / "rows" / "_build", "part") as holder:
        holder.kill()
    with Journal(str(tmp_path / "rows" / "_build")).locked():
        pass


PART = """
import sys, tfrkit as tfr
rows = [{"x": number, "text": "ab" * (number % 5)} for number in range(100)]
tfr.build(rows, sys.argv[1], splits={"test": 0.2}, shards=4, jobs=1, part=sys.argv[2])
"""


def test_parts_at_the_same_time_also_twice_give_the_bytes_of_one_build(tmp_path, expected):
    out = str(tmp_path / "rows")
    running = [
        subprocess.Popen([sys.executable, "-c", PART, out, f"{index}/3"], stderr=subprocess.PIPE, text=True)
        for index in (0, 1, 2, 0, 1, 2)
    ]
    for part in running:
        _, errors = part.communicate(timeout=120)
        assert part.returncode == 0, errors
    build(out, part="finish")
    assert files_of(out) == expected


def test_parts_killed_at_random_moments_finish_when_they_come_again(tmp_path, expected):
    out = str(tmp_path / "rows")
    random.seed(int(os.environ.get("SEED", "0")))
    for _ in range(4):
        running = [subprocess.Popen([sys.executable, "-c", PART, out, f"{index}/2"]) for index in range(2)]
        time.sleep(random.uniform(0.2, 0.8))
        for part in running:
            part.send_signal(signal.SIGKILL)
            part.wait()
    for index in range(2):
        build(out, part=f"{index}/2")
    assert files_of(out) == expected
