"""`tfr info`: JSON keys are stable."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import tfrkit
from tfrkit.testing.reference import encode_example, write_frames


def test_info_json_has_the_documented_keys(tfr, shards: Path) -> None:
    result = tfr("info", "data", "--format", "json").json
    assert list(result) == [*("records", "record_bytes", "kind", "compression", "splits", "files", "features", "notes")]
    assert [list(file) for file in result["files"]] == [["path", "bytes", "compression", "records", "kind"]] * 3
    keys = {"name", "type", "present", "set", "min_length", "max_length", "meaning"}
    assert all(keys <= set(feature) for feature in result["features"])


def test_info_json_describes_the_sample(tfr, sample: Path) -> None:
    result = tfr("info", "sample.tfrecord", "--format", "json").json
    assert (result["records"], result["kind"], result["compression"]) == (10, "example", "none")
    file = {"path": "sample.tfrecord", "bytes": sample.stat().st_size, "compression": "none"}
    assert result["files"] == [{**file, "records": 10, "kind": "example"}]
    features = {feature["name"]: feature for feature in result["features"]}
    assert {name: feature["type"] for name, feature in features.items()} == {
        "image": "bytes",
        "label": "int64",
        "weight": "float",
        "tokens": "int64",
        "text": "bytes",
    }
    assert features["text"]["present"] == 9
    assert (features["tokens"]["min_length"], features["tokens"]["max_length"]) == (0, 27)
    assert "PNG 12x7" in features["image"]["meaning"]


def test_info_and_stats_agree_on_features_without_a_kind(tfr, tmp_path: Path) -> None:
    # Of three records one has a value, one the name without a kind, one nothing.
    records = [{b"x": ("int64", [1])}, {b"x": None}, {}]
    (tmp_path / "a").write_bytes(write_frames([encode_example({b"y": ("int64", [1]), **row}) for row in records]))
    info, stats = (
        {one["name"]: one for one in tfr(command, "a", "--format", "json").json["features"]}
        for command in ("info", "stats")
    )
    assert info["x"]["set"] == stats["x"]["set"] == 1
    assert info["x"]["present"] == stats["x"]["present"] == 2
    assert (stats["x"]["share"], stats["y"]["share"]) == (1 / 3, 1)
    assert any(line.split()[:5] == ["x", "int64", "1", "of", "3"] for line in tfr("info", "a").lines)
    assert any(line.split()[:3] == ["x", "int64", "33.3%"] for line in tfr("stats", "a").lines)


def test_info_text_names_everything(tfr, sample: Path) -> None:
    ran = tfr("info", "sample.tfrecord")
    first, sizes, blank, header, *features = ran.lines
    assert sizes.startswith("record size: ")
    assert first.startswith("sample.tfrecord: 10 records, tf.train.Example, not compressed, ")
    assert blank == ""
    assert header.split() == ["feature", "type", "present", "length", "meaning"]
    assert len(features) == 5
    by_name = {line.split()[0]: line for line in features}
    assert "9 of 10" in by_name["text"]
    assert "0..27" in by_name["tokens"]
    assert ran.err == ""


def test_info_text_of_several_files_lists_them(tfr, shards: Path) -> None:
    ran = tfr("info", "data")
    assert ran.lines[0].startswith("3 files: 10 records, tf.train.Example")
    assert sum("train-0000" in line for line in ran.lines) == 3
    assert "gzip" in ran.out


def test_info_detects_gzip(tfr, sample: Path, tmp_path: Path) -> None:
    (tmp_path / "odd.name").write_bytes(gzip.compress(sample.read_bytes()))
    assert tfr("info", "odd.name", "--format", "json").json["compression"] == "gzip"


def test_info_jsonl_and_csv_list_features(tfr, sample: Path) -> None:
    names = [json.loads(line)["name"] for line in tfr("info", "sample.tfrecord", "--format", "jsonl").lines]
    table = tfr("info", "sample.tfrecord", "--format", "csv").lines
    assert table[0] == "name,type,present,set,min_length,max_length,meaning"
    assert [line.split(",")[0] for line in table[1:]] == names


def test_info_empty_file_says_so(tfr, tmp_path: Path) -> None:
    (tmp_path / "empty.tfrecord").write_bytes(b"")
    assert tfr("info", "empty.tfrecord").out == "empty.tfrecord: no records, 0 bytes\n"
    assert tfr("info", "empty.tfrecord", "--format", "json").json["records"] == 0


def test_info_sequence_examples(tfr, sequences: Path) -> None:
    result = tfr("info", "sequences.tfrecord", "--format", "json").json
    assert (result["kind"], result["records"]) == ("sequence_example", 3)
    assert len(result["features"]) == 2
    assert "SequenceExample" in tfr("info", "sequences.tfrecord").out


def test_info_raw_records_says_so(tfr, raw: Path) -> None:
    result = tfr("info", "lines.tfrecord", "--format", "json").json
    assert (result["kind"], result["records"], result["features"]) == ("raw", 3, [])
    assert "raw" in tfr("info", "lines.tfrecord").out


def test_info_stdin(tfr) -> None:
    result = tfr("info", "-", "--format", "json", stdin=write_frames([b"x"] * 3)).json
    assert result["records"] == 3


def test_info_damaged_file_exits_3(tfr, sample: Path) -> None:
    data = bytearray(sample.read_bytes())
    data[30] ^= 1
    sample.write_bytes(data)
    ran = tfr("info", "sample.tfrecord", code=3)
    assert "payload checksum" in ran.err
    assert "tfr verify" in ran.err


def test_info_lists_splits_of_any_name(tfr, tmp_path: Path) -> None:
    tfrkit.build([{"a": number} for number in range(8)], tmp_path / "o", splits={"north": 6, "south": 2}, jobs=1)
    assert tfr("info", "o", "--format", "json").json["splits"] == {"north": 6, "south": 2}
    assert tfr("info", "o").lines[1] == "splits: north 6, south 2"


def test_epoch_cost_is_printed_for_both_orders(tfr, tmp_path: Path) -> None:
    with tfrkit.Writer(tmp_path / "x.tfrecord") as writer:
        for number in range(2000):
            writer.write({"x": number})
    lines = tfr("info", str(tmp_path / "x.tfrecord"), "--epoch-cost").out.splitlines()
    assert lines[0].split() == ["order", "requests", "dollars", "in", "memory", "mixing"]
    assert lines[1].split()[:3] == ["exact", "(default)", "2,002"] and lines[2].split()[:2] == ["striped", "3"]
    assert "per million requests" in lines[3]
    document = tfr("info", str(tmp_path / "x.tfrecord"), "--epoch-cost", "-f", "json").json
    assert [row["order"] for row in document["orders"]] == ["exact", "striped"]
