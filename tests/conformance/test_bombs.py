"""Bombs: small files that claim or inflate to gigabytes. Ten seconds, one gigabyte, the right answer, no traceback."""

from __future__ import annotations

import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

BOMBS = Path(__file__).parent / "bad" / "bombs"
MAX_SECONDS = 10.0
MEGABYTE = 1 << 20
# Of the one file whose claim may be true, a record of 1 GiB, half of which is there: it is held twice.
MAX_NBYTES = {"length_1_gib.tfrecord.xz": 1200 * MEGABYTE}

ZEROS = r"record 3, bytes 57 to \d+: length checksum mismatch, stored 0x00000000, computed 0x07980329"
TOO_LONG = r"record 3, bytes 57 to \d+: length 1099511627776 is more than the "
NOT_DECODED = "expected an image of format PNG, WEBP, BMP, GIF, TIFF, JPEG, got "
TOO_LARGE = "record 0, byte 0: feature 'image' image expected at most 178956970 pixels, got "
# What `tfr verify` says, as a pattern, of images with --deep, and the exit code of it.
ANSWERS: dict[str, tuple[int, str]] = {
    **{f"zeros.tfrecord.{suffix}": (1, ZEROS) for suffix in ("gz", "zlib", "xz", "zst")},
    "empty_records.tfrecord.gz": (0, "ok, 2,097,152 records"),
    "empty_records.tfrecord.zst": (0, "ok, 4,194,304 records"),
    "empty_records.tfrecord.zlib": (0, "ok, 1,048,576 records"),
    "empty_records.tfrecord.xz": (0, "ok, 1,048,576 records"),
    "length_1_tib.tfrecord.zlib": (1, TOO_LONG),
    "length_1_tib.tfrecord.xz": (1, TOO_LONG),
    "length_1_tib.tfrecord.gz": (1, TOO_LONG),
    "length_1_tib.tfrecord.zst": (1, TOO_LONG),
    "length_1_gib.tfrecord.xz": (1, r"record 3, bytes 57 to \d+: shard ends inside a frame, expected 1073741824 bytes"),
    "png_of_400_million_pixels.tfrecord": (1, TOO_LARGE + "20000x20000"),
    "png_of_a_trillion_pixels.tfrecord": (1, TOO_LARGE + "1048576x1048576"),
    "jpeg_of_4_billion_pixels.tfrecord": (1, TOO_LARGE + "65500x65500"),
    "jpeg_of_3000_scans.tfrecord.gz": (1, "feature 'image' JPEG expected at most 500 scans, got 3005"),
    "gif_of_4_billion_pixels.tfrecord": (1, TOO_LARGE + "65535x65535"),
    "bmp_of_4_billion_pixels.tfrecord": (1, TOO_LARGE + "65000x65000"),
    "tiff_of_4_billion_pixels.tfrecord": (1, TOO_LARGE + "65000x65000"),
    "avif_of_4_billion_pixels.tfrecord": (1, NOT_DECODED + "AVIF"),
    "heif_of_4_billion_pixels.tfrecord": (1, NOT_DECODED + "HEIF"),
    "webp_of_268_million_pixels.tfrecord": (1, TOO_LARGE + "16383x16383"),
}
STREAMS = [name for name, (_, answer) in ANSWERS.items() if "image" not in answer]
IMAGES = [name for name in ANSWERS if name not in STREAMS]


@dataclass
class Ran:
    code: int
    text: str
    seconds: float
    nbytes: int


def run(tmp_path: Path, *arguments: str) -> Ran:
    """Run `tfr` in a process of its own; CPU seconds, because the machine may be busy."""
    path = tmp_path / "printed"
    child = os.fork()
    if child == 0:
        try:
            with path.open("wb") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
            os.environ["XDG_CACHE_HOME"] = str(tmp_path / "cache")
            os.execv(sys.executable, [sys.executable, "-m", "tfrkit", *arguments])
        finally:
            os._exit(99)
    _, status, used = os.wait4(child, 0)
    seconds = used.ru_utime + used.ru_stime
    return Ran(os.waitstatus_to_exitcode(status), path.read_text(), seconds, used.ru_maxrss << 10)


def check(ran: Ran, name: str) -> None:
    assert "Traceback" not in ran.text
    assert ran.seconds < MAX_SECONDS
    assert ran.nbytes < MAX_NBYTES.get(name, 1000 * MEGABYTE)


def test_every_bomb_has_an_answer() -> None:
    assert {path.name for path in BOMBS.iterdir() if path.suffix != ".py"} - {"__pycache__"} == ANSWERS.keys()


@pytest.mark.resources
@pytest.mark.parametrize("name", ANSWERS)
def test_verify_names_the_bomb(name: str, tmp_path: Path) -> None:
    code, answer = ANSWERS[name]
    ran = run(tmp_path, "verify", *(["--deep"] if name in IMAGES else []), str(BOMBS / name))
    check(ran, name)
    assert re.search(answer, ran.text)
    assert ran.code == code


@pytest.mark.resources
@pytest.mark.parametrize("name", STREAMS)
def test_records_before_the_bomb_are_read_and_it_is_not_counted(name: str, tmp_path: Path) -> None:
    head = run(tmp_path, "head", "-n", "2", str(BOMBS / name))
    check(head, name)
    assert head.code == 0 and "record 1" in head.text
    count = run(tmp_path, "count", str(BOMBS / name))
    check(count, name)
    assert count.code == (0 if ANSWERS[name][0] == 0 else 3)


@pytest.mark.resources
@pytest.mark.parametrize("name", IMAGES)
def test_bomb_is_no_picture_and_its_bytes_are_copied(name: str, tmp_path: Path) -> None:
    sheet = run(tmp_path, "sheet", str(BOMBS / name), "-o", str(tmp_path / "sheet.png"))
    check(sheet, name)
    assert sheet.code == 1
    export = run(tmp_path, "export", "images", str(BOMBS / name), "-o", str(tmp_path / "out"))
    check(export, name)
    assert export.code == 0
    stats = run(tmp_path, "stats", str(BOMBS / name))
    check(stats, name)
    assert stats.code == 0
