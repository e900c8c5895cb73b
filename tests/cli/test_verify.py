"""`tfr verify`: exit 1 and one line per fault."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tfrkit.testing.corruption import flip, frame_offsets, truncate
from tfrkit.testing.reference import encode_example, encode_sequence_example, write_frame, write_frames


def make_records(num_records: int = 5) -> list[bytes]:
    return [encode_example({b"label": ("int64", [number])}) for number in range(num_records)]


def test_verify_sound_folder_exits_0(tfr, shards: Path) -> None:
    ran = tfr("verify", "data")
    assert ran.out == "ok, 10 records\n"
    assert ran.err == ""


def test_verify_json_has_the_documented_keys(tfr, shards: Path) -> None:
    result = tfr("verify", "data", "--format", "json").json
    assert set(result) == {"ok", "records", "findings", "counts", "shards", "notes"}
    assert (result["ok"], result["records"], result["findings"], result["counts"]) == (True, 10, [], {})
    assert [set(shard) for shard in result["shards"]] == [{"shard", "records", "nbytes", "findings"}] * 3


def test_verify_empty_file_is_a_shard_with_zero_records(tfr, tmp_path: Path) -> None:
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


def test_verify_two_faults_in_a_row_are_both_found(tfr, tmp_path: Path) -> None:
    data = write_frames(make_records(8))
    starts = frame_offsets(data)
    data = flip(flip(data, starts[2] + 13), starts[5])  # a payload, then a length
    (tmp_path / "bad.tfrecord").write_bytes(data)
    result = tfr("verify", "bad.tfrecord", "--format", "json", code=1).json
    assert not result["ok"]
    assert [finding["offset"] for finding in result["findings"]] == [starts[2], starts[5]]
    assert [set(finding) for finding in result["findings"]] == [
        {"shard", "record", "offset", "cause", "kind", "other", "stop", "record_certain"}
    ] * 2
    assert [finding["stop"] for finding in result["findings"]] == [None, starts[6]]
    assert result["records"] == 6


def test_verify_marks_record_numbers_after_an_unknown_number_of_lost_records(tfr, tmp_path: Path) -> None:
    data = write_frames(make_records(30))
    starts = frame_offsets(data)
    zeros = data[: starts[5]] + bytes(starts[15] - starts[5]) + data[starts[15] :]
    (tmp_path / "bad.tfrecord").write_bytes(flip(zeros, starts[20] + 13))
    (tmp_path / "good.tfrecord").write_bytes(flip(data, starts[20] + 13))
    ran = tfr("verify", "bad.tfrecord", "good.tfrecord", "--deep", "--ignore", "schema", code=1)
    lost, damaged, other, *copies = [line.split(": ")[0] for line in ran.lines]
    assert lost == f"bad.tfrecord, record 5, bytes {starts[5]} to {starts[15]}"
    assert damaged == f"bad.tfrecord, record 11 (uncertain), byte {starts[20]}"
    assert other == f"good.tfrecord, record 20, byte {starts[20]}"
    assert "note: uncertain record numbers count each range of lost bytes before them as one record" in ran.err
    # Copies are named by both records.
    assert f"good.tfrecord, record 21, byte {starts[21]}" in copies
    assert f"good.tfrecord, record 21, byte {starts[21]}: the same as record 12 (uncertain) of bad.tfrecord" in ran.out
    assert tfr("verify", "good.tfrecord", code=1).err == "1 finding, 29 records readable\n"


def test_verify_jsonl_and_csv_list_findings(tfr, tmp_path: Path) -> None:
    (tmp_path / "bad.tfrecord").write_bytes(flip(write_frames(make_records()), 14))
    lines = tfr("verify", "bad.tfrecord", "--format", "jsonl", code=1).lines
    assert [json.loads(line)["shard"] for line in lines] == ["bad.tfrecord"]
    table = tfr("verify", "bad.tfrecord", "--format", "csv", code=1).lines
    assert table[0] == "shard,record,offset,cause,kind,stop,record_certain"
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
    # Both checksums match, but the record ends inside a feature.
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


def test_verify_missing_shard_is_a_line_without_record_and_byte(tfr, shards: Path) -> None:
    (shards / "train-00001-of-00003.tfrecord").unlink()
    ran = tfr("verify", "data", code=1)
    assert ran.lines == [
        "data/train-*-of-00003.tfrecord: 2 of 3 shards are there, missing train-00001-of-00003.tfrecord"
    ]
    assert "1 finding, 6 records readable" in ran.err
    tfr("verify", "data", "--ignore", "set")


def test_verify_deep_finds_labels_and_copies(tfr, sample: Path, tmp_path: Path) -> None:
    (tmp_path / "classes.txt").write_text("".join(f"class {number}\n" for number in range(9)))
    ran = tfr("verify", "sample.tfrecord", "--deep", code=1)
    # All ten images are the same blank one; label 9 is out of range for nine classes.
    assert len(ran.lines) == 10
    assert "expected 0 to 8 as classes.txt says, got 9" in ran.out
    assert "by kind: 1 label, 9 duplicate" in ran.err
    result = tfr("verify", "sample.tfrecord", "--deep", "--ignore", "duplicate", "--format", "json", code=1).json
    assert result["counts"] == {"label": 1}
    assert "note: looked at: image 'image', label 'label'" in ran.err
    assert tfr("verify", "sample.tfrecord", "--deep", "-q", code=1).err == ""


def test_verify_report_is_written_in_addition_to_the_lines(tfr, sample: Path, tmp_path: Path) -> None:
    ran = tfr("verify", "sample.tfrecord", "--report", "report.json")
    assert ran.out == "ok, 10 records\n"
    assert json.loads((tmp_path / "report.json").read_text())["records"] == 10
    assert "replace it: --force" in tfr("verify", "sample.tfrecord", "--report", "report.json", code=3).err
    tfr("verify", "sample.tfrecord", "--report", "report.json", "--force")


def test_verify_unknown_kind_is_refused(tfr, sample: Path) -> None:
    assert "got 'nonsense'" in tfr("verify", "sample.tfrecord", "--ignore", "nonsense", code=2).err


def test_verify_help_names_every_kind(tfr) -> None:
    from tfrkit.ops.verify.result import KINDS

    text = " ".join(tfr("verify", "--help").out.split())
    assert f"Kinds to --ignore: {', '.join(KINDS)}." in text


def test_verify_sha256_of_a_built_dataset(tfr, tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"x": 1}\n{"x": 2}\n')
    tfr("build", "table", "rows.jsonl", "-o", "out")
    tfr("verify", "out", "--sha256")
    (shard,) = (tmp_path / "out").glob("*-of-00001")
    shard.write_bytes(write_frames(make_records(2)))
    assert "tfrkit.json says" in tfr("verify", "out", "--sha256", code=1).out


@pytest.mark.parametrize("options", [[], ["--deep", "--ignore", "duplicate"]])
def test_verify_notes_files_with_records_of_different_kinds(tfr, tmp_path: Path, options: list[str]) -> None:
    example = encode_example({b"v": ("int64", [1])})
    sequence = encode_sequence_example({b"v": ("int64", [1])}, {b"f": [("int64", [1])]})
    for name, record in {"a": b"", "b": example, "c": sequence, "d": b"\xff raw", "e": example}.items():
        (tmp_path / f"{name}.tfrecord").write_bytes(write_frames([record] * 3))
    note = "files have records of different kinds: Examples in {}b.tfrecord, SequenceExamples in {}c.tfrecord"
    ran = tfr("verify", ".", *options)
    expected = note.format("./", "./") + ", other records in ./d.tfrecord"
    assert f"note: {expected}" in (ran.out + ran.err).splitlines()
    alike = tfr("verify", "a.tfrecord", "b.tfrecord", "e.tfrecord", *options)
    assert "different kinds" not in alike.out + alike.err
    assert note.format("", "") in tfr("merge", "b.tfrecord", "c.tfrecord", "-o", "all.tfrecord").err


def test_verify_notes_a_feature_of_two_kinds(tfr, tmp_path: Path) -> None:
    (tmp_path / "k-0.tfrecord").write_bytes(write_frames([encode_example({b"v": ("int64", [1])})] * 3))
    (tmp_path / "k-1.tfrecord").write_bytes(write_frames([encode_example({b"v": ("float", [0.5])})] * 3))
    (tmp_path / "k-2.tfrecord").write_bytes(write_frames([encode_example({b"v": ("int64", [2])})] * 3))
    note = (
        "note: feature 'v' is int64 in k-0.tfrecord and float in k-1.tfrecord: reading them together fails; "
        "tfr verify --deep lists every record"
    )
    ran = tfr("verify", "k-0.tfrecord", "k-1.tfrecord")
    assert note in (ran.out + ran.err).splitlines()
    alike = tfr("verify", "k-0.tfrecord", "k-2.tfrecord")
    assert "feature 'v'" not in alike.out + alike.err
