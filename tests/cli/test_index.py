"""`tfr index`: what it writes, and that it is used."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest

from tfrkit.testing.corruption import frame_offsets


def test_index_is_written_to_the_index_folder_next_to_each_shard(tfr, shards: Path) -> None:
    ran = tfr("index", "data/train-*")
    names = sorted(path.name for path in (shards / "_index").glob("[!.]*"))
    assert names == [f"train-0000{n}-of-00003.tfrecord.tfidx" for n in range(3)]
    assert ran.lines[0].split() == ["path", "records", "index"]
    assert len(ran.lines) == 4


def test_index_json(tfr, sample: Path) -> None:
    result = tfr("index", "sample.tfrecord", "--format", "json").json
    assert result == {"files": [{"path": "sample.tfrecord", "records": 10, "index": "_index/sample.tfrecord.tfidx"}]}


def test_index_jsonl_and_csv_list_files(tfr, shards: Path) -> None:
    assert [json.loads(line)["records"] for line in tfr("index", "data", "--format", "jsonl").lines] == [6, 4, 0]
    assert tfr("index", "data", "--format", "csv").lines[0] == "path,records,index"


def test_index_twice_is_the_same_bytes(tfr, sample: Path, tmp_path: Path) -> None:
    tfr("index", "sample.tfrecord")
    first = (tmp_path / "_index/sample.tfrecord.tfidx").read_bytes()
    tfr("index", "sample.tfrecord")
    assert (tmp_path / "_index/sample.tfrecord.tfidx").read_bytes() == first


def test_index_dali_writes_offset_and_length_of_each_frame(tfr, sample: Path) -> None:
    path = tfr("index", "sample.tfrecord", "--dali", "--format", "json").json["files"][0]["index"]
    lines = (sample.parent / path).read_text().splitlines()
    starts = [*frame_offsets(sample.read_bytes()), sample.stat().st_size]
    assert lines == [f"{start} {stop - start}" for start, stop in itertools.pairwise(starts)]


def test_index_of_stdin_exits_3(tfr, sample: Path) -> None:
    ran = tfr("index", "-", stdin=sample.read_bytes(), code=3)
    assert ran.out == ""
    assert ran.err.startswith("tfr: ")


def test_index_damaged_file_exits_3_and_leaves_none(tfr, sample: Path, tmp_path: Path) -> None:
    data = bytearray(sample.read_bytes())
    data[3] ^= 1
    sample.write_bytes(data)
    tfr("index", "sample.tfrecord", code=3)
    assert not list(tmp_path.glob("_index/[!.]*"))


def test_index_read_only_folder_exits_3_with_the_path(tfr, sample: Path, tmp_path: Path) -> None:
    (tmp_path / "_index").write_bytes(b"a file where the folder should be")
    ran = tfr("index", "sample.tfrecord", code=3)
    assert "_index" in ran.err


@pytest.mark.parametrize("command", [["count"], ["head", "-n", "3"], ["info"], ["verify"]])
def test_every_answer_is_the_same_with_and_without_index(tfr, shards: Path, command: list[str]) -> None:
    name, *options = command
    before = tfr(name, "data", *options, "--format", "json").json
    tfr("index", "data")
    assert tfr(name, "data", *options, "--format", "json").json == before
