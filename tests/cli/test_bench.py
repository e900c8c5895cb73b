from __future__ import annotations

import os
from pathlib import Path

import pytest

NAMES = ["none", "gzip", "zlib", "xz", "zstd"]


def test_bench_names_the_limit_and_compares_compressions(tfr, sample: Path) -> None:
    done = tfr("bench", "sample.tfrecord")
    assert done.err == ""
    assert done.lines[0].startswith("first 10 records, ")
    assert any(line.startswith("limited by ") for line in done.lines)
    assert any(line.startswith("decoding on a GPU: no") for line in done.lines)
    assert [line.split()[0] for line in done.lines if line.split() and line.split()[0] in NAMES] == NAMES


def test_bench_formats_hold_the_same_rows(tfr, sample: Path) -> None:
    result = tfr("bench", "sample.tfrecord", "--format", "json").json
    assert set(result) == {"records", "bytes", "limit", "steps", "compressions", "mixing", "gpu", "missing"}
    assert [row["compression"] for row in result["compressions"]] == NAMES
    lines = tfr("bench", "sample.tfrecord", "--format", "csv").lines
    assert lines[0] == "compression,bytes,ratio,write_mb_per_s,read_mb_per_s,records_per_s"
    assert len(lines) == 6


def test_bench_of_a_missing_file_fails(tfr) -> None:
    assert "nothing.tfrecord" in tfr("bench", "nothing.tfrecord", code=3).err


def test_bench_names_fast_packages_that_are_missing(tfr, sample: Path, tmp_path: Path) -> None:
    pytest.importorskip("zlib_ng")
    folder = tmp_path / "hidden"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(
        "import sys\nfor name in ('isal', 'simplejpeg'):\n    sys.modules[name] = None\n", encoding="utf-8"
    )
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    result = tfr("bench", "sample.tfrecord", env={"PYTHONPATH": path})
    assert "isal is not installed: reading gzip" in result.out
    assert "zlib-ng is not installed" not in result.out
    assert "  install: pip install isal simplejpeg" in result.out
