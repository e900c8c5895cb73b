"""`tfr tail`: the last records."""

from __future__ import annotations

import gzip
import json
from pathlib import Path


def test_tail_shows_the_last_rows_with_their_numbers(tfr, sample: Path) -> None:
    done = tfr("tail", "sample.tfrecord", "-n", "2")
    assert [line for line in done.lines if line.startswith("record ")] == ["record 8", "record 9"]
    rows = [json.loads(line) for line in tfr("tail", "sample.tfrecord", "--format", "jsonl").lines]
    assert [row["label"] for row in rows] == [5, 6, 7, 8, 9]


def test_tail_of_shards_gzip_and_stdin_is_the_same(tfr, sample: Path, shards: Path, tmp_path: Path) -> None:
    wanted = tfr("tail", "sample.tfrecord", "-n", "6", "--format", "jsonl").out
    (tmp_path / "packed").write_bytes(gzip.compress(sample.read_bytes()))
    assert tfr("tail", "packed", "-n", "6", "--format", "jsonl").out == wanted
    assert tfr("tail", "data", "-n", "6", "--format", "jsonl").out == wanted
    assert tfr("tail", "-", "-n", "6", "--format", "jsonl", stdin=sample.read_bytes()).out.count("\n") == 6


def test_tail_of_nothing_says_so(tfr, tmp_path: Path) -> None:
    (tmp_path / "empty.tfrecord").write_bytes(b"")
    done = tfr("tail", "empty.tfrecord")
    assert (done.out, done.err) == ("", "no records\n")
