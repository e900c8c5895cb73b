from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from tfrkit.testing.corruption import flip, frame_offsets
from tfrkit.testing.reference import encode_example, write_frames


def label_record(value: int, *, text: bytes = b"word") -> bytes:
    return encode_example({b"label": ("int64", [value]), b"x": ("float", [value / 2]), b"t": ("bytes", [text])})


def write_splits(folder: Path) -> None:
    (folder / "train.tfrecord").write_bytes(write_frames([label_record(n % 2) for n in range(200)]))
    (folder / "test.tfrecord").write_bytes(write_frames([label_record(0) for _ in range(50)]))
    (folder / "classes.txt").write_text("0:cat\n1:dog\n")


def test_stats_prints_a_table_for_each_kind_of_feature(tfr, sample: Path) -> None:
    lines = tfr("stats", "sample.tfrecord").lines
    assert lines[0].startswith("sample.tfrecord: 10 records, tf.train.Example, ")
    text = "\n".join(lines)
    assert "UTF-8 text" in text
    assert "PNG 12x7" in text
    (weight,) = [line for line in lines if line.startswith("weight")]
    assert weight.split()[:9] == ["weight", "float", "all", "1", "0", "1.125", "2.25", "0.7181", "10.0%"]
    assert "█" in weight
    (words,) = [line for line in lines if line.startswith("text ")]
    assert words.split()[:3] == ["text", "bytes", "90.0%"]


def test_feature_of_few_records_is_not_shown_as_one_of_none_or_all(tfr, tmp_path: Path) -> None:
    rows = [{b"a": ("int64", [1])} for _ in range(3000)]
    rows[7] = {b"b": ("int64", [1])}
    (tmp_path / "x.tfrecord").write_bytes(write_frames(map(encode_example, rows)))
    lines = tfr("stats", "x.tfrecord").lines
    assert [line.split()[:3] for line in lines if line[:2] in ("a ", "b ")] == [
        ["a", "int64", ">99.9%"],
        ["b", "int64", "<0.1%"],
    ]


def test_bars_are_ascii_where_the_encoding_lacks_blocks(tfr, sample: Path) -> None:
    out = tfr("stats", "sample.tfrecord", env={"PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}).out
    assert out.isascii()
    assert "@" in out
    assert "\\u" not in out


def test_stats_as_json_has_the_documented_keys(tfr, sample: Path) -> None:
    result = tfr("stats", "sample.tfrecord", "--format", "json").json
    assert sorted(result) == sorted(
        "records kind files record_bytes features splits classes comparison skipped findings notes html".split()
    )
    help_text = tfr("stats", "--help").out
    for feature in result["features"]:
        assert all(key in help_text for key in feature), feature
    by_name = {feature["name"]: feature for feature in result["features"]}
    assert by_name["tokens"]["lengths"]["max"] == 27
    assert by_name["image"]["images"]["formats"] == {"PNG": 10}
    assert by_name["label"]["numbers"]["quantiles"]["p50"] == 4


def test_stats_as_csv_and_jsonl_has_a_row_a_feature(tfr, sample: Path) -> None:
    rows = list(csv.DictReader(io.StringIO(tfr("stats", "sample.tfrecord", "--format", "csv").out)))
    assert [row["name"] for row in rows] == ["image", "label", "text", "tokens", "weight"]
    assert (rows[1]["mean"], rows[1]["max_length"], rows[3]["max_length"]) == ("4.5", "1", "27")
    lines = [json.loads(line) for line in tfr("stats", "sample.tfrecord", "--format", "jsonl").lines]
    assert [line["present"] for line in lines] == [10, 10, 9, 10, 10]
    assert set(lines[0]) == set(rows[0])


def test_splits_are_compared_and_classes_are_named(tfr, tmp_path: Path) -> None:
    write_splits(tmp_path)
    text = tfr("stats", ".").out
    assert "label: 2 classes, the largest 1.5 times the smallest" in text
    (cat,) = [line for line in text.splitlines() if line.startswith("0 ") and "cat" in line]
    assert cat.split()[:4] == ["0", "cat", "150", "60.00%"]
    assert cat.split()[-2:] == ["100.00%", "50.00%"]  # test, train
    (flagged,) = [line for line in text.splitlines() if line.startswith("label  ") and "total variation" in line]
    assert "total variation 0.50" in flagged


def test_stats_of_sequences_has_frames(tfr, sequences: Path) -> None:
    frame, *_ = [line for line in tfr("stats", "sequences.tfrecord").lines if line.startswith("frame")]
    assert frame.split()[:6] == ["frame", "int64", "all", "1..3", "x", "2"]


def test_stats_of_raw_records_has_sizes(tfr, raw: Path) -> None:
    assert tfr("stats", "lines.tfrecord").lines == [
        "lines.tfrecord: 3 records, neither Example nor SequenceExample (sizes only), 4..11 bytes each, mean 8.333"
    ]


def test_stats_of_records_of_one_size_says_it_once(tfr, tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(write_frames([b"abcd", b"efgh"]))
    assert tfr("stats", "a.tfrecord").lines[0].endswith("(sizes only), 4 bytes each")


def test_stats_of_nothing_says_so(tfr, tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(b"")
    assert tfr("stats", "a.tfrecord").lines == ["a.tfrecord: no records"]
    assert "no file matches" in tfr("stats", "nothing*", code=3).err


def test_stats_reads_standard_input(tfr, sample: Path) -> None:
    piped = tfr("stats", "-", "--format", "json", stdin=sample.read_bytes()).json
    direct = tfr("stats", "sample.tfrecord", "--format", "json").json
    assert piped["features"] == direct["features"]


def test_damage_ends_stats_unless_it_is_to_be_skipped(tfr, sample: Path) -> None:
    data = sample.read_bytes()
    offset = frame_offsets(data)[3]
    sample.write_bytes(flip(data, offset + 20))
    failed = tfr("stats", "sample.tfrecord", code=3)
    assert f"sample.tfrecord, record 3, byte {offset}" in failed.err
    assert failed.out == ""
    done = tfr("stats", "sample.tfrecord", "--on-error", "skip", code=1)
    assert done.lines[0].startswith("sample.tfrecord: 9 records")
    assert f"left out: sample.tfrecord, record 3, byte {offset}: payload checksum mismatch" in done.out
    assert "1 place left out" in done.err


def test_report_is_written_and_not_overwritten(tfr, sample: Path) -> None:
    done = tfr("stats", "sample.tfrecord", "--html", "report.html")
    assert "report: report.html" in done.err
    assert (sample.parent / "report.html").read_text().startswith("<!doctype html>")
    assert "replace it: --force" in tfr("stats", "sample.tfrecord", "--html", "report.html", code=3).err
    tfr("stats", "sample.tfrecord", "--html", "report.html", "--force")


def test_features_are_chosen_by_name(tfr, sample: Path) -> None:
    names = [
        line["name"]
        for line in map(json.loads, tfr("stats", "sample.tfrecord", "--features", "label, text", "-f", "jsonl").lines)
    ]
    assert names == ["label", "text"]
    assert "no record has feature 'lable'" in tfr("stats", "sample.tfrecord", "--features", "lable", code=3).err
    assert "expected feature names" in tfr("stats", "sample.tfrecord", "--features", ",", code=2).err


def test_content_cannot_move_the_cursor(tfr, tmp_path: Path) -> None:
    records = [label_record(0, text=text) for text in (b"\x1b[31mred", b"\x1b[31mred", b"b", b"b", b"c", b"c")]
    (tmp_path / "a.tfrecord").write_bytes(write_frames(records))
    assert "\x1b" not in tfr("stats", "a.tfrecord").out


def test_number_of_jobs_does_not_change_the_figures(tfr, sample: Path) -> None:
    one, two = (tfr("stats", "sample.tfrecord", "-j", jobs, "-f", "json").json for jobs in (1, 2))
    assert one == two
