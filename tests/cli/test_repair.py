from __future__ import annotations

import gzip
from pathlib import Path

from tfrkit.testing.corruption import flip, frame_offsets, truncate
from tfrkit.testing.reference import write_frames


def test_repair_keeps_the_rest_and_says_what_was_lost(tfr, sample: Path) -> None:
    data = sample.read_bytes()
    start, stop = frame_offsets(data)[3:5]
    sample.write_bytes(flip(data, start + 20))
    done = tfr("repair", "sample.tfrecord", "-o", "good.tfrecord", code=1)
    assert done.lines[0].startswith(f"lost: sample.tfrecord, record 3, bytes {start} to {stop}: payload checksum")
    assert done.lines[1:] == ["good.tfrecord: 9 records", f"lost 1 record, {stop - start} bytes in 1 place"]
    assert tfr("verify", "good.tfrecord").lines == ["ok, 9 records"]


def test_repair_does_not_number_the_records_of_one_range_of_damage(tfr, sample: Path) -> None:
    data = sample.read_bytes()
    starts = frame_offsets(data)
    sample.write_bytes(flip(flip(data, starts[3] + 20), starts[4] + 1))
    done = tfr("repair", "sample.tfrecord", "-o", "good.tfrecord", code=1)
    nbytes = starts[5] - starts[3]
    assert done.lines[1:] == [
        "good.tfrecord: 8 records",
        f"lost an unknown number of records, {nbytes} bytes in 1 place",
    ]


def test_repair_counts_kept_records_that_are_no_examples(tfr, sample: Path) -> None:
    sample.write_bytes(sample.read_bytes() + write_frames([b"\xff\xffhello"]))
    done = tfr("repair", "sample.tfrecord", "-o", "good.tfrecord")
    assert done.lines == ["good.tfrecord: 11 records"]
    assert "note: kept 1 record that is neither Example nor SequenceExample" in done.err
    assert "record 10, byte" in tfr("verify", "good.tfrecord", code=1).out
    assert tfr("repair", "good.tfrecord", "-o", "x", "--format", "json").json["not_examples"] == 1
    # Of other records, none is expected to be an Example.
    sample.write_bytes(write_frames([b"\xff\xffhello"] * 3))
    assert tfr("repair", "sample.tfrecord", "-o", "y").err == ""


def test_repair_of_a_sound_file_loses_nothing(tfr, sample: Path) -> None:
    result = tfr("repair", "sample.tfrecord", "-o", "good.tfrecord", "--format", "json").json
    assert (result["records"], result["lost_bytes"], result["lost"]) == (10, 0, [])
    assert "replace it: --force" in tfr("repair", "sample.tfrecord", "-o", "good.tfrecord", code=3).err
    tfr("repair", "sample.tfrecord", "-o", "good.tfrecord", "--force")
    assert "'rar' is not one of" in tfr("repair", "sample.tfrecord", "-o", "x", "--compression", "rar", code=2).err


def test_repair_of_a_torn_gzip_names_the_stored_bytes(tfr, tmp_path: Path) -> None:
    members = [gzip.compress(write_frames([bytes([number]) * 50 for number in range(40)])) for _ in range(2)]
    (tmp_path / "bad.gz").write_bytes(truncate(members[0], 60) + members[1])
    done = tfr("repair", "bad.gz", "-o", "good.gz", code=1)
    assert "to 60: compressed stream" in done.lines[0]
    assert ", stored bytes " in done.lines[0]
    assert done.lines[-1].startswith("lost an unknown number of records, ")
    kept = tfr("count", "good.gz", "--format", "json").json["records"]
    assert kept >= 40
    assert tfr("verify", "good.gz").lines == [f"ok, {kept} records"]


def test_repair_reads_stdin(tfr, sample: Path, tmp_path: Path) -> None:
    data = sample.read_bytes()
    tfr("repair", "-", "-o", "good.tfrecord", stdin=flip(data, 20), code=1)
    assert tfr("verify", "good.tfrecord").lines == ["ok, 9 records"]


def test_repair_leaves_nothing_where_it_fails(tfr, tmp_path: Path) -> None:
    (tmp_path / "page.tfrecord").write_text("<!DOCTYPE html><html></html>")
    assert "HTML" in tfr("repair", "page.tfrecord", "-o", "good.tfrecord", code=3).err
    assert sorted(path.name for path in tmp_path.iterdir() if path.name != "cache") == ["page.tfrecord"]
