"""Fixtures that run the real command: `tfr("count", "x.tfrecord").out`."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from tfrkit.testing.reference import encode_example, encode_sequence_example, write_frames

COMMAND = [sys.executable, "-c", "from tfrkit.cli.main import main; main()"]


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


Tfr = Callable[..., Ran]


@pytest.fixture
def tfr(tmp_path: Path) -> Tfr:
    """Run the command in an empty folder with an empty cache folder; any other exit code than `code` fails the test."""

    def run(*arguments: object, stdin: bytes = b"", code: int = 0, env: dict[str, str] | None = None) -> Ran:
        settings = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONUTF8": "1", **(env or {})}
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            input=stdin,
            capture_output=True,
            cwd=tmp_path,
            env=settings,
            timeout=120,
            check=False,
        )
        ran = Ran(done.returncode, done.stdout.decode(), done.stderr.decode())
        assert ran.code == code, ran
        if "TFR_DEBUG" not in settings:
            assert "Traceback" not in ran.err, ran.err
        return ran

    return run


def png(width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (width, height)).save(file, format="PNG")
    return file.getvalue()


def sample_records(num_records: int = 10) -> list[bytes]:
    """Examples with an image, a label, a float, a text and a list whose length differs; one lacks the text."""
    return [
        encode_example(
            {
                b"image": ("bytes", [png(12, 7)]),
                b"label": ("int64", [number]),
                b"weight": ("float", [number / 4]),
                b"tokens": ("int64", list(range(number * 3))),
                **({b"text": ("bytes", [f"grüße {number}".encode()])} if number != 4 else {}),
            }
        )
        for number in range(num_records)
    ]


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    path = tmp_path / "sample.tfrecord"
    path.write_bytes(write_frames(sample_records()))
    return path


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """Three shards in a folder, one of them gzip and one with no records."""
    folder = tmp_path / "data"
    folder.mkdir()
    records = sample_records()
    (folder / "train-00000-of-00003.tfrecord").write_bytes(write_frames(records[:6]))
    (folder / "train-00001-of-00003.tfrecord").write_bytes(gzip.compress(write_frames(records[6:])))
    (folder / "train-00002-of-00003.tfrecord").write_bytes(b"")
    return folder


@pytest.fixture
def sequences(tmp_path: Path) -> Path:
    path = tmp_path / "sequences.tfrecord"
    records = [
        encode_sequence_example(
            {b"name": ("bytes", [f"clip {number}".encode()])},
            {b"frame": [("int64", [number, step]) for step in range(number + 1)]},
        )
        for number in range(3)
    ]
    path.write_bytes(write_frames(records))
    return path


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    path = tmp_path / "lines.tfrecord"
    path.write_bytes(write_frames([b"first line", b"second line", b"\xff\x00\x01\x02"]))
    return path
