"""`tfr count`, with and without an index: the answer must not depend on it."""

from __future__ import annotations

import gzip
import json
import zlib
from pathlib import Path

import pytest

from tfrkit.testing.reference import write_frames


@pytest.fixture(params=["without_index", "with_index"])
def indexed(request: pytest.FixtureRequest, tfr, shards: Path) -> Path:
    if request.param == "with_index":
        tfr("index", shards)
    return shards


def test_count_one_file_prints_number_and_path(tfr, sample: Path) -> None:
    assert tfr("count", "sample.tfrecord").lines == ["records  path", "     10  sample.tfrecord"]


def test_count_folder_prints_each_shard_and_the_sum(tfr, indexed: Path) -> None:
    assert [line.split() for line in tfr("count", "data").lines] == [
        ["records", "path"],
        ["6", "data/train-00000-of-00003.tfrecord"],
        ["4", "data/train-00001-of-00003.tfrecord"],
        ["0", "data/train-00002-of-00003.tfrecord"],
        ["10", "total"],
    ]


def test_count_quoted_glob_json(tfr, indexed: Path) -> None:
    result = tfr("count", "data/train-*", "--format", "json").json
    assert result["records"] == 10
    assert [row["records"] for row in result["files"]] == [6, 4, 0]


def test_count_jsonl_and_csv_are_the_same_rows(tfr, indexed: Path) -> None:
    rows = [json.loads(line) for line in tfr("count", "data", "--format", "jsonl").lines]
    table = tfr("count", "data", "--format", "csv").lines
    assert table == ["path,records", *(f"{row['path']},{row['records']}" for row in rows)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zlib.compress], ids=["none", "gzip", "zlib"])
def test_count_stdin(tfr, pack: object) -> None:
    assert callable(pack)
    data = pack(write_frames([b"a", b"", b"c" * 70000]))
    result = tfr("count", "-", "--format", "json", stdin=data).json
    assert result == {"records": 3, "files": [{"path": "-", "records": 3}]}


def test_stale_index_is_noted_and_not_believed(tfr, sample: Path) -> None:
    tfr("index", sample)
    sample.write_bytes(write_frames([b"one", b"two"]))
    ran = tfr("count", sample, "--format", "json")
    assert ran.json["records"] == 2
    assert ran.err.count("note: index does not fit its shard, ") == 1
    assert ", not used - at " in ran.err
    assert "  rebuild: tfr index " in ran.err
    for command in (["tail", sample, "-n", "1"], ["head", sample], ["shuffle", sample, "-o", "mixed"]):
        assert "Warning" not in tfr(*command).err
    assert "index" in tfr("verify", sample, code=1).out
    assert tfr("count", sample, "--quiet").err == ""
    tfr("index", sample)
    ran = tfr("count", sample, "--format", "json")
    assert (ran.json["records"], ran.err) == (2, "")


def test_count_damaged_length_exits_3_and_names_the_place(tfr, tmp_path: Path) -> None:
    data = bytearray(write_frames([b"abc"] * 5))
    data[2 * 19] ^= 1
    (tmp_path / "bad.tfrecord").write_bytes(data)
    ran = tfr("count", "bad.tfrecord", code=3)
    assert ran.out == ""
    assert "length checksum" in ran.err
    assert "bad.tfrecord, record 2, byte 38" in ran.err


def test_count_in_parts_prints_at_the_last_one(tfr, indexed: Path) -> None:
    first = tfr("count", "data", "--part", "0/2", "--parts", "meet", "--json")
    assert (first.code, first.out) == (0, "")
    assert first.err.startswith("part 0/2 is done, 1 of 3 tasks are missing - at ")
    assert (
        tfr("count", "data", "--part", "1/2", "--parts", "meet", "--json").json == tfr("count", "data", "--json").json
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--part", "0/2"), "--part and --parts expected together"),
        (("--parts", "meet"), "--part and --parts expected together"),
        (("--part", "2/2", "--parts", "meet"), "part expected I/N with I from 0 to N-1"),
        (("--part", "0/2", "--parts", "meet", "--engine", "dask"), "--part is for schedulers without an engine"),
    ],
)
def test_count_refuses_parts_that_make_no_sense(tfr, shards: Path, given, message) -> None:
    assert message in tfr("count", "data", *given, code=2).err
