"""`tfr verify`: exit 1 and one line per fault."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tfrkit.testing.corruption import flip, frame_offsets, truncate
from tfrkit.testing.reference import encode_example, write_frame, write_frames


def make_records(num_records: int = 5) -> list[bytes]:
    return [encode_example({b"label": ("int64", [number])}) for number in range(num_records)]


def test_verify_sound_folder_exits_0(tfr, shards: Path) -> None:
    ran = tfr("verify", "data")
    assert ran.out == "ok, 10 records\n"
    assert ran.err == ""


def test_verify_json_has_the_documented_keys(tfr, shards: Path) -> None:
    assert tfr("verify", "data", "--format", "json").json == {"ok": True, "records": 10, "findings": []}


def test_verify_empty_file_is_a_shard_of_no_records(tfr, tmp_path: Path) -> None:
    (tmp_path / "empty.tfrecord").write_bytes(b"")
    ran = tfr("verify", "empty.tfrecord")
    assert ran.out == "ok, no records\n"


def test_verify_payload_flip_is_one_line_with_shard_record_byte_cause(tfr, tmp_path: Path) -> None:
    data = write_frames(make_records())
    offset = frame_offsets(data)[3]
    (tmp_path / "bad.tfrecord").write_bytes(flip(data, offset + 14))
    ran = tfr("verify", "bad.tfrecord", code=1)
    assert len(ran.lines) == 1
    assert ran.lines[0].startswith(f"bad.tfrecord, record 3, byte {offset}: payload checksum")
    assert "1 finding" in ran.err


def test_verify_two_faults_are_both_found_behind_each_other(tfr, tmp_path: Path) -> None:
    data = write_frames(make_records(8))
    starts = frame_offsets(data)
    data = flip(flip(data, starts[2] + 13), starts[5])  # a payload, then a length
    (tmp_path / "bad.tfrecord").write_bytes(data)
    result = tfr("verify", "bad.tfrecord", "--format", "json", code=1).json
    assert not result["ok"]
    assert [finding["offset"] for finding in result["findings"]] == [starts[2], starts[5]]
    assert [set(finding) for finding in result["findings"]] == [{"shard", "record", "offset", "cause"}] * 2
    assert result["records"] == 6


def test_verify_jsonl_and_csv_list_findings(tfr, tmp_path: Path) -> None:
    (tmp_path / "bad.tfrecord").write_bytes(flip(write_frames(make_records()), 14))
    lines = tfr("verify", "bad.tfrecord", "--format", "jsonl", code=1).lines
    assert [json.loads(line)["shard"] for line in lines] == ["bad.tfrecord"]
    table = tfr("verify", "bad.tfrecord", "--format", "csv", code=1).lines
    assert table[0] == "shard,record,offset,cause"
    assert table[1].startswith("bad.tfrecord,0,0,")


@pytest.mark.parametrize("nbytes", [-1, -4, -5, 11])
def test_verify_truncated_shard_is_found(tfr, tmp_path: Path, nbytes: int) -> None:
    (tmp_path / "cut.tfrecord").write_bytes(truncate(write_frames(make_records()), nbytes))
    ran = tfr("verify", "cut.tfrecord", code=1)
    assert "cut.tfrecord" in ran.out + ran.err


def test_verify_truncated_gzip_is_found(tfr, tmp_path: Path) -> None:
    packed = gzip.compress(write_frames([bytes([n]) * 5000 for n in range(50)]))
    (tmp_path / "cut.tfrecord.gz").write_bytes(packed[: len(packed) // 2])
    ran = tfr("verify", "cut.tfrecord.gz", code=1)
    assert "cut.tfrecord.gz" in ran.lines[-1]


def test_verify_record_that_does_not_parse_is_found(tfr, tmp_path: Path) -> None:
    # Both checksums hold, but the record ends inside a feature.
    records = make_records()
    data = write_frames(records) + write_frame(records[0][:-1])
    (tmp_path / "bad.tfrecord").write_bytes(data)
    result = tfr("verify", "bad.tfrecord", "--format", "json", code=1).json
    assert [finding["record"] for finding in result["findings"]] == [5]


def test_verify_stdin(tfr) -> None:
    assert tfr("verify", "-", stdin=write_frames(make_records())).out == "ok, 5 records\n"


def test_verify_sound_and_damaged_together_names_the_damaged(tfr, shards: Path, tmp_path: Path) -> None:
    (tmp_path / "bad.tfrecord").write_bytes(flip(write_frames(make_records()), 14))
    ran = tfr("verify", "data", "bad.tfrecord", code=1)
    assert [line.split(",")[0] for line in ran.lines] == ["bad.tfrecord"]
