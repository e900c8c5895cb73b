"""`tfr sample`: rows to stdout, or a file."""

from __future__ import annotations

from pathlib import Path


def test_sample_prints_rows_and_the_seed(tfr, sample: Path) -> None:
    done = tfr("sample", "sample.tfrecord", "-n", "3", "--seed", "7")
    assert sum(line.startswith("record ") for line in done.lines) == 3
    assert done.err == "seed 7\n"
    again = tfr("sample", "sample.tfrecord", "-n", "3", "--seed", "7", "--quiet")
    assert (again.out, again.err) == (done.out, "")
    rows = tfr("sample", "sample.tfrecord", "-n", "3", "--seed", "7", "--format", "json").json
    assert [f"record {row['label']}" for row in rows] == [line for line in done.lines if line.startswith("record ")]


def test_sample_writes_a_file_or_stdout(tfr, sample: Path) -> None:
    done = tfr("sample", "sample.tfrecord", "-n", "4", "-o", "some.tfrecord")
    assert done.lines[-1].startswith("some.tfrecord: 4 records, 726 bytes, seed 0")
    assert tfr("count", "some.tfrecord", "--format", "json").json["records"] == 4


def test_sample_more_than_there_are_says_so(tfr, sample: Path) -> None:
    assert "there are only 10 records" in tfr("sample", "sample.tfrecord", "-n", "99", "-o", "x.tfrecord").err


def test_sample_of_stdin_is_refused(tfr, sample: Path) -> None:
    assert "got a pipe" in tfr("sample", "-", stdin=sample.read_bytes(), code=3).err
