"""`tfr convert`: compression and edits."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from tfrkit.testing.commands import run_command


def test_convert_to_gzip_and_back(tfr, sample: Path, tmp_path: Path) -> None:
    done = tfr("convert", "sample.tfrecord", "-o", "packed.tfrecord", "--compression", "gzip", "--level", "small")
    assert done.lines[-1].startswith("packed.tfrecord: 10 records")
    assert gzip.decompress((tmp_path / "packed.tfrecord").read_bytes()) == sample.read_bytes()
    tfr("convert", "packed.tfrecord", "-o", "plain.tfrecord", "--compression", "none")
    assert (tmp_path / "plain.tfrecord").read_bytes() == sample.read_bytes()


def test_level_best_is_an_alias_of_small(sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for level, is_noted in (("small", False), ("best", True)):
        ran = run_command(["convert", str(sample), "-o", f"{level}.gz", "--level", level])
        assert (ran.exit_code, "note: --level best is deprecated, use --level small\n" in ran.stderr) == (0, is_noted)
    assert (tmp_path / "best.gz").read_bytes() == (tmp_path / "small.gz").read_bytes()


def test_convert_edits_features(tfr, sample: Path) -> None:
    edits = ("--drop", "image,tokens", "--rename", "label=class", "--cast", "weight=bytes")
    tfr("convert", "sample.tfrecord", "-o", "out.tfrecord", *edits)
    rows = tfr("cat", "out.tfrecord", "--format", "json").json
    assert rows[3] == {"class": 3, "weight": "0.75", "text": "grüße 3"}
    tfr("convert", "sample.tfrecord", "-o", "kept.tfrecord", "--keep", "label", "--keep", "weight")
    assert tfr("head", "kept.tfrecord", "-n", "1", "--format", "json").json == [{"label": 0, "weight": 0.0}]


def test_convert_stdin_to_stdout(sample: Path) -> None:
    command = [sys.executable, "-c", "from tfrkit.cli.main import main; main()", "convert", "-", "-o", "-"]
    done = subprocess.run(command, input=gzip.compress(sample.read_bytes()), capture_output=True, check=True)
    assert gzip.decompress(done.stdout) == sample.read_bytes()
    assert done.stderr.decode().startswith("stdout: 10 records, ")


def test_convert_folder_keeps_names(tfr, shards: Path, tmp_path: Path) -> None:
    tfr("convert", "data", "-o", "out", "--compression", "none")
    names = sorted(path.name for path in (tmp_path / "out").glob("*.tfrecord"))
    assert names == [f"train-0000{number}-of-00003.tfrecord" for number in range(3)]
    assert tfr("count", "out", "--format", "json").json["records"] == 10


def test_convert_wrong_edits_are_reported(tfr, sample: Path) -> None:
    def convert(*edits: str, code: int) -> str:
        return str(tfr("convert", "sample.tfrecord", "-o", "x.tfrecord", *edits, code=code).err)

    assert "--cast expected NAME=VALUE" in convert("--cast", "label", code=2)
    assert "expected one of bytes, float, int64, got 'double'" in convert("--cast", "label=double", code=2)
    assert "did you mean 'label'" in convert("--drop", "lable", code=3)
    assert "cannot be cast from float to int64, 0.25 is not a whole number" in convert("--cast", "weight=int64", code=3)


@pytest.mark.parametrize("verb", [("convert",), ("merge",), ("sample", "-n", "10"), ("shuffle",), ("repair",)])
def test_name_of_one_file_chooses_its_compression(verb: tuple[str, ...], sample: Path, tmp_path: Path) -> None:
    name, *more = verb
    assert run_command([name, str(sample), *more, "-o", str(tmp_path / "x.gz")]).exit_code == 0
    assert (tmp_path / "x.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert run_command([name, str(sample), *more, "-o", str(tmp_path / "y.gz"), "--compression", "none"]).exit_code == 0
    assert (tmp_path / "y.gz").stat().st_size == sample.stat().st_size
