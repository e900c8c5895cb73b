"""`tfr cat`: every row of every file."""

from __future__ import annotations

import csv
import io
from pathlib import Path


def test_cat_gives_every_row_of_every_file(tfr, sample: Path, shards: Path) -> None:
    one = tfr("head", "sample.tfrecord", "-n", "10", "--format", "jsonl").out
    assert tfr("cat", "sample.tfrecord", "--format", "jsonl").out == one
    assert tfr("cat", "data", "sample.tfrecord", "--format", "jsonl").out == one * 2
    assert len(tfr("cat", "data", "--format", "json").json) == 10


def test_cat_text_numbers_the_records(tfr, raw: Path) -> None:
    assert tfr("cat", "lines.tfrecord").lines[:2] == ["record 0", '  record  "first line"']


def test_cat_csv_has_every_column(tfr, sample: Path) -> None:
    table = list(csv.DictReader(io.StringIO(tfr("cat", "sample.tfrecord", "--format", "csv").out)))
    assert len(table) == 10
    assert set(table[0]) == {"image", "label", "weight", "tokens", "text"}


def test_cat_of_stdin(tfr, sample: Path) -> None:
    wanted = tfr("cat", "sample.tfrecord", "--format", "jsonl").out
    assert tfr("cat", "-", "--format", "jsonl", stdin=sample.read_bytes()).out == wanted


def test_cat_damage_shows_what_came_before(tfr, sample: Path) -> None:
    data = bytearray(sample.read_bytes())
    data[-6] ^= 1
    sample.write_bytes(data)
    done = tfr("cat", "sample.tfrecord", "--format", "jsonl", code=3)
    assert len(done.lines) == 9
    assert "record 9" in done.err
