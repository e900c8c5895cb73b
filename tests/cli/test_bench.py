from __future__ import annotations

from pathlib import Path

NAMES = ["none", "gzip", "zlib", "xz", "zstd"]


def test_bench_names_the_limit_and_compares_compressions(tfr, sample: Path) -> None:
    done = tfr("bench", "sample.tfrecord")
    assert done.err == ""
    assert done.lines[0].startswith("first 10 records, ")
    assert any(line.startswith("limited by ") for line in done.lines)
    assert done.lines[-1].startswith("decoding on a GPU: no")
    assert [line.split()[0] for line in done.lines if line.split() and line.split()[0] in NAMES] == NAMES


def test_bench_formats_hold_the_same_rows(tfr, sample: Path) -> None:
    result = tfr("bench", "sample.tfrecord", "--format", "json").json
    assert set(result) == {"records", "bytes", "limit", "steps", "compressions", "mixing", "gpu"}
    assert [row["compression"] for row in result["compressions"]] == NAMES
    lines = tfr("bench", "sample.tfrecord", "--format", "csv").lines
    assert lines[0] == "compression,bytes,ratio,write_mb_per_s,read_mb_per_s,records_per_s"
    assert len(lines) == 6


def test_bench_of_a_missing_file_fails(tfr) -> None:
    assert "nothing.tfrecord" in tfr("bench", "nothing.tfrecord", code=3).err
