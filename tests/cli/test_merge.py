"""`tfr merge`: files, stdin and stdout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tfrkit.testing.reference import encode_example, write_frames


def test_merge_writes_one_file(tfr, sample: Path, raw: Path, tmp_path: Path) -> None:
    done = tfr("merge", "sample.tfrecord", "lines.tfrecord", "-o", "both.tfrecord")
    assert done.lines == ["both.tfrecord: 13 records, 2.0 kB"]
    assert (tmp_path / "both.tfrecord").read_bytes() == sample.read_bytes() + raw.read_bytes()


def test_merge_of_shards_from_stdin_and_file(tfr, raw: Path, tmp_path: Path) -> None:
    tfr("merge", "-", "lines.tfrecord", "-o", "x.tfrecord", stdin=write_frames([b"in"]))
    assert (tmp_path / "x.tfrecord").read_bytes() == write_frames([b"in"]) + raw.read_bytes()


def test_merge_to_stdout_gives_frames_and_talks_on_stderr(raw: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from tfrkit.cli.main import main; main()"]
    done = subprocess.run(
        [*command, "merge", "lines.tfrecord", "lines.tfrecord", "-o", "-"],
        capture_output=True,
        cwd=tmp_path,
        check=True,
    )
    assert done.stdout == raw.read_bytes() * 2
    assert done.stderr.decode() == "stdout: 6 records, 146 bytes\n"


def test_merge_quietly_to_a_closed_pipe_is_no_failure(raw: Path, tmp_path: Path) -> None:
    (tmp_path / "big.tfrecord").write_bytes(write_frames([b"x" * 100_000] * 50))
    command = [sys.executable, "-c", "from tfrkit.cli.main import main; main()"]
    done = subprocess.Popen(
        [*command, "merge", "big.tfrecord", "-o", "-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    )
    assert done.stdout is not None
    done.stdout.read(10)
    done.stdout.close()
    assert done.stderr is not None
    assert done.stderr.read() == b""
    done.stderr.close()
    assert done.wait(60) == 0


def test_merge_into_its_source_exits_3(tfr, sample: Path) -> None:
    done = tfr("merge", "sample.tfrecord", "-o", "sample.tfrecord", "--force", code=3)
    assert "the output is one of the files to read" in done.err


def test_merge_foreign_file_exits_3(tfr, sample: Path, tmp_path: Path) -> None:
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    assert "expected a TFRecord, got a text file" in tfr("merge", "sample.tfrecord", "table.csv", "-o", "x", code=3).err
    assert not (tmp_path / "x").exists()


def test_merge_notes_a_feature_of_two_kinds(tfr, tmp_path: Path) -> None:
    (tmp_path / "k-0.tfrecord").write_bytes(write_frames([encode_example({b"v": ("int64", [1])})] * 3))
    (tmp_path / "k-1.tfrecord").write_bytes(write_frames([encode_example({b"v": ("float", [0.5])})] * 3))
    (tmp_path / "k-2.tfrecord").write_bytes(write_frames([encode_example({b"v": ("int64", [2])})] * 3))
    note = (
        "feature 'v' is int64 in k-0.tfrecord and float in k-1.tfrecord: reading them together fails; "
        "tfr verify --deep lists every record"
    )
    ran = tfr("merge", "k-0.tfrecord", "k-1.tfrecord", "-o", "out.tfrecord")
    assert note in ran.err.splitlines()
    alike = tfr("merge", "k-0.tfrecord", "k-2.tfrecord", "-o", "alike.tfrecord")
    assert "feature 'v'" not in alike.out + alike.err
